"""What does each layer know about a sentence as a whole (conneau2018, jawahar2019)?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import Encoder
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.measures.division import Division, random_form
from bertology.measures.probes.options import Seed
from bertology.measures.probes.probe_material import Case, Examples, Numbers, Task, gathered, task_of
from bertology.measures.probes.probe_report import probe_curve
from bertology.measures.probes.probe_scores import setting_of
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

Vector = Literal["mean", "cls"]
LEARNED, TESTED = frozenset({"train", "validation"}), frozenset({"test"})


@analysis(
    question="What does each layer know about a sentence as a whole?",
    special="[CLS] is the vector with --vector cls; the mean is over pieces that are not special",
    cites=("conneau2018", "jawahar2019", "hewitt2019control", "voita2020"),
    sites=("hidden",),
    layers=("label",),
    version=3,
)
def sentence(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    vector: Annotated[Vector, "the sentence's vector: the mean of its pieces, or [CLS] as in Jawahar et al."] = "mean",
    probe: Annotated[str, "linear, rank:N, mlp:N or mlp:N:N, with N units"] = "linear",
    minimum: Annotated[int, "a label counts from this many sentences in training"] = 5,
    train: Annotated[str, "a corpus to train on, by name or path; empty: the splits of this one, or a part of it"] = "",
    train_limit: Annotated[int, "train on the first N sentences of --train; 0 for all"] = 0,
    share: Annotated[float, "without splits or --train: the share of the sentences to train on"] = 0.7,
    seeds: Annotated[int, "how many probes, each with its own held-out sentences, first weights and control"] = 3,
    seed: Seed = 0,
) -> LayerCurve:
    """Share of sentences whose label a probe of one layer tells right, 0 to 1, with what the probe may have by itself.

    The corpus must label its sentences: SentEval's files, `tasks:NAME:CORPUS` (SentEval's ten tasks made from any
    corpus), or any labelled text. Where items say which split they belong to (SentEval, tasks), probes are trained on
    train and validation and tested on test; else whole documents, or sentences, are divided. See probes/token for how
    probes are fitted and what is reported; a control label belongs to the longest word of a sentence, the first of
    such. SentEval's own probes have 50 sigmoid units or more and choose their penalty among four on the validation set
    (word content: none); the released code of Jawahar et al. stops after four passes over the data by mistake.
    """
    setting = setting_of(probe, seeds, seed)
    division = Division(train, train_limit if train else 0, share, seed)
    task = _task(recording, encoder, division, vector, minimum)
    fresh = None
    if randomised is not None:
        fresh = _task(randomised, random_form(encoder), division, vector, minimum)
    return probe_curve(task, fresh, setting, seed=seed, cases="sentences", type="longest word")


def _task(recording: Recording, encoder: Encoder | None, division: Division, vector: Vector, minimum: int) -> Task:
    sources = {recording.corpus[entry.item].source for entry in recording.entries}
    if not division.corpus and sources & LEARNED and sources & TESTED:
        places = [_places(recording, some) for some in (LEARNED, TESTED)]
        first, second = ((recording, own) for own in places)
    else:
        first, second = division.parts(recording, encoder, ("hidden",), purpose="probes/sentence", layers=("label",))
    learned, tested = (sentence_examples(*part, vector) for part in (first, second))
    return task_of(learned, tested, minimum, purpose="probes/sentence")


def _places(recording: Recording, sources: frozenset[str]) -> list[int]:
    return [p for p, entry in enumerate(recording.entries) if recording.corpus[entry.item].source in sources]


def sentence_examples(recording: Recording, places: Sequence[int], vector: Vector) -> Examples:
    """One case for each labelled entry, in an order of their own."""
    labels = {place: recording.corpus[recording.entries[place].item].label for place in places}
    order = sorted(
        (place for place in places if labels[place] is not None),
        key=lambda place: recording.entries[place].pieces.ids.tobytes(),
    )
    states, entries = recording["hidden"], [recording.entries[place] for place in order]
    vectors = [
        _vector(np.asarray(states[place]), entry, vector)[:, None] for place, entry in zip(order, entries, strict=True)
    ]
    kept = [
        (Case(labels[place] or "", _longest(entry), ()), number)
        for number, (place, entry) in enumerate(zip(order, entries, strict=True))
    ]
    return gathered(vectors, kept, entries)


def _vector(states: Numbers, entry: Entry, vector: Vector) -> Numbers:
    """(layer, width)."""
    wanted = Special.CLS if vector == "cls" else Special.NONE
    chosen = np.flatnonzero(entry.pieces.special == wanted)
    if not len(chosen):
        text = " ".join(entry.input.words)[:60]
        raise Refusal(
            f"{text!r} has no {'[CLS]' if vector == 'cls' else 'piece that is not special'}",
            "one in every input",
            "Use --vector mean" if vector == "cls" else "Leave empty sentences out",
        )
    if vector == "cls":
        return states[:, chosen[0]].astype(np.float32)
    return states[:, chosen].astype(np.float32).mean(1)


def _longest(entry: Entry) -> str:
    return max((word.lower() for word in entry.input.words), key=len, default="")
