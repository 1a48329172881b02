"""Arc probes equal loops over words, find planted arcs, and train many seeds as they would train one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from bertology.maths.arc_probe import (
    UNSCORED,
    ArcBatch,
    AttentionProbe,
    AttentionWordsProbe,
    DistanceProbe,
    distance_features,
    loss,
    predict,
    train,
)

MAPS, WIDTH = 4, 6


def made(seed: int = 0, size: int = 3, words: int = 5) -> ArcBatch:
    """Random maps and random trees; the first sentence is one word shorter than the others."""
    generator = torch.Generator().manual_seed(seed)
    there = torch.ones(size, words, dtype=torch.bool)
    there[0, -1] = False
    gold = torch.stack([_random_heads(words, generator) for _ in range(size)])
    gold[0] = torch.where(gold[0] > words - 1, 0, gold[0])
    gold[0, -1] = UNSCORED
    return ArcBatch(
        torch.rand(size, words, MAPS, words, generator=generator),
        torch.rand(size, words, MAPS, 4, generator=generator),
        torch.randn(size, words, WIDTH, generator=generator),
        gold,
        there,
    )


def _random_heads(words: int, generator: torch.Generator) -> Tensor:
    """Candidates, none of them the word itself."""
    steps = torch.randint(1, words + 1, (words,), generator=generator)
    return (torch.arange(words) + 1 + steps) % (words + 1)


@pytest.mark.parametrize("shifted", [False, True])
def test_attention_and_words_equals_a_loop(shifted: bool) -> None:
    batch = made()
    probe = AttentionWordsProbe(MAPS, WIDTH, [0, 1], shifted=shifted)
    with torch.no_grad():
        probe.bias.add_(0.3)
        probe.mixture[:, 1] = 0.25
        scores = probe(batch)
    for seed, row, i in np.ndindex(2, 3, 5):
        own = batch.vectors[row, i] @ probe.of_dependent[seed] + probe.bias[seed, 0]
        after = torch.cat([batch.vectors[row], torch.zeros(1, WIDTH)])
        for j in range(5):
            if j == i or not batch.there[row, j]:
                assert scores[seed, row, i, 1 + j] == float("-inf")
                continue
            to, back = (own + after[j + shifted] @ probe.of_head[seed]).view(2, MAPS)
            expected = (to * batch.maps[row, i, :, j] + back * batch.maps[row, j, :, i]).sum()
            torch.testing.assert_close(scores[seed, row, i, 1 + j], expected, rtol=1e-4, atol=1e-5)
        root = after[0] @ probe.of_head[seed] if shifted else 0
        to, back = (own + root).view(2, MAPS)
        first, last = probe.mixture[seed]
        edges = batch.edges[row, i]
        expected = (to * (first * edges[:, 0] + last * edges[:, 1])).sum()
        expected = expected + (back * (first * edges[:, 2] + last * edges[:, 3])).sum()
        torch.testing.assert_close(scores[seed, row, i, 0], expected, rtol=1e-4, atol=1e-5)


def test_attention_alone_is_attention_and_words_with_a_bias_only() -> None:
    batch = made()
    alone, words = AttentionProbe(MAPS, [0, 1]), AttentionWordsProbe(MAPS, WIDTH, [0, 1])
    with torch.no_grad():
        words.of_dependent.zero_()
        words.of_head.zero_()
        words.bias.copy_(alone.weights.view(2, 1, 2 * MAPS))
    torch.testing.assert_close(alone(batch), words(batch))


def test_distances_are_clarks_eight_features() -> None:
    features = distance_features(torch.tensor([[True] * 4 + [False]]))
    assert features.shape == (1, 5, 6, 8)
    torch.testing.assert_close(features[0, 1, 1 + 3], torch.tensor([2 / 4, 0, 0, 0, 0, 0, 1, 0.0]))  # two ahead of four
    torch.testing.assert_close(features[0, 3, 1 + 0], torch.tensor([0, 3 / 4, 0, 0, 0, 0, 0, 0.0]))  # three behind
    torch.testing.assert_close(features[0, 2, 0], torch.tensor([0, 0, 0, 0, 0, 0, 0, 1.0]))  # the ROOT


def test_padding_changes_no_score() -> None:
    batch = made(size=1)
    short = ArcBatch(
        batch.maps[:, :4, :, :4], batch.edges[:, :4], batch.vectors[:, :4], batch.gold[:, :4], batch.there[:, :4]
    )
    for probe in (AttentionProbe(MAPS, [0]), AttentionWordsProbe(MAPS, WIDTH, [0]), DistanceProbe(WIDTH, 5, [0])):
        torch.testing.assert_close(probe(batch)[:, :, :4, :5], probe(short))
        torch.testing.assert_close(loss(probe(batch), batch.gold), loss(probe(short), short.gold))


def test_the_loss_equals_the_cross_entropy() -> None:
    batch = made()
    scores = AttentionProbe(MAPS, [0, 1])(batch)
    for seed in range(2):
        expected = torch.nn.functional.cross_entropy(scores[seed].flatten(0, 1), batch.gold.flatten(), ignore_index=-1)
        torch.testing.assert_close(loss(scores, batch.gold)[seed], expected)


def test_seeds_together_are_trained_as_each_alone() -> None:
    batches = [made(seed) for seed in range(3)]
    for make in (partial(AttentionWordsProbe, MAPS, WIDTH), partial(DistanceProbe, WIDTH, 5)):
        together = make([3, 4])
        train(together, batches, epochs=4, rate=0.05, seed=0)
        for place, seed in enumerate((3, 4)):
            alone = make([seed])
            train(alone, batches, epochs=4, rate=0.05, seed=0)
            for ours, own in zip(together.parameters(), alone.parameters(), strict=True):
                torch.testing.assert_close(ours[place], own[0], rtol=1e-4, atol=1e-5)


def planted(batch: ArcBatch, place: int, *, back: bool) -> ArcBatch:
    """One map holds the gold arcs, from dependent to head or from head to dependent."""
    maps, edges = 0.2 * batch.maps, 0.2 * batch.edges
    for row, word in torch.nonzero(batch.gold != UNSCORED).tolist():
        head = int(batch.gold[row, word]) - 1
        if head < 0:
            edges[row, word, place] = 1
        else:
            maps[(row, head, place, word) if back else (row, word, place, head)] = 1
    return replace(batch, maps=maps.half(), edges=edges.half())


@pytest.mark.parametrize("back", [False, True])
def test_planted_arcs_are_found_and_noise_is_not(back: bool) -> None:
    lessons = [planted(made(seed, 8, 7), 2, back=back) for seed in range(6)]
    test = planted(made(99, 20, 7), 2, back=back)
    for probe in (AttentionProbe(MAPS, [0, 1]), AttentionWordsProbe(MAPS, WIDTH, [0, 1])):
        train(probe, lessons, epochs=15, rate=0.1, seed=0)
        counted = test.gold != UNSCORED
        assert (predict(probe, test) == test.gold)[:, counted].float().mean() > 0.98
    noise = AttentionProbe(MAPS, [0, 1])
    train(noise, [made(seed, 8, 7) for seed in range(6)], epochs=15, rate=0.1, seed=0)
    test = made(99, 60, 7)
    right = (predict(noise, test) == test.gold)[:, test.gold != UNSCORED].float().mean()
    assert abs(float(right) - 1 / 7) < 0.06  # the ROOT and six other words


def test_distances_find_a_fixed_offset() -> None:
    def chain(seed: int) -> ArcBatch:
        batch = made(seed, 6, 6)
        gold = torch.tensor([2, 3, 4, 5, 6, 0]).repeat(6, 1)
        return replace(batch, gold=gold, there=torch.ones_like(batch.there))

    probe = DistanceProbe(WIDTH, 16, [0])
    train(probe, [chain(seed) for seed in range(4)], epochs=40, rate=0.05, seed=0)
    test = chain(9)
    assert (predict(probe, test)[0] == test.gold)[:, :-1].all()
