"""Recordings from plain arrays: accepted unchanged, or refused with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.recording.material import CLOSE, mixed, pairs, tiny

from bertology.analyses.attention.entropy import entropy_site
from bertology.analyses.attention.targets.analysis import targets_site
from bertology.corpus.corpus import Corpus
from bertology.corpus.sentence import Sentence, sentence_from_words
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.recording.recording import Recording

TOKENS = ["[CLS]", "the", "cat", "##s", "sat", "[SEP]"]


def _attention(n: int, *, layers: int = 2, heads: int = 3, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).random((layers, heads, n, n)).astype(np.float32)
    return values / values.sum(-1, keepdims=True)


def test_a_recording_survives_conversion_to_arrays() -> None:
    corpus = Corpus((*mixed(8), *pairs(5)))
    original = record(tiny(), corpus, ["attention", "hidden"])
    converted = Recording.from_arrays(
        [recorded.tokens.tokens for recorded in original.inputs],
        attention=original["attention"],
        hidden=original["hidden"],
        words=[recorded.text.segments for recorded in original.inputs],
        name="tiny",
    )
    assert (converted.encoder.layers, converted.encoder.heads, converted.encoder.width) == (2, 4, 32)
    assert not converted.encoder.causal
    for a, b in zip(original.inputs, converted.inputs, strict=True):
        assert a.text == b.text
        for name in ("word_ids", "segment_ids", "special_kinds", "type_ids"):
            np.testing.assert_array_equal(getattr(a.tokens, name), getattr(b.tokens, name))
    for key in ("words", "split words", "inputs"):
        assert original.counts[key] == converted.counts[key]
    for site in (targets_site, entropy_site):
        expected = original.with_sites([site]).stack(site)
        np.testing.assert_allclose(converted.with_sites([site]).stack(site), expected, atol=CLOSE)


def test_words_are_joined_from_tokens_by_default() -> None:
    recording = Recording.from_arrays([TOKENS], attention=[_attention(6)])
    assert recording.inputs[0].text.words == ("the", "cats", "sat")
    assert recording.inputs[0].tokens.word_ids.tolist() == [-1, 0, 1, 1, 2, -1]
    assert recording.corpus[0].kind == "sentence"


def test_annotations_stay_with_their_sentence() -> None:
    plain = sentence_from_words(["The", "cats", "sat"])
    parsed = Sentence(plain.words, plain.text, plain.offsets, governors=(1, 2, -1), relations=("det", "nsubj", "root"))
    recording = Recording.from_arrays([TOKENS], attention=[_attention(6)], words=[parsed])
    assert recording.corpus[0].segments[0].governors == (1, 2, -1)
    recording.corpus.require_annotations("governors", "relations", analysis_name="a test")


@pytest.mark.parametrize(
    "tokens",
    [
        ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"],
        ["<s>", "a", "Ġb", "</s>", "</s>", "c", "</s>"],
        ["a", "b", "[SEP]", "c", "[SEP]", "[CLS]"],
    ],
)
def test_pairs_are_split_at_the_first_separator(tokens: list[str]) -> None:
    attention = [_attention(len(tokens))]
    recording = Recording.from_arrays([tokens], attention=attention)
    assert [segment.words for segment in recording.inputs[0].text.segments] == [("a", "b"), ("c",)]
    assert recording.corpus[0].kind == "pair"
    aligned = recording.inputs[0].tokens
    in_segment = aligned.segment_ids >= 0
    assert aligned.segment_ids[in_segment].tolist() == [0, 0, 1]
    assert aligned.word_ids[aligned.word_ids >= 0].tolist() == [0, 1, 2]
    assert (aligned.special_kinds[in_segment] == SpecialToken.NONE).all()
    with_words = Recording.from_arrays([tokens], attention=attention, words=[(["A", "b"], ["C"])])
    assert with_words.inputs[0].text.words == ("A", "b", "C")
    with pytest.raises(Refusal, match=r"has 2 segments by its .SEP. tokens and words for 1"):
        Recording.from_arrays([tokens], attention=attention, words=[["a", "b", "c"]])


def test_padding_is_removed_and_counted() -> None:
    unpadded = _attention(6)
    padded = np.zeros((2, 3, 8, 8), np.float32)
    padded[:, :, :6, :6] = unpadded
    padded[:, :, 6:, 0] = 1
    recording = Recording.from_arrays([[*TOKENS, "[PAD]", "[PAD]"]], attention=[padded])
    np.testing.assert_array_equal(recording["attention"][0], unpadded)
    assert recording.counts["padding tokens removed"] == 2
    with pytest.raises(Refusal, match="padding between"):
        Recording.from_arrays([[*TOKENS, "[PAD]", "x", "y"]], attention=[_attention(9)])
    with pytest.raises(Refusal, match="no tokens but padding"):
        Recording.from_arrays([["[PAD]"]], attention=[_attention(1)])


def test_attention_rounded_to_four_decimals_in_half_precision_is_accepted() -> None:
    for n in (6, 60, 300):
        tokens = ["[CLS]", *(f"w{i}" for i in range(n - 2)), "[SEP]"]
        rounded = np.round(_attention(n, layers=1, heads=1), 4).astype(np.float16)
        recording = Recording.from_arrays([tokens], attention=[rounded])
        assert recording["attention"][0].dtype == np.float16
        assert "rows renormalised" not in recording.counts


def _with_value(index: Any, value: float) -> Any:
    attention = _attention(6).copy()
    attention[index] = value
    return attention


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (_with_value((1, 2, 3, 4), np.nan), "1 values of attention that are NaN"),
        (_with_value((1, 2, 3, 4), -0.1), r"negative attention weights \(lowest: -0\.1"),
        (_with_value((1, 2, 3), 0.1), r"1 rows that do not sum to 1: row 4 of head 2-3 sums to 0\.6"),
        (_attention(6).swapaxes(-1, -2), "rows that do not sum to 1"),
        (_attention(6)[None], r"shape \(1, 2, 3, 6, 6\)"),
        (_attention(6)[..., :5, :5], r"shape \(2, 3, 5, 5\)"),
        (_attention(6).astype(str), "of type"),
        (_attention(6)[:0], r"shape \(0, 3, 6, 6\)"),
    ],
)
def test_attention_that_would_give_wrong_numbers_is_refused(attention: Any, message: str) -> None:
    with pytest.raises(Refusal, match=rf"Input 2 has .*{message}"):
        Recording.from_arrays([TOKENS, TOKENS], attention=[_attention(6), attention])


def test_renormalised_rows_are_counted() -> None:
    attention = _attention(6)
    attention[0, 0, :2] *= 0.7
    recording = Recording.from_arrays([TOKENS], attention=[attention], renormalise=True)
    assert recording.counts["rows renormalised"] == 2
    assert recording.config["renormalise"] is True
    np.testing.assert_allclose(recording["attention"][0].sum(-1), 1, atol=CLOSE)
    attention[0, 0, 0] = 0
    with pytest.raises(Refusal, match="rows without attention"):
        Recording.from_arrays([TOKENS], attention=[attention], renormalise=True)


def test_inconsistent_arguments_are_refused() -> None:
    with pytest.raises(Refusal, match="Neither attention nor hidden"):
        Recording.from_arrays([TOKENS])
    with pytest.raises(Refusal, match="No inputs were given"):
        Recording.from_arrays([], attention=[])
    with pytest.raises(Refusal, match="1 attention for 2 inputs"):
        Recording.from_arrays([TOKENS, TOKENS], attention=[_attention(6)])
    with pytest.raises(Refusal, match="of another size than input 1"):
        Recording.from_arrays([TOKENS, TOKENS], attention=[_attention(6), _attention(6, heads=4)])
    with pytest.raises(Refusal, match=r"do not spell the words from word 2 on \(the dog"):
        Recording.from_arrays([TOKENS], attention=[_attention(6)], words=[["the", "dog", "sat"]])
    with pytest.raises(Refusal, match=r"hidden of shape \(3, 5, 8\)"):
        Recording.from_arrays([TOKENS], hidden=[np.zeros((3, 5, 8))])


def test_hidden_states_alone_are_enough() -> None:
    recording = Recording.from_arrays([TOKENS], hidden=[np.zeros((3, 6, 8))])
    assert (recording.encoder.layers, recording.encoder.heads, recording.encoder.width) == (2, 0, 8)
    assert recording["hidden"][0].dtype == np.float32


def test_attention_to_earlier_tokens_only_is_causal() -> None:
    causal = np.tril(_attention(6))
    causal /= causal.sum(-1, keepdims=True)
    assert Recording.from_arrays([TOKENS], attention=[causal]).encoder.causal
    assert not Recording.from_arrays([TOKENS], attention=[causal], causal=False).encoder.causal
    assert not Recording.from_arrays([TOKENS], attention=[_attention(6)]).encoder.causal


def test_attention_windows_are_never_inferred() -> None:
    local = np.tril(np.triu(_attention(6), -2), 2)
    local /= local.sum(-1, keepdims=True)
    assert Recording.from_arrays([TOKENS], attention=[local]).encoder.attention_windows == ()
    recording = Recording.from_arrays([TOKENS], attention=[local], attention_windows=[2, None])
    assert recording.encoder.attention_windows == (2, None)
    with pytest.raises(Refusal, match="`attention_windows` has 3 elements for 2 layers"):
        Recording.from_arrays([TOKENS], attention=[local], attention_windows=[2, 2, 2])
    with pytest.raises(Refusal, match="Input 2 has attention over more than 2 tokens in layer 1"):
        Recording.from_arrays([TOKENS] * 2, attention=[local, _attention(6)], attention_windows=[2, 2])


def test_the_fingerprint_depends_on_the_arrays() -> None:
    first, same_arrays, other_arrays = (
        Recording.from_arrays([TOKENS], attention=[_attention(6, seed=seed)]) for seed in (0, 0, 1)
    )
    assert first.encoder.fingerprint == same_arrays.encoder.fingerprint != other_arrays.encoder.fingerprint
