"""Character offsets of BERT's WordPiece tokens, computed from their lengths.

The tokeniser gives offsets as one Python tuple for each token. In most texts each visible character is one character of
a token, so that the lengths of the tokens say where each of them stands.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import BoolArray, IntArray

UNKNOWN_LENGTH = 0
_UNSEEN, _VISIBLE, _SPACE, _OTHER = range(4)
"""Kinds of characters: not normalised yet; normalised to one visible character; to white space; to anything else."""
_BUILT_LIKE_BERT = ["WordPiece", "BertNormalizer", "BertPreTokenizer"]


class TokenLengths:
    """Computes the offsets of tokens from the number of characters of each token."""

    def __init__(self, definition: Mapping[str, Any], normaliser: Any, vocabulary: Mapping[str, int]) -> None:
        """`definition` is the content of a tokenizer.json, `vocabulary` has added tokens too.

        Added tokens may cover white space, and the unknown token anything: their lengths are not known.
        """
        prefix: str = definition["model"]["continuing_subword_prefix"]
        added: list[Mapping[str, Any]] = definition.get("added_tokens") or []
        not_known = {definition["model"]["unk_token"], *(token["content"] for token in added)}
        self._lengths = np.full(max(vocabulary.values(), default=-1) + 1, UNKNOWN_LENGTH, np.int64)
        for token, token_id in vocabulary.items():
            if token not in not_known:
                self._lengths[token_id] = len(token.removeprefix(prefix))
        self._normaliser = normaliser
        self._kinds = np.full(0x110000, _UNSEEN, np.int8)  # of each Unicode character
        self._kinds[0xD800:0xE000] = _OTHER  # surrogates

    @staticmethod
    def are_known(definition: Mapping[str, Any]) -> bool:
        """Whether a tokeniser is built like BERT's."""
        parts = [definition.get(name) or {} for name in ("model", "normalizer", "pre_tokenizer")]
        return [part.get("type") for part in parts] == _BUILT_LIKE_BERT

    def offsets(
        self, ids: NDArray[np.integer], text_numbers: IntArray, texts: Sequence[str]
    ) -> tuple[IntArray, BoolArray]:
        """(token, 2) start and end of each token in its text, and for each text whether they are right.

        `ids` are those of the tokens of all texts, `text_numbers` the text of each; the tokens of a text are adjacent
        and in order.
        """
        lengths = self._lengths[ids]
        sizes = np.array([len(text) + 1 for text in texts], np.int64)
        starts = np.cumsum(sizes) - sizes
        kinds = self._kinds_of_characters(" ".join(texts))
        limits = np.append(starts, len(kinds))
        visible, others = np.flatnonzero(kinds == _VISIBLE), np.flatnonzero(kinds == _OTHER)
        visible_until, others_until = np.searchsorted(visible, limits), np.searchsorted(others, limits)
        n_covered = np.bincount(text_numbers, lengths, len(texts))
        n_unknown = np.bincount(text_numbers[lengths == UNKNOWN_LENGTH], minlength=len(texts))
        is_right = (n_covered == np.diff(visible_until)) & (np.diff(others_until) == 0) & (n_unknown == 0)
        offsets = np.zeros((len(ids), 2), np.int64)
        known = np.flatnonzero(is_right[text_numbers])
        if len(known):
            known_lengths, known_texts = lengths[known], text_numbers[known]
            ends = np.cumsum(known_lengths)  # in visible characters, of all texts
            is_first = np.append(True, known_texts[1:] != known_texts[:-1])
            first_tokens = np.flatnonzero(is_first)
            shifts = visible_until[known_texts[first_tokens]] - (ends - known_lengths)[first_tokens]
            ends += np.repeat(shifts, np.diff(np.append(first_tokens, len(known))))
            offsets[known, 0] = visible[ends - known_lengths] - starts[known_texts]
            offsets[known, 1] = visible[ends - 1] + 1 - starts[known_texts]
        return offsets, is_right

    def _kinds_of_characters(self, text: str) -> NDArray[np.int8]:
        """The kind of each character of a text."""
        if text.isascii():
            codes: NDArray[np.integer] = np.frombuffer(text.encode("ascii"), np.uint8)
        else:
            codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        kinds = self._kinds[codes]
        unseen = np.unique(codes[kinds == _UNSEEN]).tolist()
        if unseen:
            self._kinds[unseen] = [self._kind(chr(code)) for code in unseen]
            kinds = self._kinds[codes]
        return kinds

    def _kind(self, character: str) -> int:
        if unicodedata.combining(character):  # the normaliser may put it after the next one
            return _OTHER
        normalised: str = self._normaliser.normalize_str(character)
        if not normalised:
            return _OTHER
        return {0: _SPACE, 1: _VISIBLE}.get(len(normalised.strip()), _OTHER)
