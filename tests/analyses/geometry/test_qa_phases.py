"""`geometry/qa_phases`: planted clusters, entities, matching and answer separation are found; noise is at chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cosine

import planted
from bertology.analyses.geometry.qa_phases import MEASURES, QuestionTokens, entity_spans, qa_phases, sentence_spans
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import Span, sentence_from_text
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.illustrations import Trajectory
from bertology.results.shapes import LayerCurve

WIDTH = 16
NAMES = ("Ada", "Ben", "Cora", "Dan", "Eva", "Finn", "Gina", "Hugo")
SILHOUETTE, PURITY, FACT_SIMILARITY, SEPARATION = MEASURES


def make_questions() -> Corpus:
    """Eight passages of three sentences with a recurring name; the answer is in the second sentence."""
    examples: list[Example] = []
    for number, name in enumerate(NAMES):
        passage = sentence_from_text(
            f"In the town of w{number} old {name} had a red boat . Then our {name} saw v{number} near the tall tower . "
            f"After that u{number} came home with {name} again ."
        )
        answer = passage.words.index(f"v{number}")
        question = sentence_from_text(f"whom did {name} see there number{number} ?")
        passage = replace(passage, answer_spans=(Span(answer, answer + 2),))
        examples.append(Example((question, passage), "question", id=name))
    return Corpus(tuple(examples), name="planted")


def question_tokens(recorded: RecordedInput) -> QuestionTokens:
    question = QuestionTokens.from_input(recorded)
    assert question is not None
    return question


def make_states(recorded: RecordedInput) -> FloatArray:
    """Layers with noise, two clusters, a cluster per entity, question near the fact, and a separate answer."""
    question = question_tokens(recorded)
    generator = np.random.default_rng(recorded.tokens.ids.tolist())
    states = generator.normal(size=(5, len(recorded.tokens), WIDTH))
    states[1, ::2] += 20 * np.eye(WIDTH)[0]
    for number, positions in enumerate(question.entities):
        states[2, positions] = 30 * np.eye(WIDTH)[number] + 0.1 * generator.normal(size=(len(positions), WIDTH))
    states[3, np.concatenate([question.question, question.supporting_fact])] += 5 * np.eye(WIDTH)[2]
    states[4] += 5 * np.eye(WIDTH)[3]
    states[4, question.answer] -= 10 * np.eye(WIDTH)[3]
    return states


def make_recording(corpus: Corpus | None = None) -> Recording:
    return planted.make_recording(corpus or make_questions(), [[planted.uniform_head]] * 4, make_states)


def curve(recording: Recording | None = None) -> LayerCurve:
    data = qa_phases(recording or make_recording(), None)
    assert isinstance(data, LayerCurve)
    return data


def test_each_planted_phase_is_found_in_its_layer() -> None:
    data = curve()
    chance = data.baselines["chance"]
    for layer, name in zip((1, 2, 3, 4), MEASURES, strict=True):
        assert data.measures[name].low[layer] > chance[name].high[layer], name
        assert (data.measures[name].n == len(NAMES)).all()
    assert data.measures[SILHOUETTE].value[1] > 0.6 > data.measures[SILHOUETTE].value[0]
    assert data.measures[PURITY].value[2] == 1
    assert data.measures[FACT_SIMILARITY].value.argmax() == 3
    assert data.measures[SEPARATION].value.argmax() == 4


def test_matching_and_separation_equal_explicit_loops() -> None:
    recording = make_recording(make_questions()[:1])
    question = question_tokens(recording.inputs[0])
    data = curve(recording)
    for layer, vectors in enumerate(np.asarray(recording["hidden"][0], np.float64)):

        def similarity(left: int, right: int, vectors: FloatArray = vectors) -> float:
            return float(1 - cosine(vectors[left], vectors[right]))

        answer, fact = set(question.answer.tolist()), set(question.supporting_fact.tolist())
        rest = [p for p in question.passage.tolist() if p not in answer]
        within = np.mean([similarity(p, q) for p in rest for q in rest if p != q])
        separation = within - np.mean([similarity(p, q) for p in answer for q in rest])
        to_fact = np.mean([similarity(p, q) for p in question.question for q in fact])
        to_rest = np.mean([similarity(p, q) for p in question.question for q in rest if q not in fact])
        assert data.measures[SEPARATION].value[layer] == pytest.approx(separation, abs=1e-9)
        assert data.measures[FACT_SIMILARITY].value[layer] == pytest.approx(to_fact - to_rest, abs=1e-9)


def test_the_answer_is_more_separate_than_answers_to_other_questions() -> None:
    examples = make_questions().examples
    others = [
        replace(
            example,
            segments=(
                sentence_from_text(f"and what of {example.id} ?"),
                replace(example.segments[1], answer_spans=(Span(3, 4),)),
            ),
        )
        for example in examples
    ]
    data = curve(make_recording(Corpus((*examples, *others), name="planted")))
    other_answers = data.baselines["answers to other questions"][SEPARATION]
    assert (other_answers.n == len(NAMES)).all()
    assert data.measures[SEPARATION].low[4] > other_answers.high[4]
    assert np.isnan(curve().baselines["answers to other questions"][SEPARATION].value).all()


def test_noise_is_at_chance() -> None:
    data = curve()
    chance = data.baselines["chance"]
    for name in (FACT_SIMILARITY, SEPARATION):
        assert abs(data.measures[name].value[0]) < 0.1, name
        assert abs(chance[name].value[0]) < 0.1, name
    assert data.measures[SILHOUETTE].value[0] == pytest.approx(chance[SILHOUETTE].value[0], abs=0.06)


def test_tokens_are_classified() -> None:
    recorded = make_recording().inputs[0]
    question = question_tokens(recorded)
    tokens = (recorded.tokens.tokens[position] for position in question.non_special)
    classes = dict(zip(tokens, question.classes, strict=True))
    assert classes["v0"] == classes["near"] == "answer"
    assert classes["whom"] == "question" and classes["tower"] == "supporting fact" and classes["boat"] == "other"
    assert [len(positions) for positions in question.entities] == [4]


def test_sentences_and_entities_of_running_text_are_found() -> None:
    text = sentence_from_text("The cat met Ada Byron. It ran! Was Mr. smith there? Yes.")
    sentences = [" ".join(text.words[span.start : span.end]) for span in sentence_spans(text)]
    assert sentences[0] == "The cat met Ada Byron ."
    assert [" ".join(text.words[span.start : span.end]) for span in entity_spans(text)] == ["Ada Byron", "Mr"]
    annotated = replace(text, entities=(Span(1, 2, "ANIMAL"),))
    assert list(entity_spans(annotated)) == [Span(1, 2, "ANIMAL")]


@pytest.mark.parametrize("projection", ["pca", "aligned-pca", "ica", "tsne"])
def test_a_trajectory_has_every_token_in_every_layer(projection: str) -> None:
    data = qa_phases(make_recording(), None, show="trajectory", projection=projection, example=2)
    assert isinstance(data, Trajectory)
    assert data.points.shape == (5, len(data.labels), 2) and np.isfinite(data.points).all()
    assert {"answer", "question", "supporting fact", "other"} <= set(data.groups)
    assert "[CLS]" not in data.labels


def test_corpora_without_questions_and_unknown_examples_are_refused() -> None:
    plain = planted.make_recording(
        planted.make_corpus("no question here"),
        [[planted.uniform_head]],
        lambda recorded: np.zeros((2, len(recorded.tokens), 4)),
    )
    with pytest.raises(Refusal, match="question"):
        curve(plain)
    with pytest.raises(Refusal, match="1 to 8"):
        qa_phases(make_recording(), None, show="trajectory", example=9)


def test_windows_of_a_passage_count_as_one_passage() -> None:
    """Two questions see different parts of one passage: the interval is over passages."""
    corpus = make_questions()
    passage = corpus[0].segments[1]
    other = Example((sentence_from_text("who else ?"), passage), "question", id="other")
    recording = make_recording(replace(corpus, examples=(*corpus, other)))
    *inputs, last = recording.inputs
    window = replace(passage, text=passage.text[: passage.text.rindex("After")])  # what the last question sees
    shown = replace(last, text=replace(last.text, segments=(last.text.segments[0], window)))
    data = qa_phases(replace(recording, inputs=(*inputs, shown)), None)
    assert isinstance(data, LayerCurve)
    assert (data.measures[SEPARATION].n == len(corpus)).all()
