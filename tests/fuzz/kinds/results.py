"""Results as JSON, of every shape, and everything that is made of them."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from bertology.results.read_result import read_result
from bertology.results.shapes import UnmeasuredShape
from fuzz.kind import Files, Kind
from fuzz.mutations import deep_json, mutate_bytes, mutate_json
from results.example_results import EMPTY_SHAPES, SHAPES, result


class Results(Kind):
    """A result of one of the nine shapes."""

    name = "results"

    def make(self, rng: Random) -> Files:
        """Its JSON, with parts or bytes changed."""
        shapes = EMPTY_SHAPES if rng.random() < 0.05 else SHAPES
        value = result(shapes[rng.choice(sorted(shapes))]).to_json()
        if rng.random() < 0.02:
            return {"result.json": deep_json(rng.choice((150, 1000, 100_000)))}
        if rng.random() < 0.25:
            return {"result.json": mutate_bytes(rng, json.dumps(value).encode())}
        return {"result.json": json.dumps(mutate_json(rng, value)).encode()}

    def consume(self, folder: Path) -> None:
        """Read it, and make tables, text and a figure."""
        read = read_result(folder / "result.json")
        assert read_result(folder / "result.json").to_json() == read.to_json()
        read.rows()
        read.to_pandas()
        read.headline()
        read.source_fields()
        read.describe_inputs()
        assert read.caption(full=True) is not None and repr(read)
        read.figure()
        if not isinstance(read.data, UnmeasuredShape):
            read.to_markdown()
            read.to_latex()
