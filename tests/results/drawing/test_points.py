"""Points: labels inside the plane that touch nothing, ordered groups on a ramp, axes with names."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bertology.results.drawing import svg
from bertology.results.drawing.points import LEFT, TOP, draw_scatter, draw_trajectory
from bertology.results.illustrations import Scatter, Trajectory


@pytest.mark.parametrize("width", [330.0, 660.0])
def test_labels_are_inside_the_plane_and_do_not_overlap(width: float) -> None:
    points = np.random.default_rng(0).normal(size=(60, 2))
    labels = tuple(f"a label {number}" for number in range(60))
    body = str(draw_scatter(Scatter(points=points, labels=labels, groups=("g",) * 60), width).panels[0].body)
    boxes: list[tuple[float, float, float, float]] = []
    for x, y, label in re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="muted small quiet halo">([^<]+)<', body):
        left, bottom = float(x), float(y) + 1
        boxes.append((left, bottom - 9, left + svg.text_width(label, svg.SMALL_SIZE), bottom))
    assert len(boxes) > 10
    side = min(440.0, width - LEFT - 8)
    for index, (left, top, right, bottom) in enumerate(boxes):
        assert left >= LEFT and right <= LEFT + side + 8 and top >= TOP - 1 and bottom <= TOP + side + 1
        for a, b, c, d in boxes[:index]:
            assert right <= a + 0.2 or c <= left + 0.2 or bottom <= b + 0.2 or d <= top + 0.2


def test_layers_are_steps_of_a_ramp_and_other_groups_are_colours() -> None:
    points = np.arange(6, dtype=float).reshape(3, 2)
    layers = Scatter(points=points, labels=("a", "b", "c"), groups=("layer 10", "layer 9", "layer 1"))
    assert re.findall(r'<g class="(ordered\d)"><circle', str(draw_scatter(layers).panels[0].body)) == [
        "ordered7",
        "ordered4",
        "ordered0",
    ]
    kinds = layers.model_copy(update={"groups": ("noun", "verb", "noun")})
    assert re.findall(r'<g class="(s\d)"><circle', str(draw_scatter(kinds).panels[0].body)) == ["s0", "s1", "s0"]


def test_axes_are_never_called_x_and_y() -> None:
    points = np.zeros((2, 3, 2)) + np.arange(3)[:, None]
    trajectory = Trajectory(points=points, labels=("a", "b", "c"), groups=("g",) * 3)
    body = str(draw_trajectory(trajectory).panels[0].body)
    assert "first dimension" in body and ">x<" not in body and ">y<" not in body
    named = Scatter(points=points[0], labels=("a", "b", "c"), groups=("g",) * 3, axis_names=("t-SNE 1", "t-SNE 2"))
    assert ">t-SNE 1<" in str(draw_scatter(named).panels[0].body)
