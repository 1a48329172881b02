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


def by_rule(made: torch.Tensor) -> int:
    return int(classify_by_rule(pattern_strengths(made)))


def by_network(made: torch.Tensor) -> int:
    return int(classify_by_cnn(made))


def sample_patterns(lengths: Sequence[int], noises: Sequence[float], count: int) -> list[tuple[torch.Tensor, int]]:
    rng = np.random.default_rng(2024)
    return [
        (torch.from_numpy(synthetic_attention(shape, length, noise, rng)).float(), number)
        for length in lengths
        for noise in noises
        for number, shape in enumerate(PATTERN_CLASSES)
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def unseen() -> list[tuple[torch.Tensor, int]]:
    return sample_patterns(LENGTHS, NOISE, 20)


def test_lengths_and_noise_are_not_those_of_training() -> None:
    assert not set(LENGTHS) & set(TRAINING_LENGTHS)
    assert min(NOISE) > TRAINING_NOISE


@pytest.mark.parametrize("classify", [by_rule, by_network])
def test_planted_classes_are_recognised(classify: object, unseen: list[tuple[torch.Tensor, int]]) -> None:
    assert callable(classify)
    result = [classify(made) for made, _ in unseen]
    assert f1_score([shape for _, shape in unseen], result, average="macro") >= 0.95


@pytest.mark.parametrize(
    ("classify", "lengths", "noise"),
    [(by_rule, (11, 160, 300), 0.37), (by_network, (160, 300), 0.37), (by_network, (11,), 0.2)],
    ids=["rule", "network, longer", "network, shorter, noise as learnt"],
)
def test_patterns_shorter_and_longer_than_those_of_training(
    classify: object, lengths: tuple[int, ...], noise: float
) -> None:
    """For short patterns only the rule is reliable with more noise."""
    assert callable(classify)
    maps = sample_patterns(lengths, (noise,), 8)
    result = [classify(made) for made, _ in maps]
    assert f1_score([shape for _, shape in maps], result, average="macro") >= 0.95


@pytest.mark.parametrize("length", [12, 17, 31, 60, 110])
@pytest.mark.parametrize("reach", [4, 7])
def test_attention_to_random_nearby_tokens_is_heterogeneous(length: int, reach: int) -> None:
    """Each row attends to a random nearby token: by chance some boundary is never crossed."""
    rng = np.random.default_rng([length, reach])
    steps = np.arange(length)
    places = [np.array([rng.choice(steps[abs(steps - i) <= reach]) for i in steps]) for _ in range(60)]
    maps = torch.nn.functional.one_hot(torch.from_numpy(np.stack(places)), length).float()
    for result in (classify_by_rule(pattern_strengths(maps)), classify_by_cnn(maps)):
        assert float((result == PATTERN_CLASSES.index("heterogeneous")).float().mean()) >= 0.85
        assert float((result == PATTERN_CLASSES.index("block")).float().mean()) <= 0.05


@pytest.mark.parametrize("length", [9, 40])
def test_pure_patterns_have_their_class(length: int) -> None:
    steps = torch.arange(length)
    first = torch.zeros(length, length)
    first[:, 0] = 1
    before = torch.nn.functional.one_hot((steps - 1).clamp(min=0), length).float()
    side = steps >= length // 2
    block = (side[:, None] == side).float()
    block /= block.sum(1, keepdim=True)
    uniform = torch.full((length, length), 1 / length)
    expected = {"vertical": first, "diagonal": before, "vertical and diagonal": (first + before) / 2, "block": block}
    for shape, made in {**expected, "heterogeneous": uniform}.items():
        assert PATTERN_CLASSES[by_rule(made)] == shape
        assert PATTERN_CLASSES[by_network(made)] == shape
    strengths = pattern_strengths(torch.stack([uniform, first, before, block]))
    torch.testing.assert_close(strengths[0], torch.zeros(3), rtol=0, atol=1e-5)
    assert strengths[1, 0] == pytest.approx(1, abs=1e-5)
    assert strengths[2, 1] > 0.75
    assert strengths[3, 2] == pytest.approx(1, abs=1e-4)


def test_the_strength_of_a_line_on_uniform_attention_is_its_share() -> None:
    length, share = 20, 0.3
    made = torch.full((length, length), (1 - share) / length)
    made[:, 4] += share
    assert pattern_strengths(made)[0] == pytest.approx(share, abs=1e-5)


@pytest.mark.parametrize("inside", [0.0, *np.arange(20, 40, 2) / 100, 0.7])
def test_block_strength_equals_a_loop_over_boundaries(inside: float) -> None:
    """The largest shortfall at a boundary, pair by pair, if it exceeds three standard deviations."""
    rng = np.random.default_rng(3)
    side = np.arange(10) >= 4
    block = (side[:, None] == side) / (side[:, None] == side).sum(1, keepdims=True)
    made = torch.from_numpy(inside * block + (1 - inside) * rng.dirichlet(np.ones(10), size=10)).float()
    lines = ((made.sqrt().mean(0) ** 2 - 0.1).clamp(min=0) / 0.9)[None]
    rest = (made - lines).clamp(min=0).double().numpy()
    result: list[float] = []
    for boundary in range(2, 9):
        expected = crossed = variance = 0.0
        for distance in range(1, 10):
            pairs = [(i, j) for i in range(10) for j in range(10) if abs(i - j) == distance]
            crossing = [(i, j) for i, j in pairs if (i < boundary) != (j < boundary)]
            weights = np.array([rest[pair] for pair in pairs])
            expected += len(crossing) * weights.mean()
            crossed += sum(rest[pair] for pair in crossing)
            # A sum of k of N numbers sampled without replacement has k (N - k) / (N - 1) times their variance.
            variance += len(crossing) * (len(pairs) - len(crossing)) / (len(pairs) - 1) * weights.var()
        if expected - crossed > 3 * np.sqrt(variance):
            result.append(1 - crossed / expected)
    assert not result if inside == 0 else result or inside < 0.35
    assert pattern_strengths(made)[2] == pytest.approx(max(0, *result, 0), abs=1e-5)


def test_synthetic_patterns_are_distributions() -> None:
    for made, shape in synthetic_training_set(40, seed=1):
        np.testing.assert_allclose(made.sum(1), 1)
        assert made.min() >= 0
        assert 0 <= shape < len(PATTERN_CLASSES)


def test_images_do_not_depend_on_the_length() -> None:
    small, large = (torch.eye(length) for length in (32, 128))
    torch.testing.assert_close(attention_images(small), attention_images(large), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_the_cnn_can_be_trained_again() -> None:
    model = train_pattern_cnn(train_size=1500, epochs=10, seed=1)
    examples = synthetic_training_set(200, seed=5)
    given = torch.stack([attention_images(torch.from_numpy(made).float()) for made, _ in examples])
    result = model(given).argmax(1)
    assert f1_score([shape for _, shape in examples], result.numpy(), average="macro") > 0.85
