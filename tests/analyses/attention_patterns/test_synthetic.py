"""Rule and CNN classify patterns of lengths and noise levels outside the training set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from bertology.analyses.attention_patterns.cnn_classifier import attention_images, classify_by_cnn, train_pattern_cnn
from bertology.analyses.attention_patterns.rule_classifier import classify_by_rule, pattern_strengths
from bertology.analyses.attention_patterns.synthetic import (
    PATTERN_CLASSES,
    TRAINING_LENGTHS,
    TRAINING_NOISE,
    synthetic_attention,
    synthetic_training_set,
)

LENGTHS = (14, 28, 55, 110)
NOISE = (0.37, 0.4)


def by_rule(attention: torch.Tensor) -> int:
    return int(classify_by_rule(pattern_strengths(attention)))


def by_cnn(attention: torch.Tensor) -> int:
    return int(classify_by_cnn(attention))


def sample_patterns(lengths: Sequence[int], noises: Sequence[float], count: int) -> list[tuple[torch.Tensor, int]]:
    rng = np.random.default_rng(2024)
    return [
        (torch.from_numpy(synthetic_attention(pattern_class, length, noise, rng)).float(), class_index)
        for length in lengths
        for noise in noises
        for class_index, pattern_class in enumerate(PATTERN_CLASSES)
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def unseen() -> list[tuple[torch.Tensor, int]]:
    return sample_patterns(LENGTHS, NOISE, 20)


def test_lengths_and_noise_are_not_those_of_training() -> None:
    assert not set(LENGTHS) & set(TRAINING_LENGTHS)
    assert min(NOISE) > TRAINING_NOISE


@pytest.mark.parametrize("classify", [by_rule, by_cnn])
def test_planted_classes_are_recognised(classify: object, unseen: list[tuple[torch.Tensor, int]]) -> None:
    assert callable(classify)
    result = [classify(attention) for attention, _ in unseen]
    assert f1_score([pattern_class for _, pattern_class in unseen], result, average="macro") >= 0.95


@pytest.mark.parametrize(
    ("classify", "lengths", "noise"),
    [(by_rule, (11, 160, 300), 0.37), (by_cnn, (160, 300), 0.37), (by_cnn, (11,), 0.2)],
    ids=["rule", "CNN, longer", "CNN, shorter, with training noise"],
)
def test_patterns_shorter_and_longer_than_the_training_set(
    classify: object, lengths: tuple[int, ...], noise: float
) -> None:
    """For short patterns only the rule is reliable with more noise."""
    assert callable(classify)
    patterns = sample_patterns(lengths, (noise,), 8)
    result = [classify(attention) for attention, _ in patterns]
    assert f1_score([pattern_class for _, pattern_class in patterns], result, average="macro") >= 0.95


@pytest.mark.parametrize("length", [12, 17, 31, 60, 110])
@pytest.mark.parametrize("max_distance", [4, 7])
def test_attention_to_random_nearby_tokens_is_heterogeneous(length: int, max_distance: int) -> None:
    """Each row attends to a random nearby token: by chance some boundary is never crossed."""
    rng = np.random.default_rng([length, max_distance])
    steps = np.arange(length)
    targets = [np.array([rng.choice(steps[abs(steps - i) <= max_distance]) for i in steps]) for _ in range(60)]
    patterns = torch.nn.functional.one_hot(torch.from_numpy(np.stack(targets)), length).float()
    for result in (classify_by_rule(pattern_strengths(patterns)), classify_by_cnn(patterns)):
        assert float((result == PATTERN_CLASSES.index("heterogeneous")).float().mean()) >= 0.85
        assert float((result == PATTERN_CLASSES.index("block")).float().mean()) <= 0.05


@pytest.mark.parametrize("length", [9, 40])
def test_pure_patterns_are_classified_correctly(length: int) -> None:
    steps = torch.arange(length)
    first = torch.zeros(length, length)
    first[:, 0] = 1
    previous = torch.nn.functional.one_hot((steps - 1).clamp(min=0), length).float()
    is_second = steps >= length // 2
    block = (is_second[:, None] == is_second).float()
    block /= block.sum(1, keepdim=True)
    uniform = torch.full((length, length), 1 / length)
    expected = {
        "vertical": first,
        "diagonal": previous,
        "vertical and diagonal": (first + previous) / 2,
        "block": block,
    }
    for pattern_class, attention in {**expected, "heterogeneous": uniform}.items():
        assert PATTERN_CLASSES[by_rule(attention)] == pattern_class
        assert PATTERN_CLASSES[by_cnn(attention)] == pattern_class
    strengths = pattern_strengths(torch.stack([uniform, first, previous, block]))
    torch.testing.assert_close(strengths[0], torch.zeros(3), rtol=0, atol=1e-5)
    assert strengths[1, 0] == pytest.approx(1, abs=1e-5)
    assert strengths[2, 1] > 0.75
    assert strengths[3, 2] == pytest.approx(1, abs=1e-4)


def test_the_strength_of_a_vertical_line_is_its_share_of_attention() -> None:
    length, share = 20, 0.3
    attention = torch.full((length, length), (1 - share) / length)
    attention[:, 4] += share
    assert pattern_strengths(attention)[0] == pytest.approx(share, abs=1e-5)


@pytest.mark.parametrize("block_weight", [0.0, *np.arange(20, 40, 2) / 100, 0.7])
def test_block_strength_equals_a_loop_over_boundaries(block_weight: float) -> None:
    """The largest shortfall at a boundary, pair by pair, if it exceeds three standard deviations."""
    rng = np.random.default_rng(3)
    is_second = np.arange(10) >= 4
    block = (is_second[:, None] == is_second) / (is_second[:, None] == is_second).sum(1, keepdims=True)
    attention = torch.from_numpy(
        block_weight * block + (1 - block_weight) * rng.dirichlet(np.ones(10), size=10)
    ).float()
    lines = ((attention.sqrt().mean(0) ** 2 - 0.1).clamp(min=0) / 0.9)[None]
    remainder = (attention - lines).clamp(min=0).double().numpy()
    strengths: list[float] = []
    for boundary in range(2, 9):
        expected = crossed = variance = 0.0
        for distance in range(1, 10):
            pairs = [(i, j) for i in range(10) for j in range(10) if abs(i - j) == distance]
            crossing = [(i, j) for i, j in pairs if (i < boundary) != (j < boundary)]
            weights = np.array([remainder[pair] for pair in pairs])
            expected += len(crossing) * weights.mean()
            crossed += sum(remainder[pair] for pair in crossing)
            # A sum of k of N numbers sampled without replacement has k (N - k) / (N - 1) times their variance.
            variance += len(crossing) * (len(pairs) - len(crossing)) / (len(pairs) - 1) * weights.var()
        if expected - crossed > 3 * np.sqrt(variance):
            strengths.append(1 - crossed / expected)
    assert not strengths if block_weight == 0 else strengths or block_weight < 0.35
    assert pattern_strengths(attention)[2] == pytest.approx(max(0, *strengths, 0), abs=1e-5)


def test_synthetic_patterns_are_distributions() -> None:
    for attention, pattern_class in synthetic_training_set(40, seed=1):
        np.testing.assert_allclose(attention.sum(1), 1)
        assert attention.min() >= 0
        assert 0 <= pattern_class < len(PATTERN_CLASSES)


def test_images_do_not_depend_on_the_length() -> None:
    small, large = (torch.eye(length) for length in (32, 128))
    torch.testing.assert_close(attention_images(small), attention_images(large), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_a_newly_trained_cnn_classifies_new_patterns() -> None:
    model = train_pattern_cnn(train_size=1500, epochs=10, seed=1)
    examples = synthetic_training_set(200, seed=5)
    images = torch.stack([attention_images(torch.from_numpy(attention).float()) for attention, _ in examples])
    predicted = model(images).argmax(1)
    assert f1_score([pattern_class for _, pattern_class in examples], predicted.numpy(), average="macro") > 0.85
