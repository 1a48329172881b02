"""The scores of each architecture are those of its definition, computed with NumPy for one classifier at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bertology.numerics.classifier_network import ClassifierConfig, class_scores, unpack_parameters

Array = np.ndarray[Any, Any]
WIDTH, CLASSES = 6, 3


def _expected_scores(config: ClassifierConfig, x: Array, parts: list[Array]) -> Array:
    """(class, example) scores of (example, feature) features."""
    if config.form == "bilinear":
        left, right = x[:, : WIDTH // 2].T, x[:, WIDTH // 2 :].T
        return parts[2] @ ((parts[0] @ left) * (parts[1] @ right)) + parts[3][:, None]
    values = x.T
    for index in range(0, len(parts), 2):
        if index and config.form == "mlp":
            values = np.maximum(values, 0)
        values = parts[index] @ values + parts[index + 1][:, None]
    return values


@pytest.mark.parametrize(
    ("config", "n_parameters"),
    [
        (ClassifierConfig("linear"), 6 * 3 + 3),
        (ClassifierConfig("rank", (2,)), 6 * 2 + 2 + 2 * 3 + 3),
        (ClassifierConfig("mlp", (4, 5)), 6 * 4 + 4 + 4 * 5 + 5 + 5 * 3 + 3),
        (ClassifierConfig("bilinear", (4,)), 3 * 4 + 3 * 4 + 4 * 3 + 3),
    ],
    ids=lambda value: value.name if isinstance(value, ClassifierConfig) else str(value),
)
def test_scores_are_those_of_the_definition(config: ClassifierConfig, n_parameters: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 7, WIDTH, generator=generator, dtype=torch.float64)
    parameters = torch.randn(2, 4, n_parameters, generator=generator, dtype=torch.float64)
    scores = class_scores(config, x, parameters, CLASSES)
    assert scores.shape == (2, 4, CLASSES, 7)
    for group in range(2):
        for problem in range(4):
            row = unpack_parameters(config, parameters[group : group + 1, problem : problem + 1], WIDTH, CLASSES)
            expected = _expected_scores(config, x[group].numpy(), [part[0, 0].numpy() for part in row])
            np.testing.assert_allclose(scores[group, problem].numpy(), expected, rtol=1e-9, atol=1e-12)
