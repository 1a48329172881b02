"""The objective `gold` of tags and answers: the losses of transformers, and refusals of unsuitable corpora."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import tiny_models
from bertology.analyses.attention.gradients import gradient_site
from bertology.analyses.attention.integrated_gradients import TOTAL, integrated_gradients
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import Sentence, Span, sentence_from_text
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.errors import Refusal
from bertology.recording.gold_targets import IGNORE_INDEX, gold_targets
from bertology.recording.objectives import build_objective
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

GOLD = RecordingConfig(objective="gold")
LABELS = ("O", "B-PER", "I-PER")
PEOPLE = {"Ann Unbeliev saw the table.": [Span(0, 2, "PER")], "It rains.": [], "Hello, Bob!": [Span(2, 3, "PER")]}
NOBODY: dict[str, list[Span]] = {text: [] for text in PEOPLE}
QUESTIONS = {
    ("Where are the keys?", "The keys are on the table."): [Span(4, 6), Span(5, 6)],
    ("Who?", "Then we saw unbelievable dogs."): [Span(3, 5)],
    ("Why?", "Nobody knows."): [],
}


def entity_corpus(texts: dict[str, list[Span]] = PEOPLE) -> Corpus:
    sentences = [replace(sentence_from_text(text), entities=tuple(spans)) for text, spans in texts.items()]
    return Corpus(tuple(Example((sentence,)) for sentence in sentences), name="people")


def question_corpus() -> Corpus:
    examples = [
        Example(
            (sentence_from_text(question), replace(sentence_from_text(passage), answer_spans=tuple(spans))), "question"
        )
        for (question, passage), spans in QUESTIONS.items()
    ]
    return Corpus(tuple(examples), name="questions")


def tagger(labels: Sequence[str] = LABELS, family: str = "bert") -> TaskEncoder:
    model = tiny_models.model(family, "ForTokenClassification")
    model.config.id2label = dict(enumerate(labels))
    return tiny_models.wrap_model(model, family)


def question_answering_model(family: str = "bert") -> TaskEncoder:
    return tiny_models.encoder(family, "ForQuestionAnswering")


def tags_by_word_ids(recorded: RecordedInput, family: str) -> list[int]:
    """The tag of each token, assigned to the first token of each word as usual with transformers."""
    (sentence,) = recorded.text.segments
    word_tags = [0] * len(sentence)
    for span in sentence.entities or ():
        word_tags[span.start : span.end] = [1, *[2] * (span.end - span.start - 1)]
    words: list[int | None] = tiny_models.hf_tokenizer(family)(sentence.text).word_ids()
    previous = [None, *words[:-1]]
    return [IGNORE_INDEX if w is None or w == last else word_tags[w] for w, last in zip(words, previous, strict=True)]


def answer_ends_by_characters(recorded: RecordedInput) -> tuple[int, int]:
    """The first and last token of the first answer: the run of tokens with its characters."""
    passage = recorded.text.segments[1]
    if not passage.answer_spans:
        return 0, 0
    span = passage.answer_spans[0]
    answer = "".join(passage.words[span.start : span.end]).lower()
    tokens = [token.removeprefix("##").removeprefix("Ġ").lower() for token in recorded.tokens.tokens]
    second = np.flatnonzero(recorded.tokens.segment_ids == 1)
    for first in second:
        for last in second[second >= first]:
            if "".join(tokens[first : last + 1]) == answer:
                return int(first), int(last)
    raise AssertionError(f"{tokens} do not contain {answer}")


def assert_gradients(recording: Recording, model: TaskEncoder, index: int, n_terms: int, **targets: Any) -> None:
    """The recorded gradients of one input are those of transformers' loss, which is a mean of `n_terms` terms."""
    inputs = TokenBatch([recording.inputs[index]]).model_inputs
    is_bert = "bert" in type(model.model).__name__.lower()
    options: dict[str, Any] = {"token_type_ids": inputs.token_type_ids} if is_bert else {}
    output: Any = tiny_models.reference(model)(inputs.input_ids, output_attentions=True, **options, **targets)
    for layer, gradient in enumerate(torch.autograd.grad(output.loss * n_terms, output.attentions)):
        visible = output.attentions[layer][0] > 0
        expected = (gradient[0].abs() * visible).sum((1, 2)) / visible.sum((1, 2))
        recorded = recording[gradient_site][index][layer, :, 0]
        assert float(expected.detach().min()) > 0
        np.testing.assert_allclose(recorded, expected.detach().numpy(), rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_gradients_of_tags_are_those_of_transformers_loss(family: str) -> None:
    model = tagger(family=family)
    recording = record(model, entity_corpus(), [gradient_site], config=GOLD)
    for index, recorded in enumerate(recording.inputs):
        labels = tags_by_word_ids(recorded, family)
        n_tagged = sum(label != IGNORE_INDEX for label in labels)
        assert n_tagged == len(recorded.text.words) < len(labels)
        assert_gradients(recording, model, index, n_tagged, labels=torch.tensor([labels]))


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_gradients_of_answers_are_those_of_transformers_loss(family: str) -> None:
    model = question_answering_model(family)
    recording = record(model, question_corpus(), [gradient_site], config=GOLD)
    for index, recorded in enumerate(recording.inputs):
        start, end = answer_ends_by_characters(recorded)
        assert (start == end == 0) == (index == 2)
        targets = {"start_positions": torch.tensor([start]), "end_positions": torch.tensor([end])}
        assert_gradients(recording, model, index, 2, **targets)


def test_gradients_depend_on_the_gold_tags() -> None:
    model = tagger()
    gold, predicted, nobody = (
        record(model, corpus, [gradient_site], config=RecordingConfig(objective=objective))[gradient_site]
        for corpus, objective in (
            (entity_corpus(), "gold"),
            (entity_corpus(), "prediction"),
            (entity_corpus(NOBODY), "gold"),
        )
    )
    equal = [np.allclose(a, b, equal_nan=True) for a, b in zip(gold, nobody, strict=True)]
    assert equal == [False, True, False]  # the second text has no name in either corpus
    assert not any(np.allclose(a, b, equal_nan=True) for a, b in zip(gold, predicted, strict=True))


@pytest.mark.parametrize("task", ["tags", "answers"])
def test_integrated_gradients_sum_to_the_effect_of_attention_on_the_loss(task: str) -> None:
    model, corpus = (tagger(), entity_corpus()) if task == "tags" else (question_answering_model(), question_corpus())
    inputs = RunInputs(encoder=model, corpus=corpus, config=GOLD)
    curve = run_analysis(integrated_gradients, inputs, {"integration_steps": 24}).data
    assert isinstance(curve, LayerCurve)
    recorded_inputs = record(model, corpus, [], config=GOLD).inputs
    gold = gold_targets(model, corpus, recorded_inputs)
    for layer in range(model.layers):
        scale = torch.ones(model.layers, model.heads)
        scale[layer] = 0
        ablated = model.with_gates(Gates(scale=scale))
        effects: list[float] = []
        for recorded in recorded_inputs:
            model_inputs, loss = build_objective(model, "gold", TokenBatch([recorded]), 0, gold)
            with torch.no_grad():
                effects.append(float(loss(model.forward(model_inputs)) - loss(ablated.forward(model_inputs))))
        np.testing.assert_allclose(curve.measures[TOTAL].value[layer], np.mean(effects), atol=2e-3)


def targets_of_corpus(model: TaskEncoder, corpus: Corpus, config: RecordingConfig = GOLD) -> list[list[int]]:
    inputs = record(model, corpus, [], config=config).inputs
    gold = gold_targets(model, corpus, inputs)
    return [gold(recorded).tolist() for recorded in inputs]


def without_ignored(targets: list[int]) -> list[int]:
    return [target for target in targets if target != IGNORE_INDEX]


def annotated_corpus(**annotations: Any) -> Corpus:
    sentences = [
        replace(sentence, **{name: values[: len(sentence)] for name, values in annotations.items()})
        for sentence in entity_corpus().sentences
    ]
    return Corpus(tuple(Example((sentence,)) for sentence in sentences), name="annotated")


def test_the_annotation_whose_tags_the_model_knows_is_used() -> None:
    pos = ("NOUN", "VERB", "NOUN", "VERB", "NOUN", "VERB")
    universal, fine = tagger(("noun", "VERB", "X")), tagger(("NN", "VB", "X"))
    by_pos = targets_of_corpus(universal, annotated_corpus(pos=pos, xpos=("NN",) * 6))
    assert without_ignored(by_pos[1]) == [0, 1, 0]
    by_xpos = targets_of_corpus(fine, annotated_corpus(pos=pos, xpos=("NN", "VB", "VB") * 2))
    assert without_ignored(by_xpos[1]) == [0, 1, 1]
    indices = annotated_corpus(tags=("0", "1", "0", "1", "0", "1"))
    assert targets_of_corpus(tagger(("a", "b", "c")), indices) == by_pos


def test_the_annotation_with_most_tags_is_used() -> None:
    chunked = entity_corpus(NOBODY).map_sentences(lambda sentence: replace(sentence, chunks=(Span(0, 2, "PER"),)))
    assert all(without_ignored(row)[:3] == [1, 2, 0] for row in targets_of_corpus(tagger(), chunked))


def test_tags_of_a_truncated_text_are_those_of_the_full_text() -> None:
    corpus = entity_corpus({"The the keys.": [Span(1, 3, "PER")]})
    config = RecordingConfig(objective="gold", overflow="truncate", max_length=4)
    (recorded,) = record(tagger(), corpus, [], config=config).inputs
    assert recorded.text.words == ("The", "the") and recorded.text.segments[0].entities == ()
    (targets,) = targets_of_corpus(tagger(), corpus, config)
    assert without_ignored(targets) == [0, 1]


def test_windows_without_the_answer_have_the_first_token_as_target() -> None:
    config = RecordingConfig(objective="gold", overflow="window", max_length=21)
    corpus = question_corpus()[:1]
    windows = record(question_answering_model(), corpus, [], config=config).inputs
    passages = [" ".join(window.text.segments[1].words) for window in windows]
    assert passages == ["The keys are on the", "are on the table ."]
    first, (start, end) = targets_of_corpus(question_answering_model(), corpus, config)
    assert first == [0, 0]
    second = windows[1]
    words = dict.fromkeys(second.tokens.word_ids[start : end + 1].tolist())
    assert [second.text.words[word] for word in words] == ["the", "table"]


def assert_refused(model: TaskEncoder, corpus: Corpus, match: str, config: RecordingConfig = GOLD) -> None:
    with pytest.raises(Refusal, match=match):
        record(model, corpus, [gradient_site], config=config)


def without_annotation(sentence: Sentence, name: str, prefix: str) -> Sentence:
    return replace(sentence, **{name: None}) if sentence.text.startswith(prefix) else sentence


def test_missing_annotations_and_unknown_tags_are_refused() -> None:
    plain = Corpus((Example((sentence_from_text("Hm."),)),), name="plain")
    assert_refused(tagger(), plain, "plain has no annotation .*: there is none")
    message = r"`entities` has tags the model does not know \(B-PER, I-PER\)"
    assert_refused(tagger(("O", "B-LOC", "I-LOC")), entity_corpus(), message)
    partial = entity_corpus().map_sentences(lambda sentence: without_annotation(sentence, "entities", "It"))
    assert_refused(tagger(), partial, "`entities` is missing in 1 of 3 texts")
    bioes = tagger(("O", "B-PER", "I-PER", "S-PER", "E-PER"))
    assert_refused(bioes, entity_corpus({"It rains.": [Span(0, 2, "PER")]}), "`entities` has spans, .* another scheme")
    unknown = annotated_corpus(pos=("X",) * 6).map_sentences(lambda sentence: replace(sentence, entities=None))
    assert_refused(tagger(), unknown, r"`pos` has tags the model does not know \(X\)")
    windows = RecordingConfig(objective="gold", overflow="window", max_length=8)
    assert_refused(tagger(), entity_corpus(), "split into windows", windows)
    assert_refused(question_answering_model(), entity_corpus(), "Example 1 of people is not a question with answers")
    unanswered = question_corpus().map_sentences(
        lambda sentence: without_annotation(sentence, "answer_spans", "Nobody")
    )
    assert_refused(question_answering_model(), unanswered, "Example 3 of questions is not a question")


def test_refusals_come_before_the_first_pass() -> None:
    """Only the last example, which is the longest, lacks its label."""
    model = tiny_models.encoder("bert", "ForSequenceClassification")
    labelled = Example((sentence_from_text("It rains."),), label="0")
    corpus = Corpus((*[labelled] * 3, Example((sentence_from_text("A dog barks at a cat."),))))
    done: list[int] = []
    with pytest.raises(Refusal, match="without a label"):
        record(model, corpus, [gradient_site], config=GOLD, progress=lambda tokens, _: done.append(tokens))
    assert not any(done)
