"""Small models find what is planted at every size and nothing else; what seeds draw; metrics equal those of others."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

import planted_features as planted
from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal
from bertology.finetuning.metrics import count_names
from bertology.measures.meaning import downstream
from bertology.measures.meaning.cells import Cells, share
from bertology.measures.meaning.downstream import Learner, answers, learners_named
from bertology.measures.meaning.features import CalledFeature
from bertology.measures.meaning.lessons import Choice, Lesson, lesson_of
from bertology.measures.work import Work


def lesson(corpus: Corpus, *, seeds: int = 2, items: int = 0) -> Lesson:
    return lesson_of(corpus, Choice("auto", "", items, "", 0, seeds, 0), purpose="test")


def scores(corpus: Corpus, function: Any, learner: Learner, sizes: int = 3, least: float = 0.1) -> Any:
    """(seed, size)"""
    shown = lesson(corpus)
    cells = Cells(shown, Work())
    vectors = cells.vectors([CalledFeature("planted", function)])
    return share(cells.run(vectors, [learner], shown.sizes(sizes, least)).sum(1))[:, 0, 0]


@pytest.mark.parametrize(
    ("corpus", "function", "learner"),
    [
        (planted.names(ambiguous=True), planted.told, "linear"),
        (planted.opinions(), planted.told, "linear"),
    ],
)
def test_vectors_that_encode_the_label_are_perfect_at_every_size(
    corpus: Corpus, function: Any, learner: Learner
) -> None:
    np.testing.assert_array_equal(scores(corpus, function, learner), 1.0)


@pytest.mark.parametrize(
    ("corpus", "learner"), [(planted.names(ambiguous=True), "bilstm-crf"), (planted.opinions(), "cnn")]
)
def test_networks_find_what_is_planted(corpus: Corpus, learner: Learner) -> None:
    assert (scores(corpus, planted.told, learner, sizes=1) == 1.0).all()


def test_words_alone_solve_what_is_unambiguous_and_fail_what_is_not() -> None:
    plain, ambiguous = planted.names(ambiguous=False), planted.names(ambiguous=True)
    assert (scores(plain, planted.identity, "linear", sizes=1) == 1.0).all()
    assert (abs(scores(ambiguous, planted.identity, "linear", sizes=1) - 0.5) < 0.15).all()
    assert (scores(ambiguous, planted.context, "linear", sizes=1) == 1.0).all()


def test_a_network_that_sees_the_sentence_needs_no_context_in_the_features() -> None:
    assert (scores(planted.names(ambiguous=True), planted.identity, "bilstm-crf", sizes=1) > 0.9).all()


def test_pairs_are_compared() -> None:
    assert (scores(planted.pairs(), planted.identity, "linear", sizes=1) > 0.97).all()


def _uneven(words: Sequence[str]) -> Any:
    """Noise by word and by sentence, of very different spread in different directions: what takes longest to solve."""
    own = np.stack([np.random.default_rng(sum(map(ord, word))).normal(size=24) for word in words])
    own = own + 0.3 * np.random.default_rng(sum(map(ord, "".join(words)))).normal(size=own.shape)
    return own * np.geomspace(1, 3e-3, 24) @ np.random.default_rng(1).normal(size=(24, 24))


def test_linear_models_are_solved_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = lesson(planted.names(ambiguous=True))
    (vectors,) = Cells(shown, Work()).vectors([CalledFeature("uneven", _uneven)])
    found = answers(shown, vectors, "linear", shown.sizes(1, 0.1)[0])
    monkeypatch.setitem(downstream.SETTINGS["linear"], "tolerance", 1e-7)
    assert found == answers(shown, vectors, "linear", shown.sizes(1, 0.1)[0])


def test_noise_gives_chance() -> None:
    for corpus, function in ((planted.opinions(shuffled=True), planted.identity), (planted.opinions(), planted.noise)):
        assert (abs(scores(corpus, function, "linear") - 0.5) < 0.25).all()


def test_smaller_sets_are_in_larger_ones_and_held_out_items_in_none() -> None:
    shown = lesson(planted.opinions(), seeds=3)
    assert len({draw.trained for draw in shown.draws}) == 3
    for draw in shown.draws:
        assert not set(draw.trained) & set(draw.held)
        assert len(draw.trained) + len(draw.held) == len(shown.learnt)
    assert not {item.parts[0].text for item in shown.learnt} & {item.parts[0].text for item in shown.judged}
    sizes = shown.sizes(7, 0.01)
    assert sizes[0] == 2 and sizes[-1] == shown.most and sizes == sorted(set(sizes))
    ratios = np.array(sizes[3:]) / np.array(sizes[2:-1])
    np.testing.assert_allclose(ratios, 100 ** (1 / 6), rtol=0.15)


def test_the_order_of_a_file_changes_nothing() -> None:
    corpus = planted.opinions()
    backwards = replace(corpus, items=corpus.items[::-1])
    assert lesson(corpus) == lesson(backwards)
    assert len(lesson(corpus, items=40).learnt) == 30


def test_only_what_is_learnt_has_labels() -> None:
    shown = lesson(planted.names(ambiguous=True))
    changed = replace(shown, judged=tuple(replace(item, parts=_without(item.parts)) for item in shown.judged))
    vectors = CalledFeature("planted", planted.told).vectors(shown.sentences)
    assert answers(shown, vectors, "linear", 20) == answers(changed, vectors, "linear", 20)


def _without(parts: Any) -> Any:
    return tuple(replace(part, tags=("O",) * len(part)) for part in parts)


def test_accuracy_is_that_of_scikit_learn() -> None:
    shown = lesson(planted.opinions())
    vectors = CalledFeature("planted", planted.noise).vectors(shown.sentences)
    sums = Cells(shown, Work()).cell(vectors, "linear", 30)
    gold = [item.label for item in shown.judged]
    for own, said in zip(sums, answers(shown, vectors, "linear", 30), strict=True):
        assert share(own.sum(0)) == pytest.approx(accuracy_score(gold, said))


def chunks(tags: list[str]) -> set[tuple[int, int, str]]:
    """The spans of tags as seqeval's default reading has them, written anew: an I of another kind begins one."""
    found: set[tuple[int, int, str]] = set()
    start = 0
    for place in range(1, len(tags) + 1):
        ended = place == len(tags) or tags[place][0] in "BO" or tags[place][2:] != tags[place - 1][2:]
        if ended:
            if tags[place - 1] != "O":
                found.add((start, place, tags[place - 1][2:]))
            start = place
    return found


def test_span_f1_is_that_of_seqeval() -> None:
    generator = np.random.default_rng(0)
    gold, said = (
        [generator.choice(["O", "B-A", "I-A", "B-B", "I-B"], 9).tolist() for _ in range(60)] for _ in range(2)
    )
    counts = count_names(gold, said)
    both = sum(len(chunks(one) & chunks(other)) for one, other in zip(gold, said, strict=True))
    all_of_them = sum(len(chunks(tags)) for tags in (*gold, *said))
    assert counts.value == pytest.approx(2 * both / all_of_them)
    try:
        seqeval = importlib.import_module("seqeval.metrics")
    except ImportError:
        pytest.skip("seqeval is not installed; its reading is written anew above")
    assert counts.value == pytest.approx(seqeval.f1_score(gold, said))


@pytest.mark.parametrize(("names", "task"), [("cnn", "token"), ("", "pair"), ("linear,linear", "sentence")])
def test_learners_that_are_not_there_are_refused(names: str, task: str) -> None:
    with pytest.raises(Refusal, match="--learners"):
        learners_named(names, task)


def test_what_cannot_be_learnt_is_refused() -> None:
    corpus = planted.opinions()
    same = replace(corpus, items=tuple(replace(item, label="good") for item in corpus))
    for given, choice, message in (
        (same, Choice("auto", "", 0, "", 0, 2, 0), "classes|labels"),
        (corpus, Choice("pair", "", 0, "", 0, 1, 0), "nothing for the task pair"),
        (corpus[:3], Choice("auto", "", 0, "", 0, 1, 0), "3 items"),
    ):
        with pytest.raises(Refusal, match=message):
            lesson_of(given, choice, purpose="test")
