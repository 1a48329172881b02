"""A frozen result: what was asked, of whom, the numbers, and where they came from. Its JSON round-trips."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter

from bertology.results.shapes import Picture, Row, Shape

if TYPE_CHECKING:
    import altair
    import pandas
    import polars
    import pyarrow

_SHAPES: TypeAdapter[Shape] = TypeAdapter(Shape)


class Result(BaseModel):
    """One analysis's answer with its provenance.

    `n` is the most observations that one of its numbers rests on, which may be fewer than the texts it was given, or
    more where words are counted; of a picture, how many texts there were.
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
    def rests_on(self) -> str:
        """The observations that its numbers rest on, in words: `n = 40`, or `n up to 40` where not all have as many."""
        counted = observed(self.data)
        most = self.n if isinstance(self.data, Picture) else max(counted, default=0)
        return f"n up to {most}" if len(counted) > 1 else f"n = {most}"

    def to_json(self) -> dict[str, Any]:
        """The fixed form: analysis, version, options, inputs, shape, n, data, baselines, provenance."""
        data = _SHAPES.dump_python(self.data, mode="json")
        shape = data.pop("shape")
        baselines = data.pop("baselines", {})
        whole = self.model_dump(mode="json", exclude={"data"})
        order = ("analysis", "version", "options", "inputs", "shape", "n", "data", "baselines", "provenance")
        whole |= {"shape": shape, "data": data, "baselines": baselines}
        return {name: whole[name] for name in order}

    @classmethod
    def from_json(cls, value: str | Mapping[str, Any]) -> Result:
        """The inverse of `to_json`, from the object or its text."""
        whole: dict[str, Any] = dict(json.loads(value) if isinstance(value, str) else value)
        shape, baselines = whole.pop("shape"), whole.pop("baselines")
        data = {**whole["data"], "shape": shape} | ({"baselines": baselines} if baselines else {})
        return cls.model_validate({**whole, "data": data})

    def rows(self) -> list[Row]:
        """Tidy records, one a number."""
        return list(self.data.rows())

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas data frame."""
        import pandas

        return pandas.DataFrame(self.rows())

    def to_polars(self) -> polars.DataFrame:
        """The rows as a polars data frame."""
        import polars

        return polars.DataFrame(self.rows(), infer_schema_length=None)

    def to_arrow(self) -> pyarrow.Table:  # pyright: ignore[reportUnknownParameterType]  # pyarrow is untyped
        """The rows as an Arrow table."""
        import pyarrow

        return pyarrow.Table.from_pylist(self.rows())

    def figure(self, theme: Literal["light", "dark"] = "light") -> altair.ConcatChart:
        """The result as an Altair chart; needs the `figures` extra."""
        from bertology.results.charts.files import require_figures

        require_figures()
        from bertology.results.charts.draw import draw

        return draw(self, theme)

    def save(self, path: str | Path, theme: Literal["light", "dark"] = "light") -> Path:
        """Write the figure to a file that opens offline: .svg, .png or .html; needs the `figures` extra."""
        from bertology.results.charts.files import save

        return save(self, Path(path), theme)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """What notebooks show: the figure where it can be drawn, else a table."""
        from bertology.results.charts.notebook import bundle

        return bundle(self)


def observed(data: Shape) -> list[int]:
    """How many observations the numbers of a result rest on, each once, the fewest first; none of a picture."""
    if isinstance(data, Picture):
        return []
    counted = [estimates.n[estimates.n > 0] for estimates in data.measures.values()]
    return np.unique(np.concatenate(counted)).tolist()


def versions() -> dict[str, str]:
    """The versions a number may depend on."""
    found = {"python": platform.python_version()}
    for package in ("bertology", "numpy", "torch", "transformers", "tokenizers", "scipy", "scikit-learn"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
