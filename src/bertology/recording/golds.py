"""What should come out of a model's head, as the corpus has it: a class, a tag for each word, the ends of an answer.

All inputs are looked at before the first pass, so that what the corpus lacks, or the model does not know, is refused
before any work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.bio import scheme_of
from bertology.corpus.corpus import Corpus
from bertology.corpus.sentence import Sentence
from bertology.corpus.word_tags import LAYERS, SPAN_LAYERS, word_tags
from bertology.encoder.encoder import Encoder
from bertology.encoder.pieces import ends_of
from bertology.errors import Refusal
from bertology.recording.annotation import pieces_of_words
from bertology.recording.entry import Entry

Ints = NDArray[np.int64]
Gold = Callable[[Entry], Ints]
"""Of an input: the number of its class, (1,); the number of the tag of each piece, (piece,), or `UNASKED`; the places
of the first and the last piece of its answer, (2,)."""

HEADS = ("label", "token", "answer_start")
"""The heads that a corpus can have golds for, the first that a model has."""
UNASKED = -100
PREDICTED = "or use `top`: the score of what the model predicts"


def gold_for(encoder: Encoder, corpus: Corpus, entries: Sequence[Entry]) -> Gold:
    """What should come out of the model for each of these inputs of the corpus."""
    head = next(head for head in HEADS if head in encoder.outputs)
    if head == "answer_start":
        return _answers(corpus, entries)
    from bertology.encoder.huggingface import HuggingFaceEncoder
    from bertology.encoder.task_heads import labels_of

    assert isinstance(encoder, HuggingFaceEncoder), "only such a one has the head of a task"
    read = _classes if head == "label" else _tags
    return read(labels_of(encoder), encoder.name, corpus, entries)


def _classes(labels: Sequence[str], model: str, corpus: Corpus, entries: Sequence[Entry]) -> Gold:
    from bertology.encoder.task_heads import class_numbers

    items = sorted({entry.item for entry in entries})
    golds = [corpus[item].label for item in items]
    if None in golds:
        raise Refusal(
            "The corpus has an item without a class",
            "a class for every item, for the objective `gold`",
            f"Give a labelled corpus, {PREDICTED}",
        )
    numbers = dict(zip(items, class_numbers(labels, golds, model), strict=True))
    return lambda entry: np.array([numbers[entry.item]])


def _tags(labels: Sequence[str], model: str, corpus: Corpus, entries: Sequence[Entry]) -> Gold:
    """The tag of each word at its first piece, by the layer of annotation whose tags the model knows."""
    from bertology.encoder.task_heads import class_places

    if any(entry.window for entry in entries):
        raise Refusal(
            "An input is read in windows, and the objective `gold` of tags has none",
            "inputs that the model can read at once",
            "Use --long skip or --long truncate",
        )
    known = class_places(labels)
    shown = {(entry.item, entry.variant) for entry in entries}
    parts = [part for item, variant in sorted(shown) for part in corpus[item].inputs[variant].parts]
    layer = _layer_known(known, labels, parts, corpus.name, model)

    def numbers(entry: Entry) -> Ints:
        whole = corpus[entry.item].inputs[entry.variant].parts
        tags: list[str] = []
        for part, left in zip(whole, entry.input.parts, strict=True):
            # From the whole text, as spans that were cut and relations are gone from the words that are left of it.
            tags.extend((word_tags(part, layer) or ())[: len(left)])
        found = np.full(len(entry.pieces), UNASKED, np.int64)
        for word, pieces in pieces_of_words(entry).items():
            found[pieces[0]] = known[tags[word].lower()]
        return found

    return numbers


def _layer_known(
    known: Mapping[str, int], labels: Sequence[str], parts: Sequence[Sentence], corpus: str, model: str
) -> str:
    """The layer that every text has and whose tags are all known to the model; of several the one with most tags."""
    fitting: dict[str, int] = {}
    faults: dict[str, str] = {}
    strangers: dict[str, str] = {}
    for layer in LAYERS:
        given = [word_tags(part, layer) for part in parts]
        tags = {tag for some in given for tag in some or ()}
        strange = sorted(tag for tag in tags if tag.lower() not in known)
        lacking = sum(some is None for some in given)
        if lacking == len(given):
            continue
        if strange:
            # A layer of which the model knows no tag at all is hardly the one that was meant.
            named = strangers if len(strange) == len(tags) else faults
            named[layer] = f"has {', '.join(strange[:5])}, which it does not know"
        elif layer in SPAN_LAYERS and scheme_of([sorted(labels)]) != "bio":
            # B- and I- mean something else to a model that knows E- and S- as well, or I- alone.
            faults[layer] = "is spans, tagged O, B- and I-, and its tags are of another scheme"
        elif lacking:
            faults[layer] = f"is missing in {lacking} of {len(given)} texts"
        else:
            fitting[layer] = len(tags)
    if fitting:
        return max(fitting, key=lambda layer: fitting[layer])
    told = "; ".join(f"`{layer}` {fault}" for layer, fault in (faults or strangers).items()) or "there is none"
    raise Refusal(
        f"{corpus} has no annotation that gives every word a tag of {model}: {told}",
        f"a tag for every word, for the objective `gold`: one of {', '.join(labels)}, or their numbers from 0",
        f"Give a corpus with such tags, choose a model that was trained on these, {PREDICTED}",
    )


def _answers(corpus: Corpus, entries: Sequence[Entry]) -> Gold:
    """The first answer that the passage shown has whole; the first piece, as in fine-tuning, where there is none."""
    for item in sorted({entry.item for entry in entries}):
        asked = corpus[item]
        if asked.kind != "question" or asked.parts[1].answers is None:
            raise Refusal(
                f"Item {item + 1} of {corpus.name} is no question with its answers",
                "questions on a passage with answers in it, for the objective `gold`",
                f"Give such a corpus, {PREDICTED}",
            )

    def places(entry: Entry) -> Ints:
        question, passage = entry.input.parts
        first = len(question)
        for span in (passage.answers or ())[:1]:
            found = ends_of(entry.pieces.word, first + span.start, first + span.end)
            if found is not None:
                return found
        return np.zeros(2, np.int64)

    return places
