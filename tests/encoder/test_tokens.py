"""Alignment of tokens to words for every kind of tokeniser, over odd texts, against a character-level restatement."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny_models
from bertology.corpus.example import TextInput
from bertology.corpus.sentence import Sentence, sentence_from_text, sentence_from_words
from bertology.encoder.tokens import SpecialToken, TokenisedInput, align_tokens

# WordPiece; byte-level BPE with trimmed, untrimmed and normalised offsets; unigram with two normalisers.
KINDS = ["bert", "roberta", "gpt2", "modernbert", "albert", "deberta-v2"]
LOSSLESS = ["roberta", "gpt2"]
ODD_WORDS = [
    "do",
    "n't",
    "'s",
    "unbelievable",
    "\u200b",
    "a\u200bb",
    "\u200d",
    "\ufeff",
    "👩‍👩‍👧",
    "☃️",
    "🇩🇪",
    "e\u0301",
    "\u0301",
    "q\u0323\u0307",
    "q\u0307\u0323",
    "你好",
    "世",
    "ﬁne",
    "½",
    "İ",
    "ß",
    "Ⅷ",
    "각",
    "ก็",
    "New York",
    "\xa0",
    "\x853",
    "…",
    "--",
    "[MASK]",
    "[SEP]",
    "<s>",
    "\x00",
    "\u2581",
]
WORDS = st.one_of(
    st.sampled_from(ODD_WORDS),
    st.text("abestz", min_size=1, max_size=6),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
)
GAPS = st.sampled_from(["", "", " ", " ", "  ", "\n", "\t", "\u3000", "\xa0"])


@st.composite
def sentences(draw: st.DrawFn) -> Sentence:
    """Sentences with arbitrary gaps before, between and after words."""
    words = draw(st.lists(WORDS, max_size=7))
    text = draw(GAPS)
    offsets: list[tuple[int, int]] = []
    for word in words:
        offsets.append((len(text), len(text) + len(word)))
        text += word + draw(GAPS)
    return Sentence(tuple(words), text, tuple(offsets))


def _word_by_characters(token: tuple[int, int], sentence: Sentence) -> tuple[int, bool]:
    """The word of a token, one character at a time, and whether the token covers several words."""
    word_of = {index: word for word, (a, b) in enumerate(sentence.offsets) for index in range(a, b)}
    visible = [index for index in range(*token) if not sentence.text[index].isspace()]
    characters = visible or list(range(*token))
    overlaps = [sum(word_of.get(index) == word for index in characters) for word in range(len(sentence))]
    if any(overlaps):
        return overlaps.index(max(overlaps)), sum(overlap > 0 for overlap in overlaps) > 1
    inside = [word for word, (a, b) in enumerate(sentence.offsets) if a < token[0] < b]
    if not characters and inside:
        return inside[0], False
    after = [word for word, (a, _) in enumerate(sentence.offsets) if a >= token[1]]
    return (after[0] if after and not visible else -1), False


def _check(name: str, text_input: TextInput) -> TokenisedInput:
    (tokens,) = tiny_models.encoder(name).tokenise([text_input])
    tokenizer = tiny_models.hf_tokenizer(name)
    encoded = tokenizer(*([segment.text] for segment in text_input.segments), return_offsets_mapping=True)
    offsets: list[tuple[int, int]] = encoded["offset_mapping"][0]
    np.testing.assert_array_equal(tokens.ids, encoded["input_ids"][0])
    assert list(tokens.tokens) == tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
    first_word = [0, len(text_input.segments[0])]
    n_straddling = 0
    for position, segment in enumerate(encoded.sequence_ids(0)):
        if segment is None:
            assert (tokens.word_ids[position], tokens.segment_ids[position]) == (-1, -1)
            assert tokens.special_kinds[position] != SpecialToken.NONE
            continue
        word, is_straddling = _word_by_characters(offsets[position], text_input.segments[segment])
        assert tokens.word_ids[position] == (word + first_word[segment] if word >= 0 else -1)
        assert (tokens.segment_ids[position], tokens.special_kinds[position]) == (segment, SpecialToken.NONE)
        n_straddling += is_straddling
    aligned = tokens.word_ids[tokens.word_ids >= 0]
    words = set(aligned.tolist())
    assert words <= set(range(tokens.n_words))
    assert tokens.n_words == len(text_input.words)
    assert tokens.n_straddling == n_straddling
    assert tokens.dropped_words == tuple(word for word in range(tokens.n_words) if word not in words)
    assert tokens.n_unaligned == sum(w < 0 <= s for w, s in zip(tokens.word_ids, tokens.segment_ids, strict=True))
    assert tokens.n_split_words == sum(int((tokens.word_ids == word).sum()) > 1 for word in words)
    positions = {word: np.flatnonzero(tokens.word_ids == word).tolist() for word in words}
    assert tokens.positions_by_word() == positions
    assert bool((np.diff(aligned) >= 0).all()), "tokens are in the order of their words"
    return tokens


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=120)
@given(sentence=sentences())
def test_a_token_belongs_to_the_word_with_most_common_characters(name: str, sentence: Sentence) -> None:
    tokens = _check(name, TextInput((sentence,)))
    if name in LOSSLESS:
        encoded = tiny_models.hf_tokenizer(name)([sentence.text], return_offsets_mapping=True)
        covered = {index for a, b in encoded["offset_mapping"][0] for index in range(a, b)}
        assert {index for index, letter in enumerate(sentence.text) if not letter.isspace()} <= covered
        if not tokens.n_straddling:
            assert all(sentence.words[word].isspace() for word in tokens.dropped_words)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40)
@given(first=sentences(), second=sentences())
def test_words_of_a_pair_are_numbered_consecutively(name: str, first: Sentence, second: Sentence) -> None:
    _check(name, TextInput((first, second)))


@pytest.mark.parametrize("name", LOSSLESS)
@settings(max_examples=60)
@given(words=st.lists(st.text("abcéz你🎈'-.", min_size=1, max_size=6), min_size=1, max_size=8))
def test_byte_level_tokenisers_drop_no_word_between_spaces(name: str, words: list[str]) -> None:
    (tokens,) = tiny_models.encoder(name).tokenise([TextInput((sentence_from_words(words),))])
    assert (tokens.n_straddling, tokens.dropped_words, tokens.n_unaligned) == (0, (), 0)


def test_single_texts_and_pairs_can_be_mixed_in_one_call() -> None:
    encoder = tiny_models.encoder("bert")
    inputs = tiny_models.inputs(["A dog!", ("A dog!", "It rains."), "It rains."])
    separate = [encoder.tokenise([text_input])[0] for text_input in inputs]
    for alone, together in zip(separate, encoder.tokenise(inputs), strict=True):
        assert alone.tokens == together.tokens
        np.testing.assert_array_equal(alone.word_ids, together.word_ids)
        np.testing.assert_array_equal(alone.type_ids, together.type_ids)
    assert encoder.tokenise([]) == []


def test_token_strings_are_shared_by_all_inputs() -> None:
    encoder = tiny_models.encoder("roberta")
    (first,), (second,) = (encoder.tokenise(tiny_models.inputs(["It rains."])) for _ in range(2))
    assert all(a is b for a, b in zip(first.tokens, second.tokens, strict=True))


def test_kinds_of_special_tokens() -> None:
    inputs = tiny_models.inputs([("It", "rains")])
    bert, roberta, gpt2 = (tiny_models.encoder(name).tokenise(inputs)[0] for name in KINDS[:3])
    assert (bert.special_kinds[0], bert.special_kinds[-1]) == (SpecialToken.CLS, SpecialToken.SEP)
    assert (roberta.special_kinds[0], roberta.special_kinds[-1]) == (SpecialToken.CLS, SpecialToken.SEP)
    assert int((bert.special_kinds == SpecialToken.SEP).sum()) == 2
    assert int((roberta.special_kinds == SpecialToken.SEP).sum()) == 3
    assert not gpt2.special_kinds.any()
    assert bert.type_ids.tolist() == [0] * 3 + [1] * (len(bert) - 3)


def test_unknown_tokens_are_counted() -> None:
    (tokens,) = tiny_models.encoder("bert").tokenise(tiny_models.inputs(["It 你 rains 好 你."]))
    assert tokens.n_unknown == 3


def test_changes_to_the_transformers_tokenizer_have_no_effect() -> None:
    tokenizer = tiny_models.hf_tokenizer("bert")
    encoder = tiny_models.wrap_model(tiny_models.model("bert"), "bert")
    before = encoder.tokenise(tiny_models.inputs())
    tokenizer(list(tiny_models.TEXTS), truncation=True, max_length=5, padding="max_length")
    after = encoder.tokenise(tiny_models.inputs())
    assert [tokens.tokens for tokens in before] == [tokens.tokens for tokens in after]
    assert tiny_models.wrap_model(tiny_models.model("bert"), "bert").fingerprint == encoder.fingerprint
    tokenizer(["again"], truncation=False, padding=False)


def test_white_space_inside_a_word_is_not_counted() -> None:
    """A token with one visible character in each of two words belongs to the earlier word."""
    alignment = align_tokens([(0, 3)], [(0, 1), (1, 3)], "世\x853")
    assert (alignment.word_ids, alignment.n_straddling) == ((0,), 1)


@pytest.mark.parametrize(("token", "word"), [((1, 3), (0, 2)), ((0, 2), (1, 3))])
def test_a_token_of_which_only_white_space_lies_in_a_word(token: tuple[int, int], word: tuple[int, int]) -> None:
    assert align_tokens([token], [word], "a\x85b").word_ids == (-1,)


def test_alignment_by_hand() -> None:
    text = "I can't  go."
    words = sentence_from_text(text).offsets
    assert [text[a:b] for a, b in words] == ["I", "can't", "go", "."]
    tokens = [(0, 1), (1, 5), (5, 7), (7, 8), (8, 11), (11, 12), (10, 12), (12, 12)]
    alignment = align_tokens(tokens, words, text)
    assert alignment.word_ids == (0, 1, 1, 2, 2, 3, 2, -1)
    assert alignment.n_straddling == 1


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_tokenised_together_are_tokenised_as_alone(kind: str) -> None:
    """Their texts are joined for the alignment: a blank at the end of one must not belong to a word of the next."""
    encoder = tiny_models.encoder(kind)
    sentences = [sentence_from_text(text) for text in ("unbelievable  ", " ", "\u200b", "do n't \u2581", "New York")]
    sentences += [sentence_from_words(ODD_WORDS), Sentence((), "  x ", ())]
    inputs = [TextInput((sentence,)) for sentence in sentences]
    inputs += [TextInput((first, second)) for first in sentences[:4] for second in sentences[3:]]
    for text_input, together in zip(inputs, encoder.tokenise(inputs), strict=True):
        (alone,) = encoder.tokenise([text_input])
        for field in fields(TokenisedInput):
            np.testing.assert_array_equal(getattr(together, field.name), getattr(alone, field.name), field.name)
