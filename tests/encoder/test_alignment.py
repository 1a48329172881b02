"""Pieces and words, for every kind of tokeniser, over odd texts, against a restatement by characters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import models
from bertology.corpus.corpus import Input
from bertology.corpus.sentence import Sentence, from_text, sentence
from bertology.encoder.pieces import Pieces, Special, align

# WordPiece; byte-level BPE with trimmed, untrimmed and normalised offsets; unigram with two ways to normalise.
KINDS = ["bert", "roberta", "gpt2", "modernbert", "albert", "deberta-v2"]
KEEP_EVERYTHING = ["roberta", "gpt2"]
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
    """Words with anything or nothing between them, before them and after them."""
    words = draw(st.lists(WORDS, max_size=7))
    text = draw(GAPS)
    offsets: list[tuple[int, int]] = []
    for word in words:
        offsets.append((len(text), len(text) + len(word)))
        text += word + draw(GAPS)
    return Sentence(tuple(words), text, tuple(offsets))


def _by_characters(piece: tuple[int, int], part: Sentence) -> tuple[int, bool]:
    """The word of a piece, one character at a time, and whether the piece covers several words."""
    owner = {place: word for word, (a, b) in enumerate(part.offsets) for place in range(a, b)}
    visible = [place for place in range(*piece) if not part.text[place].isspace()]
    places = visible or list(range(*piece))
    shares = [sum(owner.get(place) == word for place in places) for word in range(len(part))]
    if any(shares):
        return shares.index(max(shares)), sum(share > 0 for share in shares) > 1
    inside = [word for word, (a, b) in enumerate(part.offsets) if a < piece[0] < b]
    if not places and inside:
        return inside[0], False
    after = [word for word, (a, _) in enumerate(part.offsets) if a >= piece[1]]
    return (after[0] if after and not visible else -1), False


def _check(name: str, shown: Input) -> Pieces:
    (pieces,) = models.encoder(name).tokenise([shown])
    texts = [part.text for part in shown.parts]
    encoded = models.tokenizer(name)(*([text] for text in texts), return_offsets_mapping=True)
    offsets: list[tuple[int, int]] = encoded["offset_mapping"][0]
    np.testing.assert_array_equal(pieces.ids, encoded["input_ids"][0])
    assert list(pieces.tokens) == models.tokenizer(name).convert_ids_to_tokens(encoded["input_ids"][0])
    first = [0, len(shown.parts[0])]
    straddling = 0
    for place, part in enumerate(encoded.sequence_ids(0)):
        if part is None:
            assert (pieces.word[place], pieces.part[place]) == (-1, -1)
            assert pieces.special[place] != Special.NONE
            continue
        word, several = _by_characters(offsets[place], shown.parts[part])
        assert pieces.word[place] == (word + first[part] if word >= 0 else -1)
        assert (pieces.part[place], pieces.special[place]) == (part, Special.NONE)
        straddling += several
    present = set(pieces.word.tolist()) - {-1}
    assert present <= set(range(pieces.words))
    assert pieces.words == len(shown.words)
    assert pieces.straddling == straddling
    assert pieces.vanished == tuple(word for word in range(pieces.words) if word not in present)
    assert pieces.unaligned == sum(w < 0 <= p for w, p in zip(pieces.word, pieces.part, strict=True))
    assert pieces.split == sum(int((pieces.word == word).sum()) > 1 for word in present)
    aligned = pieces.word[pieces.word >= 0]
    assert bool((np.diff(aligned) >= 0).all()), "pieces are in the order of their words, and a word's are together"
    return pieces


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(part=sentences())
def test_every_piece_has_the_word_it_shares_most_characters_with(name: str, part: Sentence) -> None:
    pieces = _check(name, Input((part,)))
    if name in KEEP_EVERYTHING:
        encoded = models.tokenizer(name)([part.text], return_offsets_mapping=True)
        covered = {place for a, b in encoded["offset_mapping"][0] for place in range(a, b)}
        assert {place for place, letter in enumerate(part.text) if not letter.isspace()} <= covered
        if not pieces.straddling:
            assert all(part.words[word].isspace() for word in pieces.vanished)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(first=sentences(), second=sentences())
def test_the_words_of_a_pair_follow_each_other(name: str, first: Sentence, second: Sentence) -> None:
    _check(name, Input((first, second)))


@pytest.mark.parametrize("name", KEEP_EVERYTHING)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(words=st.lists(st.text("abcéz你🎈'-.", min_size=1, max_size=6), min_size=1, max_size=8))
def test_words_with_spaces_between_never_vanish_in_byte_level_pieces(name: str, words: list[str]) -> None:
    (pieces,) = models.encoder(name).tokenise([Input((sentence(words),))])
    assert (pieces.straddling, pieces.vanished, pieces.unaligned) == (0, (), 0)


def test_singles_and_pairs_go_together_in_one_call() -> None:
    encoder = models.encoder("bert")
    shown = models.inputs(["A dog!", ("A dog!", "It rains."), "It rains."])
    alone = [encoder.tokenise([one])[0] for one in shown]
    for mine, ours in zip(alone, encoder.tokenise(shown), strict=True):
        assert mine.tokens == ours.tokens
        np.testing.assert_array_equal(mine.word, ours.word)
        np.testing.assert_array_equal(mine.types, ours.types)
    assert encoder.tokenise([]) == []


def test_token_strings_are_shared_by_all_sentences() -> None:
    encoder = models.encoder("roberta")
    once, again = encoder.tokenise(models.inputs(["It rains."])), encoder.tokenise(models.inputs(["It rains."]))
    assert all(a is b for a, b in zip(once[0].tokens, again[0].tokens, strict=True))


def test_special_tokens_are_told_apart() -> None:
    bert, roberta, gpt2 = (models.encoder(name).tokenise(models.inputs([("It", "rains")]))[0] for name in KINDS[:3])
    assert (bert.special[0], bert.special[-1]) == (Special.CLS, Special.SEP)
    assert (roberta.special[0], roberta.special[-1]) == (Special.CLS, Special.SEP)
    assert int((bert.special == Special.SEP).sum()) == 2
    assert int((roberta.special == Special.SEP).sum()) == 3
    assert not gpt2.special.any()
    assert bert.types.tolist() == [0] * 3 + [1] * (len(bert) - 3)


def test_unknown_pieces_are_counted() -> None:
    (pieces,) = models.encoder("bert").tokenise(models.inputs(["It 你 rains 好 你."]))
    assert pieces.unknown == 3


def test_what_was_done_to_the_tokenizer_elsewhere_changes_nothing() -> None:
    tokenizer = models.tokenizer("bert")
    encoder = models.wrapped(models.model("bert"), "bert")
    before = encoder.tokenise(models.inputs())
    tokenizer(list(models.TEXTS), truncation=True, max_length=5, padding="max_length")
    after = encoder.tokenise(models.inputs())
    assert [one.tokens for one in before] == [one.tokens for one in after]
    assert models.wrapped(models.model("bert"), "bert").fingerprint == encoder.fingerprint
    tokenizer(["again"], truncation=False, padding=False)


def test_white_space_inside_a_word_does_not_count() -> None:
    """A piece with one visible character in each of two words belongs to the earlier."""
    found = align([(0, 3)], [(0, 1), (1, 3)], "世\x853")
    assert (found.word, found.straddling) == ((0,), 1)


@pytest.mark.parametrize(("piece", "word"), [((1, 3), (0, 2)), ((0, 2), (1, 3))])
def test_a_piece_whose_white_space_alone_lies_in_a_word(piece: tuple[int, int], word: tuple[int, int]) -> None:
    assert align([piece], [word], "a\x85b").word == (-1,)


def test_alignment_by_hand() -> None:
    text = "I can't  go."
    words = from_text(text).offsets
    assert [text[a:b] for a, b in words] == ["I", "can't", "go", "."]
    pieces = [(0, 1), (1, 5), (5, 7), (7, 8), (8, 11), (11, 12), (10, 12), (12, 12)]
    found = align(pieces, words, text)
    assert found.word == (0, 1, 1, 2, 2, 3, 2, -1)
    assert found.straddling == 1
