"""How far does one get in a labelled task without a model, by length or a bag of words (conneau2018)?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.errors import Refusal
from bertology.measures.division import training_part
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, mean_over_sentences
from bertology.results.shapes import Table

Bools = NDArray[np.bool_]


def _length(entry: Entry) -> list[str]:
    return [str(len(entry.input.words))]


def _words(entry: Entry) -> list[str]:
    return [word.lower() for word in entry.input.words]


def _neighbours(entry: Entry) -> list[str]:
    words = ["", *_words(entry), ""]
    return [" ".join(pair) for pair in pairwise(words)]


CLUES: dict[str, Callable[[Entry], list[str]]] = {"length": _length, "words": _words, "neighbours": _neighbours}


@analysis(
    question="How far does one get in this task without a model?",
    special="not looked at: only the words are",
    cites=("conneau2018",),
    layers=("label",),
)
def artefacts(
    recording: Recording,
    *,
    share: Annotated[float, "where no splits are annotated: the share of the sentences to train on"] = 0.7,
    seed: Annotated[int, "seed of the division, of the shuffling and of the bootstrap"] = 0,
) -> Table:
    """Share of test sentences whose label naive Bayes tells from a surface clue, 0 to 1.

    `length`: how many words there are. `words`: which, a bag of words. `neighbours`: which pairs of neighbours. What a
    probe finds in a model's vectors says little about a task that these clues solve too. Trained on the items whose
    source is `train`, tested on `test` (or `validation`), as SentEval's files and `tasks:` have it; without such splits
    on a share of the documents. Baselines: the most frequent label in training, and the same clues learned from
    shuffled labels. Intervals are over test sentences.
    """
    items = recording.corpus.items
    labelled = [e for e in recording.entries if not e.variant and not e.window and items[e.item].label is not None]
    labelled.sort(key=lambda entry: (entry.input.words, str(items[entry.item].label)))
    trained, tested = _parts(labelled, [items[entry.item].source for entry in labelled], share, seed)
    labels = np.array([str(items[entry.item].label) for entry in labelled])
    if not tested.any() or len(set(labels[trained].tolist())) < 2:
        raise Refusal(
            f"{recording.corpus.name} has {len(set(labels[trained].tolist()))} labels on {trained.sum()} sentences to "
            f"train on and {tested.sum()} to test on",
            "two labels or more, and sentences for both",
            "Give a larger labelled corpus, for example tasks:bigram_shift:english",
        )
    dealt = labels.copy()
    dealt[trained] = np.random.default_rng(seed).permutation(labels[trained])
    names, counts = np.unique(labels[trained], return_counts=True)
    majority = mean_over_sentences((labels[tested] == names[counts.argmax()]).astype(float), seed=seed)

    def over(given: NDArray[Any]) -> dict[str, Estimates]:
        right = [_found(labelled, clue, given, trained, tested) == labels[tested] for clue in CLUES.values()]
        return {"accuracy": joined([mean_over_sentences(own.astype(float), seed=seed) for own in right])}

    return Table(
        measures=over(labels),
        baselines={"majority": {"accuracy": joined([majority] * len(CLUES))}, "shuffled labels": over(dealt)},
        units={"accuracy": "share of sentences, 0 to 1"},
        rows_named=tuple(CLUES),
        notes={"length": f"{len(names)} labels; trained on {trained.sum()} sentences, tested on {tested.sum()}"},
    )


def _parts(entries: Sequence[Entry], sources: Sequence[str], share: float, seed: int) -> tuple[Bools, Bools]:
    """Which entries to train and which to test on."""
    named = np.array(sources, dtype=object)
    trained = named == "train"
    tested = named == "test" if (named == "test").any() else named == "validation"
    if trained.any() and tested.any():
        return trained.astype(np.bool_), tested.astype(np.bool_)
    chosen = training_part(entries, share, seed=seed)
    return chosen, ~chosen


def _found(
    entries: Sequence[Entry], clue: Callable[[Entry], list[str]], labels: NDArray[Any], trained: Bools, tested: Bools
) -> NDArray[Any]:
    """(test entry,) the label that naive Bayes finds."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    counter = CountVectorizer(analyzer=clue)  # pyright: ignore[reportArgumentType]  # may be a function too
    seen = counter.fit_transform([entries[place] for place in np.flatnonzero(trained).tolist()])
    classifier = MultinomialNB().fit(seen, labels[trained])
    return classifier.predict(counter.transform([entries[place] for place in np.flatnonzero(tested).tolist()]))
