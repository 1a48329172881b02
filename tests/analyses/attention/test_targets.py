"""Planted heads are measured by their targets: a head that attends one token back is previous, not next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planted
from bertology.analyses.attention.targets.analysis import targets, targets_site
from bertology.corpus.corpus import Corpus, Example
from bertology.corpus.sentence import sentence_from_text
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.sites import resolve_sites
from bertology.results.shapes import HeadGrid

TEXTS = ("a b c .", "d e , f g h", ("i j", "k l m n"), "o", "p q r s t u v !")


def measured(*heads: planted.HeadAttention) -> HeadGrid:
    recording = planted.make_recording(planted.make_corpus(*TEXTS), [list(heads)]).with_sites([targets_site])
    result = targets.function(recording, None, **targets.resolve_options({}))
    assert isinstance(result, HeadGrid)
    return result


def value(grid: HeadGrid, measure: str, head: int = 0) -> float:
    return float(grid.measures[measure].value[0, head])


def test_previous_and_next_are_not_swapped() -> None:
    grid = measured(planted.offset_head(-1), planted.offset_head(1))
    assert value(grid, "attention to previous token (no special tokens)", 0) == pytest.approx(1)
    assert value(grid, "attention to next token (no special tokens)", 0) == pytest.approx(0)
    assert value(grid, "attention to next token (no special tokens)", 1) == pytest.approx(1)
    assert value(grid, "attention to previous token (no special tokens)", 1) == pytest.approx(0)


def test_neighbour_shares_divide_by_all_tokens() -> None:
    grid = measured(planted.offset_head(-1))
    lengths = [len(recorded_input.tokens) for recorded_input in planted.recorded_inputs(planted.make_corpus(*TEXTS))]
    assert value(grid, "attention to previous token") == pytest.approx(np.mean([(n - 1) / n for n in lengths]))
    assert value(grid, "attention to itself") == pytest.approx(np.mean([1 / n for n in lengths]))


def test_special_tokens_are_measured_separately() -> None:
    grid = measured(planted.special_head(SpecialToken.CLS), planted.special_head(SpecialToken.SEP))
    assert value(grid, "attention to [CLS]", 0) == pytest.approx(1)
    assert value(grid, "attention to [SEP]", 0) == pytest.approx(0)
    for measure in ("attention to [SEP]", "attention from [SEP] to [SEP]", "attention from other tokens to [SEP]"):
        assert value(grid, measure, 1) == pytest.approx(1)


def test_a_head_that_only_separators_use() -> None:
    def only_from_separators(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        separator = recorded_input.tokens.special_kinds == SpecialToken.SEP
        return np.where(
            separator[:, None], planted.special_head(SpecialToken.SEP)(recorded_input), np.eye(len(separator))
        )

    grid = measured(only_from_separators)
    assert value(grid, "attention from [SEP] to [SEP]") == pytest.approx(1)
    assert value(grid, "attention from other tokens to [SEP]") == pytest.approx(0)


def test_the_uniform_baseline_is_what_a_uniform_head_measures() -> None:
    grid = measured(planted.uniform_head, planted.random_head(3))
    for name, estimates in grid.measures.items():
        expected = grid.baselines["uniform attention"][name].value[0, 0]
        assert estimates.value[0, 0] == pytest.approx(expected, abs=1e-6), name


def test_shares_equal_a_loop_over_pairs() -> None:
    head = planted.random_head(7)
    grid = measured(head)
    shares: list[list[float]] = []
    for recorded_input in planted.recorded_inputs(planted.make_corpus(*TEXTS)):
        attention, pieces, n = head(recorded_input), recorded_input.tokens, len(recorded_input.tokens)
        kinds = np.zeros((n, n, 7), bool)
        for i in range(n):
            for j in range(n):
                kinds[i, j] = (
                    pieces.special_kinds[j] == SpecialToken.CLS,
                    pieces.special_kinds[j] == SpecialToken.SEP,
                    pieces.tokens[j] in {".", ",", "!"},
                    i == j,
                    j == i - 1,
                    j == i + 1,
                    i != j and pieces.word_ids[i] == pieces.word_ids[j] >= 0,
                )
        by_kind = [float((attention * kinds[..., k]).sum() / n) for k in range(7)]
        shares.append([*by_kind, float((attention * ~kinds.any(-1)).sum() / n)])
    result = [value(grid, name) for name in list(grid.measures)[:8]]
    np.testing.assert_allclose(result, np.mean(shares, axis=0), atol=1e-6)


def test_a_sentence_without_a_neighbour_does_not_count() -> None:
    grid = measured(planted.offset_head(-1))
    assert grid.measures["attention to previous token (no special tokens)"].n[0, 0] == len(TEXTS) - 1
    assert grid.measures["attention to previous token"].n[0, 0] == len(TEXTS)


def test_attention_within_words_equals_a_loop() -> None:
    """Attention to the same word and to other tokens, with words of up to four tokens."""
    head = planted.random_head(8)
    recording = planted.make_recording(planted.make_corpus(*TEXTS), [[head]])
    recorded_inputs = tuple(
        replace(
            e,
            tokens=replace(
                e.tokens, word_ids=np.where(e.tokens.word_ids < 0, -1, e.tokens.word_ids // 4).astype(np.int32)
            ),
        )
        for e in recording.inputs
    )
    result = replace(recording, inputs=recorded_inputs).with_sites([targets_site])[targets_site]
    for recorded_input, values in zip(recorded_inputs, result, strict=True):
        attention, pieces, n = head(recorded_input), recorded_input.tokens, len(recorded_input.tokens)
        same = left = 0.0
        for i in range(n):
            for j in range(n):
                mates = i != j and pieces.word_ids[i] == pieces.word_ids[j] >= 0
                kind = pieces.special_kinds[j] != SpecialToken.NONE or pieces.tokens[j] in {".", ",", "!"}
                same += attention[i, j] * mates
                left += attention[i, j] * (not mates and not kind and abs(i - j) > 1)
        np.testing.assert_allclose(values[0, 0, [6, 7]], [same / n, left / n], atol=1e-6)


def test_punctuation_is_recognised_in_all_tokenisations() -> None:
    """WordPiece, byte-level and unigram tokenisers write a comma in three ways; a single # is punctuation."""
    tokens = ("[CLS]", "##,", "Ġ,", "▁,", "#", "##s", "Ġa", "▁", "[SEP]")
    recording = planted.make_recording(planted.make_corpus("a b c d e f g"), [[planted.uniform_head]])
    (recorded_input,) = recording.inputs
    named = replace(recording, inputs=(replace(recorded_input, tokens=replace(recorded_input.tokens, tokens=tokens)),))
    grid = targets.function(named.with_sites([targets_site]), None, **targets.resolve_options({}))
    assert isinstance(grid, HeadGrid)
    assert value(grid, "attention to punctuation") == pytest.approx(4 / 9)


def annotated(text: str, pos: str, relations: str) -> Example:
    made = sentence_from_text(text)
    return Example((replace(made, pos=tuple(pos.split()), relations=tuple(relations.split())),))


ANNOTATED = Corpus(
    (
        annotated("she never saw Paris", "PRON ADV VERB PROPN", "nsubj advmod root obj"),
        annotated("it is another day", "PRON AUX DET NOUN", "nsubj cop det root"),
        annotated("the dogs ran", "DT NNS VBD", "det nsubj root"),
    )
)


def by(name: str, *heads: planted.HeadAttention, corpus: Corpus = ANNOTATED, **options: object) -> HeadGrid:
    settled = targets.resolve_options({"target_type": name, **options})
    recording = planted.make_recording(corpus, [list(heads)]).with_sites(resolve_sites(targets.sites(settled)))
    result = targets.function(recording, None, **settled)
    assert isinstance(result, HeadGrid)
    return result


def attending_to_words(*words: str) -> planted.HeadAttention:
    """A head that attends to the given words, or to [CLS] if there are none."""

    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        there = np.array([token in words for token in recorded_input.tokens.tokens], float)
        there = there if there.any() else (recorded_input.tokens.special_kinds == SpecialToken.CLS).astype(float)
        return np.tile(there / there.sum(), (len(there), 1))

    return head


def test_shares_by_part_of_speech_sum_to_one() -> None:
    grid = by("pos", planted.random_head(2), attending_to_words("Paris", "day", "dogs"))
    total = sum(estimates.value[0] for estimates in grid.measures.values())
    np.testing.assert_allclose(total, 1, rtol=1e-6)
    assert value(grid, "attention to NOUN", 1) == pytest.approx((4 + 3) / (4 + 4 + 3))  # day and dogs, not Paris
    assert "attention to SYM" not in grid.measures  # does not occur


def test_penn_tags_are_mapped_to_universal_tags() -> None:
    grid = by("pos", attending_to_words("dogs"), corpus=ANNOTATED[2:])
    assert value(grid, "attention to NOUN") == pytest.approx(1)


def test_uniform_attention_by_part_of_speech_is_their_frequency() -> None:
    grid = by("pos", planted.uniform_head, average="macro")
    assert value(grid, "attention to PRON") == pytest.approx((1 / 4 + 1 / 4 + 0) / 3)
    assert grid.baselines["uniform attention"]["attention to PRON"].value[0, 0] == pytest.approx(1 / 6)


def test_subjects_are_found_by_role() -> None:
    grid = by("role", attending_to_words("she", "it", "dogs"), attending_to_words("Paris"))
    assert value(grid, "attention to subjects", 0) == pytest.approx(1)
    assert value(grid, "attention to objects", 1) == pytest.approx(
        1
    )  # the other sentences have no attention among non-special tokens


def test_features_use_the_most_attended_token_and_skip_sentences_without() -> None:
    grid = by("feature", attending_to_words("never"), planted.random_head(9))
    assert value(grid, "attention to negation") == pytest.approx(1)
    assert grid.measures["attention to negation"].n[0, 0] == 1  # "another" does not negate
    assert grid.measures["attention to objects"].n[0, 0] == 1
    assert grid.measures["attention to verbs"].n[0, 0] == 3  # auxiliaries count
    assert grid.measures["attention to pronouns"].n[0, 0] == 2
    head = planted.random_head(9)
    recording = planted.make_recording(ANNOTATED, [[head]])
    nouns = [4, 4, 2]  # Paris, day, dogs
    expected = [
        head(recorded_input)[:, noun].mean() for recorded_input, noun in zip(recording.inputs, nouns, strict=True)
    ]
    assert value(grid, "attention to nouns", 1) == pytest.approx(np.mean(expected), rel=1e-5)


def test_legacy_counts_sentences_without_the_feature_as_zero() -> None:
    paper = by("feature", planted.random_head(9))
    code = by("feature", planted.random_head(9), legacy=True)
    assert value(code, "attention to pronouns") == pytest.approx(value(paper, "attention to pronouns") * 2 / 3)
    assert value(code, "attention to negation") == pytest.approx(value(paper, "attention to negation"))


@pytest.mark.parametrize("name", ["pos", "role", "feature"])
def test_missing_annotations_are_refused(name: str) -> None:
    with pytest.raises(Refusal, match="annotation"):
        by(name, planted.uniform_head, corpus=planted.make_corpus("no annotation"))
