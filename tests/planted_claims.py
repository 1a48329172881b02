"""A file of two claims that are judged in a second: one that every model meets, and one that hardly any does."""

from __future__ import annotations

from pathlib import Path

CLAIMS = """
citation = "Nobody 2026. Planted."

[[claim]]
id = "entropy-above-zero"
statement = "The last layer has a higher entropy than 0."
section = "1"
published_value = "none"
analysis = "attention/entropy"
test = { kind = "greater", left = { measure = "entropy", layers = { last = 1 } }, right = 0.0 }

[[claim]]
id = "some-head-is-narrow"
statement = "A head gives the next token more than half."
section = "1"
published_value = "none"
analysis = "attention/targets"
unit = "percent"
test = { kind = "any head", measure = "attention to next token", threshold = 0.5, baselines = ["uniform attention"] }
"""


def write_claims(file: Path) -> Path:
    """Write the claims, and return the file."""
    file.write_text(CLAIMS)
    return file
