"""Tensor products: planted roles are found, together as one at a time, and the sum is the one written out."""

from __future__ import annotations

import numpy as np
import torch

from bertology.maths.tensor_product import NOTHING, Floats, Sequences, TensorProducts, fit, predict

WORDS, LONGEST, FILLER, WIDTH = 12, 6, 5, 4


def material(count: int, seed: int) -> tuple[Floats, Sequences]:
    random = np.random.default_rng(seed)
    table = np.random.default_rng(99).normal(size=(WORDS, FILLER))
    lengths = random.integers(2, LONGEST + 1, size=count)
    fillers = random.integers(WORDS, size=(count, LONGEST))
    places = np.arange(LONGEST)[None].repeat(count, 0)
    return table, Sequences(fillers, np.where(places < lengths[:, None], places, NOTHING))


def planted(table: Floats, sequences: Sequences, *, positions: bool, seed: int = 5) -> Floats:
    random = np.random.default_rng(seed)
    maps = random.normal(size=(LONGEST if positions else 1, FILLER, WIDTH))
    found = np.zeros((len(sequences), WIDTH))
    for row, (fillers, roles) in enumerate(zip(sequences.fillers, sequences.roles, strict=True)):
        for filler, role in zip(fillers, roles, strict=True):
            if role != NOTHING:
                found[row] += table[filler] @ maps[role if positions else 0]
    return found


def test_the_sum_is_the_one_written_out() -> None:
    table, sequences = material(7, 0)
    model = TensorProducts(table, LONGEST, WIDTH, 2, size=3, seeds=(0, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    found = predict(model, sequences, at_once=3)
    weights, roles, bias = (p.detach().numpy() for p in (model.weights, model.roles, model.bias))
    for target in range(2):
        for row in range(7):
            bound = np.zeros((3, FILLER))
            for filler, role in zip(sequences.fillers[row], sequences.roles[row], strict=True):
                if role != NOTHING:
                    bound += np.outer(roles[target, role], table[filler])
            np.testing.assert_allclose(
                found[target, row], bound.reshape(-1) @ weights[target] + bias[target, 0], atol=1e-5
            )


def test_planted_roles_are_found_and_fewer_roles_do_not_do() -> None:
    table, trained = material(400, 1)
    _, held = material(60, 2)
    _, tested = material(60, 3)

    def error(positions: bool, roles: bool) -> float:
        def made(some: Sequences) -> Sequences:
            return some if roles else Sequences(some.fillers, np.where(some.roles == NOTHING, NOTHING, 0))

        wanted = [planted(table, some, positions=positions)[None] for some in (trained, held, tested)]
        model = fit(table, made(trained), wanted[0], made(held), wanted[1], roles=LONGEST, rate=0.02, epochs=150)
        return float(np.square(predict(model, made(tested)) - wanted[2]).mean() / wanted[2].var())

    assert error(True, roles=True) < 0.02
    assert error(True, roles=False) > 0.3
    assert error(False, roles=False) < 0.02


def test_targets_fitted_together_are_those_fitted_alone() -> None:
    table, trained = material(60, 1)
    _, held = material(20, 2)
    both = [np.stack([planted(table, some, positions=own) for own in (True, False)]) for some in (trained, held)]

    def fitted(own: slice) -> Floats:
        model = fit(table, trained, both[0][own], held, both[1][own], roles=LONGEST, epochs=6, patience=50, rate=0.01)
        return predict(model, held)

    together = fitted(slice(None))
    for target in range(2):
        np.testing.assert_allclose(fitted(slice(target, target + 1))[0], together[target], atol=1e-4)
