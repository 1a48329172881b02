"""Offsets computed from the lengths of tokens are those of the tokeniser, or are said not to be right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from bertology.encoder.token_lengths import TokenLengths

PIECES = [*"abceABCE019.,!\"'éÉßσΣ世“”–", "ab", "bc", "ABC", "aé", "00", *"\U0001d165\U0001d16d"]
PLAIN = "ab cABC 019.,!\"' \n\té世“”–"
ODD = [*"x\x00\x0b\x1c\x7f\x85\xa0\u200b\u3000\u0301\u302eİ각ﬁ", "👩\u200d👧"]
ODD_TEXTS = ["[MASK]", "[SEP]", "[UNK]", "##a", "a##", "new york"]
NORMALISERS: list[dict[str, Any]] = [
    {"clean_text": clean, "strip_accents": strip, "lowercase": lower, "handle_chinese_chars": chinese}
    for clean, strip, lower, chinese in product([True, False], [None, True, False], [True, False], [True, False])
]


@cache
def make_tokenizer(number: int) -> Any:
    """A WordPiece tokeniser with a small vocabulary and one of the normalisers."""
    vocabulary = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", *PIECES, *(f"##{piece}" for piece in PIECES)]
    ids = {piece: index for index, piece in enumerate(dict.fromkeys(vocabulary))}
    tokenizer: Any = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=9))
    tokenizer.normalizer = normalizers.BertNormalizer(**NORMALISERS[number])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    tokenizer.add_special_tokens(["[CLS]", "[SEP]", "[MASK]"])
    tokenizer.add_tokens(["new york"])
    return tokenizer


def compare(number: int, texts: Sequence[str]) -> list[bool]:
    """Whether the offsets of each text are known; those that are must be those of the tokeniser."""
    tokenizer = make_tokenizer(number)
    lengths = TokenLengths(json.loads(tokenizer.to_str()), tokenizer.normalizer, tokenizer.get_vocab())
    encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    ids = np.array([token for encoding in encodings for token in encoding.ids], np.int64)
    text_numbers = np.repeat(np.arange(len(texts)), [len(encoding.ids) for encoding in encodings])
    offsets, is_right = lengths.offsets(ids, text_numbers, texts)
    for index, encoding in enumerate(encodings):
        if is_right[index]:
            assert list(map(tuple, offsets[text_numbers == index].tolist())) == encoding.offsets, texts[index]
    return is_right.tolist()


@settings(max_examples=400)
@given(
    number=st.integers(0, len(NORMALISERS) - 1),
    texts=st.lists(
        st.lists(st.one_of(st.text(PLAIN, max_size=6), st.sampled_from([*ODD, *ODD_TEXTS])), max_size=6).map("".join),
        min_size=1,
        max_size=5,
    ),
)
def test_known_offsets_are_those_of_the_tokeniser(number: int, texts: list[str]) -> None:
    compare(number, texts)


@pytest.mark.parametrize("number", range(len(NORMALISERS)))
def test_offsets_of_plain_text_are_known(number: int) -> None:
    assert compare(number, ["abc, aé! 001", "", "“A世b–c”\n\t0'1", " . "]) == [True] * 4


@pytest.mark.parametrize(
    "text", ["x", "abc\x00", "a\u0301", "a\U0001d16d\U0001d165", "a [MASK] b", "new york", "[UNK]", "abcabcabcabc"]
)
def test_other_texts_leave_those_beside_them_known(text: str) -> None:
    assert compare(0, ["ab c", text, "a. b"]) == [True, False, True]


@pytest.mark.parametrize("change", ["pre_tokenizer", "normalizer"])
def test_tokenisers_that_are_built_otherwise(change: str) -> None:
    definition = json.loads(make_tokenizer(0).to_str())
    assert TokenLengths.are_known(definition)
    assert not TokenLengths.are_known(definition | {change: None})
