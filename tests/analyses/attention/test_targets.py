"""Planted heads are measured by their targets: a head that attends one token back is previous, not next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planted
from bertology.analyses.attention.targets.analysis import TOKEN_SITES, targets, targets_site
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import sentence_from_text
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.manifest import open_recording
from bertology.recording.sites import resolve_sites
from bertology.results.shapes import HeadGrid
from shared_data import shared

TEXTS = ("a b c .", "d e , f g h", ("i j", "k l m n"), "o", "p q r s t u v !")


def measure(*heads: planted.HeadAttention) -> HeadGrid:
    recording = planted.make_recording(planted.make_corpus(*TEXTS), [list(heads)]).with_sites([targets_site])
    result = targets(recording, None)
    assert isinstance(result, HeadGrid)
    return result


def value(grid: HeadGrid, measure: str, head: int = 0) -> float:
    return float(grid.measures[measure].value[0, head])


def test_previous_and_next_are_not_swapped() -> None:
    grid = measure(planted.offset_head(-1), planted.offset_head(1))
    assert value(grid, "attention to previous token (no special tokens)", 0) == pytest.approx(1)
    assert value(grid, "attention to next token (no special tokens)", 0) == pytest.approx(0)
    assert value(grid, "attention to next token (no special tokens)", 1) == pytest.approx(1)
    assert value(grid, "attention to previous token (no special tokens)", 1) == pytest.approx(0)


def test_neighbour_shares_divide_by_all_tokens() -> None:
    grid = measure(planted.offset_head(-1))
    lengths = [len(recorded_input.tokens) for recorded_input in planted.recorded_inputs(planted.make_corpus(*TEXTS))]
    assert value(grid, "attention to previous token") == pytest.approx(np.mean([(n - 1) / n for n in lengths]))
    assert value(grid, "attention to itself") == pytest.approx(np.mean([1 / n for n in lengths]))


def test_special_tokens_are_measured_separately() -> None:
    grid = measure(planted.special_head(SpecialToken.CLS), planted.special_head(SpecialToken.SEP))
    assert value(grid, "attention to [CLS]", 0) == pytest.approx(1)
    assert value(grid, "attention to [SEP]", 0) == pytest.approx(0)
    for name in ("attention to [SEP]", "attention from [SEP] to [SEP]", "attention from other tokens to [SEP]"):
        assert value(grid, name, 1) == pytest.approx(1)


def test_attention_from_separators_and_from_other_tokens_is_measured_separately() -> None:
    def only_from_separators(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        separator = recorded_input.tokens.special_kinds == SpecialToken.SEP
        return np.where(
            separator[:, None], planted.special_head(SpecialToken.SEP)(recorded_input), np.eye(len(separator))
        )

    grid = measure(only_from_separators)
    assert value(grid, "attention from [SEP] to [SEP]") == pytest.approx(1)
    assert value(grid, "attention from other tokens to [SEP]") == pytest.approx(0)


def test_the_uniform_baseline_is_what_a_uniform_head_measures() -> None:
    grid = measure(planted.uniform_head, planted.random_head(3))
    for name, estimates in grid.measures.items():
        expected = grid.baselines["uniform attention"][name].value[0, 0]
        assert estimates.value[0, 0] == pytest.approx(expected, abs=1e-6), name


def test_shares_equal_a_loop_over_pairs() -> None:
    head = planted.random_head(7)
    grid = measure(head)
    shares: list[list[float]] = []
    for recorded_input in planted.recorded_inputs(planted.make_corpus(*TEXTS)):
        attention, tokens, n = head(recorded_input), recorded_input.tokens, len(recorded_input.tokens)
        kinds = np.zeros((n, n, 7), bool)
        for i in range(n):
            for j in range(n):
                kinds[i, j] = (
                    tokens.special_kinds[j] == SpecialToken.CLS,
                    tokens.special_kinds[j] == SpecialToken.SEP,
                    tokens.tokens[j] in {".", ",", "!"},
                    i == j,
                    j == i - 1,
                    j == i + 1,
                    i != j and tokens.word_ids[i] == tokens.word_ids[j] >= 0,
                )
        to_kinds = [float((attention * kinds[..., k]).sum() / n) for k in range(7)]
        shares.append([*to_kinds, float((attention * ~kinds.any(-1)).sum() / n)])
    result = [value(grid, name) for name in list(grid.measures)[:8]]
    np.testing.assert_allclose(result, np.mean(shares, axis=0), atol=1e-6)


def test_a_sentence_without_a_neighbour_does_not_count() -> None:
    grid = measure(planted.offset_head(-1))
    assert grid.measures["attention to previous token (no special tokens)"].n[0, 0] == len(TEXTS) - 1
    assert grid.measures["attention to previous token"].n[0, 0] == len(TEXTS)


def test_attention_within_words_equals_a_loop() -> None:
    """Attention to the same word and to other tokens, with words of up to four tokens."""
    head = planted.random_head(8)
    recording = planted.make_recording(planted.make_corpus(*TEXTS), [[head]])
    recorded_inputs = tuple(planted.merge_words(recorded_input, 4) for recorded_input in recording.inputs)
    result = replace(recording, inputs=recorded_inputs).with_sites([targets_site])[targets_site]
    for recorded_input, values in zip(recorded_inputs, result, strict=True):
        attention, tokens, n = head(recorded_input), recorded_input.tokens, len(recorded_input.tokens)
        to_same_word = to_other = 0.0
        for i in range(n):
            for j in range(n):
                same_word = i != j and tokens.word_ids[i] == tokens.word_ids[j] >= 0
                has_own_measure = tokens.special_kinds[j] != SpecialToken.NONE or tokens.tokens[j] in {".", ",", "!"}
                to_same_word += attention[i, j] * same_word
                to_other += attention[i, j] * (not same_word and not has_own_measure and abs(i - j) > 1)
        np.testing.assert_allclose(values[0, 0, [6, 7]], [to_same_word / n, to_other / n], atol=1e-6)


def test_punctuation_is_recognised_in_all_tokenisations() -> None:
    """WordPiece, byte-level and unigram tokenisers write a comma in three ways; a single # is punctuation."""
    tokens = ("[CLS]", "##,", "Ġ,", "▁,", "#", "##s", "Ġa", "▁", "[SEP]")
    recording = planted.make_recording(planted.make_corpus("a b c d e f g"), [[planted.uniform_head]])
    (recorded_input,) = recording.inputs
    renamed = replace(
        recording, inputs=(replace(recorded_input, tokens=replace(recorded_input.tokens, tokens=tokens)),)
    )
    grid = targets(renamed.with_sites([targets_site]), None)
    assert isinstance(grid, HeadGrid)
    assert value(grid, "attention to punctuation") == pytest.approx(4 / 9)


def annotated(text: str, pos: str, relations: str) -> Example:
    sentence = sentence_from_text(text)
    return Example((replace(sentence, pos=tuple(pos.split()), relations=tuple(relations.split())),))


ANNOTATED = Corpus(
    (
        annotated("she never saw Paris", "PRON ADV VERB PROPN", "nsubj advmod root obj"),
        annotated("it is another day", "PRON AUX DET NOUN", "nsubj cop det root"),
        annotated("the dogs ran", "DT NNS VBD", "det nsubj root"),
    )
)


def measure_by(
    target_type: str, *heads: planted.HeadAttention, corpus: Corpus = ANNOTATED, **options: object
) -> HeadGrid:
    sites = resolve_sites(targets.sites(targets.resolve_options({"target_type": target_type, **options})))
    recording = planted.make_recording(corpus, [list(heads)]).with_sites(sites)
    result = targets(recording, None, target_type=target_type, **options)
    assert isinstance(result, HeadGrid)
    return result


def attending_to_words(*words: str) -> planted.HeadAttention:
    """A head that attends to these words, or to [CLS] if there are none."""

    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        is_target = np.array([token in words for token in recorded_input.tokens.tokens], float)
        is_target = (
            is_target if is_target.any() else (recorded_input.tokens.special_kinds == SpecialToken.CLS).astype(float)
        )
        return np.tile(is_target / is_target.sum(), (len(is_target), 1))

    return head


def test_shares_by_part_of_speech_sum_to_one() -> None:
    grid = measure_by("pos", planted.random_head(2), attending_to_words("Paris", "day", "dogs"))
    total = sum(estimates.value[0] for estimates in grid.measures.values())
    np.testing.assert_allclose(total, 1, rtol=1e-6)
    assert value(grid, "attention to NOUN", 1) == pytest.approx((4 + 3) / (4 + 4 + 3))  # day and dogs, not Paris
    assert "attention to SYM" not in grid.measures  # does not occur


def test_penn_tags_are_mapped_to_universal_tags() -> None:
    grid = measure_by("pos", attending_to_words("dogs"), corpus=ANNOTATED[2:])
    assert value(grid, "attention to NOUN") == pytest.approx(1)


def test_uniform_attention_by_part_of_speech_is_their_frequency() -> None:
    grid = measure_by("pos", planted.uniform_head, average="macro")
    assert value(grid, "attention to PRON") == pytest.approx((1 / 4 + 1 / 4 + 0) / 3)
    assert grid.baselines["uniform attention"]["attention to PRON"].value[0, 0] == pytest.approx(1 / 6)


def test_attention_to_subjects_and_objects() -> None:
    grid = measure_by("role", attending_to_words("she", "it", "dogs"), attending_to_words("Paris"))
    assert value(grid, "attention to subjects", 0) == pytest.approx(1)
    # The other sentences have no attention among non-special tokens.
    assert value(grid, "attention to objects", 1) == pytest.approx(1)


def test_features_use_the_most_attended_token_and_skip_sentences_without_the_feature() -> None:
    grid = measure_by("feature", attending_to_words("never"), planted.random_head(9))
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
    paper = measure_by("feature", planted.random_head(9))
    code = measure_by("feature", planted.random_head(9), legacy=True)
    assert value(code, "attention to pronouns") == pytest.approx(value(paper, "attention to pronouns") * 2 / 3)
    assert value(code, "attention to negation") == pytest.approx(value(paper, "attention to negation"))


@pytest.mark.parametrize("target_type", ["pos", "role", "feature"])
def test_missing_annotations_are_refused(target_type: str) -> None:
    with pytest.raises(Refusal, match="annotation"):
        measure_by(target_type, planted.uniform_head, corpus=planted.make_corpus("no annotation"))


def test_punctuation_can_be_full_stops_and_commas_only() -> None:
    """A head that attends to every mark equally gives full stops and commas two of five; what is left is other."""

    def to_marks(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        is_mark = np.array([not token.isalnum() and token[0] != "[" for token in recorded_input.tokens.tokens])
        return np.tile(is_mark / is_mark.sum(), (len(is_mark), 1))

    corpus = planted.make_corpus("a , b ` c - d ! e .")
    recording = planted.make_recording(corpus, [[to_marks, planted.random_head(2)]])
    recording = recording.with_sites(list(TOKEN_SITES.values()))
    every, clark = (targets(recording, None, punctuation=punctuation) for punctuation in ("all", ".,"))
    assert isinstance(every, HeadGrid) and isinstance(clark, HeadGrid)
    assert value(every, "attention to punctuation") == pytest.approx(1)
    assert value(clark, "attention to punctuation") == pytest.approx(2 / 5)
    assert clark.baselines["uniform attention"]["attention to punctuation"].value[0, 0] == pytest.approx(2 / 12)
    changed = {"attention to punctuation", "attention to other tokens"}
    for name in every.measures.keys() - changed:
        np.testing.assert_allclose(every.measures[name].value, clark.measures[name].value, err_msg=name)
    attention = planted.random_head(2)(recording.inputs[0])
    assert value(clark, "attention to punctuation", 1) == pytest.approx(attention[:, [2, 10]].sum(1).mean(), abs=1e-6)


def test_bert_base_on_reviews_has_the_shares_of_plain_numpy() -> None:
    """All punctuation, with backticks, and full stops and commas only, of 57 real attention patterns, by layer."""
    directory = shared("data/bert-base-attention")
    recording = open_recording(directory).with_sites(list(TOKEN_SITES.values()))
    expected: dict[str, list[planted.FloatArray]] = {"all": [], ".,": []}
    for file in sorted(directory.glob("sst2-*.npz")):
        with np.load(file) as arrays:
            attention, tokens = arrays["attention"].astype(np.float64), arrays["tokens"].tolist()
        marks = {"all": [t not in {"[CLS]", "[SEP]"} and not any(map(str.isalnum, t)) for t in tokens]}
        marks[".,"] = [token in {".", ","} for token in tokens]
        for name, flags in marks.items():
            expected[name].append(attention[..., flags].sum(-1).mean((1, 2)))
    for name, by_file in expected.items():
        grid = targets(recording, None, punctuation=name)
        assert isinstance(grid, HeadGrid)
        by_layer = grid.measures["attention to punctuation"].value.mean(1)
        np.testing.assert_allclose(by_layer, np.mean(by_file, axis=0), atol=1e-6)
    assert np.mean(expected["all"]) == pytest.approx(0.0779, abs=1e-4)
