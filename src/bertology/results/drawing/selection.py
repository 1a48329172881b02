"""Which panels and rows of a result are drawn, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertology.errors import Refusal, unknown_name
from bertology.results.illustrations import Arcs, Examples
from bertology.results.measure import match_name, matching_names
from bertology.results.shapes import Matrix, MeasuredShape, Shape, Table


@dataclass(frozen=True, slots=True)
class PanelSelection:
    """Measures, rows of a table or matrix, and numbers of sentences; empty ones select everything."""

    measures: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()


def select_panels(shape: Shape, panels: str | Sequence[str]) -> PanelSelection:
    """The panels with these names, or with as much of a name as identifies one; text is split at its commas.

    A name is that of a measure, of a row of a table or matrix, or the number of a sentence.
    """
    if not panels:
        return PanelSelection()
    measures = list(shape.measures) if isinstance(shape, MeasuredShape) else []
    rows = list(dict.fromkeys(shape.row_names)) if isinstance(shape, Table | Matrix) else []
    count = (
        len(shape.sentences) if isinstance(shape, Arcs) else len(shape.examples) if isinstance(shape, Examples) else 0
    )
    numbers = [str(number) for number in range(1, count + 1)]
    valid = [*measures, *rows, *numbers]
    if not valid:
        raise Refusal("This figure has a single panel", "no choice of panels", "Leave out --panels")
    names = _split(panels, valid) if isinstance(panels, str) else [panel.strip() for panel in panels]
    selected: tuple[list[str], list[str], list[int]] = ([], [], [])
    for name in names:
        if matching_names(name, measures):
            selected[0].append(match_name("panel", name, measures))
        elif matching_names(name, rows):
            selected[1].append(match_name("row", name, rows))
        elif name.casefold().removeprefix("sentence").strip() in numbers:
            selected[2].append(int(name.casefold().removeprefix("sentence")))
        else:
            raise unknown_name("panel", name, valid)
    return PanelSelection(tuple(selected[0]), tuple(selected[1]), tuple(selected[2]))


def _split(text: str, valid: Sequence[str]) -> list[str]:
    """The names in a text, split at commas, unless the whole text is a name with a comma."""
    whole = text.strip()
    if whole in valid:
        return [whole]
    return [part.strip() for part in whole.split(",") if part.strip()]
