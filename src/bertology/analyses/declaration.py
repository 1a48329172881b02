"""An analysis is a declared plain function: its signature is its schema.

Positional parameters are inputs, told apart by name; keyword-only parameters are options with a default. Command-line
flags, documentation and the contract tests are derived from the declaration.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from bertology.errors import Refusal, unknown_name
from bertology.recording.paired import PairedSite
from bertology.recording.sites import Site
from bertology.results.shapes import Shape

ROLES: dict[str, str] = {
    "recording": "what the model did on the corpus",
    "randomised": "the same of `random:MODEL`, or None where the model cannot be had",
    "against": "what the model given with --against did on the same corpus",
    "encoder": "the model itself",
    "corpus": "the corpus itself",
    "work": "where finished parts of long work are kept, and how its progress is told",
}

Sites = tuple[Site | str, ...]

AT_LEAST_ONE = frozenset({"batch", "epochs", "every", "k", "seeds", "size", "sizes", "steps"})
"""Options that count what an analysis cannot do without; others may be 0, and negative only where that is usual."""


@dataclass(frozen=True)
class Option:
    """One keyword-only parameter: its name, type, default and what it does."""

    name: str
    kind: Any
    default: Any
    about: str

    @property
    def choices(self) -> tuple[str, ...]:
        """The values a literal option may take."""
        return tuple(str(value) for value in get_args(self.kind)) if get_origin(self.kind) is Literal else ()

    def parse(self, text: str) -> Any:
        """The option's value from what was typed."""
        if self.choices:
            if text not in self.choices:
                raise unknown_name(f"value of --{self.flag}", text, self.choices)
            return text
        base = _plain_type(self.kind)
        try:
            if base is bool:
                return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
            return base(text)
        except (ValueError, KeyError):
            raise Refusal(
                f"--{self.flag} was given {text!r}", f"a value of type {base.__name__}", f"{self.about}"
            ) from None

    @property
    def least(self) -> int | None:
        """The least that a number may be: options count something, and some count what there must be one of."""
        if _plain_type(self.kind) is not int or (isinstance(self.default, int) and self.default < 0):
            return None
        return 1 if self.name in AT_LEAST_ONE else 0

    def checked(self, value: Any) -> Any:
        """The value, refused where it counts less than there can be."""
        if self.least is not None and isinstance(value, int) and value < self.least:
            raise Refusal(
                f"--{self.flag} was given {value}", f"a number from {self.least} up", f"It means: {self.about}"
            )
        return value

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return self.name.replace("_", "-")


@dataclass(frozen=True)
class Analysis:
    """A declared analysis.

    `question` is what it answers in one line; `special` is its policy on special tokens; `layers` are the annotation
    layers it needs; a change of its numbers needs a new `version`. It can do without the `optional` inputs.
    """

    name: str
    question: str
    special: str
    cites: tuple[str, ...]
    version: int
    layers: tuple[str, ...]
    sites: Callable[[Mapping[str, Any]], Sites]
    inputs: tuple[str, ...]
    options: Mapping[str, Option]
    function: Callable[..., Shape]
    optional: frozenset[str] = frozenset()
    paired: tuple[PairedSite, ...] = ()

    @property
    def about(self) -> str:
        """The function's documentation: definition, unit, extremes."""
        return inspect.cleandoc(self.function.__doc__ or "")

    def settled(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All options, the given ones over the defaults; unknown names are refused."""
        for name in given:
            if name not in self.options:
                raise unknown_name(f"option of {self.name}", name, self.options, remedy="See its --help")
        return {name: option.checked(given.get(name, option.default)) for name, option in self.options.items()}


def analysis(
    *,
    question: str,
    special: str,
    cites: tuple[str, ...],
    sites: Sites | Callable[[Mapping[str, Any]], Sites] = (),
    paired: tuple[PairedSite, ...] = (),
    layers: tuple[str, ...] = (),
    version: int = 1,
    name: str | None = None,
) -> Callable[[Callable[..., Shape]], Analysis]:
    """Declare a function as an analysis. Its name is its path under `analyses/`; a plug-in says its own.

    `sites` are the sites its recordings must have, or a function of the options that says so. `paired`
    sites are recorded beside `against`, and for `randomised` beside the model itself.
    """

    def declare(function: Callable[..., Shape]) -> Analysis:
        chosen = name or function.__module__.split(".analyses.", 1)[1].replace(".", "/")
        wanted = sites if callable(sites) else _always(sites)
        hints = get_type_hints(function, include_extras=True)
        inputs: list[str] = []
        options: dict[str, Option] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                options[parameter.name] = _option(parameter, hints[parameter.name], chosen)
            elif parameter.name in ROLES:
                inputs.append(parameter.name)
            else:
                raise TypeError(f"{chosen}: {parameter.name!r} is no input; inputs are {', '.join(ROLES)}")
        optional = frozenset(name for name in inputs if NoneType in get_args(hints.get(name)))
        return Analysis(
            chosen,
            question,
            special,
            cites,
            version,
            layers,
            wanted,
            tuple(inputs),
            options,
            function,
            optional,
            paired,
        )

    return declare


def _always(sites: Sites) -> Callable[[Mapping[str, Any]], Sites]:
    return lambda _: sites


def _option(parameter: inspect.Parameter, hint: Any, owner: str) -> Option:
    if parameter.default is inspect.Parameter.empty:
        raise TypeError(f"{owner}: the option {parameter.name!r} needs a default")
    if get_origin(hint) is not Annotated:
        raise TypeError(f"{owner}: the option {parameter.name!r} needs Annotated[type, 'what it does']")
    kind, about = get_args(hint)[:2]
    return Option(parameter.name, kind, parameter.default, about)


def _plain_type(kind: Any) -> Callable[[str], Any] | Any:
    if get_origin(kind) in {Union, UnionType}:
        return next(cast("type", member) for member in get_args(kind) if member is not NoneType)
    return kind
