"""Arc probes equal loops over words, predict planted arcs, and train several seeds like single ones."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from bertology.analyses.heads.parsing_probe.models import (
    UNUSED_LABEL,
    ArcBatch,
    AttentionProbe,
    AttentionWordsProbe,
    DistanceProbe,
    arc_loss,
    distance_features,
    predict_governors,
    train_arc_probe,
)

HEADS, WIDTH = 4, 6


def random_batch(seed: int = 0, size: int = 3, words: int = 5) -> ArcBatch:
    """Random attention and random trees; the first sentence is one word shorter than the others."""
    generator = torch.Generator().manual_seed(seed)
    word_mask = torch.ones(size, words, dtype=torch.bool)
    word_mask[0, -1] = False
    gold = torch.stack([_random_governors(words, generator) for _ in range(size)])
    gold[0] = torch.where(gold[0] > words - 1, 0, gold[0])
    gold[0, -1] = UNUSED_LABEL
    return ArcBatch(
        torch.rand(size, words, HEADS, words, generator=generator),
        torch.rand(size, words, HEADS, 4, generator=generator),
        torch.randn(size, words, WIDTH, generator=generator),
        gold,
        word_mask,
    )


def _random_governors(words: int, generator: torch.Generator) -> Tensor:
    """Random candidates other than the word itself."""
    steps = torch.randint(1, words + 1, (words,), generator=generator)
    return (torch.arange(words) + 1 + steps) % (words + 1)


@pytest.mark.parametrize("shifted", [False, True])
def test_attention_and_words_equals_a_loop(shifted: bool) -> None:
    batch = random_batch()
    probe = AttentionWordsProbe(HEADS, WIDTH, [0, 1], use_next_word=shifted)
    with torch.no_grad():
        probe.bias.add_(0.3)
        probe.mixture[:, 1] = 0.25
        scores = probe(batch)
    for seed, row, i in np.ndindex(2, 3, 5):
        dependent = batch.vectors[row, i] @ probe.dependent_weights[seed] + probe.bias[seed, 0]
        vectors = torch.cat([batch.vectors[row], torch.zeros(1, WIDTH)])
        for j in range(5):
            if j == i or not batch.word_mask[row, j]:
                assert scores[seed, row, i, 1 + j] == float("-inf")
                continue
            forward, back = (dependent + vectors[j + shifted] @ probe.governor_weights[seed]).view(2, HEADS)
            expected = (forward * batch.attention[row, i, :, j] + back * batch.attention[row, j, :, i]).sum()
            torch.testing.assert_close(scores[seed, row, i, 1 + j], expected, rtol=1e-4, atol=1e-5)
        root = vectors[0] @ probe.governor_weights[seed] if shifted else 0
        forward, back = (dependent + root).view(2, HEADS)
        first, last = probe.mixture[seed]
        special = batch.special_attention[row, i]
        expected = (forward * (first * special[:, 0] + last * special[:, 1])).sum()
        expected = expected + (back * (first * special[:, 2] + last * special[:, 3])).sum()
        torch.testing.assert_close(scores[seed, row, i, 0], expected, rtol=1e-4, atol=1e-5)


def test_the_attention_probe_is_the_words_probe_with_only_a_bias() -> None:
    batch = random_batch()
    alone, words = AttentionProbe(HEADS, [0, 1]), AttentionWordsProbe(HEADS, WIDTH, [0, 1])
    with torch.no_grad():
        words.dependent_weights.zero_()
        words.governor_weights.zero_()
        words.bias.copy_(alone.weights.view(2, 1, 2 * HEADS))
    torch.testing.assert_close(alone(batch), words(batch))


def test_distance_features_are_the_eight_of_clark() -> None:
    features = distance_features(torch.tensor([[True] * 4 + [False]]))
    assert features.shape == (1, 5, 6, 8)
    torch.testing.assert_close(features[0, 1, 1 + 3], torch.tensor([2 / 4, 0, 0, 0, 0, 0, 1, 0.0]))  # two ahead of four
    torch.testing.assert_close(features[0, 3, 1 + 0], torch.tensor([0, 3 / 4, 0, 0, 0, 0, 0, 0.0]))  # three behind
    torch.testing.assert_close(features[0, 2, 0], torch.tensor([0, 0, 0, 0, 0, 0, 0, 1.0]))  # ROOT


def test_padding_changes_no_score() -> None:
    batch = random_batch(size=1)
    short = ArcBatch(
        batch.attention[:, :4, :, :4],
        batch.special_attention[:, :4],
        batch.vectors[:, :4],
        batch.gold[:, :4],
        batch.word_mask[:, :4],
    )
    for probe in (AttentionProbe(HEADS, [0]), AttentionWordsProbe(HEADS, WIDTH, [0]), DistanceProbe(WIDTH, 5, [0])):
        torch.testing.assert_close(probe(batch)[:, :, :4, :5], probe(short))
        torch.testing.assert_close(arc_loss(probe(batch), batch.gold), arc_loss(probe(short), short.gold))


def test_the_loss_equals_the_cross_entropy() -> None:
    batch = random_batch()
    scores = AttentionProbe(HEADS, [0, 1])(batch)
    for seed in range(2):
        expected = torch.nn.functional.cross_entropy(scores[seed].flatten(0, 1), batch.gold.flatten(), ignore_index=-1)
        torch.testing.assert_close(arc_loss(scores, batch.gold)[seed], expected)


def test_seeds_trained_together_equal_seeds_trained_alone() -> None:
    batches = [random_batch(seed) for seed in range(3)]
    for make in (partial(AttentionWordsProbe, HEADS, WIDTH), partial(DistanceProbe, WIDTH, 5)):
        together = make([3, 4])
        train_arc_probe(together, batches, epochs=4, learning_rate=0.05, seed=0)
        for index, seed in enumerate((3, 4)):
            alone = make([seed])
            train_arc_probe(alone, batches, epochs=4, learning_rate=0.05, seed=0)
            for joint, single in zip(together.parameters(), alone.parameters(), strict=True):
                torch.testing.assert_close(joint[index], single[0], rtol=1e-4, atol=1e-5)


def plant_arcs(batch: ArcBatch, attention_head: int, *, reverse: bool) -> ArcBatch:
    """One head attends along the gold arcs, from dependent to governor or from governor to dependent."""
    attention, special_attention = 0.2 * batch.attention, 0.2 * batch.special_attention
    for row, word in torch.nonzero(batch.gold != UNUSED_LABEL).tolist():
        governor = int(batch.gold[row, word]) - 1
        if governor < 0:
            special_attention[row, word, attention_head] = 1
        else:
            attention[(row, governor, attention_head, word) if reverse else (row, word, attention_head, governor)] = 1
    return replace(batch, attention=attention.half(), special_attention=special_attention.half())


@pytest.mark.parametrize("reverse", [False, True])
def test_planted_arcs_are_predicted_and_noise_is_not(reverse: bool) -> None:
    train_batches = [plant_arcs(random_batch(seed, 8, 7), 2, reverse=reverse) for seed in range(6)]
    test = plant_arcs(random_batch(99, 20, 7), 2, reverse=reverse)
    for probe in (AttentionProbe(HEADS, [0, 1]), AttentionWordsProbe(HEADS, WIDTH, [0, 1])):
        train_arc_probe(probe, train_batches, epochs=15, learning_rate=0.1, seed=0)
        mask = test.gold != UNUSED_LABEL
        assert (predict_governors(probe, test) == test.gold)[:, mask].float().mean() > 0.98
    noise = AttentionProbe(HEADS, [0, 1])
    train_arc_probe(noise, [random_batch(seed, 8, 7) for seed in range(6)], epochs=15, learning_rate=0.1, seed=0)
    test = random_batch(99, 60, 7)
    accuracy = (predict_governors(noise, test) == test.gold)[:, test.gold != UNUSED_LABEL].float().mean()
    assert abs(float(accuracy) - 1 / 7) < 0.06  # ROOT and six other words


def test_the_distance_probe_learns_a_fixed_offset() -> None:
    def chain(seed: int) -> ArcBatch:
        batch = random_batch(seed, 6, 6)
        gold = torch.tensor([2, 3, 4, 5, 6, 0]).repeat(6, 1)
        return replace(batch, gold=gold, word_mask=torch.ones_like(batch.word_mask))

    probe = DistanceProbe(WIDTH, 16, [0])
    train_arc_probe(probe, [chain(seed) for seed in range(4)], epochs=40, learning_rate=0.05, seed=0)
    test = chain(9)
    assert (predict_governors(probe, test)[0] == test.gold)[:, :-1].all()
