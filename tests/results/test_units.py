"""Units as figures show them."""

from __future__ import annotations

import pytest

from bertology.results.units import display_unit


@pytest.mark.parametrize(
    ("unit", "label", "factor"),
    [
        ("share of attention, 0 to 1", "% of a token's attention", 100),
        ("proportion of words, 0 to 1", "% of words", 100),
        ("proportion of tokens, 1/n to 1", "% of tokens", 100),
        ("proportion, 0 to 1", "%", 100),
        ("accuracy on masked tokens, 0 to 1", "accuracy on masked tokens, %", 100),
        ("change in accuracy, -1 to 1", "change in accuracy, percentage points", 100),
        ("difference of proportions, -1 to 1", "percentage points", 100),
        ("proportion of occurrences, 0 to 1, fallback included", "% of occurrences, fallback included", 100),
        ("nats, 0 to log n", "nats", 1),
        ("tokens, 0 to n - 1", "tokens", 1),
        ("Spearman correlation, -1 to 1", "Spearman correlation", 1),
        ("silhouette, -1 to 1 (0: not separated)", "silhouette (0: not separated)", 1),
        ("index, at most 1 (1: no effect)", "index (1: no effect)", 1),
        ("ratio, 1: average unmasked token", "ratio, 1: average unmasked token", 1),
        ("", "", 1),
    ],
)
def test_shares_are_shown_in_percent_and_ranges_left_out(unit: str, label: str, factor: float) -> None:
    shown = display_unit(unit)
    assert (shown.label, shown.factor) == (label, factor) and not shown.is_p_value


def test_signed_units_and_p_values_are_known() -> None:
    assert display_unit("silhouette, -1 to 1").is_signed and not display_unit("nats, 0 to ln 2").is_signed
    assert display_unit("probability, 0 to 1", "p of change in loss (Holm)").is_p_value
    assert display_unit("proportion of permutations, 0 to 1", "p (permutation)").is_p_value
    assert not display_unit("probability, 0 to 1", "probability of the gold label").is_p_value
