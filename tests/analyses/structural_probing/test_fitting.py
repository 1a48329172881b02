"""Structural probes find planted trees and nothing in noise; gradients are autograd's; probes do not interact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from bertology.analyses.structural_probing import fitting
from bertology.analyses.structural_probing.fitting import FitSchedule, fit_structural_probes
from bertology.analyses.structural_probing.probe import (
    ProbeSpec,
    StructuralProbes,
    initial_weights,
    losses,
    probe_gradients,
    probe_specs,
)
from bertology.analyses.structural_probing.tree_batch import TreeBatch, TreeSentence, pack_trees
from bertology.numerics.spanning_trees import tree_depths, tree_distances

WIDTH = 24
LENGTHS = (3, 9, 5, 12, 7)


def mean_losses(weights: Tensor, specs: Sequence[ProbeSpec], batches: Sequence[TreeBatch]) -> Tensor:
    """(layer, probe) mean losses over all sentences."""
    return torch.cat([losses(weights, specs, batch) for batch in batches], -1).mean(-1)


def random_governors(n_words: int, generator: np.random.Generator) -> list[int]:
    return [-1, *(int(generator.integers(word)) for word in range(1, n_words))]


def exact_states(governors: list[int], width: int) -> Tensor:
    """States with an axis per edge: squared distances are tree distances, squared norms depths."""
    states = torch.zeros(len(governors), width)
    for word, governor in enumerate(governors):
        if governor >= 0:
            states[word] = states[governor]
            states[word, word] += 1
    return states


def make_batch(seed: int, lengths: tuple[int, ...] = LENGTHS, n_layers: int = 2) -> TreeBatch:
    """Layer 0 is noise; the last layer embeds the tree after a fixed linear map."""
    generator = np.random.default_rng(seed)
    linear_map = torch.from_numpy(np.random.default_rng(99).normal(size=(WIDTH, WIDTH)).astype(np.float32)) / 3
    sentences: list[TreeSentence] = []
    for length in lengths:
        governors = random_governors(length, generator)
        states = torch.from_numpy(generator.normal(size=(n_layers, length, WIDTH)).astype(np.float32))
        states[-1] = exact_states(governors, WIDTH) @ linear_map
        distances, depths = (torch.from_numpy(measure(governors)).float() for measure in (tree_distances, tree_depths))
        sentences.append(TreeSentence(states, distances, depths))
    states, distances, depths = zip(*sentences, strict=True)
    return TreeBatch(torch.cat(states, 1), pack_trees(distances, depths))


def reference_loss(sentence: TreeSentence, layer: int, weights: Tensor, kind: str) -> Tensor:
    """The loss of one sentence and one probe, as defined in the paper."""
    projected = sentence.states[layer] @ weights
    if kind == "depth":
        return (projected.square().sum(-1) - sentence.depths).abs().sum() / len(projected)
    squared_distances = (projected[:, None] - projected[None]).square().sum(-1)
    return (squared_distances - sentence.distances).abs().sum() / len(projected) ** 2


def test_losses_and_gradients_are_those_of_the_formula() -> None:
    batch = make_batch(1)
    specs = probe_specs(("distance", "depth"), (2, 7), (0, 1))
    weights = initial_weights(specs, 2, WIDTH) * 6
    computed, gradient = losses(weights, specs, batch), probe_gradients(weights, specs, batch)
    leaf = weights.clone().requires_grad_()
    total = torch.zeros(())
    start = 0
    for index, spec in enumerate(specs):
        probe_weights = leaf[:, :, start : start + spec.rank]
        start += spec.rank
        for layer in range(2):
            expected = torch.stack(
                [reference_loss(sentence, layer, probe_weights[layer], spec.kind) for sentence in batch.sentences()]
            )
            assert_close(computed[layer, index], expected, rtol=1e-4, atol=1e-4)
            total = total + expected.mean()
    total.backward()
    assert leaf.grad is not None
    assert_close(gradient, leaf.grad, rtol=1e-3, atol=1e-4)


def test_a_planted_tree_is_found_and_noise_is_not() -> None:
    batches, validation, test = [make_batch(seed) for seed in range(2, 40)], [make_batch(60)], make_batch(61)
    specs = probe_specs(("distance", "depth"), (WIDTH,), (0,))
    probes = fit_structural_probes(batches, validation, specs, FitSchedule(epochs=200, learning_rate=0.02))
    test_losses = mean_losses(probes.weights, specs, [test])
    assert test_losses[1].max() < 0.1
    assert test_losses[0].min() > 0.4


def test_probes_fitted_together_equal_probes_fitted_alone() -> None:
    batches, validation = [make_batch(seed) for seed in range(5)], [make_batch(9)]
    specs = probe_specs(("distance", "depth"), (1, 4), (0, 3))
    schedule = FitSchedule(epochs=25, learning_rate=0.01)
    together = fit_structural_probes(batches, validation, specs, schedule)
    assert len(set(together.epochs.flatten().tolist())) > 1, "all probes stopped at the same epoch"
    start = 0
    for index, spec in enumerate(specs):
        for layer in range(2):
            layer_batches = [batch.select_layers([layer]) for batch in batches]
            layer_validation = [batch.select_layers([layer]) for batch in validation]
            alone = fit_structural_probes(layer_batches, layer_validation, [spec], schedule)
            weights = together.weights[layer, :, start : start + spec.rank]
            assert_close(weights, alone.weights[0], rtol=1e-3, atol=1e-4)
            assert int(together.epochs[layer, index]) == int(alone.epochs[0, 0])
        start += spec.rank


def test_layers_fitted_together_equal_layers_fitted_one_by_one() -> None:
    batches, validation = [make_batch(seed, n_layers=3) for seed in range(5)], [make_batch(9, n_layers=3)]
    specs = probe_specs(("distance", "depth"), (1, 4), (0, 3))
    schedule = FitSchedule(epochs=25, learning_rate=0.01)
    single, together = (
        fit_structural_probes(batches, validation, specs, schedule, layers_per_chunk=size) for size in (1, 3)
    )
    assert len(set(together.epochs.flatten().tolist())) > 1, "all probes stopped at the same epoch"
    assert torch.equal(single.epochs, together.epochs)
    assert_close(single.weights, together.weights, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("reset_moments", [True, False])
def test_stopping_a_probe_whose_best_epoch_is_certain_changes_nothing(
    reset_moments: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, validation = [make_batch(seed) for seed in range(8)], [make_batch(seed) for seed in (20, 21)]
    specs = probe_specs(("distance", "depth"), (5,), range(3))
    n_gradients = Counter[float]()

    def fit(max_remaining_change: float) -> StructuralProbes:
        def counted_gradients(weights: Tensor, active_specs: Sequence[ProbeSpec], batch: TreeBatch) -> Tensor:
            n_gradients[max_remaining_change] += len(active_specs)
            return probe_gradients(weights, active_specs, batch)

        monkeypatch.setattr(fitting, "MAX_REMAINING_CHANGE", max_remaining_change)
        monkeypatch.setattr(fitting, "probe_gradients", counted_gradients)
        schedule = FitSchedule(epochs=40, learning_rate=0.03, reset_moments=reset_moments)
        return fit_structural_probes(batches, validation, specs, schedule)

    early, patient = fit(fitting.MAX_REMAINING_CHANGE), fit(float("inf"))
    assert torch.equal(early.epochs, patient.epochs)
    assert_close(early.weights, patient.weights, rtol=1e-3, atol=1e-4)
    n_patient = n_gradients[float("inf")]
    assert n_gradients.total() - n_patient < 0.97 * n_patient, "no probe stopped early"


def test_the_weights_of_the_best_epoch_are_used() -> None:
    batches, validation = [make_batch(seed) for seed in range(3)], [make_batch(9)]
    specs = [ProbeSpec("distance", WIDTH, 0)]
    probes = fit_structural_probes(batches, validation, specs, FitSchedule(epochs=40, learning_rate=0.05))
    assert_close(mean_losses(probes.weights, specs, validation), probes.losses)
    initial = mean_losses(initial_weights(specs, 2, WIDTH), specs, validation)
    assert (probes.losses <= initial).all()


def test_resetting_moments_makes_a_difference() -> None:
    batches, validation = [make_batch(seed) for seed in range(4)], [make_batch(9)]
    with_reset, without_reset = (
        fit_structural_probes(
            batches,
            validation,
            [ProbeSpec("distance", 8, 0)],
            FitSchedule(epochs=30, learning_rate=0.05, reset_moments=reset_moments),
        )
        for reset_moments in (True, False)
    )
    assert not torch.equal(with_reset.weights, without_reset.weights)


def test_distances_and_depths_are_those_of_projected_states() -> None:
    batch = make_batch(1)
    specs = probe_specs(("distance", "depth"), (3, 5), (0, 1))
    probes = fit_structural_probes([batch], [batch], specs, FitSchedule(epochs=2))
    states = batch.sentences()[1].states
    distance_weights = probes.weights[:, :, 2 * 3 : 2 * 3 + 2 * 5].unflatten(-1, (2, 5))
    projected = torch.einsum("lnw,lwsr->lsnr", states, distance_weights)
    squared_distances = (projected[..., :, None, :] - projected[..., None, :, :]).square().sum(-1)
    assert_close(probes.distances(states, 5), squared_distances, rtol=1e-3, atol=1e-4)
    depth_weights = probes.weights[:, :, 16 + 6 : 16 + 6 + 10].unflatten(-1, (2, 5))
    assert_close(probes.depths(states, 5), torch.einsum("lnw,lwsr->lsnr", states, depth_weights).square().sum(-1))


def fit_reference(layer: int, spec: ProbeSpec, schedule: FitSchedule) -> tuple[Tensor, int, int]:
    """Best weights, best epoch and number of learning rate drops of one probe, by autograd and PyTorch's Adam."""
    batches, validation = [make_batch(seed) for seed in range(6)], make_batch(9)
    weights = initial_weights([spec], 1, WIDTH)[0].requires_grad_()

    def loss(batch: TreeBatch) -> Tensor:
        by_sentence = [reference_loss(sentence, layer, weights, spec.kind) for sentence in batch.sentences()]
        return torch.stack(by_sentence).mean()

    generator = torch.Generator().manual_seed(schedule.seed)
    learning_rate, n_drops = schedule.learning_rate, 0
    best_loss, best_epoch, best_weights = float("inf"), 0, weights.detach().clone()
    adam = torch.optim.Adam([weights], lr=learning_rate)
    for epoch in range(schedule.epochs):
        for index in torch.randperm(6, generator=generator).tolist():
            adam.zero_grad()
            loss(batches[index]).backward()
            adam.step()
        validation_loss = float(loss(validation).detach())
        if validation_loss < best_loss:
            best_loss, best_epoch, best_weights = validation_loss, epoch, weights.detach().clone()
        else:
            learning_rate, n_drops = learning_rate / 10, n_drops + 1
            adam = torch.optim.Adam([weights], lr=learning_rate)
        if epoch - best_epoch > 4:
            break
    return best_weights, best_epoch + 1, n_drops


def test_a_fit_equals_adam_with_a_dropping_learning_rate() -> None:
    batches, schedule = [make_batch(seed) for seed in range(6)], FitSchedule(epochs=12, learning_rate=0.03, seed=4)
    total_drops = 0
    for spec in (ProbeSpec("distance", 5, 2), ProbeSpec("depth", 3, 1)):
        probes = fit_structural_probes(batches, [make_batch(9)], [spec], schedule)
        for layer in range(2):
            weights, best_epoch, n_drops = fit_reference(layer, spec, schedule)
            assert int(probes.epochs[layer, 0]) == best_epoch
            assert_close(probes.weights[layer], weights, rtol=1e-2, atol=1e-3)
            total_drops += n_drops
    assert total_drops, "the learning rate never dropped"
