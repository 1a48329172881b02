"""What an analysis does about special tokens: keep them, or drop them and renormalise what is left of each row."""

from __future__ import annotations

from typing import Literal

SpecialTokens = Literal["keep", "drop"]

LEAST_SHARE = 1e-6
"""A row that puts less than this on ordinary pieces has no distribution over them to speak of, and does not count."""
