"""`@analysis` declares a plain function as an analysis; its signature is its schema.

Positional parameters are inputs, identified by name; keyword-only parameters are options with a default. Options that
several analyses share are the fields of a frozen dataclass, passed as one parameter; to users they are plain options.
Command-line flags, documentation, report sections, progress estimates and contract tests are all derived from the
declaration: no other file knows an analysis by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from numbers import Integral, Real
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from bertology.analyses.label_criteria import HeadLabelling
from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal, unknown_name
from bertology.number_ranges import NumberRange, check_number, range_of_hint, shorten_value, union_members
from bertology.recording.paired_sites import PairedSite
from bertology.recording.sites import Site
from bertology.results.shapes import Shape

INPUTS: dict[str, str] = {
    "recording": "recording of the model on the corpus",
    "randomised": "the same for the untrained model (`random:MODEL`), or None if there is none",
    "against": "recording of the model given with --against on the same corpus",
    "encoder": "the model",
    "corpus": "the corpus",
    "cache": "finished parts of long computations, and progress",
}
"""Positional parameters an analysis may have."""

MAX_SAMPLED_WORDS = 6000
"""Analyses that sample words take no longer on more words than this."""

REPORT_SECTIONS = (
    "Attention",
    "Attention heads and linguistic structure",
    "Probing and geometry of the layers",
    "Effects of fine-tuning",
    "Interventions: ablation, pruning, attacks",
    "Contextual and static features; word senses",
    "Further analyses",
)
"""The sections of a report, in order."""
_SECTION_OF_GROUP = {
    "attention": REPORT_SECTIONS[0],
    "heads": REPORT_SECTIONS[1],
    "probes": REPORT_SECTIONS[2],
    "geometry": REPORT_SECTIONS[2],
    "interventions": REPORT_SECTIONS[4],
    "senses": REPORT_SECTIONS[5],
    "features": REPORT_SECTIONS[5],
}

Sites = tuple[Site | str, ...]
CorpusCheck = Callable[[Corpus, Mapping[str, Any]], None]
"""Refuses, before any forward pass, a corpus that lacks what an analysis with these options needs."""


@dataclass(frozen=True)
class Cost:
    """Estimated seconds of an analysis beyond its forward passes; only proportions between analyses matter."""

    seconds: float = 0.5
    seconds_per_word: float = 0.0
    seconds_per_sampled_word: float = 0.0

    def estimate(self, n_words: int) -> float:
        """Seconds for a corpus of `n_words` words."""
        sampled = min(n_words, MAX_SAMPLED_WORDS)
        return self.seconds + self.seconds_per_word * n_words + self.seconds_per_sampled_word * sampled


@dataclass(frozen=True)
class Option:
    """One keyword-only parameter: its name, type, default, description, and the range of a number."""

    name: str
    type: Any
    default: Any
    description: str
    range: NumberRange | None = None

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return self.name.replace("_", "-")

    @property
    def choices(self) -> tuple[str, ...]:
        """The words the option accepts: all its values, or those besides numbers (`auto`, `full`)."""
        return tuple(str(value) for member in union_members(self.type) for value in _literal_values(member))

    def parse(self, text: str) -> Any:
        """The option's value from the command line."""
        if text in self.choices:
            return text
        plain = [member for member in union_members(self.type) if not _literal_values(member)]
        if not plain:
            raise unknown_name(f"value of --{self.flag}", text, self.choices)
        try:
            if plain[0] is bool:
                return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
            return plain[0](text)
        except (ValueError, KeyError):
            raise self._wrong_type(text) from None

    def validate(self, value: Any) -> Any:
        """The value; one of another type, an unknown word or a number outside of the range is refused."""
        plain = [member for member in union_members(self.type) if not _literal_values(member)]
        if isinstance(value, str) and not plain and value not in self.choices:
            raise unknown_name(f"value of --{self.flag}", value, self.choices)
        is_choice = value is None or (isinstance(value, str) and value in self.choices)
        if not is_choice and not any(_has_type(value, kind) for kind in plain):
            raise self._wrong_type(value)
        if self.range is not None:
            check_number(value, self.range, f"--{self.flag}", self.description)
        return value

    def _wrong_type(self, value: object) -> Refusal:
        plain = [member.__name__ for member in union_members(self.type) if not _literal_values(member)]
        expected = " or ".join([*(f"a value of type {name}" for name in plain), *self.choices])
        return Refusal(f"--{self.flag} was given {shorten_value(value)}", expected, self.description)


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """A declared analysis.

    `question`: what it answers, in one line. `special_tokens`: its policy on special tokens. `annotations`: what the
    corpus must be annotated with; `check_corpus`: refuses a corpus that lacks what the options need. `version`: raised
    whenever its numbers change. `optional`: inputs it can do without.
    `option_groups`: parameters that are dataclasses of options. `labels_heads`: rank and criteria, if its results label
    heads in views. `needs_task_head`: the task head a model must have, if the analysis evaluates one.
    `test_corpus`: the corpus the contract tests use.
    `answers`: whether its results have answers to single items, or the values of --show with which they have.
    """

    name: str
    question: str
    special_tokens: str
    citations: tuple[str, ...]
    version: int
    annotations: tuple[str, ...]
    check_corpus: CorpusCheck | None
    sites: Callable[[Mapping[str, Any]], Sites]
    paired_sites: tuple[PairedSite, ...]
    inputs: tuple[str, ...]
    optional: frozenset[str]
    options: Mapping[str, Option]
    option_groups: Mapping[str, type]
    function: Callable[..., Shape]
    cost: Cost
    report_section: str
    labels_heads: HeadLabelling | None
    needs_task_head: str | None
    test_corpus: str | None
    answers: bool | tuple[str, ...]

    @property
    def description(self) -> str:
        """The function's docstring (definition, unit, extremes), and when its results label heads."""
        docstring = inspect.cleandoc(self.function.__doc__ or "")
        return f"{docstring}\n\n{self.labels_heads.description}" if self.labels_heads else docstring

    @property
    def required_inputs(self) -> frozenset[str]:
        """The inputs it cannot do without."""
        return frozenset(self.inputs) - self.optional

    def __call__(self, *inputs: Any, **options: Any) -> Shape:
        """Run the function on its inputs, in order, with these options and the defaults of the others."""
        values = self.resolve_options(options)
        groups = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in self.option_groups.items()
        }
        return self.function(*inputs, **values, **groups)

    def resolve_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All options, with defaults filled in; unknown names are refused."""
        for name in given:
            if name not in self.options:
                raise unknown_name(f"option of {self.name}", name, self.options, remedy="See its --help")
        return {name: option.validate(given.get(name, option.default)) for name, option in self.options.items()}


def analysis(
    *,
    question: str,
    special_tokens: str,
    citations: tuple[str, ...],
    sites: Sites | Callable[[Mapping[str, Any]], Sites] = (),
    paired_sites: tuple[PairedSite, ...] = (),
    annotations: tuple[str, ...] = (),
    check_corpus: CorpusCheck | None = None,
    version: int = 1,
    name: str | None = None,
    cost: Cost | None = None,
    report_section: str | None = None,
    labels_heads: HeadLabelling | None = None,
    needs_task_head: str | None = None,
    test_corpus: str | None = None,
    answers: bool | tuple[str, ...] = False,
) -> Callable[[Callable[..., Shape]], Analysis]:
    """Declare a function as an analysis. Its name is its path under `analyses/`; a plug-in gives its own.

    `sites` are the sites its recordings need, or a function from options to sites. `paired_sites` compare the
    recorded model with the one given as `against`, and the untrained model with the model.
    """

    def declare(function: Callable[..., Shape]) -> Analysis:
        full_name = name or _name_from_module(function.__module__)
        hints = get_type_hints(function, include_extras=True)
        inputs: list[str] = []
        options: dict[str, Option] = {}
        option_groups: dict[str, type] = {}
        for parameter in inspect.signature(function).parameters.values():
            if is_dataclass(parameter.default):
                option_groups[parameter.name] = type(parameter.default)
                options |= _grouped_options(parameter.default, full_name)
            elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                hint = hints[parameter.name]
                options[parameter.name] = _option(parameter.name, hint, parameter.default, full_name)
            elif parameter.name in INPUTS:
                inputs.append(parameter.name)
            else:
                raise TypeError(f"{full_name}: {parameter.name!r} is not an input; inputs are {', '.join(INPUTS)}")
        return Analysis(
            name=full_name,
            question=question,
            special_tokens=special_tokens,
            citations=citations,
            version=version,
            annotations=annotations,
            check_corpus=check_corpus,
            sites=sites if callable(sites) else _constant(sites),
            paired_sites=paired_sites,
            inputs=tuple(inputs),
            optional=frozenset(role for role in inputs if NoneType in get_args(hints.get(role))),
            options=options,
            option_groups=option_groups,
            function=function,
            cost=cost or Cost(),
            report_section=report_section or _SECTION_OF_GROUP.get(full_name.split("/")[0], REPORT_SECTIONS[-1]),
            labels_heads=labels_heads,
            needs_task_head=needs_task_head,
            test_corpus=test_corpus,
            answers=answers,
        )

    return declare


def _constant(sites: Sites) -> Callable[[Mapping[str, Any]], Sites]:
    return lambda _: sites


def _name_from_module(module: str) -> str:
    return module.split(".analyses.", 1)[1].removesuffix(".analysis").replace(".", "/")


def _grouped_options(defaults: Any, analysis_name: str) -> dict[str, Option]:
    """One option for each field of a dataclass; the values of `defaults` are the defaults."""
    hints = get_type_hints(type(defaults), include_extras=True)
    return {
        field.name: _option(field.name, hints[field.name], getattr(defaults, field.name), analysis_name)
        for field in fields(defaults)
    }


def _option(name: str, hint: Any, default: Any, analysis_name: str) -> Option:
    if default is inspect.Parameter.empty:
        raise TypeError(f"{analysis_name}: the option {name!r} needs a default")
    if get_origin(hint) is not Annotated:
        raise TypeError(f"{analysis_name}: the option {name!r} needs Annotated[type, 'description']")
    kind, *metadata = get_args(hint)
    description = next((entry for entry in metadata if isinstance(entry, str)), "")
    return Option(name, kind, default, description, range_of_hint(hint, default))


def _has_type(value: object, kind: Any) -> bool:
    """Whether a value fits a plain type; whole numbers are numbers, and types that are not plain fit everything."""
    if kind in (int, float):
        return not isinstance(value, bool) and isinstance(value, Integral if kind is int else Real)
    return not isinstance(kind, type) or isinstance(value, kind)


def _literal_values(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()
