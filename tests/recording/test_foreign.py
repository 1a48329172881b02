"""Recordings from plain arrays: taken as they are, or refused with what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.recording.material import CLOSE, mixed, pairs, tiny

from bertology.analyses.attention.entropy import ENTROPY
from bertology.analyses.attention.targets import TARGETS
from bertology.corpus.corpus import Corpus
from bertology.corpus.sentence import Sentence, sentence
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.recording.recording import Recording

TOKENS = ["[CLS]", "the", "cat", "##s", "sat", "[SEP]"]


def _maps(n: int, *, layers: int = 2, heads: int = 3, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).random((layers, heads, n, n)).astype(np.float32)
    return values / values.sum(-1, keepdims=True)


def test_a_recording_given_back_as_arrays_is_the_recording() -> None:
    corpus = Corpus((*mixed(8), *pairs(5)))
    own = record(tiny(), corpus, ["attention", "hidden"])
    back = Recording.from_arrays(
        [entry.pieces.tokens for entry in own.entries],
        attention=own["attention"],
        hidden=own["hidden"],
        words=[entry.input.parts for entry in own.entries],
        name="tiny",
    )
    assert (back.encoder.layers, back.encoder.heads, back.encoder.width) == (2, 4, 32)
    assert not back.encoder.causal
    for a, b in zip(own.entries, back.entries, strict=True):
        assert a.input == b.input
        for name in ("word", "part", "special", "types"):
            np.testing.assert_array_equal(getattr(a.pieces, name), getattr(b.pieces, name))
    for key in ("words", "split words", "inputs"):
        assert own.counts.get(key) == back.counts.get(key)
    for site in (TARGETS, ENTROPY):
        np.testing.assert_allclose(
            own.with_derived([site]).stacked(site), back.with_derived([site]).stacked(site), atol=CLOSE
        )


def test_words_come_from_the_pieces_where_there_are_none() -> None:
    recording = Recording.from_arrays([TOKENS], attention=[_maps(6)])
    assert recording.entries[0].input.words == ("the", "cats", "sat")
    assert recording.entries[0].pieces.word.tolist() == [-1, 0, 1, 1, 2, -1]
    assert recording.corpus[0].kind == "sentence"


def test_annotation_stays_with_its_sentence() -> None:
    made = sentence(["The", "cats", "sat"])
    parsed = Sentence(made.words, made.text, made.offsets, heads=(1, 2, -1), relations=("det", "nsubj", "root"))
    recording = Recording.from_arrays([TOKENS], attention=[_maps(6)], words=[parsed])
    assert recording.corpus[0].parts[0].heads == (1, 2, -1)
    recording.corpus.require("heads", "relations", purpose="a test")


@pytest.mark.parametrize(
    "tokens",
    [
        ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"],
        ["<s>", "a", "Ġb", "</s>", "</s>", "c", "</s>"],
        ["a", "b", "[SEP]", "c", "[SEP]", "[CLS]"],
    ],
)
def test_pairs_are_split_at_the_first_separator(tokens: list[str]) -> None:
    maps = [_maps(len(tokens))]
    recording = Recording.from_arrays([tokens], attention=maps)
    assert [part.words for part in recording.entries[0].input.parts] == [("a", "b"), ("c",)]
    assert recording.corpus[0].kind == "pair"
    pieces = recording.entries[0].pieces
    assert [int(p) for p in pieces.part if p >= 0] == [0, 0, 1]
    assert [int(w) for w in pieces.word if w >= 0] == [0, 1, 2]
    assert all(kind == Special.NONE for kind, part in zip(pieces.special, pieces.part, strict=True) if part >= 0)
    given = Recording.from_arrays([tokens], attention=maps, words=[(["A", "b"], ["C"])])
    assert given.entries[0].input.words == ("A", "b", "C")
    with pytest.raises(Refusal, match=r"has 2 parts by its .SEP. tokens and words for 1"):
        Recording.from_arrays([tokens], attention=maps, words=[["a", "b", "c"]])


def test_padding_is_cut_away_and_counted() -> None:
    whole = _maps(6)
    padded = np.zeros((2, 3, 8, 8), np.float32)
    padded[:, :, :6, :6] = whole
    padded[:, :, 6:, 0] = 1
    recording = Recording.from_arrays([[*TOKENS, "[PAD]", "[PAD]"]], attention=[padded])
    np.testing.assert_array_equal(recording["attention"][0], whole)
    assert recording.counts["padding pieces removed"] == 2
    with pytest.raises(Refusal, match="padding between"):
        Recording.from_arrays([[*TOKENS, "[PAD]", "x", "y"]], attention=[_maps(9)])
    with pytest.raises(Refusal, match="no tokens but padding"):
        Recording.from_arrays([["[PAD]"]], attention=[_maps(1)])


def test_maps_rounded_to_four_decimals_in_half_precision_are_taken() -> None:
    for n in (6, 60, 300):
        tokens = ["[CLS]", *(f"w{i}" for i in range(n - 2)), "[SEP]"]
        rounded = np.round(_maps(n, layers=1, heads=1), 4).astype(np.float16)
        recording = Recording.from_arrays([tokens], attention=[rounded])
        assert recording["attention"][0].dtype == np.float16
        assert "rows renormalised" not in recording.counts


def _set(place: Any, value: float) -> Any:
    maps = _maps(6).copy()
    maps[place] = value
    return maps


@pytest.mark.parametrize(
    ("maps", "says"),
    [
        (_set((1, 2, 3, 4), np.nan), "1 values in its attention that are NaN"),
        (_set((1, 2, 3, 4), -0.1), "negative attention weights, -0.1"),
        (_set((1, 2, 3), 0.1), r"1 rows that do not sum to 1: row 4 of head 2-3 sums to 0\.6"),
        (_maps(6).swapaxes(-1, -2), "rows that do not sum to 1"),
        (_maps(6)[None], r"shape \(1, 2, 3, 6, 6\)"),
        (_maps(6)[..., :5, :5], r"shape \(2, 3, 5, 5\)"),
        (_maps(6).astype(str), "of type"),
        (_maps(6)[:0], r"shape \(0, 3, 6, 6\)"),
    ],
)
def test_maps_that_would_give_wrong_numbers_are_refused(maps: Any, says: str) -> None:
    with pytest.raises(Refusal, match=rf"Input 2 has .*{says}"):
        Recording.from_arrays([TOKENS, TOKENS], attention=[_maps(6), maps])


def test_renormalising_is_asked_for_and_counted() -> None:
    maps = _maps(6)
    maps[0, 0, :2] *= 0.7
    recording = Recording.from_arrays([TOKENS], attention=[maps], renormalise=True)
    assert recording.counts["rows renormalised"] == 2
    assert recording.policy["renormalise"] is True
    np.testing.assert_allclose(recording["attention"][0].sum(-1), 1, atol=CLOSE)
    maps[0, 0, 0] = 0
    with pytest.raises(Refusal, match="without any attention"):
        Recording.from_arrays([TOKENS], attention=[maps], renormalise=True)


def test_what_does_not_belong_together_is_refused() -> None:
    with pytest.raises(Refusal, match="Neither attention nor hidden"):
        Recording.from_arrays([TOKENS])
    with pytest.raises(Refusal, match="no inputs"):
        Recording.from_arrays([], attention=[])
    with pytest.raises(Refusal, match="1 attention for 2 inputs"):
        Recording.from_arrays([TOKENS, TOKENS], attention=[_maps(6)])
    with pytest.raises(Refusal, match="of another size than input 1"):
        Recording.from_arrays([TOKENS, TOKENS], attention=[_maps(6), _maps(6, heads=4)])
    with pytest.raises(Refusal, match=r"do not spell its words from word 2 on \(the dog"):
        Recording.from_arrays([TOKENS], attention=[_maps(6)], words=[["the", "dog", "sat"]])
    with pytest.raises(Refusal, match=r"hidden of shape \(3, 5, 8\)"):
        Recording.from_arrays([TOKENS], hidden=[np.zeros((3, 5, 8))])


def test_hidden_states_alone_make_a_recording() -> None:
    recording = Recording.from_arrays([TOKENS], hidden=[np.zeros((3, 6, 8))])
    assert (recording.encoder.layers, recording.encoder.heads, recording.encoder.width) == (2, 0, 8)
    assert recording["hidden"][0].dtype == np.float32


def test_maps_that_never_look_ahead_are_causal() -> None:
    causal = np.tril(_maps(6))
    causal /= causal.sum(-1, keepdims=True)
    assert Recording.from_arrays([TOKENS], attention=[causal]).encoder.causal
    assert not Recording.from_arrays([TOKENS], attention=[causal], causal=False).encoder.causal
    assert not Recording.from_arrays([TOKENS], attention=[_maps(6)]).encoder.causal


def test_how_far_layers_see_is_taken_as_given_and_never_guessed() -> None:
    near = np.tril(np.triu(_maps(6), -2), 2)
    near /= near.sum(-1, keepdims=True)
    assert Recording.from_arrays([TOKENS], attention=[near]).encoder.reach == ()
    assert Recording.from_arrays([TOKENS], attention=[near], reach=[2, None]).encoder.reach == (2, None)
    with pytest.raises(Refusal, match="says of 3 layers how far they see, and there are 2"):
        Recording.from_arrays([TOKENS], attention=[near], reach=[2, 2, 2])
    with pytest.raises(Refusal, match="Input 2 has attention over more than 2 pieces in layer 1"):
        Recording.from_arrays([TOKENS] * 2, attention=[near, _maps(6)], reach=[2, 2])


def test_the_fingerprint_tells_arrays_apart() -> None:
    first, same, other = (Recording.from_arrays([TOKENS], attention=[_maps(6, seed=s)]) for s in (0, 0, 1))
    assert first.encoder.fingerprint == same.encoder.fingerprint != other.encoder.fingerprint
