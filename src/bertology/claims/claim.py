"""`Claim`: a published finding as one sentence, the analyses that measure it, and the test that decides it.

A claim is one `[[claim]]` of a TOML file named after its paper. Layers are those of the published model, which has
`published_depth` layers; `judge` maps them to the model at hand. `layers = [5, 10]` means layers 5 to 10, at the same
relative depth; layer 0 is the embeddings. A sentence that names a number of layers, such as the last two, has
`layers = { last = 2 }`, which are two layers in every model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from bertology.citations import CITATIONS, short_citation
from bertology.claims.rounding import Unit
from bertology.claims.template import unknown_placeholders
from bertology.claims.verdict import Outcome
from bertology.corpus.language import Language

OWN_TOPIC = "Your claims"
"""The topic of a claim that names none."""
Topic = Literal[
    "Where attention goes",
    "What single heads do",
    "Syntax in attention",
    "What attention weights mean",
    "What the layers know",
    "Word vectors and context",
    "What fine-tuning changes",
    "Heads and layers removed",
    "Scrambled input",
    "Your claims",
]
"""What a claim is about."""
TOPICS: tuple[Topic, ...] = get_args(Topic)
"""All topics, in the order in which pages show them."""


class _ClaimModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ClaimRun(_ClaimModel):
    """One analysis with its options.

    `corpus` names controlled stimuli to use instead of the user's corpus. With `target` "against" the analysis runs on
    the fine-tuned model given with --against.
    """

    analysis: str
    options: Mapping[str, Any] = Field(default_factory=dict)
    corpus: str | None = None
    target: Literal["model", "against"] = "model"


class LayerCount(_ClaimModel):
    """A number of layers that is the same in every model: the first, the last, or all but the last ones.

    With `embeddings`, these belong to the first layers as well.
    """

    first: int = Field(default=0, ge=0)
    last: int = Field(default=0, ge=0)
    all_but_last: int = Field(default=0, ge=0)
    embeddings: bool = False

    @model_validator(mode="after")
    def _check_one(self) -> LayerCount:
        if sum(map(bool, (self.first, self.last, self.all_but_last))) != 1:
            raise ValueError("expected one of first, last and all_but_last")
        return self


Layers = tuple[int, int] | LayerCount
"""Layers at a relative depth, or a number of layers."""


class NumberSelector(_ClaimModel):
    """A number in a result: a measure or one of its baselines, at a row, or averaged over layers and heads.

    On a curve it is the value at `x`, or at `x_fraction` of the largest x, whichever point is nearest.
    """

    measure: str
    added_measures: tuple[str, ...] = ()
    """Further measures to add to it."""
    run: str = ""
    baseline: str | None = None
    row: str | None = None
    column: str | None = None
    layers: Layers | None = None
    x: float | None = None
    x_fraction: float | None = None


class Greater(_ClaimModel):
    """A number is larger than another one, or than a constant, by more than `margin`."""

    kind: Literal["greater"] = "greater"
    left: NumberSelector
    right: NumberSelector | float
    margin: float = 0.0


class Between(_ClaimModel):
    """A number lies between two constants."""

    kind: Literal["between"] = "between"
    value: NumberSelector
    low: float
    high: float


class AnyHead(_ClaimModel):
    """At least one head lies above a threshold and above its baselines."""

    kind: Literal["any head"] = "any head"
    measure: str
    threshold: float = float("-inf")
    baselines: tuple[str, ...] = ()
    layers: Layers | None = None
    run: str = ""


class AnyRow(_ClaimModel):
    """At least `min_rows` of the named rows of a table exceed a baseline by more than `margin`.

    `difference` names the measure of the paired difference to the baseline, if there is one; its interval then decides
    instead of the two separate intervals.
    """

    kind: Literal["any row"] = "any row"
    measure: str
    baseline: str
    difference: str | None = None
    rows: tuple[str, ...]
    min_rows: int = 1
    margin: float = 0.0
    run: str = ""


class PeakLayer(_ClaimModel):
    """The layer with the highest (or lowest) value is one of these layers."""

    kind: Literal["peak layer"] = "peak layer"
    measure: str
    layers: Layers
    lowest: bool = False
    run: str = ""


class EachLayer(_ClaimModel):
    """Each of these layers has a higher value than each of the others, or than a baseline in the same layer.

    `others` are all other layers unless they are named. With `lowest`, the values are lower. `margin` is by how much a
    layer must exceed the others or the baseline.
    """

    kind: Literal["each layer"] = "each layer"
    measure: str
    layers: Layers
    others: Layers | None = None
    baseline: str | None = None
    lowest: bool = False
    margin: float = 0.0
    run: str = ""


class Increasing(_ClaimModel):
    """Every number is larger than the previous one."""

    kind: Literal["increasing"] = "increasing"
    values: tuple[NumberSelector, ...] = Field(min_length=2)


class AllOf(_ClaimModel):
    """Several comparisons all hold."""

    kind: Literal["all of"] = "all of"
    tests: tuple[Greater, ...] = Field(min_length=2)


class PeaksInOrder(_ClaimModel):
    """Curves reach their highest values in this order of layers."""

    kind: Literal["peaks in order"] = "peaks in order"
    curves: tuple[NumberSelector, ...] = Field(min_length=2)


Test = Annotated[
    Greater | AllOf | Between | AnyHead | AnyRow | PeakLayer | EachLayer | Increasing | PeaksInOrder,
    Field(discriminator="kind"),
]


class Control(_ClaimModel):
    """A simpler explanation of a finding, which it must go beyond to be evidence about the model.

    `name` is a baseline of the result: the finding must show more clearly in the model's numbers than in those of the
    baseline. With `test`, that test decides instead.
    """

    name: str
    test: Greater | None = None
    unit: Unit | None = None
    """What the numbers of `test` are shown in, if not in the unit of the claim."""
    answer: str = ""
    """The numbers of `test` in a sentence, as `Claim.answer`."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


UNTRAINED = Control(name="untrained model")


class Claim(_ClaimModel):
    """A published finding in one sentence, its source, and its test."""

    id: str
    topic: Topic = OWN_TOPIC
    statement: str
    headline: str = ""
    """The finding in a few words, as it heads a card."""
    denial: str = ""
    """The opposite of the headline, for a model in which the finding fails."""
    paper: str = ""
    citation: str = ""
    """The paper in full, if citations.py does not have it."""
    section: str
    published_value: str
    """What the paper reports, as text."""
    published: float | tuple[float, float] | None = None
    """The same as a number, or as the lowest and highest of several, in the unit of the measure that is tested."""
    published_baseline: float | tuple[float, float] | None = None
    """The published number that it is compared with."""
    published_depth: int = 12
    published_model: str = ""
    """The model of the published numbers."""
    requirements: tuple[str, ...] = ()
    """What the claim needs besides a model; shown if the claim does not apply."""
    languages: tuple[Language, ...] = ()
    """The languages it is about; empty for all. Labels of Universal Dependencies are those of all languages."""
    language_reason: str = ""
    """Why it is about these languages; shown for a corpus in another one."""
    requirement_help: str = ""
    """How to meet the requirements, such as a command; shown if the claim does not apply."""
    precondition: Greater | Between | None = None
    """What must hold first, such as that fine-tuning changed anything.

    That a task was learnt is not asked here: the result says so (`reference`), and no claim is judged otherwise.
    """
    controls: tuple[Control, ...] = (UNTRAINED,)
    """What a finding must go beyond to be specific to the model."""
    no_control: str = ""
    """Why no control applies, if `controls` is empty."""
    analysis: str | None = None
    options: Mapping[str, Any] = Field(default_factory=dict)
    corpus: str | None = None
    target: Literal["model", "against"] = "model"
    runs: Mapping[str, ClaimRun] = Field(default_factory=dict)
    slow: bool = False
    """Whether it takes minutes and is tested only on request."""
    unit: Unit = "number"
    """What the tested numbers are shown in."""
    answer: str = ""
    """The numbers in a sentence with placeholders (`template.py`)."""
    each: str = ""
    """The text of one comparison, for the placeholder `each`."""
    requirement: str = ""
    """What the finding says of the numbers, in a sentence, if the automatic one does not fit."""
    test: Test

    @model_validator(mode="after")
    def _check_runs(self) -> Claim:
        if (self.analysis is None) == (not self.runs):
            raise ValueError(f"claim {self.id}: expected either `analysis` or `runs`")
        if bool(self.languages) != bool(self.language_reason):
            raise ValueError(f"claim {self.id}: expected both `languages` and `language_reason`, or neither")
        if bool(self.controls) == bool(self.no_control):
            raise ValueError(f"claim {self.id}: expected either `controls` or `no_control`")
        templates = (self.answer, self.each, self.requirement, *(control.answer for control in self.controls))
        if placeholders := [name for template in templates for name in unknown_placeholders(template)]:
            raise ValueError(f"claim {self.id}: its answer has unknown placeholders: {placeholders}")
        tested = _tested_runs(self.test) | (_tested_runs(self.precondition) if self.precondition else set[str]())
        unknown = tested - set(self.all_runs)
        if unknown:
            raise ValueError(f"claim {self.id}: its test names unknown runs: {sorted(unknown)}")
        return self

    def headline_for(self, outcome: Outcome) -> str:
        """The headline if the finding holds, its denial if it fails, else the headline as a question."""
        headline = self.headline or self.statement
        if outcome == "holds":
            return headline
        if outcome == "fails":
            return self.denial or f"Not so: {headline}"
        return f"{headline.removesuffix('.')}?"

    @property
    def reference(self) -> str:
        """The paper in full; the name of the file for claims of no paper."""
        return self.citation or CITATIONS.get(self.paper, self.paper)

    @property
    def short_reference(self) -> str:
        """Authors and year of the paper."""
        return short_citation(self.reference)

    @property
    def all_runs(self) -> Mapping[str, ClaimRun]:
        """Runs by name; a single-run claim uses the empty name."""
        if self.analysis is not None:
            return {"": ClaimRun(analysis=self.analysis, options=self.options, corpus=self.corpus, target=self.target)}
        return self.runs

    def with_train_size(self, train_size: int) -> Claim:
        """The same claim with another training size for its probes (0: all), where it has one."""

        def replace_train_size(options: Mapping[str, Any]) -> Mapping[str, Any]:
            return {name: train_size if name == "train_size" else value for name, value in options.items()}

        runs = {
            name: run.model_copy(update={"options": replace_train_size(run.options)}) for name, run in self.runs.items()
        }
        return self.model_copy(update={"options": replace_train_size(self.options), "runs": runs})


def tested_measures(test: Test) -> set[str]:
    """The measures a test reads."""
    if isinstance(test, AnyRow) and test.difference is not None:
        return {test.measure, test.difference}
    if isinstance(test, AnyHead | AnyRow | PeakLayer | EachLayer):
        return {test.measure}
    return {name for selector in _number_selectors(test) for name in (selector.measure, *selector.added_measures)}


def tested_rows(test: Test) -> set[str]:
    """The table rows a test reads; empty if it reads layers or heads."""
    if isinstance(test, AnyRow):
        return set(test.rows)
    return {selector.row for selector in _number_selectors(test) if selector.row is not None}


def _tested_runs(test: Test) -> set[str]:
    if isinstance(test, AnyHead | AnyRow | PeakLayer | EachLayer):
        return {test.run}
    return {selector.run for selector in _number_selectors(test)}


def _number_selectors(test: Test) -> list[NumberSelector]:
    match test:
        case Greater():
            return [part for part in (test.left, test.right) if isinstance(part, NumberSelector)]
        case AllOf():
            return [selector for part in test.tests for selector in _number_selectors(part)]
        case Between():
            return [test.value]
        case Increasing():
            return list(test.values)
        case PeaksInOrder():
            return list(test.curves)
        case _:
            return []
