"""The report page's drawings: one mark a number, a cross for a gap, and no figure that needs another package."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from bertology.citations import CITATIONS, short_citation
from bertology.claims.evidence import Evidence, Instance
from bertology.claims.examine import Finding
from bertology.claims.judge import OUTCOMES, Verdict
from bertology.claims.shelf import all_claims
from bertology.report.content import Content, Section, part_of
from bertology.report.page import page
from bertology.report.text import as_json, as_markdown
from bertology.results.estimate import Estimates
from bertology.results.figures import curve, head_grid, layer_curve, ticks
from bertology.results.html_table import html_table
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid, LayerCurve, Table
from bertology.results.spread import BY_SEED
from drawn import estimates, measured, result

CLAIM = next(claim for claim in all_claims() if claim.paper == "clark2019")
NOTHING = Estimates.exact(np.full((2, 3), np.nan))


def test_a_grid_has_a_cell_a_head_and_a_cross_a_gap() -> None:
    drawn = head_grid("m", estimates(3, 4), {"chance": estimates(3, 4, gap=False)})
    assert drawn.count("<rect") == 11 and drawn.count("×") == 1
    assert "head 1-2: nothing to measure" in drawn and "chance: 0.255 [0.205, 0.305]" not in drawn


def test_no_line_runs_through_a_gap() -> None:
    value = np.array([0.1, 0.2, np.nan, 0.3, 0.4])
    gappy = Estimates(value=value, low=value - 0.1, high=value + 0.1, n=np.full(5, 3))
    drawn = layer_curve("m", gappy, {"chance": estimates(5)}, first=1)
    assert drawn.count('class="curve"') == drawn.count('class="band"') == 2
    assert drawn.count("<circle") == 4 and "layer 3: nothing to measure" in drawn and "nan" not in drawn


def places(drawn: str) -> dict[str, tuple[float, float]]:
    """Where the labels of lines stand."""
    found = re.findall(r'<text x="([\d.]+)" y="([\d.-]+)">([^<]+)<title>', drawn)
    return {name: (float(x), float(y)) for x, y, name in found}


def flat(value: float, *, last: int = 5) -> Estimates:
    values = np.where(np.arange(5) < last, value, np.nan)
    return Estimates(value=values, low=values, high=values, n=np.full(5, 3))


def test_lines_are_named_at_their_ends_and_names_never_cover_each_other() -> None:
    alike = {f"baseline {number}": flat(0.001 * number) for number in range(4)}
    drawn = layer_curve("m", flat(1.0), {"high": flat(0.9), **alike}, first=1)
    at = places(drawn)
    heights = sorted(y for _, y in at.values())
    assert set(at) == {"high", *alike} and min(np.diff(heights)) > 10.9
    assert all(0 < y < 220 for y in heights) and len({x for x, _ in at.values()}) == 1
    assert drawn.count('class="leader"') >= 2
    alone = layer_curve("m", flat(1.0), {"high": flat(0.9), "low": flat(0.1)}, first=1)
    assert places(alone)["high"][1] < places(alone)["low"][1] and "leader" not in alone


def test_names_fit_into_the_drawing_and_a_line_that_ends_early_is_led_to_its_name() -> None:
    long = "a name that is much longer than any place beside a line"
    drawn = layer_curve("m", flat(1.0), {long: flat(0.5, last=3), "nowhere": flat(np.nan)}, first=1)
    ((name, (x, _)),) = places(drawn).items()
    assert name.endswith("…") and x + 6 * len(name) < 440 and f"<title>{long}</title>" in drawn
    assert drawn.count('class="leader"') == 1 and "nan" not in drawn


@pytest.mark.parametrize(
    "shape",
    [
        HeadGrid(**measured(2, 3)),
        HeadGrid(measures={"m": NOTHING}, baselines={"b": {"m": NOTHING}}),
        LayerCurve(measures={"m": NOTHING[0]}, baselines={"b": {"m": NOTHING[0]}}),
        LayerCurve(**measured(2)),
    ],
    ids=["grid", "empty grid", "empty curve", "curve"],
)
def test_a_page_copes_with_gaps(shape: HeadGrid | LayerCurve) -> None:
    html = page(Content("title", [], [], [Section("What?", "about", result(shape))]))
    assert "<svg" in html and "nothing to measure" in html and '"nan"' not in html


def test_the_scoreboard_shows_every_verdict_with_its_numbers_and_its_paper() -> None:
    shown = result(LayerCurve(**measured(2)))
    findings = [
        Finding(CLAIM.model_copy(update={"id": outcome}), Verdict(outcome, f"why <{outcome}>"), (shown,))
        for outcome in OUTCOMES
    ]
    section = Section("What?", "About it. Twice. Thrice.", shown)
    html = page(Content("title", ["a <notice>"], findings, [section], ["mini over english"], unjudged=["late-one"]))
    assert "Not judged: late-one." in html
    assert "4 published findings: 1 holds, 1 fails, 1 inconclusive, 1 not applicable." in html
    for outcome in OUTCOMES:
        assert f"why &lt;{outcome}&gt;" in html
    assert html.count(f'<a href="#{section.name}">') == 4 and f'id="{section.name}"' in html
    assert html.count("About it. Twice.</p>") == 4 and "a &lt;notice&gt;" in html
    assert html.count("What Does BERT Look At?") == 4 + 1
    assert "1 passes over the texts: mini over english." in html


def test_a_verdict_opens_to_the_figure_of_what_was_tested() -> None:
    shape = LayerCurve(measures={"m": estimates(2), "o": estimates(2)}, baselines={"b": {"m": estimates(2)}})
    test = {"kind": "greater", "this": {"measure": "o"}, "than": 0.0}
    claim = CLAIM.model_validate({**CLAIM.model_dump(), "test": test})
    html = page(Content("title", [], [Finding(claim, Verdict("holds", "why"), (result(shape),))], []))
    assert html.count("<figure>") == 1 and "<h4>o</h4>" in html


def test_a_curve_is_drawn_along_what_it_is_over() -> None:
    values = estimates(3, gap=False)
    drawn = curve("m", values, {}, np.array([10.0, 100.0, 1000.0]), "examples")
    assert "examples 100: " in drawn and drawn.count("<circle") == 3
    places = [float(part.split('"')[0]) for part in drawn.split('cx="')[1:]]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)
    even = curve("m", values, {}, np.array([0.0, 1.0, 4.0]), "blocks")
    places = [float(part.split('"')[0]) for part in even.split('cx="')[1:]]
    assert places[2] - places[1] == pytest.approx(3 * (places[1] - places[0]), abs=0.5)


def test_markdown_and_json_say_what_the_page_says() -> None:
    shown = result(LayerCurve(**measured(2)))
    finding = Finding(CLAIM, Verdict("fails", "a | b"), (shown,))
    content = Content("title", ["notice"], [finding], [Section("What?", "About.", shown)])
    text = as_markdown(content)
    assert text.startswith("# title") and "| fails |" in text and "a \\| b" in text and "## What " in text
    told = json.loads(as_json(content))
    assert told["findings"][0]["verdict"] == "fails" and told["results"][0]["analysis"] == shown.analysis


@pytest.mark.parametrize(
    ("analysis", "part"),
    [
        ("attention/entropy", "What heads look at"),
        ("attention/change", "What fine-tuning changed"),
        ("geometry/similarity", "What fine-tuning changed"),
        ("geometry/phrases", "What layers know"),
        ("mine/own", "What layers know"),
    ],
)
def test_every_analysis_has_a_part(analysis: str, part: str) -> None:
    assert part_of(analysis) == part


def test_of_a_table_only_the_rows_that_were_tested_are_shown() -> None:
    values = {"m": estimates(3, gap=False)}
    shape = Table(measures=values, baselines={"b": values}, rows_named=("det", "obj", "amod"))
    test = {"kind": "some row", "measure": "m", "baseline": "b", "rows": ["obj"]}
    claim = CLAIM.model_validate({**CLAIM.model_dump(), "test": test})
    html = page(Content("title", [], [Finding(claim, Verdict("holds", "why"), (result(shape),))], []))
    assert ">obj</td>" in html and ">det</td>" not in html and ">amod</td>" not in html


def test_a_row_is_read_with_its_interval_its_baselines_and_its_note() -> None:
    values = {"m": estimates(1, gap=False)}
    shape = Table(measures=values, baselines={"chance": values}, rows_named=("det",), notes={"det": "by head 4-6"})
    html = page(Content("title", [], [], [Section("What?", "About.", result(shape))]))
    assert "<th>value [95 % interval]</th><th>n</th><th>chance</th>" in html
    by_seed = shape.model_copy(update={"units": {"m": f"bits, {BY_SEED}"}})
    told = page(Content("title", [], [], [Section("What?", "About.", result(by_seed))]))
    assert "<th>value [lowest to highest]</th><th>n</th><th>chance</th>" in told
    assert "det: by head 4-6" in html and "<th>low</th>" not in html and "<th>unit</th>" not in html


def test_the_texts_behind_a_verdict_are_shown_with_their_numbers() -> None:
    shown = result(LayerCurve(**measured(2)))
    long = "word " * 200
    texts = Evidence(
        named=("to next, head 3-3", "uniform attention"),
        most=(Instance("<Dear> Hannah,", (0.911, 0.1)), Instance(long, (0.8, 0.1))),
        least=(Instance("No.", (0.2, 0.1)),),
        looked=16,
        there=356,
    )
    content = Content("title", [], [Finding(CLAIM, Verdict("holds", "why"), (shown,))], [], evidence={CLAIM.id: texts})
    html = page(content)
    assert "<dt>most</dt><dd><b>0.91 beside 0.10</b> &lt;Dear&gt; Hannah,</dd>" in html
    assert "(16 of 356)" in html and 'head <span class="whole">3-3</span> beside uniform attention' in html
    assert long not in html and "word …</dd>" in html
    assert json.loads(as_json(content))["evidence"][CLAIM.id]["least"][0]["text"] == "No."
    assert "<dt>most</dt>" not in page(replace(content, evidence={}))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.993, 1.09), (-0.0072, 0.74), (3e-5, 4e-4), (-70.0, 1300.0)])
def test_ticks_are_round_numbers_that_can_be_told_apart(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 3 <= len(found) <= 6 and low <= min(found) + 1e-12 and max(found) <= high + 1e-12
    assert len({f"{tick:.6g}" for tick in found}) == len(found)
    steps = np.diff(found)
    assert np.allclose(steps, steps[0]) and all(
        len(f"{tick:.6g}".lstrip("-0.").replace(".", "")) <= 4 for tick in found
    )


def test_an_axis_with_one_number_has_one_tick() -> None:
    assert ticks(0.5, 0.5) == [0.5] and "nan" not in layer_curve("m", flat(0.5), {}, first=1)


def test_labels_along_an_axis_do_not_touch() -> None:
    points = np.arange(200.0)
    values = Estimates.exact(np.linspace(0, 1, 200))
    drawn = curve("m", values, {}, points, "heads pruned")
    at = [float(x) for x in re.findall(r'<text x="([\d.]+)" y="202.0"', drawn)]
    assert 5 < len(at) < 30 and min(np.diff(at)) > 9.9 and drawn.count("<circle") == 200


def test_baselines_have_bands_of_their_own_and_axes_have_names() -> None:
    drawn = layer_curve("m", estimates(5, gap=False), {"chance": estimates(5, gap=False), "level": flat(0.1)}, first=1)
    assert drawn.count('class="beside"') == 1 and drawn.count('class="band"') == 1
    grid = head_grid("m", estimates(3, 4), {})
    assert ">layer</text>" in grid and ">head</text>" in grid


def test_a_note_stands_once_for_all_measures_of_its_row() -> None:
    shape = Table(
        measures={name: estimates(3, gap=False) for name in ("a", "b", "c")},
        baselines={"level": {"a": Estimates.exact(np.zeros(3))}},
        rows_named=("x", "y", "z"),
        notes={"x": "left out: <few>"},
    )
    html = page(Content("title", [], [], [Section("What?", "about", result(shape))]))
    assert html.count("left out: &lt;few&gt;") == 1 and "<th>note" not in html


def test_runs_of_one_analysis_are_told_apart_by_corpus_and_options() -> None:
    shown = result(LayerCurve(**measured(2)))
    other = replace_options(shown, by="head")
    html = page(Content("title", [], [], [Section("What?", "In `names`.", one) for one in (shown, other)]))
    assert "group/name · a-corpus · by: layer · n = " in html and "a-corpus · by: head · n = " in html
    assert html.count("In <code>names</code>.") == 2 + 2


def replace_options(one: Result, **options: object) -> Result:
    return one.model_copy(update={"options": {**one.options, **options}})


def test_words_stand_left_and_numbers_right() -> None:
    table = html_table([{"measure": "within", "value": "0.1 [0, 1]", "n": 3, "note": "x" * 50}])
    assert '<th class="word">measure</th>' in table and '<td class="word">within</td>' in table
    assert "<td>0.1 [0, 1]</td>" in table and "<td>3</td>" in table and '<td class="long">' in table


def test_papers_are_named_in_short() -> None:
    assert [short_citation(key) for key in ("clark2019", "abnar2020", "ethayarajh2019")] == [
        "Clark et al. 2019",
        "Abnar & Zuidema 2020",
        "Ethayarajh 2019",
    ]
    assert all(len(short_citation(key)) < 40 and short_citation(key)[-4:].isdigit() for key in CITATIONS)
