"""Generate controlled stimuli with gold labels from a grammar, a seed and a size.

A generator is a module in `corpus/generators/` of the same name. It declares its *strata*: the cells of its design,
each with its factors and the exact space of possible examples. `generate` allocates the size to the strata by weight,
samples each stratum without replacement and shuffles the examples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from math import lcm
from random import Random
from typing import Any

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.registration import check_options, import_modules
from bertology.corpus.sample_spaces import SampleSpace, sample_distinct
from bertology.errors import Refusal, unknown_name

GENERATED_PREFIX = "generated:"
DEFAULT_SIZE = 1000
ADDRESS = re.compile(
    r"generated:(?P<name>[^@:,]*)(@(?P<seed>[0-9]{1,9}))?(:(?P<size>[0-9]{1,9}))?(?P<options>(,\w+=[^,=]+)*)"
)


@dataclass(frozen=True)
class Stratum:
    """A cell of a design: its factors, its possible examples, and its weight relative to the other cells."""

    factors: Mapping[str, str]
    space: SampleSpace[Example]
    weight: int = 1


GenerateFunction = Callable[..., Sequence[Stratum]]


@dataclass(frozen=True)
class StimulusGenerator:
    """A design of controlled stimuli: name, description, the function that returns its strata, and a prefix of ids."""

    name: str
    description: str
    function: GenerateFunction
    id_prefix: str

    def strata(self, **options: Any) -> Sequence[Stratum]:
        """Return the cells of the design; refuse unknown options."""
        check_options(self.function, options, f"generator {self.name}")
        return self.function(**options)


_generators: dict[str, StimulusGenerator] = {}


def generator(name: str, *, description: str, id_prefix: str = "") -> Callable[[GenerateFunction], GenerateFunction]:
    """Register `function(*, options)`, which returns strata, as a generator.

    Ids of examples begin with `id_prefix`, by default the name.
    """

    def register(function: GenerateFunction) -> GenerateFunction:
        _generators[name] = StimulusGenerator(name, description, function, id_prefix or name)
        return function

    return register


@cache
def generators() -> dict[str, StimulusGenerator]:
    """Return all generators by name."""
    import_modules("bertology.corpus.generators")
    return dict(sorted(_generators.items()))


def generate(name: str, *, size: int = DEFAULT_SIZE, seed: int = 0, **options: Any) -> Corpus:
    """Generate a corpus of `size` different examples, determined by name, size, seed and options."""
    if name not in generators():
        raise unknown_name("generator", name, generators(), remedy="See `bertology list corpora`")
    stimuli = generators()[name]
    strata = stimuli.strata(**options)
    capacity = sum(stratum.space.size for stratum in strata)
    if not 1 <= size <= capacity:
        raise Refusal(
            f"The generator {name} has {capacity} different examples, and the size is {size}",
            f"a size from 1 to {capacity}",
            "Use a smaller size, or another part of the design with --format-option",
        )
    rng = Random(seed)
    strata = rng.sample(strata, len(strata))
    examples = [
        replace(example, factors=stratum.factors)
        for stratum, count in zip(strata, allocate(strata, size), strict=True)
        for example in sample_distinct(stratum.space, count, rng)
    ]
    numbered = [
        replace(example, id=f"{stimuli.id_prefix}-{number}")
        for number, example in enumerate(rng.sample(examples, size), start=1)
    ]
    suffix = "".join(f",{option}={value}" for option, value in sorted(options.items()))
    return Corpus(tuple(numbered), name=f"{GENERATED_PREFIX}{name}@{seed}:{size}{suffix}", format="generated")


def load_generated(address: str, *, limit: int | None = None, **options: Any) -> Corpus:
    """Generate the corpus with the address `generated:NAME@SEED:SIZE,OPTION=VALUE`; only NAME is required."""
    match = ADDRESS.fullmatch(address)
    if match is None:
        raise Refusal(
            f"{address!r} is not the name of a generated corpus",
            "generated:NAME, generated:NAME@SEED:SIZE or generated:NAME@SEED:SIZE,OPTION=VALUE",
            "Write for example generated:agreement@7:200",
        )
    size = int(match["size"] or DEFAULT_SIZE)
    address_options = dict(option.split("=") for option in match["options"].split(",")[1:])
    return generate(match["name"], size=size, seed=int(match["seed"] or 0), **address_options | options)[:limit]


def allocate(strata: Sequence[Stratum], size: int) -> list[int]:
    """Return the number of examples of each stratum: proportional to its weight, at most its size."""
    counts = [0] * len(strata)
    while remaining := size - sum(counts):
        available = [stratum.space.size - count for stratum, count in zip(strata, counts, strict=True)]
        weights = [stratum.weight if free else 0 for stratum, free in zip(strata, available, strict=True)]
        bounds = [0, *(total * remaining // sum(weights) for total in accumulate(weights))]
        counts = [
            count + min(free, bounds[index + 1] - bounds[index])
            for index, (count, free) in enumerate(zip(counts, available, strict=True))
        ]
    return counts


def balance_strata(*groups: Iterable[Stratum]) -> list[Stratum]:
    """Return the strata of all groups, weighted so that all groups have the same total weight."""
    lists = [list(group) for group in groups]
    totals = [sum(stratum.weight for stratum in group) for group in lists]
    common = lcm(*totals)
    return [
        replace(stratum, weight=stratum.weight * common // total)
        for group, total in zip(lists, totals, strict=True)
        for stratum in group
    ]
