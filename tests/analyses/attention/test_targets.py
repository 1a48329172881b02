"""Planted heads are recognised: a head that looks one back is called previous, not next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planted
from bertology.analyses.attention.targets import TARGETS, targets
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import from_text
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.sites import resolve
from bertology.results.shapes import HeadGrid

TEXTS = ("a b c .", "d e , f g h", ("i j", "k l m n"), "o", "p q r s t u v !")


def measured(*heads: planted.HeadMap) -> HeadGrid:
    recording = planted.recording_of(planted.corpus_of(*TEXTS), [list(heads)]).with_derived([TARGETS])
    found = targets.function(recording, None, **targets.settled({}))
    assert isinstance(found, HeadGrid)
    return found


def value(grid: HeadGrid, measure: str, head: int = 0) -> float:
    return float(grid.measures[measure].value[0, head])


def test_previous_and_next_are_not_swapped() -> None:
    grid = measured(planted.looking_at(-1), planted.looking_at(1))
    assert value(grid, "to previous, ordinary", 0) == pytest.approx(1)
    assert value(grid, "to next, ordinary", 0) == pytest.approx(0)
    assert value(grid, "to next, ordinary", 1) == pytest.approx(1)
    assert value(grid, "to previous, ordinary", 1) == pytest.approx(0)


def test_clarks_neighbour_shares_divide_by_all_pieces() -> None:
    grid = measured(planted.looking_at(-1))
    lengths = [len(entry.pieces) for entry in planted.entries_of(planted.corpus_of(*TEXTS))]
    assert value(grid, "to previous") == pytest.approx(np.mean([(n - 1) / n for n in lengths]))
    assert value(grid, "to itself") == pytest.approx(np.mean([1 / n for n in lengths]))


def test_special_tokens_are_told_apart() -> None:
    grid = measured(planted.at_kind(Special.CLS), planted.at_kind(Special.SEP))
    assert value(grid, "to [CLS]", 0) == pytest.approx(1)
    assert value(grid, "to [SEP]", 0) == pytest.approx(0)
    for measure in ("to [SEP]", "[SEP] to [SEP]", "other to [SEP]"):
        assert value(grid, measure, 1) == pytest.approx(1)


def test_a_head_that_only_separators_use() -> None:
    def only_from_separators(entry: planted.Entry) -> planted.Floats:
        separator = entry.pieces.special == Special.SEP
        return np.where(separator[:, None], planted.at_kind(Special.SEP)(entry), np.eye(len(separator)))

    grid = measured(only_from_separators)
    assert value(grid, "[SEP] to [SEP]") == pytest.approx(1)
    assert value(grid, "other to [SEP]") == pytest.approx(0)


def test_the_uniform_baseline_is_what_a_uniform_head_measures() -> None:
    grid = measured(planted.uniform, planted.noise(3))
    for name, estimates in grid.measures.items():
        expected = grid.baselines["uniform attention"][name].value[0, 0]
        assert estimates.value[0, 0] == pytest.approx(expected, abs=1e-6), name


def test_every_share_by_hand() -> None:
    head = planted.noise(7)
    grid = measured(head)
    shares: list[list[float]] = []
    for entry in planted.entries_of(planted.corpus_of(*TEXTS)):
        attention, pieces, n = head(entry), entry.pieces, len(entry.pieces)
        kinds = np.zeros((n, n, 7), bool)
        for i in range(n):
            for j in range(n):
                kinds[i, j] = (
                    pieces.special[j] == Special.CLS,
                    pieces.special[j] == Special.SEP,
                    pieces.tokens[j] in {".", ",", "!"},
                    i == j,
                    j == i - 1,
                    j == i + 1,
                    i != j and pieces.word[i] == pieces.word[j] >= 0,
                )
        by_kind = [float((attention * kinds[..., k]).sum() / n) for k in range(7)]
        shares.append([*by_kind, float((attention * ~kinds.any(-1)).sum() / n)])
    found = [value(grid, name) for name in list(grid.measures)[:8]]
    np.testing.assert_allclose(found, np.mean(shares, axis=0), atol=1e-6)


def test_a_sentence_without_a_neighbour_does_not_count() -> None:
    grid = measured(planted.looking_at(-1))
    assert grid.measures["to previous, ordinary"].n[0, 0] == len(TEXTS) - 1
    assert grid.measures["to previous"].n[0, 0] == len(TEXTS)


def test_pieces_of_one_word_by_hand() -> None:
    """The shares of the mates of a word, and what is left over, where words have up to four pieces."""
    head = planted.noise(8)
    recording = planted.recording_of(planted.corpus_of(*TEXTS), [[head]])
    entries = tuple(
        replace(e, pieces=replace(e.pieces, word=np.where(e.pieces.word < 0, -1, e.pieces.word // 4).astype(np.int32)))
        for e in recording.entries
    )
    found = replace(recording, entries=entries).with_derived([TARGETS])[TARGETS]
    for entry, values in zip(entries, found, strict=True):
        attention, pieces, n = head(entry), entry.pieces, len(entry.pieces)
        same = left = 0.0
        for i in range(n):
            for j in range(n):
                mates = i != j and pieces.word[i] == pieces.word[j] >= 0
                kind = pieces.special[j] != Special.NONE or pieces.tokens[j] in {".", ",", "!"}
                same += attention[i, j] * mates
                left += attention[i, j] * (not mates and not kind and abs(i - j) > 1)
        np.testing.assert_allclose(values[0, 0, [6, 7]], [same / n, left / n], atol=1e-6)


def test_punctuation_is_known_by_whatever_marks_its_piece() -> None:
    """WordPiece, byte-level and unigram tokenisers write the same comma in three ways; a lone sharp is a mark too."""
    tokens = ("[CLS]", "##,", "Ġ,", "▁,", "#", "##s", "Ġa", "▁", "[SEP]")
    recording = planted.recording_of(planted.corpus_of("a b c d e f g"), [[planted.uniform]])
    (entry,) = recording.entries
    named = replace(recording, entries=(replace(entry, pieces=replace(entry.pieces, tokens=tokens)),))
    grid = targets.function(named.with_derived([TARGETS]), None, **targets.settled({}))
    assert isinstance(grid, HeadGrid)
    assert value(grid, "to punctuation") == pytest.approx(4 / 9)


def annotated(text: str, pos: str, relations: str) -> Item:
    made = from_text(text)
    return Item((replace(made, pos=tuple(pos.split()), relations=tuple(relations.split())),))


ANNOTATED = Corpus(
    (
        annotated("she never saw Paris", "PRON ADV VERB PROPN", "nsubj advmod root obj"),
        annotated("it is another day", "PRON AUX DET NOUN", "nsubj cop det root"),
        annotated("the dogs ran", "DT NNS VBD", "det nsubj root"),
    )
)


def by(name: str, *heads: planted.HeadMap, corpus: Corpus = ANNOTATED, **options: object) -> HeadGrid:
    settled = targets.settled({"by": name, **options})
    recording = planted.recording_of(corpus, [list(heads)]).with_derived(resolve(targets.sites(settled)))
    found = targets.function(recording, None, **settled)
    assert isinstance(found, HeadGrid)
    return found


def looking_at_words(*words: str) -> planted.HeadMap:
    """A head that looks at the words named, where there are any, and at [CLS] where not."""

    def head(entry: planted.Entry) -> planted.Floats:
        there = np.array([token in words for token in entry.pieces.tokens], float)
        there = there if there.any() else (entry.pieces.special == Special.CLS).astype(float)
        return np.tile(there / there.sum(), (len(there), 1))

    return head


def test_shares_by_part_of_speech_sum_to_one() -> None:
    grid = by("pos", planted.noise(2), looking_at_words("Paris", "day", "dogs"))
    total = sum(estimates.value[0] for estimates in grid.measures.values())
    np.testing.assert_allclose(total, 1, rtol=1e-6)
    assert value(grid, "to NOUN", 1) == pytest.approx((4 + 3) / (4 + 4 + 3))  # day and dogs, not Paris
    assert "to SYM" not in grid.measures  # none there


def test_penn_tags_are_universal_ones_too() -> None:
    grid = by("pos", looking_at_words("dogs"), corpus=ANNOTATED[2:])
    assert value(grid, "to NOUN") == pytest.approx(1)


def test_uniform_attention_by_part_of_speech_is_their_frequency() -> None:
    grid = by("pos", planted.uniform, average="sentences")
    assert value(grid, "to PRON") == pytest.approx((1 / 4 + 1 / 4 + 0) / 3)
    assert grid.baselines["uniform attention"]["to PRON"].value[0, 0] == pytest.approx(1 / 6)


def test_subjects_are_found_by_role() -> None:
    grid = by("role", looking_at_words("she", "it", "dogs"), looking_at_words("Paris"))
    assert value(grid, "to subject", 0) == pytest.approx(1)
    assert value(grid, "to object", 1) == pytest.approx(1)  # the other sentences have nothing between ordinary pieces


def test_features_take_the_strongest_and_disregard_sentences_without() -> None:
    grid = by("features", looking_at_words("never"), planted.noise(9))
    assert value(grid, "to negation") == pytest.approx(1)
    assert grid.measures["to negation"].n[0, 0] == 1  # "another" does not negate
    assert grid.measures["to object"].n[0, 0] == 1
    assert grid.measures["to verb"].n[0, 0] == 3  # auxiliaries count
    assert grid.measures["to pronoun"].n[0, 0] == 2
    head = planted.noise(9)
    recording = planted.recording_of(ANNOTATED, [[head]])
    nouns = [4, 4, 2]  # Paris, day, dogs
    expected = [head(entry)[:, noun].mean() for entry, noun in zip(recording.entries, nouns, strict=True)]
    assert value(grid, "to noun", 1) == pytest.approx(np.mean(expected), rel=1e-5)


def test_legacy_counts_sentences_without_as_nought() -> None:
    paper = by("features", planted.noise(9))
    code = by("features", planted.noise(9), legacy=True)
    assert value(code, "to pronoun") == pytest.approx(value(paper, "to pronoun") * 2 / 3)
    assert value(code, "to negation") == pytest.approx(value(paper, "to negation"))


@pytest.mark.parametrize("name", ["pos", "role", "features"])
def test_missing_annotation_is_refused(name: str) -> None:
    with pytest.raises(Refusal, match="annotation"):
        by(name, planted.uniform, corpus=planted.corpus_of("no annotation"))
