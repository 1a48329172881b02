"""Planted phases: clusters, entities, a question beside its fact, an answer apart; pictures; noise at chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cosine

import planted
from bertology.analyses.geometry.trajectory import MEASURES, trajectory
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import Span, from_text
from bertology.errors import Refusal
from bertology.maths.clusters import best_clusters, purity
from bertology.maths.planes import in_the_plane
from bertology.measures.geometry.answer_tokens import AnswerTokens, entity_spans, sentence_spans
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve, Trajectory

WIDTH = 16
NAMES = ("Ada", "Ben", "Cora", "Dan", "Eva", "Finn", "Gina", "Hugo")


def questions() -> Corpus:
    """Eight passages of three sentences in which a name comes back; the answer is in the middle one."""
    items: list[Item] = []
    for number, name in enumerate(NAMES):
        passage = from_text(
            f"In the town of w{number} old {name} had a red boat . Then our {name} saw v{number} near the tall tower . "
            f"After that u{number} came home with {name} again ."
        )
        answer = passage.words.index(f"v{number}")
        asked = from_text(f"whom did {name} see there number{number} ?")
        items.append(Item((asked, replace(passage, answers=(Span(answer, answer + 2),))), "question", id=name))
    return Corpus(tuple(items), name="planted")


def states(entry: Entry) -> planted.Floats:
    """Noise; two clusters; entities in a place of their own; question beside the fact; the answer apart."""
    tokens = AnswerTokens.of(entry)
    assert tokens is not None
    generator = np.random.default_rng(entry.pieces.ids.tolist())
    found = generator.normal(size=(5, len(entry.pieces), WIDTH))
    found[1, ::2] += 20 * np.eye(WIDTH)[0]
    for number, places in enumerate(tokens.entities):
        found[2, places] = 30 * np.eye(WIDTH)[number] + 0.1 * generator.normal(size=(len(places), WIDTH))
    found[3, np.concatenate([tokens.question, tokens.fact])] += 5 * np.eye(WIDTH)[2]
    found[4] += 5 * np.eye(WIDTH)[3]
    found[4, tokens.answer] -= 10 * np.eye(WIDTH)[3]
    return found


def recorded(corpus: Corpus | None = None) -> Recording:
    return planted.recording_of(corpus or questions(), [[planted.uniform]] * 4, states)


def phases(**options: object) -> LayerCurve:
    given = {name: option.default for name, option in trajectory.options.items()} | options
    found = trajectory.function(recorded(), None, **given)
    assert isinstance(found, LayerCurve)
    return found


def test_each_planted_phase_is_found_where_it_was_planted() -> None:
    curve = phases()
    chance = curve.baselines["by chance"]
    for layer, name in zip((1, 2, 3, 4), MEASURES, strict=True):
        assert curve.measures[name].low[layer] > chance[name].high[layer], name
        assert (curve.measures[name].n == len(NAMES)).all()
    assert curve.measures["clustering"].value[1] > 0.6 > curve.measures["clustering"].value[0]
    assert curve.measures["entity purity"].value[2] == 1
    assert curve.measures["question to fact"].value.argmax() == 3
    assert curve.measures["answer separation"].value.argmax() == 4


def test_matching_and_separation_restated_by_loops() -> None:
    recording = recorded(questions()[:1])
    tokens = AnswerTokens.of(recording.entries[0])
    assert tokens is not None
    given = {name: option.default for name, option in trajectory.options.items()}
    curve = trajectory.function(recording, None, **given)
    assert isinstance(curve, LayerCurve)
    for layer, vectors in enumerate(np.asarray(recording["hidden"][0], np.float64)):

        def alike(one: int, other: int, vectors: planted.Floats = vectors) -> float:
            return float(1 - cosine(vectors[one], vectors[other]))

        answer, fact = set(tokens.answer.tolist()), set(tokens.fact.tolist())
        rest = [p for p in tokens.passage.tolist() if p not in answer]
        within = np.mean([alike(p, q) for p in rest for q in rest if p != q])
        apart = within - np.mean([alike(p, q) for p in answer for q in rest])
        near = np.mean([alike(p, q) for p in tokens.question for q in fact])
        far = np.mean([alike(p, q) for p in tokens.question for q in rest if q not in fact])
        assert curve.measures["answer separation"].value[layer] == pytest.approx(apart, abs=1e-9)
        assert curve.measures["question to fact"].value[layer] == pytest.approx(near - far, abs=1e-9)


def test_answers_to_other_questions_are_told_from_the_answer() -> None:
    items = questions().items
    second = [
        replace(item, parts=(from_text(f"and what of {item.id} ?"), replace(item.parts[1], answers=(Span(3, 4),))))
        for item in items
    ]
    given = {name: option.default for name, option in trajectory.options.items()}
    curve = trajectory.function(recorded(Corpus((*items, *second), name="planted")), None, **given)
    assert isinstance(curve, LayerCurve)
    others = curve.baselines["other answers"]["answer separation"]
    assert (others.n == len(NAMES)).all()
    assert curve.measures["answer separation"].low[4] > others.high[4]
    assert np.isnan(phases().baselines["other answers"]["answer separation"].value).all()


def test_noise_is_at_chance() -> None:
    curve = phases()
    for name in MEASURES[2:]:
        assert abs(curve.measures[name].value[0]) < 0.1, name
        assert abs(curve.baselines["by chance"][name].value[0]) < 0.1, name
    assert curve.measures["clustering"].value[0] == pytest.approx(
        curve.baselines["by chance"]["clustering"].value[0], abs=0.06
    )


def test_tokens_are_told_apart() -> None:
    entry = recorded().entries[0]
    tokens = AnswerTokens.of(entry)
    assert tokens is not None
    named = dict(zip((entry.pieces.tokens[p] for p in tokens.ordinary), tokens.classes, strict=True))
    assert named["v0"] == named["near"] == "answer"
    assert named["whom"] == "question" and named["tower"] == "supporting fact" and named["boat"] == "other"
    assert [len(places) for places in tokens.entities] == [4]


def test_sentences_and_entities_of_running_text() -> None:
    text = from_text("The cat met Ada Byron. It ran! Was Mr. smith there? Yes.")
    assert next(" ".join(text.words[s.start : s.end]) for s in sentence_spans(text)) == "The cat met Ada Byron ."
    assert [" ".join(text.words[s.start : s.end]) for s in entity_spans(text)] == ["Ada Byron", "Mr"]
    annotated = replace(text, entities=(Span(1, 2, "ANIMAL"),))
    assert list(entity_spans(annotated)) == [Span(1, 2, "ANIMAL")]


@pytest.mark.parametrize("method", ["pca", "aligned", "ica", "tsne"])
def test_a_picture_has_every_token_in_every_layer(method: str) -> None:
    given = {name: option.default for name, option in trajectory.options.items()}
    found = trajectory.function(recorded(), None, **given | {"show": "picture", "method": method, "item": 2})
    assert isinstance(found, Trajectory)
    assert found.points.shape == (5, len(found.labels), 2) and np.isfinite(found.points).all()
    assert {"answer", "question", "supporting fact", "other"} <= set(found.groups)
    assert "[CLS]" not in found.labels


def test_aligned_planes_do_not_turn_and_joint_planes_keep_distances() -> None:
    generator = np.random.default_rng(0)
    flat = generator.normal(size=(30, 2)) * (3, 1) @ generator.normal(size=(2, 8))
    turned = flat @ np.linalg.qr(generator.normal(size=(8, 8)))[0]
    planes = in_the_plane(np.stack([flat, turned]), "aligned", seed=0)
    np.testing.assert_allclose(planes[0], planes[1], atol=1e-8)
    joint = in_the_plane(np.stack([flat, flat]), "pca", seed=0)
    np.testing.assert_allclose(
        np.linalg.norm(joint[0, 0] - joint[0, 1:], axis=1), np.linalg.norm(flat[0] - flat[1:], axis=1), atol=1e-8
    )


def test_the_number_of_clusters_is_found_and_purity_counted() -> None:
    generator = np.random.default_rng(0)
    points = np.repeat(np.eye(4) * 20, 15, axis=0) + generator.normal(size=(60, 4))
    found = best_clusters(points, seed=0)
    assert found is not None and found.number == 4 and found.silhouette > 0.8
    assert best_clusters(points[:2], seed=0) is None
    labels = np.array([0, 0, 1, 1, 1])
    assert purity(labels, [np.array([0, 1]), np.array([1, 2, 3, 4])]) == pytest.approx((1 + 0.75) / 2)


def test_what_cannot_be_measured_is_refused() -> None:
    given = {name: option.default for name, option in trajectory.options.items()}
    plain = planted.recording_of(
        planted.corpus_of("no question here"), [[planted.uniform]], lambda e: np.zeros((2, len(e.pieces), 4))
    )
    with pytest.raises(Refusal, match="question"):
        trajectory.function(plain, None, **given)
    with pytest.raises(Refusal, match="1 to 8"):
        trajectory.function(recorded(), None, **given | {"show": "picture", "item": 9})
