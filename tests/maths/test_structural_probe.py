"""Structural probes: planted trees are found, noise is not; the gradient is autograd's; together is alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from bertology.maths import structural_fit
from bertology.maths.spanning_trees import tree_depths, tree_distances
from bertology.maths.structural_fit import Schedule, fit
from bertology.maths.structural_probe import Member, Probes, gradients, initial, losses, members_of
from bertology.maths.tree_batch import TreeBatch, TreeSentence, trees_of

WIDTH = 24
LENGTHS = (3, 9, 5, 12, 7)


def _mean_losses(weights: Tensor, members: Sequence[Member], batches: Sequence[TreeBatch]) -> Tensor:
    """(layer, member) over all sentences."""
    return torch.cat([losses(weights, members, batch) for batch in batches], -1).mean(-1)


def heads_of(count: int, generator: np.random.Generator) -> list[int]:
    return [-1, *(int(generator.integers(word)) for word in range(1, count))]


def embedded(heads: list[int], width: int) -> Tensor:
    """Every edge has a direction of its own: squared distances are tree distances, squared lengths depths."""
    states = torch.zeros(len(heads), width)
    for word, head in enumerate(heads):
        if head >= 0:
            states[word] = states[head]
            states[word, word] += 1
    return states


def batch_of(seed: int, lengths: tuple[int, ...] = LENGTHS, layers: int = 2) -> TreeBatch:
    """Layer 0 is noise, the last one embeds the tree behind a fixed mixing of its coordinates."""
    generator = np.random.default_rng(seed)
    mixing = torch.from_numpy(np.random.default_rng(99).normal(size=(WIDTH, WIDTH)).astype(np.float32)) / 3
    sentences: list[TreeSentence] = []
    for length in lengths:
        heads = heads_of(length, generator)
        states = torch.from_numpy(generator.normal(size=(layers, length, WIDTH)).astype(np.float32))
        states[-1] = embedded(heads, WIDTH) @ mixing
        distances, depths = (torch.from_numpy(measure(heads)).float() for measure in (tree_distances, tree_depths))
        sentences.append(TreeSentence(states, distances, depths))
    states, distances, depths = zip(*sentences, strict=True)
    return TreeBatch(torch.cat(states, 1), trees_of(distances, depths))


def plain_loss(sentence: TreeSentence, layer: int, weights: Tensor, kind: str) -> Tensor:
    """One sentence and one probe, written out as in the paper."""
    moved = sentence.states[layer] @ weights
    if kind == "depth":
        return (moved.square().sum(-1) - sentence.depths).abs().sum() / len(moved)
    apart = (moved[:, None] - moved[None]).square().sum(-1)
    return (apart - sentence.distances).abs().sum() / len(moved) ** 2


def test_losses_and_gradient_are_those_of_the_formula() -> None:
    batch = batch_of(1)
    members = members_of(("distance", "depth"), (2, 7), (0, 1))
    weights = initial(members, 2, WIDTH) * 6
    found, gradient = losses(weights, members, batch), gradients(weights, members, batch)
    leaf = weights.clone().requires_grad_()
    total = torch.zeros(())
    start = 0
    for number, member in enumerate(members):
        own = leaf[:, :, start : start + member.rank]
        start += member.rank
        for layer in range(2):
            one = torch.stack([plain_loss(some, layer, own[layer], member.kind) for some in batch.sentences()])
            assert_close(found[layer, number], one, rtol=1e-4, atol=1e-4)
            total = total + one.mean()
    total.backward()
    assert leaf.grad is not None
    assert_close(gradient, leaf.grad, rtol=1e-3, atol=1e-4)


def test_a_planted_tree_is_found_and_noise_is_not() -> None:
    batches, held_out, test = [batch_of(seed) for seed in range(2, 40)], [batch_of(60)], batch_of(61)
    members = members_of(("distance", "depth"), (WIDTH,), (0,))
    probes = fit(batches, held_out, members, Schedule(epochs=200, rate=0.02))
    missed = _mean_losses(probes.weights, members, [test])
    assert missed[1].max() < 0.1
    assert missed[0].min() > 0.4


def test_fitted_together_each_is_what_it_is_alone() -> None:
    batches, held_out = [batch_of(seed) for seed in range(5)], [batch_of(9)]
    members = members_of(("distance", "depth"), (1, 4), (0, 3))
    schedule = Schedule(epochs=25, rate=0.01)
    together = fit(batches, held_out, members, schedule)
    assert len(set(together.epochs.flatten().tolist())) > 1, "all stopped at once: nothing is shown"
    start = 0
    for number, member in enumerate(members):
        for layer in range(2):
            one = [batch.of_layers([layer]) for batch in batches]
            alone = fit(one, [held_out[0].of_layers([layer])], [member], schedule)
            own = together.weights[layer, :, start : start + member.rank]
            assert_close(own, alone.weights[0], rtol=1e-3, atol=1e-4)
            assert int(together.epochs[layer, number]) == int(alone.epochs[0, 0])
        start += member.rank


def test_layers_at_once_come_out_as_one_by_one() -> None:
    batches, held_out = [batch_of(seed, layers=3) for seed in range(5)], [batch_of(9, layers=3)]
    members = members_of(("distance", "depth"), (1, 4), (0, 3))
    single, several = (
        fit(batches, held_out, members, Schedule(epochs=25, rate=0.01), at_once=layers) for layers in (1, 3)
    )
    assert len(set(several.epochs.flatten().tolist())) > 1, "all stopped at once: nothing is shown"
    assert torch.equal(single.epochs, several.epochs)
    assert_close(single.weights, several.weights, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("fresh", [True, False])
def test_ending_a_probe_whose_best_is_clear_changes_nothing(fresh: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    batches, held_out = [batch_of(seed) for seed in range(8)], [batch_of(seed) for seed in (20, 21)]
    members, taken = members_of(("distance", "depth"), (5,), range(3)), Counter[float]()

    def fitted(further: float) -> Probes:
        def counted(weights: Tensor, some: Sequence[Member], batch: TreeBatch) -> Tensor:
            taken[further] += len(some)
            return gradients(weights, some, batch)

        monkeypatch.setattr(structural_fit, "FURTHER", further)
        monkeypatch.setattr(structural_fit, "gradients", counted)
        return fit(batches, held_out, members, Schedule(epochs=40, rate=0.03, fresh=fresh))

    ended, patient = fitted(structural_fit.FURTHER), fitted(float("inf"))
    assert torch.equal(ended.epochs, patient.epochs)
    assert_close(ended.weights, patient.weights, rtol=1e-3, atol=1e-4)
    assert taken.total() - taken[float("inf")] < 0.97 * taken[float("inf")], "none ended early: nothing is shown"


def test_the_rate_falls_and_the_best_epoch_is_kept() -> None:
    batches, held_out = [batch_of(seed) for seed in range(3)], [batch_of(9)]
    members = [Member("distance", WIDTH, 0)]
    probes = fit(batches, held_out, members, Schedule(epochs=40, rate=0.05))
    assert_close(_mean_losses(probes.weights, members, held_out), probes.losses)
    start = _mean_losses(initial(members, 2, WIDTH), members, held_out)
    assert (probes.losses <= start).all()


def test_memory_of_the_moments_makes_a_difference() -> None:
    batches, held_out = [batch_of(seed) for seed in range(4)], [batch_of(9)]
    members = [Member("distance", 8, 0)]
    reset, kept = (
        fit(batches, held_out, members, Schedule(epochs=30, rate=0.05, fresh=fresh)) for fresh in (True, False)
    )
    assert not torch.equal(reset.weights, kept.weights)


def test_distances_and_depths_of_fitted_probes() -> None:
    batch = batch_of(1)
    members = members_of(("distance", "depth"), (3, 5), (0, 1))
    probes = fit([batch], [batch], members, Schedule(epochs=2))
    states = batch.sentences()[1].states
    weights = probes.weights[:, :, 2 * 3 : 2 * 3 + 2 * 5].unflatten(-1, (2, 5))
    moved = torch.einsum("lnw,lwsr->lsnr", states, weights)
    apart = (moved[..., :, None, :] - moved[..., None, :, :]).square().sum(-1)
    assert_close(probes.distances(states, 5), apart, rtol=1e-3, atol=1e-4)
    depth = probes.weights[:, :, 16 + 6 : 16 + 6 + 10].unflatten(-1, (2, 5))
    assert_close(probes.depths(states, 5), torch.einsum("lnw,lwsr->lsnr", states, depth).square().sum(-1))


def plainly_fitted(layer: int, member: Member, schedule: Schedule) -> tuple[Tensor, int, int]:
    """One probe by PyTorch's own gradients and Adam: its best weights, best epoch, and how often the rate was cut."""
    batches, held_out = [batch_of(seed) for seed in range(6)], batch_of(9)
    weights = initial([member], 1, WIDTH)[0].requires_grad_()

    def loss(batch: TreeBatch) -> Tensor:
        some = [plain_loss(sentence, layer, weights, member.kind) for sentence in batch.sentences()]
        return torch.stack(some).mean()

    generator = torch.Generator().manual_seed(schedule.seed)
    rate, lowest, best_epoch, cuts, best = schedule.rate, float("inf"), 0, 0, weights.detach().clone()
    adam = torch.optim.Adam([weights], lr=rate)
    for epoch in range(schedule.epochs):
        for place in torch.randperm(6, generator=generator).tolist():
            adam.zero_grad()
            loss(batches[place]).backward()
            adam.step()
        found = float(loss(held_out).detach())
        if found < lowest:
            lowest, best_epoch, best = found, epoch, weights.detach().clone()
        else:
            rate, cuts = rate / 10, cuts + 1
            adam = torch.optim.Adam([weights], lr=rate)
        if epoch - best_epoch > 4:
            break
    return best, best_epoch + 1, cuts


def test_a_fit_is_that_of_adam_whose_rate_is_cut() -> None:
    batches, schedule = [batch_of(seed) for seed in range(6)], Schedule(epochs=12, rate=0.03, seed=4)
    cuts = 0
    for member in (Member("distance", 5, 2), Member("depth", 3, 1)):
        found = fit(batches, [batch_of(9)], [member], schedule)
        for layer in range(2):
            weights, epochs, own = plainly_fitted(layer, member, schedule)
            assert int(found.epochs[layer, 0]) == epochs
            assert_close(found.weights[layer], weights, rtol=1e-2, atol=1e-3)
            cuts += own
    assert cuts, "the rate was never cut: nothing is shown"
