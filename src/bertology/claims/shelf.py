"""All claims that come with bertology, by paper."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from bertology.citations import CITATIONS
from bertology.claims.claim import Claim

FOLDER = Path(__file__).parent


@cache
def all_claims() -> tuple[Claim, ...]:
    """Every claim of every file; a claim's paper is the name of its file."""
    claims = [claim for file in sorted(FOLDER.glob("*.toml")) for claim in read_claims(file)]
    seen: set[str] = set()
    for claim in claims:
        if claim.id in seen:
            raise ValueError(f"two claims are called {claim.id}")
        seen.add(claim.id)
    return tuple(claims)


def read_claims(file: Path) -> list[Claim]:
    """The claims of one file."""
    if file.stem not in CITATIONS:
        raise ValueError(f"{file.name} is named after no paper in citations.py")
    content: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
    return [Claim(paper=file.stem, **claim) for claim in content["claim"]]
