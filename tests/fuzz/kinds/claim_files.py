"""Files of claims in TOML."""

from __future__ import annotations

from pathlib import Path
from random import Random

from bertology.claims import catalogue
from fuzz.kind import Files, Kind
from fuzz.mutations import deep_json, mutate_bytes, mutate_lines

PROPORTION_OF_DEEP = 0.01


class ClaimFiles(Kind):
    """The claims of a paper under other ids."""

    name = "claims"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        files = sorted(catalogue.DIRECTORY.glob("*.toml"))
        self.texts = [file.read_text("utf-8").replace('id = "', 'id = "mine-').encode() for file in files]

    def make(self, rng: Random) -> Files:
        """A few claims, damaged, or a value that is nested deeply."""
        if rng.random() < PROPORTION_OF_DEEP:
            return {"clark2019.toml": b"claim = " + deep_json(rng.choice((150, 1000, 50_000)))}
        head, *claims = rng.choice(self.texts).split(b"[[claim]]")
        chosen = rng.sample(claims, min(len(claims), rng.randint(1, 3)))
        content = b"[[claim]]".join([head, *chosen])
        return {"clark2019.toml": mutate_bytes(rng, content) if rng.random() < 0.4 else mutate_lines(rng, content)}

    def consume(self, folder: Path) -> None:
        """Read them."""
        claims = catalogue.read_claims(folder / "clark2019.toml")
        for claim in claims:
            assert claim.statement and claim.all_runs is not None and repr(claim)
