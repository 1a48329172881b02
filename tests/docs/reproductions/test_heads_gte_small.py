"""The page cites no number that is not in its tables."""

from __future__ import annotations

import re

from reproduction_scripts import FOLDER, split_page

NUMBER = re.compile(r"\d+\.\d+")
SMALLER_RUN = {"55.1", "59.5"}
"""Probes with 600 training sentences, which no table has."""


def test_the_text_cites_only_numbers_of_the_tables() -> None:
    text, numbers = split_page(FOLDER / "heads-gte-small.md")
    assert set(NUMBER.findall(text)) - SMALLER_RUN <= set(NUMBER.findall(numbers))
