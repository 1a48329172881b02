"""Pictures of findings: the grid, curve or rows that a test reads, with the chosen heads and layers marked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bertology.claims.claim import Claim
from bertology.claims.claim_results import ClaimResult
from bertology.claims.verdict import Comparison, Measurement, Verdict
from bertology.estimates.estimate import Estimates
from bertology.results.drawing.panels import measure_series
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Matrix, Shape, Table
from bertology.views.report.picture_shapes import row_picture
from bertology.views.report.pictures import HeadScores, chosen_head, large_pictures, small_picture
from results.example_results import SHAPES, estimates, result
from views.report.example_content import CLAIM, HEAD, estimate


def claim_result(shape: Shape, test: Mapping[str, object], *comparisons: Comparison) -> ClaimResult:
    claim = Claim.model_validate({**CLAIM.model_dump(), "test": test, "answer": "", "unit": "percent"})
    return ClaimResult(claim, Verdict("holds", comparisons), (result(shape),))


def grid(name: str = "m") -> HeadGrid:
    values = estimates(4, 3, missing=False)
    return HeadGrid(measures={name: values}, baselines={"chance": {name: Estimates.exact(np.full((4, 3), 0.1))}})


OF_HEAD = Comparison(Measurement("m", estimate(0.8), head=HEAD), 0.5)
OF_LAYERS = Comparison(
    Measurement("m", estimate(0.8), layers=(3, 4), n_layers=4),
    Measurement("m", estimate(0.2), layers=(1, 2), n_layers=4),
)
ANY_HEAD = {"kind": "any head", "measure": "m", "threshold": 0.5}
LATER = {
    "kind": "greater",
    "left": {"measure": "m", "layers": [3, 4]},
    "right": {"measure": "m", "layers": [1, 2]},
}


def test_a_finding_about_a_head_is_a_grid_with_the_head_outlined_and_named() -> None:
    finding = claim_result(grid(), ANY_HEAD, OF_HEAD)
    (picture,) = large_pictures(finding)
    assert picture.svg.count('class="chosen"') == 1 and ">3-2  80 %</text>" in picture.svg
    assert picture.svg.count("<rect") > 12 and ">chance 0.1</text>" in picture.svg and chosen_head(finding) == HEAD
    small = small_picture(finding)
    assert small is not None and small.svg.count('class="chosen"') == 1


def test_cells_say_value_interval_n_and_baselines() -> None:
    (picture,) = large_pictures(claim_result(grid(), ANY_HEAD, OF_HEAD))
    assert "head 3-2: 0.582 [0.532, 0.632], n = 7\nchance: 0.1" in picture.svg


def test_a_finding_about_layers_is_a_curve_with_the_layers_shaded() -> None:
    curve = LayerCurve(measures={"m": estimates(4)}, baselines={"b": {"m": estimates(4)}}, first_layer=1)
    for shape in (grid(), curve):
        (picture,) = large_pictures(claim_result(shape, LATER, OF_LAYERS))
        assert picture.svg.count('class="layers-chosen"') == picture.svg.count('class="layers-other"') == 1
        assert "shaded: the layers of the finding" in picture.caption and ">this model</text>" in picture.svg


def test_the_curve_of_a_grid_is_the_mean_over_heads() -> None:
    (picture,) = large_pictures(claim_result(grid(), LATER, OF_LAYERS))
    first = grid().measures["m"].value[0].mean()
    assert f"layer 1: {first:.3g} [" in picture.svg


def test_the_untrained_model_has_its_own_colour() -> None:
    values = estimates(4)
    baselines = {"untrained model": {"m": values}, "chance": {"m": values}}
    curve = LayerCurve(measures={"m": values}, baselines=baselines)
    (picture,) = large_pictures(claim_result(curve, LATER, OF_LAYERS))
    assert 'class="of-untrained"' in picture.svg and 'class="of-baseline"' in picture.svg


def test_measures_of_one_unit_share_a_picture() -> None:
    curve = LayerCurve(measures={"a": estimates(4), "b": estimates(4)}, baselines={"c": {"a": estimates(4)}})
    test = {"kind": "increasing", "values": [{"measure": "a", "layers": [1, 1]}, {"measure": "b", "layers": [1, 1]}]}
    pictures = large_pictures(claim_result(curve, test, OF_LAYERS))
    assert len(pictures) == 1 and ">a</text>" in pictures[0].svg and ">b</text>" in pictures[0].svg


def test_all_heads_stand_beside_the_head_that_a_table_names() -> None:
    table = Table(
        measures={"m": estimates(1, missing=False)},
        baselines={"b": {"m": estimates(1, missing=False)}},
        row_names=("obj",),
        attributes={"head": ("3-2",)},
    )
    test = {"kind": "any row", "measure": "m", "baseline": "b", "rows": ["obj"]}
    finding = claim_result(table, test)
    assert chosen_head(finding) == Head(2, 1)
    scores = HeadScores(result(grid("obj, up")), "obj, up")
    heads, best = large_pictures(finding, scores)
    assert heads.svg.count('class="chosen"') == 1 and best.svg.count("mark-estimate") == 6
    assert best.svg.index("head 4-3") < best.svg.index("head 4-2")
    (rows,) = large_pictures(finding)
    assert "obj · 3-2" in rows.svg and small_picture(finding) is None


def test_every_measured_shape_has_a_picture_and_illustrations_have_none() -> None:
    for name, shape in SHAPES.items():
        if isinstance(shape, HeadGrid | LayerCurve | Curve | Matrix | Table):
            measure = next(iter(shape.measures))
            test = {"kind": "greater", "left": {"measure": measure}, "right": 0.0}
            pictures = large_pictures(claim_result(shape, test))
            assert pictures and all("nan" not in picture.svg for picture in pictures), name
        else:
            assert not large_pictures(claim_result(shape, LATER)), name


def test_rows_without_a_number_have_no_strip() -> None:
    table = Table(measures={"m": estimates(3)}, baselines={"b": {"m": estimates(3)}}, row_names=("a", "x", "c"))
    (series,) = measure_series(table)
    picture = row_picture(table, series, range(3))
    assert picture is not None and picture.svg.count("mark-estimate") == 2 and ">x</text>" not in picture.svg
    assert row_picture(table, series, [1]) is None
