"""Results as annotations of a view: labels and measures of heads, arcs over the tokens, notes on unused results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertology.corpus.example import TextInput
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.input_files import check_path
from bertology.recording.recording import EncoderSummary
from bertology.results.illustrations import Arcs
from bertology.results.read_result import read_result
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid
from bertology.views.dependency_arcs import predicted_trees
from bertology.views.head_labels import head_labelling, labelling_analyses, labelling_note, labels_from_results
from bertology.views.head_measures import measures_from_results
from bertology.views.model_names import short_model_name
from bertology.views.payload import DependencyTree, HeadLabel, HeadMeasure

Results = Result | str | Path | Sequence[Result | str | Path]


@dataclass(frozen=True)
class ViewAnnotations:
    """Head labels, measures and trees for one model and input, and notes on results that could not be used.

    `labelling` says how many heads are labelled, and what a label needs.
    """

    labels: list[HeadLabel]
    labelling: str
    measures: list[HeadMeasure]
    trees: list[DependencyTree]
    notes: list[str]


def annotations_from_results(source: Results, encoder: Encoder | EncoderSummary, input_: TextInput) -> ViewAnnotations:
    """Labels, measures and trees from results, files of results (`bertology run ... --json`) or folders of them."""
    results = list(_read_results(source))
    of_model = [result for result in results if model_fingerprint(result) in {None, encoder.fingerprint}]
    labelling = [result for result in of_model if head_labelling(result)]
    by_head = [result for result in of_model if isinstance(result.data, HeadGrid)]
    with_arcs = [result for result in of_model if isinstance(result.data, Arcs)]
    used = [*labelling, *by_head, *with_arcs]
    trees = list(predicted_trees(with_arcs, input_))
    notes: list[str] = []
    if len(of_model) < len(results):
        others = ", ".join(sorted({result.analysis for result in results if result not in of_model}))
        notes.append(f"Ignored results of another model than {short_model_name(encoder.name)}: {others}.")
    if with_arcs and not trees:
        notes.append("No arcs are shown: the results have none for exactly these words.")
    unused = sorted({result.analysis for result in of_model if result not in used})
    if unused:
        notes.append(f"Ignored results that have neither heads nor arcs: {', '.join(unused)}.")
    if not used:
        raise Refusal(
            f"None of the {len(results)} results can be shown in this view. {' '.join(notes)}".strip(),
            f"results of {short_model_name(encoder.name)} by head, {', '.join(labelling_analyses())}, or arcs of "
            "probes/structural",
            "Run one of these analyses on the model shown, or leave the results out",
        )
    labels = labels_from_results(labelling, encoder.layers, encoder.heads)
    labelled = labelling_note(labelling, labels, encoder.layers * encoder.heads) if labelling else ""
    measures = measures_from_results(by_head, encoder.layers, encoder.heads)
    return ViewAnnotations(labels, labelled, measures, trees, notes)


def model_fingerprint(result: Result) -> str | None:
    """The fingerprint of the analysed model; None if the result has none."""
    recording: Any = result.inputs.get("model")
    model: Any = recording.get("model") if isinstance(recording, Mapping) else None
    return str(model["fingerprint"]) if isinstance(model, Mapping) and "fingerprint" in model else None


def _read_results(source: Results) -> Iterator[Result]:
    if isinstance(source, Result):
        yield source
    elif isinstance(source, str | Path):
        yield from _read_path(check_path(Path(source)))
    else:
        for member in source:
            yield from _read_results(member)


def _read_path(path: Path) -> Iterator[Result]:
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise Refusal(f"The folder {path} has no .json file", "results", "Write some with `bertology run ... --json`")
    yield from map(read_result, files)
