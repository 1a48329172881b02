"""What a claim is: a published finding, the analyses that measure it, and the test that decides it.

A claim is one `[[claim]]` of a TOML file named after its paper. Depths are those of the model it was made about, of
`depth` layers; `judge` maps them to the model at hand. `layers = [5, 10]` are layers 5 to 10, and layer 0 is the
embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Run(_Part):
    """One analysis with its options; `corpus` names controlled stimuli that do not depend on the user's corpus.

    `of` against: it is run on the model given with --against, which has learnt a task.
    """

    analysis: str
    options: Mapping[str, Any] = Field(default_factory=dict)
    corpus: str | None = None
    of: Literal["model", "against"] = "model"


class Selection(_Part):
    """A number of a result: a measure (or one of its baselines), at a row or over layers, heads taken together.

    Along a curve it is taken at `point`, or at `share` of its largest point; the nearest there is.
    """

    measure: str
    plus: tuple[str, ...] = ()
    """Further measures that are added to it."""
    run: str = ""
    baseline: str | None = None
    row: str | None = None
    column: str | None = None
    layers: tuple[int, int] | None = None
    point: float | None = None
    share: float | None = None


class Greater(_Part):
    """One number is larger than another, or than a constant, by more than `by`."""

    kind: Literal["greater"] = "greater"
    this: Selection
    than: Selection | float
    by: float = 0.0


class Between(_Part):
    """A number lies between two constants."""

    kind: Literal["between"] = "between"
    this: Selection
    low: float
    high: float


class SomeHead(_Part):
    """At least one head's measure is above a constant and above its baselines."""

    kind: Literal["some head"] = "some head"
    measure: str
    above: float = float("-inf")
    baselines: tuple[str, ...] = ()
    layers: tuple[int, int] | None = None
    run: str = ""


class SomeRow(_Part):
    """At least `least` of the named rows of a table are above a baseline by more than `by`.

    `difference` is the measure of how far they are above it, item by item; with it not two intervals but one decides.
    """

    kind: Literal["some row"] = "some row"
    measure: str
    baseline: str
    difference: str | None = None
    rows: tuple[str, ...]
    least: int = 1
    by: float = 0.0
    run: str = ""


class Peak(_Part):
    """A measure has its highest (or lowest) layer among these layers."""

    kind: Literal["peak"] = "peak"
    measure: str
    layers: tuple[int, int]
    lowest: bool = False
    run: str = ""


class Ordered(_Part):
    """Each number is larger than the one before it."""

    kind: Literal["ordered"] = "ordered"
    these: tuple[Selection, ...] = Field(min_length=2)


class PeaksInOrder(_Part):
    """Measures, perhaps of several runs, have their highest layers in this order of depth."""

    kind: Literal["peaks in order"] = "peaks in order"
    these: tuple[Selection, ...] = Field(min_length=2)


Test = Annotated[
    Greater | Between | SomeHead | SomeRow | Peak | Ordered | PeaksInOrder,
    Field(discriminator="kind"),
]


class Claim(_Part):
    """A finding in our own words, where it was published, and how it is tested."""

    id: str
    finding: str
    paper: str = ""
    place: str
    published: str
    depth: int = 12
    needs: tuple[str, ...] = ()
    """What a reader must bring beyond a model, in words: shown where the claim does not apply."""
    how: str = ""
    """How that can be had, where it takes more than naming it: shown where the claim does not apply."""
    given: Greater | None = None
    """What must hold first: how a model does a task cannot be asked of one that does it no better than a guess."""
    analysis: str | None = None
    options: Mapping[str, Any] = Field(default_factory=dict)
    corpus: str | None = None
    of: Literal["model", "against"] = "model"
    runs: Mapping[str, Run] = Field(default_factory=dict)
    slow: bool = False
    """Whether it takes minutes, so that it is judged only where that is asked for."""
    test: Test

    @model_validator(mode="after")
    def _names_its_runs(self) -> Claim:
        if (self.analysis is None) == (not self.runs):
            raise ValueError(f"claim {self.id}: give either `analysis` or `runs`")
        named = _runs_of(self.test) | (_runs_of(self.given) if self.given else set[str]())
        unknown = named - set(self.measured_by)
        if unknown:
            raise ValueError(f"claim {self.id}: its test names runs that are not there: {sorted(unknown)}")
        return self

    @property
    def measured_by(self) -> Mapping[str, Run]:
        """The runs by name; the only one of a simple claim is named by nothing."""
        if self.analysis is not None:
            return {"": Run(analysis=self.analysis, options=self.options, corpus=self.corpus, of=self.of)}
        return self.runs

    def learning_from(self, sentences: int) -> Claim:
        """The same, its probes trained on at most so many sentences (0: all) where it says how many itself."""

        def other(options: Mapping[str, Any]) -> Mapping[str, Any]:
            return {name: sentences if name == "train_limit" else value for name, value in options.items()}

        runs = {name: run.model_copy(update={"options": other(run.options)}) for name, run in self.runs.items()}
        return self.model_copy(update={"options": other(self.options), "runs": runs})


def measures_of(test: Test) -> set[str]:
    """The measures that a test looks at."""
    if isinstance(test, SomeRow) and test.difference is not None:
        return {test.measure, test.difference}
    if isinstance(test, SomeHead | SomeRow | Peak):
        return {test.measure}
    return {measure for one in _selections(test) for measure in (one.measure, *one.plus)}


def rows_of(test: Test) -> set[str]:
    """The rows of a table that a test looks at; none where it looks at layers or heads."""
    if isinstance(test, SomeRow):
        return set(test.rows)
    return {one.row for one in _selections(test) if one.row is not None}


def _runs_of(test: Test) -> set[str]:
    return {test.run} if isinstance(test, SomeHead | SomeRow | Peak) else {one.run for one in _selections(test)}


def _selections(test: Test) -> list[Selection]:
    match test:
        case Greater():
            return [part for part in (test.this, test.than) if isinstance(part, Selection)]
        case Between():
            return [test.this]
        case Ordered() | PeaksInOrder():
            return list(test.these)
        case _:
            return []
