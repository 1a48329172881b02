"""Templates of answers: text with placeholders that are filled with the rounded numbers and places of a verdict.

| placeholder | text |
|---|---|
| value, interval, n, cases | the number, its interval in brackets, its sample size, the number of single cases |
| head, layer, layers, searched, x | where it was measured |
| candidates | how many heads or layers were searched |
| other, other_interval, other_layer ... | the same for what it is compared with |
| difference, difference_interval, margin | how far it exceeds the other, and by how much it should |
| offset | the position that the best fixed offset chooses, as `the previous word` |
| each | the text of `each` for every comparison, as a list |

`{value2}` is of the second comparison, `{baseline:uniform attention}` the number of that baseline.
`{value:higher|lower}` is the size of the number and the word that fits its sign; the interval is turned with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from string import Formatter
from typing import NamedTuple

_PARTS = ("interval", "n", "cases", "head", "layer", "layers", "searched", "candidates", "x")
_NAMES = frozenset(
    {
        *("value", "other", "difference", "difference_interval", "margin", "offset", "each"),
        *_PARTS,
        *(f"other_{name}" for name in _PARTS),
    }
)
_WITH_DIRECTION = frozenset({"value", "difference"})
OPPOSITE = "opposite "
"""Before the name of a placeholder: the text of the number with the opposite sign."""


class Placeholder(NamedTuple):
    """A placeholder with the text before it; `name` is empty after the last one."""

    before: str
    name: str
    spec: str


def parse_template(template: str) -> Iterator[Placeholder]:
    """The placeholders of a template; raises `ValueError` for braces that do not match."""
    for before, name, spec, _ in Formatter().parse(template):
        yield Placeholder(before, name or "", spec or "")


def unknown_placeholders(template: str) -> list[str]:
    """The placeholders of a template that no verdict fills."""
    unknown: list[str] = []
    for _, name, spec in parse_template(template):
        if not name or (name == "baseline" and spec):
            continue
        root = name.rstrip("23456789")
        is_direction = spec.count("|") == 1 and root in _WITH_DIRECTION
        if root not in _NAMES or (spec and not is_direction):
            unknown.append(f"{name}:{spec}" if spec else name)
    return unknown


def fill_template(template: str, fields: Mapping[str, str]) -> str | None:
    """The template with its placeholders filled; None if a field is missing."""
    placeholders = list(parse_template(template))
    turned = {name for _, name, spec in placeholders if "|" in spec and fields.get(name, "").startswith("-")}
    parts: list[str] = []
    for before, name, spec in placeholders:
        parts.append(before)
        if not name:
            continue
        field = f"{name}:{spec}" if name == "baseline" else name
        number = name.replace("difference_interval", "difference").replace("interval", "value")
        if number in turned:
            field = f"{OPPOSITE}{field}"
        if field not in fields:
            return None
        parts.append(fields[field])
        if "|" in spec:
            positive, negative = spec.split("|")
            parts.append(f" {negative if name in turned else positive}")
    return tidy("".join(parts))


def tidy(text: str) -> str:
    """A text without the gaps that empty placeholders leave."""
    return re.sub(r" +(?=[ ,;:.)]|$)", "", text).strip()
