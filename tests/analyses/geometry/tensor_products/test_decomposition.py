"""Tensor product decompositions: planted roles are found, targets do not interact, and the sum is explicit."""

from __future__ import annotations

import numpy as np
import torch

from bertology.analyses.geometry.tensor_products.decomposition import (
    PADDING_ROLE,
    FillerRoleSequences,
    TensorProductDecomposition,
    fit_decomposition,
    reconstruct,
)
from bertology.arrays import Array

N_FILLERS, MAX_LENGTH, FILLER_SIZE, WIDTH = 12, 6, 5, 4


def make_sequences(count: int, seed: int) -> tuple[Array, FillerRoleSequences]:
    """A table of fillers, and random sequences whose roles are positions."""
    generator = np.random.default_rng(seed)
    table = np.random.default_rng(99).normal(size=(N_FILLERS, FILLER_SIZE))
    lengths = generator.integers(2, MAX_LENGTH + 1, size=count)
    fillers = generator.integers(N_FILLERS, size=(count, MAX_LENGTH))
    positions = np.arange(MAX_LENGTH)[None].repeat(count, 0)
    return table, FillerRoleSequences(fillers, np.where(positions < lengths[:, None], positions, PADDING_ROLE))


def planted_vectors(table: Array, sequences: FillerRoleSequences, *, by_position: bool, seed: int = 5) -> Array:
    """Sums of fillers mapped by a random matrix, one per position or one for all."""
    matrices = np.random.default_rng(seed).normal(size=(MAX_LENGTH if by_position else 1, FILLER_SIZE, WIDTH))
    vectors = np.zeros((len(sequences), WIDTH))
    for row, (fillers, roles) in enumerate(zip(sequences.fillers, sequences.roles, strict=True)):
        for filler, role in zip(fillers, roles, strict=True):
            if role != PADDING_ROLE:
                vectors[row] += table[filler] @ matrices[role if by_position else 0]
    return vectors


def test_predictions_equal_the_explicit_sum() -> None:
    table, sequences = make_sequences(7, 0)
    model = TensorProductDecomposition(table, MAX_LENGTH, WIDTH, 2, role_size=3, seeds=(0, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    predicted = reconstruct(model, sequences, batch_size=3)
    weights, roles, bias = (parameter.detach().numpy() for parameter in (model.weights, model.roles, model.bias))
    for target in range(2):
        for row in range(7):
            binding = np.zeros((3, FILLER_SIZE))
            for filler, role in zip(sequences.fillers[row], sequences.roles[row], strict=True):
                if role != PADDING_ROLE:
                    binding += np.outer(roles[target, role], table[filler])
            expected = binding.reshape(-1) @ weights[target] + bias[target, 0]
            np.testing.assert_allclose(predicted[target, row], expected, atol=1e-5)


def test_planted_roles_are_found_and_fewer_roles_do_not_suffice() -> None:
    table, train = make_sequences(400, 1)
    _, validation = make_sequences(60, 2)
    _, test = make_sequences(60, 3)

    def without_roles(sequences: FillerRoleSequences) -> FillerRoleSequences:
        return FillerRoleSequences(sequences.fillers, np.minimum(sequences.roles, 0))

    def relative_error(*, by_position: bool, with_roles: bool) -> float:
        targets = [planted_vectors(table, part, by_position=by_position)[None] for part in (train, validation, test)]
        inputs = [part if with_roles else without_roles(part) for part in (train, validation, test)]
        model = fit_decomposition(
            table,
            inputs[0],
            targets[0],
            inputs[1],
            targets[1],
            n_roles=MAX_LENGTH,
            learning_rate=0.02,
            epochs=150,
        )
        return float(np.square(reconstruct(model, inputs[2]) - targets[2]).mean() / targets[2].var())

    assert relative_error(by_position=True, with_roles=True) < 0.02
    assert relative_error(by_position=True, with_roles=False) > 0.3
    assert relative_error(by_position=False, with_roles=False) < 0.02


def test_targets_fitted_together_equal_targets_fitted_alone() -> None:
    table, train = make_sequences(60, 1)
    _, validation = make_sequences(20, 2)
    targets, validation_targets = (
        np.stack([planted_vectors(table, part, by_position=by_position) for by_position in (True, False)])
        for part in (train, validation)
    )

    def fit(selected: slice) -> Array:
        model = fit_decomposition(
            table,
            train,
            targets[selected],
            validation,
            validation_targets[selected],
            n_roles=MAX_LENGTH,
            epochs=6,
            patience=50,
            learning_rate=0.01,
        )
        return reconstruct(model, validation)

    together = fit(slice(None))
    for target in range(2):
        np.testing.assert_allclose(fit(slice(target, target + 1))[0], together[target], atol=1e-4)
