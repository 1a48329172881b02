"""The objective `gold` of tags and answers: transformers' own losses, and what a corpus lacks is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import models
from bertology.analyses.attention.importance import IMPORTANCE
from bertology.analyses.attention.integrated import TOTAL, integrated
from bertology.analyses.run import Subject, run
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import Sentence, Span, from_text
from bertology.encoder.attend import Gates
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.frame import Frame
from bertology.recording.golds import UNASKED, gold_for
from bertology.recording.objectives import objective_for
from bertology.recording.policy import Policy
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

GOLD = Policy(objective="gold")
NAMES = ("O", "B-PER", "I-PER")
PEOPLE = {"Ann Unbeliev saw the table.": [Span(0, 2, "PER")], "It rains.": [], "Hello, Bob!": [Span(2, 3, "PER")]}
NOBODY: dict[str, list[Span]] = {text: [] for text in PEOPLE}
QUESTIONS = {
    ("Where are the keys?", "The keys are on the table."): [Span(4, 6), Span(5, 6)],
    ("Who?", "Then we saw unbelievable dogs."): [Span(3, 5)],
    ("Why?", "Nobody knows."): [],
}


def named(texts: dict[str, list[Span]] = PEOPLE) -> Corpus:
    sentences = [replace(from_text(text), entities=tuple(spans)) for text, spans in texts.items()]
    return Corpus(tuple(Item((sentence,)) for sentence in sentences), name="people")


def asked() -> Corpus:
    items = [
        Item((from_text(question), replace(from_text(passage), answers=tuple(spans))), "question")
        for (question, passage), spans in QUESTIONS.items()
    ]
    return Corpus(tuple(items), name="questions")


def tagger(labels: Sequence[str] = NAMES, family: str = "bert") -> HuggingFaceEncoder:
    made = models.model(family, "ForTokenClassification")
    made.config.id2label = dict(enumerate(labels))
    return models.wrapped(made, family)


def reader(family: str = "bert") -> HuggingFaceEncoder:
    return models.encoder(family, "ForQuestionAnswering")


def tags_by_word_ids(entry: Entry, family: str) -> list[int]:
    """The number of each piece's tag as transformers' users give it: at the first piece of each word of its own."""
    (part,) = entry.input.parts
    of_word = [0] * len(part)
    for span in part.entities or ():
        of_word[span.start : span.end] = [1, *[2] * (span.end - span.start - 1)]
    words: list[int | None] = models.tokenizer(family)(part.text).word_ids()
    before = [None, *words[:-1]]
    return [UNASKED if w is None or w == last else of_word[w] for w, last in zip(words, before, strict=True)]


def ends_by_tokens(entry: Entry) -> tuple[int, int]:
    """The first and last piece of the first answer, found as a stretch of pieces with these characters in them."""
    passage = entry.input.parts[1]
    if not passage.answers:
        return 0, 0
    span = passage.answers[0]
    whole = "".join(passage.words[span.start : span.end]).lower()
    tokens = [token.removeprefix("##").removeprefix("Ġ").lower() for token in entry.pieces.tokens]
    second = np.flatnonzero(entry.pieces.part == 1)
    for first in second:
        for last in second[second >= first]:
            if "".join(tokens[first : last + 1]) == whole:
                return int(first), int(last)
    raise AssertionError(f"{tokens} do not have {whole}")


def assert_gradients(recording: Recording, model: HuggingFaceEncoder, index: int, times: int, **wanted: Any) -> None:
    """The recorded gradients of one input are those of transformers' loss, which is a mean of `times` terms."""
    frame = Frame([recording.entries[index]])
    given: dict[str, Any] = (
        {"token_type_ids": frame.batch.types} if "bert" in type(model.model).__name__.lower() else {}
    )
    returned: Any = models.reference(model)(frame.batch.ids, output_attentions=True, **given, **wanted)
    for layer, gradient in enumerate(torch.autograd.grad(returned.loss * times, returned.attentions)):
        seen = returned.attentions[layer][0] > 0
        expected = (gradient[0].abs() * seen).sum((1, 2)) / seen.sum((1, 2))
        found = recording[IMPORTANCE][index][layer, :, 0]
        assert float(expected.detach().min()) > 0
        np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_gradients_of_tags_are_those_of_transformers_own_loss(family: str) -> None:
    model = tagger(family=family)
    recording = record(model, named(), [IMPORTANCE], policy=GOLD)
    for index, entry in enumerate(recording.entries):
        labels = tags_by_word_ids(entry, family)
        asked_for = [label for label in labels if label != UNASKED]
        assert len(asked_for) == len(entry.input.words) < len(labels)
        assert_gradients(recording, model, index, len(asked_for), labels=torch.tensor([labels]))


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_gradients_of_answers_are_those_of_transformers_own_loss(family: str) -> None:
    model = reader(family)
    recording = record(model, asked(), [IMPORTANCE], policy=GOLD)
    for index, entry in enumerate(recording.entries):
        start, end = ends_by_tokens(entry)
        assert (start == end == 0) == (index == 2)
        wanted = {"start_positions": torch.tensor([start]), "end_positions": torch.tensor([end])}
        assert_gradients(recording, model, index, 2, **wanted)


def test_other_golds_have_other_gradients_and_the_right_ones_those_of_predictions() -> None:
    model = tagger()
    own, top = (record(model, named(), [IMPORTANCE], policy=Policy(objective=name)) for name in ("gold", "top"))
    turned = record(model, named(NOBODY), [IMPORTANCE], policy=GOLD)
    same = [np.allclose(a, b, equal_nan=True) for a, b in zip(own[IMPORTANCE], turned[IMPORTANCE], strict=True)]
    assert same == [False, True, False]  # the second has no name in either
    assert not any(np.allclose(a, b, equal_nan=True) for a, b in zip(own[IMPORTANCE], top[IMPORTANCE], strict=True))


@pytest.mark.parametrize("asking", ["tags", "answers"])
def test_integrated_gradients_sum_to_what_attention_adds_to_the_loss(asking: str) -> None:
    model, corpus = (tagger(), named()) if asking == "tags" else (reader(), asked())
    curve = run(integrated, Subject(encoder=model, corpus=corpus, policy=GOLD), {"steps": 24}).data
    assert isinstance(curve, LayerCurve)
    entries = record(model, corpus, [], policy=GOLD).entries
    gold = gold_for(model, corpus, entries)
    for layer in range(model.layers):
        scale = torch.ones(model.layers, model.heads)
        scale[layer] = 0
        added: list[float] = []
        for entry in entries:
            fed, loss = objective_for(model, "gold", Frame([entry]), 0, gold)
            with torch.no_grad():
                added.append(float(loss(model.run(fed)) - loss(model.gated(Gates(scale=scale)).run(fed))))
        np.testing.assert_allclose(curve.measures[TOTAL].value[layer], np.mean(added), atol=2e-3)


def golds(model: HuggingFaceEncoder, corpus: Corpus, policy: Policy = GOLD) -> list[list[int]]:
    entries = record(model, corpus, [], policy=policy).entries
    gold = gold_for(model, corpus, entries)
    return [gold(entry).tolist() for entry in entries]


def annotated(**layers: Any) -> Corpus:
    parts = [
        replace(part, **{name: values[: len(part)] for name, values in layers.items()}) for part in named().sentences
    ]
    return Corpus(tuple(Item((part,)) for part in parts), name="annotated")


def test_the_layer_is_the_one_whose_tags_the_model_knows() -> None:
    pos = ("NOUN", "VERB", "NOUN", "VERB", "NOUN", "VERB")
    universal, fine = tagger(("noun", "VERB", "X")), tagger(("NN", "VB", "X"))
    by_pos = golds(universal, annotated(pos=pos, xpos=("NN",) * 6))
    assert [n for n in by_pos[1] if n != UNASKED] == [0, 1, 0]
    assert [n for n in golds(fine, annotated(pos=pos, xpos=("NN", "VB", "VB") * 2))[1] if n != UNASKED] == [0, 1, 1]
    assert golds(tagger(("a", "b", "c")), annotated(tags=("0", "1", "0", "1", "0", "1"))) == by_pos


def test_a_layer_in_which_nothing_is_marked_gives_way_to_one_in_which_something_is() -> None:
    chunked = named(NOBODY).map(lambda part: replace(part, chunks=(Span(0, 2, "PER"),)))
    found = golds(tagger(), chunked)
    assert all([n for n in row if n != UNASKED][:3] == [1, 2, 0] for row in found)


def test_tags_of_what_was_cut_are_those_of_the_whole() -> None:
    corpus = named({"The the keys.": [Span(1, 3, "PER")]})
    policy = Policy(objective="gold", long="truncate", max_pieces=4)
    (entry,) = record(tagger(), corpus, [], policy=policy).entries
    assert entry.input.words == ("The", "the") and entry.input.parts[0].entities == ()
    (found,) = golds(tagger(), corpus, policy)
    assert [n for n in found if n != UNASKED] == [0, 1]


def test_windows_without_the_answer_ask_for_the_first_piece() -> None:
    policy = Policy(objective="gold", long="window", max_pieces=21)
    corpus = asked()[:1]
    entries = record(reader(), corpus, [], policy=policy).entries
    passages = [" ".join(entry.input.parts[1].words) for entry in entries]
    assert passages == ["The keys are on the", "are on the table ."]
    none, (start, end) = golds(reader(), corpus, policy)
    assert none == [0, 0]
    shown = entries[1]
    assert [shown.input.words[word] for word in dict.fromkeys(shown.pieces.word[start : end + 1])] == ["the", "table"]


def refused(model: HuggingFaceEncoder, corpus: Corpus, match: str, policy: Policy = GOLD) -> None:
    with pytest.raises(Refusal, match=match):
        record(model, corpus, [IMPORTANCE], policy=policy)


def without(layer: str, part: Sentence) -> Sentence:
    return replace(part, **{layer: None}) if part.text.startswith("It") else part


def test_what_a_corpus_lacks_or_a_model_does_not_know_is_refused() -> None:
    refused(tagger(), Corpus((Item((from_text("Hm."),)),), name="plain"), "plain has no annotation .*: there is none")
    refused(tagger(("O", "B-LOC", "I-LOC")), named(), "`entities` has B-PER, I-PER, which it does not know")
    refused(tagger(), named().map(lambda part: without("entities", part)), "`entities` is missing in 1 of 3 texts")
    ends = named({"It rains.": [Span(0, 2, "PER")]})
    refused(tagger(("O", "B-PER", "I-PER", "S-PER", "E-PER")), ends, "`entities` is spans, .* of another scheme")
    strange = annotated(pos=("X",) * 6).map(lambda part: replace(part, entities=None))
    refused(tagger(), strange, "`pos` has X, which it does not know")
    windows = Policy(objective="gold", long="window", max_pieces=8)
    refused(tagger(), named(), "read in windows", windows)
    refused(reader(), named(), "Item 1 of people is no question with its answers")
    lacking = asked().map(lambda part: replace(part, answers=None) if part.text.startswith("Nobody") else part)
    refused(reader(), lacking, "Item 3 of questions is no question")


def test_what_is_refused_is_refused_before_the_first_pass() -> None:
    """The last item, which would come first or last by its length, lacks its class."""
    model = models.encoder("bert", "ForSequenceClassification")
    items = [Item((from_text("It rains."),), label="0")] * 3 + [Item((from_text("A dog barks at a cat."),))]
    done: list[int] = []
    with pytest.raises(Refusal, match="without a class"):
        record(model, Corpus(tuple(items)), [IMPORTANCE], policy=GOLD, progress=lambda pieces, _: done.append(pieces))
    assert not any(done)
