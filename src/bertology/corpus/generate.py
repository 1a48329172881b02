"""Generators: controlled stimuli with gold answers, made from a grammar, a seed and a size.

One generator is one file in `corpus/generators/`; the file's name is the generator's name. It declares its *strata*:
the cells of its design, each with its factors and the exact space of items it can make. `generate` shares the size
out over the strata by weight, draws each share without repetition and shuffles the whole.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from math import lcm
from random import Random
from typing import Any

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.factors import as_source
from bertology.corpus.spaces import Space, distinct
from bertology.errors import Refusal, unknown_name

PREFIX = "generated:"
DEFAULT_SIZE = 1000
ADDRESS = re.compile(
    r"generated:(?P<name>[^@:,]*)(@(?P<seed>[0-9]{1,9}))?(:(?P<size>[0-9]{1,9}))?(?P<options>(,\w+=[^,=]+)*)"
)


@dataclass(frozen=True)
class Stratum:
    """One cell of a design: its factors, the items it can make, and its weight among the other cells."""

    factors: Mapping[str, str]
    space: Space[Item]
    weight: int = 1


GenerateFunction = Callable[..., Sequence[Stratum]]


@dataclass(frozen=True)
class Generator:
    """A design of controlled stimuli: its name, what it is, and the function that lays out its strata."""

    name: str
    about: str
    function: GenerateFunction

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """The keyword-only parameters of the function: what `--format-option name=value` may set."""
        return dict(inspect.signature(self.function).parameters)

    def strata(self, **options: Any) -> Sequence[Stratum]:
        """The cells of the design; an unknown option is refused."""
        unknown = sorted(set(options) - set(self.options))
        if unknown:
            raise unknown_name(f"option of the generator {self.name}", unknown[0], self.options)
        return self.function(**options)


_generators: dict[str, Generator] = {}


def generator(name: str, *, about: str) -> Callable[[GenerateFunction], GenerateFunction]:
    """Declare `function(*, options) -> strata` as the generator of that name."""

    def declare(function: GenerateFunction) -> GenerateFunction:
        _generators[name] = Generator(name, about, function)
        return function

    return declare


@cache
def generators() -> dict[str, Generator]:
    """Every generator by name."""
    import bertology.corpus.generators as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_generators.items()))


def generate(name: str, *, size: int = DEFAULT_SIZE, seed: int = 0, **options: Any) -> Corpus:
    """A corpus of `size` different items: the same for the same name, size, seed and options, always."""
    if name not in generators():
        raise unknown_name("generator", name, generators(), remedy="See `bertology list corpora`")
    strata = generators()[name].strata(**options)
    capacity = sum(stratum.space.size for stratum in strata)
    if not 1 <= size <= capacity:
        raise Refusal(
            f"{size} items were asked of the generator {name}, which makes {capacity} different ones",
            f"a size from 1 to {capacity}",
            "Ask for fewer, or for another part of the design with --format-option",
        )
    random = Random(seed)
    strata = random.sample(strata, len(strata))
    items = [
        item
        for stratum, share in zip(strata, shares(strata, size), strict=True)
        for item in _drawn(stratum, share, random)
    ]
    numbered = [replace(item, id=f"{name}-{number}") for number, item in enumerate(random.sample(items, size), 1)]
    given = "".join(f",{option}={value}" for option, value in sorted(options.items()))
    return Corpus(tuple(numbered), name=f"{PREFIX}{name}@{seed}:{size}{given}", format="generated")


def generated_named(address: str, *, limit: int | None = None, **options: Any) -> Corpus:
    """The corpus that `generated:name@seed:size,option=value` names; all but the name may be left out."""
    match = ADDRESS.fullmatch(address)
    if match is None:
        raise Refusal(
            f"{address!r} does not name generated stimuli",
            "generated:NAME, generated:NAME@SEED:SIZE or generated:NAME@SEED:SIZE,OPTION=VALUE",
            "Write it as, for example, generated:agreement@7:200",
        )
    size = int(match["size"] or DEFAULT_SIZE)
    named = dict(option.split("=") for option in match["options"].split(",")[1:])
    return generate(match["name"], size=size, seed=int(match["seed"] or 0), **named | options)[:limit]


def shares(strata: Sequence[Stratum], size: int) -> list[int]:
    """How many items each stratum gives: in proportion to the weights, never more than it has."""
    given = [0] * len(strata)
    while left := size - sum(given):
        room = [stratum.space.size - count for stratum, count in zip(strata, given, strict=True)]
        weights = [stratum.weight if space else 0 for stratum, space in zip(strata, room, strict=True)]
        marks = [0, *(total * left // sum(weights) for total in accumulate(weights))]
        given = [
            count + min(space, marks[place + 1] - marks[place])
            for place, (count, space) in enumerate(zip(given, room, strict=True))
        ]
    return given


def balanced(*groups: Iterable[Stratum]) -> list[Stratum]:
    """The strata of all groups, weighted so that every group gives as many items as every other."""
    kept = [list(group) for group in groups]
    totals = [sum(stratum.weight for stratum in group) for group in kept]
    common = lcm(*totals)
    return [
        replace(stratum, weight=stratum.weight * common // total)
        for group, total in zip(kept, totals, strict=True)
        for stratum in group
    ]


def one_of(option: str, value: str, known: Sequence[str]) -> str:
    """The value, refused where it is not one that the option may have."""
    if value not in known:
        raise unknown_name(f"value of the option {option}", value, known)
    return value


def _drawn(stratum: Stratum, share: int, random: Random) -> list[Item]:
    source = as_source(stratum.factors)
    return [replace(item, source=source) for item in distinct(stratum.space, share, random)]
