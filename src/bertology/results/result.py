"""A result: the analysis, its options and inputs, the numbers, and their provenance."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter

from bertology.results.answers import Answer
from bertology.results.palette import Theme
from bertology.results.shapes import Record, Shape, UnmeasuredShape

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from bertology.results.drawing.figure import Figure

_SHAPE_ADAPTER: TypeAdapter[Shape] = TypeAdapter(Shape)
_KEYS = ("analysis", "version", "options", "inputs", "shape", "n", "data", "baselines", "provenance")


class Result(BaseModel):
    """The result of one analysis, immutable.

    `n` is the largest sample size of its numbers, in whatever they count (sentences, words, examples); for shapes
    without estimates, the number of inputs.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    analysis: str
    version: int
    options: Mapping[str, Any]
    inputs: Mapping[str, Any]
    n: int
    data: Shape
    provenance: Mapping[str, Any]

    @property
    def sample_size(self) -> str:
        """The sample size in words: `n = 40`, or `n = 12 to 40` if it differs between numbers."""
        sizes = [self.n] if isinstance(self.data, UnmeasuredShape) else sample_sizes(self.data) or [0]
        return f"n = {sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"n = {sizes[0]}"

    def to_json(self) -> dict[str, Any]:
        """A JSON object with the keys analysis, version, options, inputs, shape, n, data, baselines, provenance."""
        data = _SHAPE_ADAPTER.dump_python(self.data, mode="json")
        fields = self.model_dump(mode="json", exclude={"data"})
        fields |= {"shape": data.pop("shape"), "baselines": data.pop("baselines", {}), "data": data}
        return {key: fields[key] for key in _KEYS}

    @classmethod
    def from_json(cls, value: str | Mapping[str, Any]) -> Result:
        """The inverse of `to_json`, from the object or its text."""
        fields: dict[str, Any] = dict(json.loads(value) if isinstance(value, str) else value)
        shape, baselines = fields.pop("shape"), fields.pop("baselines")
        data = {**fields["data"], "shape": shape} | ({"baselines": baselines} if baselines else {})
        return cls.model_validate({**fields, "data": data})

    def rows(self) -> list[Record]:
        """Tidy records in long form: one per number and series, where the series is `model` or a baseline's name."""
        return list(self.data.rows())

    def answers(self) -> list[Answer]:
        """What was predicted for each item: one record per item, condition and series; none if read from JSON."""
        return [] if isinstance(self.data, UnmeasuredShape) else self.data.answers()

    def save_answers(self, path: str | Path) -> int:
        """Write the answers to a file, .csv or .jsonl; the number of answers."""
        from bertology.results.answers import save_answers

        return save_answers(self, Path(path))

    def to_pandas(self) -> pandas.DataFrame:
        """The records as a pandas data frame."""
        import pandas

        return pandas.DataFrame(self.rows())

    def to_polars(self) -> polars.DataFrame:
        """The records as a polars data frame."""
        import polars

        return polars.DataFrame(self.rows(), infer_schema_length=None)

    def to_arrow(self) -> pyarrow.Table:  # pyright: ignore[reportUnknownParameterType]  # pyarrow is untyped
        """The records as an Arrow table."""
        import pyarrow

        return pyarrow.Table.from_pylist(self.rows())

    def figure(self, theme: Theme = "light") -> Figure:
        """The figure of the result; `.svg` is the image."""
        from bertology.results.drawing.figure import draw_figure

        return draw_figure(self, theme)

    def save(self, path: str | Path, theme: Theme = "light") -> Path:
        """Write the figure to a file: .svg, .html, or .png, which needs the `figures` extra."""
        from bertology.results.drawing.files import save_figure

        return save_figure(self, Path(path), theme)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The figure, for notebooks."""
        description = f"{self.analysis}: {self.data.shape}, {self.sample_size}"
        return {"text/plain": description, "image/svg+xml": self.figure().svg}


def sample_sizes(data: Shape) -> list[int]:
    """The different sample sizes of the measures, rising, without those of missing values; none for illustrations."""
    if isinstance(data, UnmeasuredShape):
        return []
    sizes = [estimates.n[estimates.n > 0] for estimates in data.measures.values()]
    return np.unique(np.concatenate(sizes)).tolist()


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that numbers can depend on."""
    installed = {"python": platform.python_version()}
    for package in ("bertology", "numpy", "torch", "transformers", "tokenizers", "scipy", "scikit-learn"):
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed
