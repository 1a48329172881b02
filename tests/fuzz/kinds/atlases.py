"""Atlases as JSON, whose models are added to another one."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from bertology.atlas.content import Atlas
from bertology.atlas.earlier_atlas import SAME_OPTIONS, add_models
from bertology.atlas.page import atlas_page
from bertology.corpus.read import load_corpus
from fuzz.kind import Files, Kind
from fuzz.mutations import deep_json, mutate_bytes, mutate_json
from planted_atlas import planted_atlas

EFFECTS = {
    "mini-seed-0": {"high": 0.5, "low": -0.5},
    "mini-seed-1": {"high": 0.4, "low": 0.5},
    "run/checkpoint-5": {"high": 0.1, "low": 0.2},
}


class Atlases(Kind):
    """An atlas of three planted models."""

    name = "atlases"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.corpus = load_corpus("english", limit=2)
        self.planted = planted_atlas(EFFECTS)
        self.record = self.planted.to_json()
        self.record |= {"corpus": self.corpus.summary(), "options": dict.fromkeys(SAME_OPTIONS)}

    def make(self, rng: Random) -> Files:
        """Its JSON, with parts or bytes changed; mostly in the records, which are read."""
        if rng.random() < 0.02:
            return {"atlas.json": deep_json(rng.choice((150, 1000, 100_000)))}
        if rng.random() < 0.2:
            return {"atlas.json": mutate_bytes(rng, json.dumps(self.record).encode())}
        record = dict(self.record)
        key = rng.choice(("records", "records", "records", "findings", "corpus", "options"))
        record[key] = mutate_json(rng, record[key])
        return {"atlas.json": json.dumps(record).encode()}

    def consume(self, folder: Path) -> None:
        """Add its models to an atlas without others, compare them and make the page."""
        claims = self.planted.claims
        added = add_models([folder / "atlas.json"], (), corpus=self.corpus, claims=claims, options={})
        content = Atlas(added.models, claims, self.corpus.summary(), messages=added.messages)
        assert atlas_page(content) and content.json_text()
