"""The colour scale is linear on both sides of the baseline; signed measures are neutral at 0."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.estimates.estimate import Estimates
from bertology.results.drawing.panels import ColourScale, MeasureSeries, legend
from bertology.results.drawing.style import COLOUR_STEPS, series_styles


def test_equal_differences_are_equal_steps_of_colour() -> None:
    scale = ColourScale.of(np.array([0.0, 0.3, 1.0, np.nan]), 0.3)
    assert (scale.low, scale.high) == (0.0, 1.0)
    np.testing.assert_allclose([scale.strength(0.0), scale.strength(1.0)], [3 / 7, 1])
    assert scale.class_of(0.3) == "up0" and scale.class_of(1.0) == f"up{COLOUR_STEPS - 1}"
    assert scale.class_of(0.0) == f"down{round(3 / 7 * (COLOUR_STEPS - 1))}"


def test_a_scale_without_values_is_not_empty() -> None:
    scale = ColourScale.of(np.array([np.nan]), 0.0)
    assert scale.high > scale.low and scale.strength(0.0) == 0


def test_a_scale_without_a_baseline_is_sequential() -> None:
    scale = ColourScale.of(np.array([2.0, 3.0, 4.0]), None)
    assert [scale.class_of(value) for value in (2.0, 4.0)] == ["up0", f"up{COLOUR_STEPS - 1}"]


def test_only_significant_p_values_have_a_colour() -> None:
    scale = ColourScale.of(np.array([0.001, 1.0]), 0.05, is_p_value=True)
    assert scale.class_of(1.0) == scale.class_of(0.05) == "up0" and scale.strength(1e-9) == 1
    assert 0 < scale.strength(0.01) < scale.strength(0.001) < 1


def test_the_bar_shows_both_ends_and_the_baseline() -> None:
    bar = ColourScale.of(np.array([-1.0, 1.0]), 0.5).bar(0, 0, 200, "uniform attention")
    assert ">−1<" in bar and ">1<" in bar and ">uniform attention 0.5<" in bar
    assert 'points="150,-3 150,8"' in bar  # the tick stands at the baseline
    narrow = ColourScale.of(np.array([-1.0, 1.0]), 0.5).bar(0, 0, 90, "a baseline with a long name")
    assert "… 0.5<" in narrow and "<title>a baseline with a long name 0.5</title>" in narrow
    assert "≈ 0" in ColourScale.of(np.array([1e-9, 1.0]), 1e-9).bar(0, 0, 200)


def exact(*values: float) -> Estimates:
    return Estimates.exact(np.array(values))


@pytest.mark.parametrize(
    ("unit", "values", "baselines", "neutral"),
    [
        ("share of attention, 0 to 1", (0.1, 0.9), {"uniform attention": (0.2, 0.2)}, ("uniform attention", 20.0)),
        ("nats", (1.0, 2.0), {"untrained model": (2.0, 4.0), "chance": (3.0, 3.0)}, ("chance", 3.0)),
        ("nats", (1.0, 2.0), {"untrained model": (2.0, 4.0)}, ("untrained model, mean", 3.0)),
        ("Spearman correlation, -1 to 1", (0.3, 0.5), {"uniform attention": (0.2, 0.2)}, ("0", 0.0)),
        ("nats per example", (-0.3, 0.5), {"random": (0.2, 0.2)}, ("0", 0.0)),
        ("nats", (1.0, 2.0), {}, ("", None)),
    ],
)
def test_the_neutral_colour_is_the_baseline_or_zero(
    unit: str, values: tuple[float, ...], baselines: dict[str, tuple[float, ...]], neutral: tuple[str, float | None]
) -> None:
    series = MeasureSeries("m", unit, exact(*values), {name: exact(*numbers) for name, numbers in baselines.items()})
    assert series.displayed().neutral_value() == neutral


def test_untrained_and_published_have_one_style_each_and_simple_rules_differ() -> None:
    styles = series_styles(["chance", "untrained model", "majority class", "published (BERT-base)"])
    assert styles["untrained model"].class_ == "untrained" and styles["published (BERT-base)"].class_ == "published"
    rules = [styles["chance"], styles["majority class"]]
    assert {style.class_ for style in rules} == {"rule-baseline"}
    assert len({style.dash for style in rules}) == len({style.marker for style in rules}) == 2
    assert styles["untrained model"].dash == ""


def test_a_key_wraps_within_its_width() -> None:
    styles = series_styles([f"a baseline with a long name, number {number}" for number in range(4)])
    narrow, wide = (legend(styles, width, lines=True) for width in (240, 1400))
    assert narrow is not None and wide is not None and narrow.height > 3 * wide.height
    assert legend({"one": styles[next(iter(styles))]}, 200, lines=True) is None
