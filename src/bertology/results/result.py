"""A result: the analysis, its options and inputs, the numbers, and their provenance."""

from __future__ import annotations

import json
import platform
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, field_validator

from bertology.atomic_files import write_atomically
from bertology.errors import Refusal
from bertology.public_functions import public_function
from bertology.results.answers import Answer
from bertology.results.measured_shape import Record
from bertology.results.palette import Theme
from bertology.results.shapes import Shape, UnmeasuredShape

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from bertology.results.caption import CaptionStyle
    from bertology.results.drawing.figure import Figure
    from bertology.results.measure import Measure

_SHAPE_ADAPTER: TypeAdapter[Shape] = TypeAdapter(Shape)
_KEYS = ("analysis", "version", "options", "inputs", "shape", "n", "data", "baselines", "provenance")

SHOWN_DIGITS = 8
"""Digits of a fingerprint in text for people."""
MAX_LINE_LENGTH = 240
"""Longer lines are cut where a result is printed from Python."""


class _NamedSource(BaseModel):
    """A model or a corpus in the provenance of a result."""

    model_config = ConfigDict(extra="allow")

    name: str
    fingerprint: str = "unknown"
    changes: Mapping[str, list[str]] = {}


class _InputSummary(BaseModel):
    """A model and the corpus it ran on."""

    model_config = ConfigDict(extra="allow")

    model: _NamedSource = _NamedSource(name="")
    corpus: _NamedSource = _NamedSource(name="")


class Result(BaseModel):
    """The result of one analysis, immutable.

    `n` is the largest sample size of its numbers, in whatever they count (sentences, words, examples); for shapes
    without estimates, the number of inputs, or of the examples shown.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    analysis: str
    version: int
    options: Mapping[str, Any]
    inputs: Mapping[str, Any]
    n: int
    data: Shape
    provenance: Mapping[str, Any]

    @field_validator("inputs")
    @classmethod
    def _check_inputs(cls, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        for role, summary in inputs.items():
            (_NamedSource if role == "corpus" else _InputSummary).model_validate(summary)
        return inputs

    @property
    def sample_size(self) -> str:
        """The sample size in words: `n = 40`, or `n = 12 to 40` if it differs between numbers."""
        sizes = [self.n] if isinstance(self.data, UnmeasuredShape) else sample_sizes(self.data) or [0]
        return f"n = {sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"n = {sizes[0]}"

    def describe_inputs(self) -> list[str]:
        """One line per model: its name, the corpus, the fingerprints of both, and changes made to the model."""
        lines = [_describe_input(role, summary) for role, summary in self.inputs.items() if role != "untrained"]
        return [line for line in lines if line]

    def describe_options(self) -> str:
        """All options that are not empty, as `name=value`."""
        return ", ".join(f"{name}={value}" for name, value in self.options.items() if value != "")

    def source_fields(self) -> dict[str, str]:
        """The analysis, its models and corpora with their fingerprints, and its options, for files of single items."""
        fields = {"analysis": f"{self.analysis} (version {self.version})"}
        for role, summary in self.inputs.items():
            by_kind = (
                {"corpus": summary}
                if role == "corpus"
                else {role: summary.get("model"), "corpus": summary.get("corpus")}
            )
            parts = {name: part for name, part in by_kind.items() if part}
            fields |= {name: f"{part['name']} {part.get('fingerprint', 'unknown')}" for name, part in parts.items()}
        return fields | {"options": json.dumps(dict(self.options), ensure_ascii=False, default=str)}

    def to_json(self) -> dict[str, Any]:
        """A JSON object with the keys analysis, version, options, inputs, shape, n, data, baselines, provenance."""
        data = _SHAPE_ADAPTER.dump_python(self.data, mode="json")
        for name in ("reference", "costs", "lowest", "removal_orders", "paired_differences"):  # few analyses have all
            if name in data and not data[name]:
                del data[name]
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

    def __getitem__(self, name: str) -> Measure:
        """A measure by its name, or by as much of it as identifies one: `result["to previous"]["3-8"]`."""
        from bertology.results.measure import Measure, match_name

        if isinstance(self.data, UnmeasuredShape):
            raise Refusal(
                f"{self.analysis} has no measures: its {self.data.shape} is an illustration",
                "an analysis with numbers",
                "The records are in rows() and to_pandas()",
            )
        measure = match_name("measure", name, self.data.measures)
        return Measure(measure, self.data.measures[measure], self.data)

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures; none for an illustration."""
        return () if isinstance(self.data, UnmeasuredShape) else tuple(self.data.measures)

    def answers(self) -> list[Answer]:
        """What was predicted for each item: one record per item, condition and series; none if read from JSON."""
        return [] if isinstance(self.data, UnmeasuredShape) else self.data.answers()

    def save_answers(self, path: str | Path) -> int:
        """Write the answers to a file, .csv or .jsonl; the number of answers."""
        from bertology.results.answers import save_answers

        return save_answers(self, Path(path))

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame with one row per number.

        Its columns are analysis, model, corpus, measure, layer, head, value, low, high, n, interval, unit and the value
        of each baseline; `rows()` has the intervals of baselines too.
        """
        import pandas

        return pandas.DataFrame(self._frame_records())

    def to_polars(self) -> polars.DataFrame:
        """The same as a polars data frame."""
        import polars

        return polars.DataFrame(self._frame_records(), infer_schema_length=None)

    def to_arrow(self) -> pyarrow.Table:  # pyright: ignore[reportUnknownParameterType]  # pyarrow is untyped
        """The same as an Arrow table."""
        import pyarrow

        return pyarrow.Table.from_pylist(self._frame_records())

    def _frame_records(self) -> list[Record]:
        from bertology.results.text_tables import frame_records

        return frame_records(self)

    @public_function
    def to_markdown(self, *measures: str, n_best: int | None = None) -> str:
        """A Markdown table of all measures or of the named ones: value, interval, n and baselines of each number.

        `n_best` shows only so many numbers of each measure, the best first. By default all are shown if a measure has
        at most 50, else the 3 best; the caption says so.
        """
        from bertology.results.text_tables import text_table, to_markdown

        return to_markdown(text_table(self, measures, n_best))

    @public_function
    def to_latex(
        self, *measures: str, n_best: int | None = None, caption: str | None = None, label: str | None = None
    ) -> str:
        """The same as a LaTeX table for the package booktabs; caption and label say what it shows if not given."""
        from bertology.results.text_tables import text_table, to_latex

        default = "tab:" + self.analysis.replace("/", ":").replace("_", "-")
        return to_latex(text_table(self, measures, n_best), caption, default if label is None else label)

    def bibtex(self) -> str:
        """BibTeX entries of the papers that the analysis follows; a comment for a paper that is not known here."""
        from bertology.citations import CITATIONS, bibtex_entry

        keys = self.provenance.get("citations", ())
        return "\n\n".join(bibtex_entry(key) if key in CITATIONS else f"% no reference for {key}" for key in keys)

    def caption(self, *, full: bool = False) -> str:
        """The caption of the figure: one line, or a sentence each on model, corpus, n, intervals and special tokens."""
        from bertology.results.caption import caption_line, caption_sentences

        return " ".join(caption_sentences(self)) if full else caption_line(self)

    def figure(
        self,
        path: str | Path | None = None,
        *,
        panels: str | Sequence[str] = (),
        width: str | None = None,
        caption: CaptionStyle = "full",
        theme: Theme | None = None,
        command: str = "",
    ) -> Figure:
        """The figure of the result, also written to a file if a path is given: .svg, .html, .png or .pdf.

        `panels` chooses measures, rows of a table or numbers of sentences, by name or part of a name. `width` is a
        length such as `85mm`; text keeps its size of 7 to 9 points, and the height follows. PNG files have 300 dots per
        inch; they and PDF files need the extra `figures`. Without a `theme`, images are light and pages follow the
        browser. `command` is kept in the file as what makes it again. `.svg` of the returned figure is the image.
        """
        from bertology.results.drawing.figure import draw_figure
        from bertology.results.drawing.files import check_figure_writable, figure_page, save_figure

        if path is not None:
            check_figure_writable(Path(path))
        is_page = path is not None and Path(path).suffix.lower() == ".html"
        if is_page and width is not None:
            raise Refusal("A page has no width", "an image: .svg, .pdf or .png", "Leave out width")
        figure = draw_figure(self, theme or "light", panels, width=width, caption=caption, command=command)
        if path is not None and is_page:
            themes: list[Theme] = ["light", "dark"] if theme is None else [theme]
            page = figure_page(self, themes, panels, caption=caption, command=command)
            write_atomically(Path(path), page.encode())
        elif path is not None:
            save_figure(figure, Path(path))
        return figure

    def headline(self) -> list[str]:
        """What to read first: the score before an intervention, the highest and lowest costs, and what stands out."""
        if isinstance(self.data, UnmeasuredShape) or not self.data.has_headline:
            return []
        from bertology.results.headline import headline

        return headline(self.data)

    def __repr__(self) -> str:
        """One to three lines: what was measured, and the first lines of the headline or the names of the measures."""
        first = ", ".join([f"{self.analysis}: {self.data.shape}", *self._describe_size(), self.sample_size])
        measures = [f"Measures: {', '.join(self.measures)}"] if self.measures else []
        return "\n".join(map(_shorten, [first, *(self.headline()[:2] or measures)]))

    __str__ = __repr__

    def _describe_size(self) -> list[str]:
        from bertology.results.measure import describe_size
        from bertology.results.text_tables import input_names

        names = input_names(self)
        source = [f"{names['model']} on {names['corpus']}"] if names["model"] else []
        return [*source, *([] if isinstance(self.data, UnmeasuredShape) else [describe_size(self.data)])]

    def _repr_html_(self) -> str:
        """The first lines, a small table and the figure, for notebooks."""
        from bertology.results.text_tables import summary_html

        return summary_html(self)


def _shorten(line: str) -> str:
    """The line, cut between words if it is long."""
    return textwrap.shorten(line, MAX_LINE_LENGTH, placeholder=" ...")


def _describe_input(role: str, summary: Any) -> str:
    """A model and its corpus, or a corpus alone; empty for anything else."""
    if role == "corpus":
        return _describe_corpus(summary)
    if not isinstance(summary, Mapping) or not {"model", "corpus"} <= summary.keys():
        return ""
    model: Mapping[str, Any] = summary["model"]
    changes = "".join(f" · {change}: {' '.join(names)}" for change, names in model.get("changes", {}).items())
    fingerprint = str(model.get("fingerprint", "unknown"))[:SHOWN_DIGITS]
    line = f"{model['name']} on {_describe_corpus(summary['corpus'])} · model fingerprint {fingerprint}{changes}"
    return line if role == "model" else f"{role}: {line}"


def _describe_corpus(corpus: Mapping[str, Any]) -> str:
    n_examples, fingerprint = corpus.get("examples", "unknown"), str(corpus.get("fingerprint", "unknown"))
    examples = "example" if n_examples == 1 else "examples"
    return f"{corpus['name']} · {n_examples} {examples}, fingerprint {fingerprint[:SHOWN_DIGITS]}"


def sample_sizes(data: Shape) -> list[int]:
    """The different sample sizes of the measures, rising, without those of missing values; none for illustrations."""
    if isinstance(data, UnmeasuredShape):
        return []
    sizes = [estimates.n[estimates.n > 0] for estimates in data.measures.values()]
    return np.unique(np.concatenate(sizes)).tolist()


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that numbers can depend on."""
    packages = ("bertology", "numpy", "torch", "transformers", "tokenizers", "scipy", "scikit-learn")
    installed = {package: version for package in packages if (version := _installed_version(package)) is not None}
    return {"python": platform.python_version(), **installed}


@cache  # reading the metadata of packages takes a tenth of the time of a small analysis
def _installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
