"""Results beside a view: those of its model label its heads and draw arcs over its tokens; what has no use is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertology.corpus.corpus import Input
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.results.result import Result
from bertology.results.shapes import Arcs
from bertology.views.labels import LABELLING, found_labels, labels_heads
from bertology.views.payload import HeadLabel, Tree
from bertology.views.trees import found_trees

Results = Result | str | Path | Sequence[Result | str | Path]


@dataclass(frozen=True)
class Evidence:
    """What results say about one model on one input, and what could not be used of them."""

    labels: list[HeadLabel]
    trees: list[Tree]
    notes: list[str]


def evidence(results: Results, encoder: Encoder, input_: Input) -> Evidence:
    """Labels and trees out of results, files of them (`bertology run ... --json`), or folders of such files."""
    given = list(_read(results))
    mine = [one for one in given if _model(one) in {None, encoder.fingerprint}]
    labelling = [one for one in mine if labels_heads(one)]
    drawing = [one for one in mine if isinstance(one.data, Arcs)]
    trees = list(found_trees(drawing, input_))
    notes: list[str] = []
    if len(mine) < len(given):
        others = ", ".join(sorted({one.analysis for one in given if one not in mine}))
        notes.append(f"Not used, for they are of another model than {encoder.name}: {others}.")
    if drawing and not trees:
        notes.append("No arcs are shown: the results have none for exactly these words.")
    unused = sorted({one.analysis for one in mine if one not in labelling and one not in drawing})
    if unused:
        notes.append(f"Not used, for they neither label heads nor draw arcs: {', '.join(unused)}.")
    if not labelling and not drawing:
        raise Refusal(
            f"None of the {len(given)} results can be shown on this view. {' '.join(notes)}".strip(),
            f"results of {encoder.name} from {', '.join(LABELLING)}, or arcs from probes/structural",
            "Run such an analysis on the model that is shown, or leave the results out",
        )
    return Evidence(found_labels(labelling, encoder.layers, encoder.heads), trees, notes)


def _model(result: Result) -> str | None:
    """The fingerprint of the model that was asked; None where the result names none."""
    asked: Any = result.inputs.get("recording")
    model: Any = asked.get("model") if isinstance(asked, Mapping) else None
    return str(model["fingerprint"]) if isinstance(model, Mapping) and "fingerprint" in model else None


def _read(results: Results) -> Iterator[Result]:
    if isinstance(results, Result):
        yield results
    elif isinstance(results, str | Path):
        yield from _of_path(Path(results))
    else:
        for one in results:
            yield from _read(one)


def _of_path(path: Path) -> Iterator[Result]:
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise Refusal(f"The folder {path} has no .json file", "results", "Write some with `bertology run ... --json`")
    for file in files:
        try:
            yield Result.from_json(file.read_text("utf-8"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Refusal(
                f"{file} holds no result ({type(error).__name__})",
                "the JSON object that `bertology run ... --json` prints",
                "Write it with that command, or take the file out of the folder",
            ) from error
