"""Each of the six patterns is found in the head it was planted in and in no other; noise gets no label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.attention.patterns import patterns
from bertology.corpus.corpus import Corpus
from bertology.encoder.pieces import Special
from bertology.maths.multiple_tests import paired_above
from bertology.measures.attention.pattern_targets import LABELS, PATTERNS, pattern_site, target_masks
from bertology.measures.attention.word_relations import Relations
from bertology.recording.opening import open_recording
from bertology.results.shapes import Examples, HeadGrid, Table
from shared_data import shared

TEXTS: tuple[str | tuple[str, str], ...] = (
    ("the cat saw the dog", "a dog saw the cat"),
    ("where is my red hat", "the hat is on my head"),
    ("one fish and one bird sing", "a bird and a fish dance"),
    ("we met a man and a boy", "the boy met the old man"),
    ("she reads what she likes", "he likes what he reads"),
    ("rain and more rain fell here", "here more snow and rain fell"),
    ("old men like old songs", "songs that old men like"),
)
RELATIONS = Relations()
Mask = Callable[[planted.Entry], Any]


def split_words(corpus: Corpus) -> tuple[planted.Entry, ...]:
    """Planted entries in which every word of five letters or more is cut into two pieces."""
    return tuple(_split(entry) for entry in planted.entries_of(corpus))


def _split(entry: planted.Entry) -> planted.Entry:
    pieces = entry.pieces
    long = [len(token) >= 5 for token in pieces.tokens]
    times = np.where(np.array(long) & (pieces.special == Special.NONE), 2, 1)
    arrays = {name: np.repeat(getattr(pieces, name), times) for name in ("ids", "types", "part", "word", "special")}
    tokens = tuple(np.repeat(np.array(pieces.tokens, object), times).tolist())
    return replace(entry, pieces=replace(pieces, tokens=tokens, **arrays))


def on_targets(pattern: str) -> planted.HeadMap:
    """A head that looks only at the targets of a pattern, and at itself where there is none."""

    def head(entry: planted.Entry) -> planted.Floats:
        mask = target_masks(entry, RELATIONS)[pattern].astype(float)
        alone = mask.sum(1) == 0
        mask[alone] = np.eye(len(mask))[alone]
        return mask / mask.sum(1, keepdims=True)

    return head


def recorded(
    heads: list[planted.HeadMap], relations: Relations = RELATIONS, itself: bool = False, corpus: Corpus | None = None
) -> Any:
    corpus = corpus or planted.corpus_of(*TEXTS)
    whole = planted.recording_of(corpus, [heads])
    entries = split_words(corpus)
    maps = [np.stack([np.stack([head(entry) for head in heads])]).astype(np.float32) for entry in entries]
    return replace(whole, entries=entries, sites={"attention": maps}).with_derived([pattern_site(relations, itself)])


def shown(heads: list[planted.HeadMap], corpus: Corpus | None = None, **options: Any) -> Any:
    settled = patterns.settled(options)
    relations = Relations(settled["vectors"], settled["closeness"], settled["collocates"])
    return patterns.function(recorded(heads, relations, settled["itself"], corpus), None, **settled)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_planted_pattern_is_found(pattern: str) -> None:
    grid = shown([on_targets(pattern), planted.uniform])
    assert isinstance(grid, HeadGrid)
    assert list(grid.measures) == list(PATTERNS)
    assert grid.measures[pattern].value[0, 0] == pytest.approx(1)
    for other in set(PATTERNS) - {pattern}:
        assert grid.measures[other].value[0, 0] < 0.5
    for name, estimates in grid.measures.items():
        even = grid.baselines["uniform attention"][name].value[0, 1]
        assert estimates.value[0, 1] == pytest.approx(even, abs=1e-6)


def test_next_and_previous_are_not_swapped() -> None:
    entry = planted.entries_of(planted.corpus_of("a b c"))[0]
    masks = target_masks(entry, RELATIONS)
    assert masks["next word"][1, 2] and not masks["previous word"][1, 2]
    assert masks["previous word"][3, 2] and not masks["next word"][3, 2]
    assert not masks["next word"][3].any()  # what follows the last word is no word


def test_all_masks_by_hand() -> None:
    entry = _split(planted.entries_of(planted.corpus_of(("The green tree .", "one tree .")))[0])
    # [CLS] The green green tree . [SEP] one tree . [SEP]
    masks = target_masks(entry, RELATIONS)
    pairs = {name: {(int(i), int(j)) for i, j in np.argwhere(mask)} for name, mask in masks.items()}
    assert pairs["next word"] == {(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (7, 8), (8, 9)}
    assert pairs["previous word"] == {(j, i) for i, j in pairs["next word"]}
    assert pairs["related, same sentence"] == set()
    assert pairs["related, other sentence"] == {(4, 8), (8, 4)}  # full stops are related to none
    assert pairs["predictive words"] == {(2, 3), (3, 2)}
    assert pairs["delimiters"] == {(i, j) for i in (1, 2, 3, 4, 5, 7, 8, 9) for j in (0, 6, 10)}


def test_lemmas_make_words_related() -> None:
    corpus = planted.corpus_of("cats saw a cat")
    plain = target_masks(planted.entries_of(corpus)[0], RELATIONS)["related, same sentence"]
    assert not plain.any()
    item = corpus.items[0]
    annotated = replace(
        corpus, items=(replace(item, parts=(replace(item.parts[0], lemmas=("Cat", "see", "a", "cat")),)),)
    )
    found = target_masks(planted.entries_of(annotated)[0], RELATIONS)["related, same sentence"]
    assert {(int(i), int(j)) for i, j in np.argwhere(found)} == {(1, 4), (4, 1)}


def test_words_are_the_same_however_they_are_capitalised() -> None:
    found = target_masks(planted.entries_of(planted.corpus_of("The cat saw the dog"))[0], RELATIONS)
    assert {(int(i), int(j)) for i, j in np.argwhere(found["related, same sentence"])} == {(1, 4), (4, 1)}


def test_near_vectors_make_words_related(tmp_path: Path) -> None:
    table = tmp_path / "vectors.txt"
    table.write_text("cat 1 0\ndog 0.9 0.1\nhat 0 1\n! 1 0\n", "utf-8")
    entry = planted.entries_of(planted.corpus_of("cat dog hat !"))[0]
    near = Relations(f"glove:{table}", 0.8)
    found = target_masks(entry, near)["related, same sentence"]
    assert {(int(i), int(j)) for i, j in np.argwhere(found)} == {(1, 2), (2, 1)}
    assert pattern_site(near).identity != pattern_site(RELATIONS).identity


def test_expressions_and_collocations_predict_each_other(tmp_path: Path) -> None:
    corpus = planted.corpus_of("we saw New York")
    part = replace(corpus.items[0].parts[0], heads=(1, -1, 1, 2), relations=("nsubj", "root", "obj", "flat:name"))
    annotated = replace(corpus, items=(replace(corpus.items[0], parts=(part,)),))
    found = target_masks(planted.entries_of(annotated)[0], RELATIONS)["predictive words"]
    assert {(int(i), int(j)) for i, j in np.argwhere(found)} == {(3, 4), (4, 3)}
    counted = tmp_path / "counted.txt"
    counted.write_text("in new york\nnear new york\nof new york\na new york\nto new york\nthe old town\n", "utf-8")
    known = Relations(collocates=str(counted))
    found = target_masks(planted.entries_of(corpus)[0], known)["predictive words"]
    assert {(int(i), int(j)) for i, j in np.argwhere(found)} == {(3, 4), (4, 3)}
    apart = planted.entries_of(planted.corpus_of(("it is new", "york is old")))[0]
    assert not known.predictive(apart).any()  # neighbours in two sentences are none


def test_itself_counts_only_when_asked_for() -> None:
    """Vig's picture counts the word itself: every word then has a target."""
    looking = [planted.looking_at(0)]
    assert shown(looking).measures["related, same sentence"].value[0, 0] == pytest.approx(0)
    grid = shown(looking, itself=True)
    assert grid.measures["related, same sentence"].n[0, 0] == len(TEXTS)
    assert grid.measures["related, same sentence"].value[0, 0] > 0.9
    offsets = grid.baselines["same offsets"]["related, same sentence"].value[0, 0]
    assert offsets == pytest.approx(grid.measures["related, same sentence"].value[0, 0])


def test_a_head_that_minds_distances_only_is_no_better_than_the_same_offsets() -> None:
    grid = shown([planted.looking_at(-1), planted.looking_at(3), on_targets("related, same sentence")])
    scores = grid.measures["related, same sentence"].value[0]
    offsets = grid.baselines["same offsets"]["related, same sentence"].value[0]
    assert scores[2] - offsets[2] > 0.5
    assert offsets[1] >= scores[1] - 0.35


def test_every_number_by_hand() -> None:
    head = planted.noise(5)
    recording = recorded([head])
    site = pattern_site()
    for entry, found in zip(recording.entries, recording[site], strict=True):
        attention = head(entry)
        n = len(attention)
        ordinary = entry.pieces.special == Special.NONE
        part = entry.pieces.part
        for name, mask in target_masks(entry, RELATIONS).items():
            rows = [i for i in range(n) if mask[i].any()]
            if not rows:
                assert np.isnan(found[0, 0, LABELS.index(name)])
                continue
            score = np.mean([attention[i, mask[i]].sum() for i in rows])
            assert found[0, 0, LABELS.index(name)] == pytest.approx(score, abs=1e-6)
            if f"{name}: ordinary share" in LABELS:
                share = np.mean([attention[i, ordinary].sum() for i in rows])
                assert found[0, 0, LABELS.index(f"{name}: ordinary share")] == pytest.approx(share, abs=1e-6)
            if f"{name}: same offsets" in LABELS:
                across = name == "related, other sentence"
                total = 0.0
                for i, j in np.argwhere(mask):
                    alike = [
                        attention[a, b]
                        for a in range(n)
                        for b in range(n)
                        if b - a == j - i
                        and part[a] >= 0 <= part[b]
                        and (part[a] != part[b]) == across
                        and not mask[a, b]
                    ]
                    total += np.mean(alike) if alike else attention[i, j]
                assert found[0, 0, LABELS.index(f"{name}: same offsets")] == pytest.approx(total / len(rows), abs=1e-6)


def test_without_special_tokens_scores_are_shares_of_the_rest() -> None:
    half = on_targets("next word")
    heads: list[planted.HeadMap] = [lambda entry: 0.4 * half(entry) + 0.6 * planted.at_kind(Special.CLS)(entry)]
    assert shown(heads).measures["next word"].value[0, 0] == pytest.approx(0.4)
    dropped = shown(heads, special="drop")
    assert dropped.measures["next word"].value[0, 0] == pytest.approx(1)
    assert "delimiters" not in dropped.measures


def test_labels_go_to_the_planted_heads_and_to_no_other() -> None:
    heads = [on_targets(pattern) for pattern in PATTERNS] + [planted.uniform, *(planted.noise(n) for n in range(8))]
    table = shown(heads, show="labels")
    assert isinstance(table, Table)
    assert table.rows_named == tuple(f"1-{place + 1} {pattern}" for place, pattern in enumerate(PATTERNS))
    np.testing.assert_allclose(table.measures["score"].value, 1, atol=1e-6)
    assert (table.measures["p"].value < 0.05).all()
    assert all("best (" in note and "counter-example (" in note for note in table.notes.values())


def test_p_is_that_of_the_hardest_baseline_and_counts_all_that_was_tried() -> None:
    """A head beside which the random one is far better than uniform attention; noise only adds to what was tried."""

    def partly(share: float, more: float) -> planted.HeadMap:
        def head(entry: planted.Entry) -> planted.Floats:
            own = share + more * (int(entry.pieces.ids.sum()) % 5)
            return own * on_targets("next word")(entry) + (1 - own) * planted.noise(7)(entry)

        return head

    site, settled = pattern_site(), patterns.settled({"show": "labels"})
    for others in (1, 4):
        noise = [planted.noise(number) for number in range(others)]
        own, fresh = recorded([partly(0.8, 0.02), *noise]), recorded([partly(0.3, 0.08), *noise])
        table = patterns.function(own, fresh, **settled)
        assert isinstance(table, Table) and table.rows_named == ("1-1 next word",)
        values = own.stacked(site)[:, 0, 0, 0].astype(float), fresh.stacked(site)[:, 0, 0, 0].astype(float)
        p = float(paired_above(values[0] - values[1]))
        assert p > float(paired_above(values[0] - 1 / np.array([len(e.pieces) for e in own.entries])))
        tried = (1 + others) * len(PATTERNS)
        assert table.measures["p"].value[0] == pytest.approx(tried * p, rel=1e-4)


def test_a_sure_difference_that_is_next_to_nothing_makes_no_label() -> None:
    """A head of position that gives a thousandth more to predictive words is still a head of position."""
    ahead, predictive = planted.looking_at(1), on_targets("predictive words")

    def positional(entry: planted.Entry) -> planted.Floats:
        share = 0.7 + 0.04 * (int(entry.pieces.ids.sum()) % 7)  # sentences differ by more than that
        return share * (0.999 * ahead(entry) + 0.001 * predictive(entry)) + (1 - share) * planted.uniform(entry)

    grid = shown([positional, on_targets("predictive words")])
    gain = grid.measures["predictive words"].value - grid.baselines["same offsets"]["predictive words"].value
    assert 0 < gain[0, 0] < 0.01 < gain[0, 1]
    table = shown([positional, on_targets("predictive words")], show="labels")
    assert "1-1 predictive words" not in table.rows_named
    assert "1-2 predictive words" in table.rows_named


def test_examples_are_the_best_and_the_worst_sentence() -> None:
    def sometimes(entry: planted.Entry) -> planted.Floats:
        share = 0.9 if "cat" in entry.input.words else 0.5 if "hat" in entry.input.words else 0.7
        return share * on_targets("next word")(entry) + (1 - share) * planted.uniform(entry)

    found = shown([sometimes], show="examples")
    assert isinstance(found, Examples)
    best, worst = found.examples
    assert best.caption == "1-1 next word: best" and "cat" in best.words
    assert worst.caption == "1-1 next word: counter-example" and "hat" in worst.words
    assert best.score is not None and worst.score is not None and best.score > worst.score
    assert best.marked["sources"] == (0, 1, 2, 3, 5, 6, 7, 8)


def test_an_example_has_some_words_that_show_it() -> None:
    """In a sentence of two words one piece is all there is to go by: it is no example where there are better ones."""

    def perfect_when_short(entry: planted.Entry) -> planted.Floats:
        share = 1.0 if len(entry.input.words) == 2 else 0.8
        return share * on_targets("next word")(entry) + (1 - share) * planted.uniform(entry)

    found = shown([perfect_when_short], planted.corpus_of(*TEXTS, "hello there"), show="examples")
    assert isinstance(found, Examples)
    assert all(len(example.words) > 2 for example in found.examples)
    only_short = planted.corpus_of("hello there", "good night", "well done", "come in", "so long")
    found = shown([perfect_when_short], only_short, show="examples")
    assert isinstance(found, Examples)
    assert [len(example.words) for example in found.examples] == [2, 2]


def test_noise_gets_no_label() -> None:
    noise = [planted.noise(number) for number in range(12)]
    table = shown(noise, show="labels", least=0.01)
    assert table.rows_named == ()
    assert shown(noise, show="examples").examples == ()


def test_the_heads_that_vig_and_clark_name_show_their_pattern_in_bert_base() -> None:
    """On one pair of sentences: 3-1 looks at the next word, 8-4 at delimiters, 5-4, coreference, at the same word."""
    site = pattern_site()
    recording = open_recording(shared("data/bert-base-attention/pretrained-pair.npz")).with_derived([site])
    (scores,) = recording[site]
    by_name = {name: scores[..., place] for place, name in enumerate(LABELS)}
    assert by_name["next word"][2, 0] == pytest.approx(by_name["next word"].max(), abs=1e-2)
    assert by_name["delimiters"][7, 3] > 0.8
    best = np.unravel_index(int(by_name["related, other sentence"].argmax()), (12, 12))
    assert best == (4, 3)


def test_single_sentences_have_no_other_sentence() -> None:
    grid = shown([planted.uniform], corpus=planted.corpus_of("a cat and a dog", "one two one"))
    assert "related, other sentence" not in grid.measures
