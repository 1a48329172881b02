"""Counts in messages agree with their nouns."""

from __future__ import annotations

import pytest

from bertology.errors import count_noun


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("epochs", "1 epoch"),
        ("skipped examples", "1 skipped example"),
        ("inputs skipped (too long)", "1 input skipped (too long)"),
        ("random halves", "1 random half"),
        ("entities", "1 entity"),
        ("classes", "1 class"),
        ("examples with several labels", "1 example with several labels"),
    ],
)
def test_one_is_singular(plural: str, one: str) -> None:
    assert count_noun(1, plural) == one
    assert count_noun(0, plural) == f"0 {plural}" and count_noun(2, plural) == f"2 {plural}"
