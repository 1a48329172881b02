"""HTML tables: text left, numbers right, everything escaped."""

from __future__ import annotations

from bertology.results.html_table import html_table


def test_text_is_aligned_left_and_numbers_right() -> None:
    table = html_table([{"measure": "within", "value": "0.1 [0, 1]", "n": 3, "note": "x" * 50}])
    assert '<th class="word">measure</th>' in table and '<td class="word">within</td>' in table
    assert "<td>0.1 [0, 1]</td>" in table and "<td>3</td>" in table and '<td class="long">' in table


def test_missing_numbers_are_dashes_and_missing_values_empty() -> None:
    table = html_table([{"a": float("nan"), "b": None, "c": True, "d": 0.123456}])
    assert "<td>–</td><td></td><td>yes</td><td>0.123</td>" in table


def test_text_is_escaped() -> None:
    assert "&lt;b&gt;" in html_table([{"<i>": "<b>"}]) and "<i>" not in html_table([{"<i>": "<b>"}])
