"""Names on the map of models cover neither each other nor other points, and stay on the map."""

from __future__ import annotations

from itertools import combinations

from bertology.atlas.pictures import MAP_WIDTH, label_positions
from bertology.results.drawing import svg

Box = tuple[float, float, float, float]


def boxes(points: list[tuple[float, float]], names: list[str]) -> list[Box]:
    placed = zip(label_positions(points, names), names, strict=True)
    return [(left, bottom - 9, left + svg.text_width(name), bottom + 2) for (left, bottom), name in placed]


def overlap(first: Box, second: Box) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]


def test_names_of_near_points_do_not_cover_each_other() -> None:
    points, names = [(400.0, 200.0), (420.0, 202.0), (410.0, 215.0)], ["mini-draft", "mini", "mini-pairs"]
    found = boxes(points, names)
    assert not any(overlap(first, second) for first, second in combinations(found, 2))
    marks = [(x - 4.5, y - 4.5, x + 4.5, y + 4.5) for x, y in points]
    assert not any(overlap(box, mark) for i, box in enumerate(found) for j, mark in enumerate(marks) if i != j)


def test_a_name_at_the_edge_stays_on_the_map() -> None:
    ((left, _, right, _),) = boxes([(MAP_WIDTH - 10, 100.0)], ["a-model-with-a-long-name"])
    assert left >= 0 and right <= MAP_WIDTH
