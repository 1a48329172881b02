"""Maps of the five shapes are told apart, by rule and by network, at lengths and noise that neither learnt from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from bertology.maths import map_network, map_rule
from bertology.maths.map_shapes import SHAPES, TRAINING_LENGTHS, TRAINING_NOISE, synthesised, training_maps

LENGTHS = (14, 28, 55, 110)
NOISE = (0.37, 0.4)


def by_rule(made: torch.Tensor) -> int:
    return int(map_rule.classified(map_rule.measured(made)))


def by_network(made: torch.Tensor) -> int:
    return int(map_network.classified(made))


def drawn(lengths: Sequence[int], noises: Sequence[float], count: int) -> list[tuple[torch.Tensor, int]]:
    draw = np.random.default_rng(2024)
    return [
        (torch.from_numpy(synthesised(shape, length, noise, draw)).float(), number)
        for length in lengths
        for noise in noises
        for number, shape in enumerate(SHAPES)
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def unseen() -> list[tuple[torch.Tensor, int]]:
    return drawn(LENGTHS, NOISE, 20)


def test_lengths_and_noise_were_not_learnt_from() -> None:
    assert not set(LENGTHS) & set(TRAINING_LENGTHS)
    assert min(NOISE) > TRAINING_NOISE


@pytest.mark.parametrize("classify", [by_rule, by_network])
def test_planted_shapes_are_told_apart(classify: object, unseen: list[tuple[torch.Tensor, int]]) -> None:
    assert callable(classify)
    found = [classify(made) for made, _ in unseen]
    assert f1_score([shape for _, shape in unseen], found, average="macro") >= 0.95


@pytest.mark.parametrize(
    ("classify", "lengths", "noise"),
    [(by_rule, (11, 160, 300), 0.37), (by_network, (160, 300), 0.37), (by_network, (11,), 0.2)],
    ids=["rule", "network, longer", "network, shorter, noise as learnt"],
)
def test_shorter_and_longer_maps_than_were_learnt_from(
    classify: object, lengths: tuple[int, ...], noise: float
) -> None:
    """In short maps only the rule copes with more noise."""
    assert callable(classify)
    maps = drawn(lengths, (noise,), 8)
    found = [classify(made) for made, _ in maps]
    assert f1_score([shape for _, shape in maps], found, average="macro") >= 0.95


@pytest.mark.parametrize("length", [12, 17, 31, 60, 110])
@pytest.mark.parametrize("reach", [4, 7])
def test_attention_to_something_near_is_no_shape(length: int, reach: int) -> None:
    """Each row looks at one piece around it, drawn anew: by chance some boundary is crossed by none of them."""
    draw = np.random.default_rng([length, reach])
    steps = np.arange(length)
    places = [np.array([draw.choice(steps[abs(steps - i) <= reach]) for i in steps]) for _ in range(60)]
    maps = torch.nn.functional.one_hot(torch.from_numpy(np.stack(places)), length).float()
    for found in (map_rule.classified(map_rule.measured(maps)), map_network.classified(maps)):
        assert float((found == SHAPES.index("heterogeneous")).float().mean()) >= 0.85
        assert float((found == SHAPES.index("block")).float().mean()) <= 0.05


@pytest.mark.parametrize("length", [9, 40])
def test_pure_shapes_by_hand(length: int) -> None:
    steps = torch.arange(length)
    first = torch.zeros(length, length)
    first[:, 0] = 1
    before = torch.nn.functional.one_hot((steps - 1).clamp(min=0), length).float()
    side = steps >= length // 2
    block = (side[:, None] == side).float()
    block /= block.sum(1, keepdim=True)
    even = torch.full((length, length), 1 / length)
    expected = {"vertical": first, "diagonal": before, "vertical+diagonal": (first + before) / 2, "block": block}
    for shape, made in {**expected, "heterogeneous": even}.items():
        assert SHAPES[by_rule(made)] == shape
        assert SHAPES[by_network(made)] == shape
    strengths = map_rule.measured(torch.stack([even, first, before, block]))
    torch.testing.assert_close(strengths[0], torch.zeros(3), rtol=0, atol=1e-5)
    assert strengths[1, 0] == pytest.approx(1, abs=1e-5)
    assert strengths[2, 1] > 0.75
    assert strengths[3, 2] == pytest.approx(1, abs=1e-4)


def test_a_line_over_an_even_rest_is_measured_as_its_share() -> None:
    length, share = 20, 0.3
    made = torch.full((length, length), (1 - share) / length)
    made[:, 4] += share
    assert map_rule.measured(made)[0] == pytest.approx(share, abs=1e-5)


@pytest.mark.parametrize("inside", [0.0, *np.arange(20, 40, 2) / 100, 0.7])
def test_blocks_by_hand(inside: float) -> None:
    """The shortfall at the boundary crossed least, pair by pair, where it is more than three deviations of chance."""
    draw = np.random.default_rng(3)
    side = np.arange(10) >= 4
    block = (side[:, None] == side) / (side[:, None] == side).sum(1, keepdims=True)
    made = torch.from_numpy(inside * block + (1 - inside) * draw.dirichlet(np.ones(10), size=10)).float()
    lines = ((made.sqrt().mean(0) ** 2 - 0.1).clamp(min=0) / 0.9)[None]
    rest = (made - lines).clamp(min=0).double().numpy()
    found: list[float] = []
    for boundary in range(2, 9):
        expected = crossed = variance = 0.0
        for distance in range(1, 10):
            pairs = [(i, j) for i in range(10) for j in range(10) if abs(i - j) == distance]
            crossing = [(i, j) for i, j in pairs if (i < boundary) != (j < boundary)]
            weights = np.array([rest[pair] for pair in pairs])
            expected += len(crossing) * weights.mean()
            crossed += sum(rest[pair] for pair in crossing)
            # A sum of k of N numbers drawn without being put back has k (N - k) / (N - 1) times their variance.
            variance += len(crossing) * (len(pairs) - len(crossing)) / (len(pairs) - 1) * weights.var()
        if expected - crossed > 3 * np.sqrt(variance):
            found.append(1 - crossed / expected)
    assert not found if inside == 0 else found or inside < 0.35
    assert map_rule.measured(made)[2] == pytest.approx(max(0, *found, 0), abs=1e-5)


def test_synthesised_maps_are_maps() -> None:
    for made, shape in training_maps(40, seed=1):
        np.testing.assert_allclose(made.sum(1), 1)
        assert made.min() >= 0
        assert 0 <= shape < len(SHAPES)


def test_a_picture_is_the_same_at_every_length() -> None:
    small, large = (torch.eye(length) for length in (32, 128))
    torch.testing.assert_close(map_network.pictures(small), map_network.pictures(large), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_the_network_can_be_trained_again() -> None:
    model = map_network.train(maps=1500, epochs=10, seed=1)
    examples = training_maps(200, seed=5)
    given = torch.stack([map_network.pictures(torch.from_numpy(made).float()) for made, _ in examples])
    found = model(given).argmax(1)
    assert f1_score([shape for _, shape in examples], found.numpy(), average="macro") > 0.85
