"""Attention between words equals a loop over words and tokens, and its rows sum to 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.statistics.token_batches import CLS, INPUTS, NONE, SEP, make_input, random_attention

from bertology.arrays import Array, FloatArray
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.token_batch import TokenBatch
from bertology.encoder.tokens import SpecialToken, TokenisedInput
from bertology.statistics.words import NonWordSlot, RowPooling, strongest_words, word_attention, word_slots

POOLINGS: tuple[RowPooling, ...] = ("mean", "first", "max")


def pool_by_loop(attention: Array, tokens: TokenisedInput, max_words: int, pooling: RowPooling) -> FloatArray:
    """(slot, slot) of one input and head; `max_words` is the number of words of the longest input of the batch."""
    slots: list[list[int]] = [[] for _ in range(max_words + len(NonWordSlot))]
    for position, (word, kind) in enumerate(zip(tokens.word_ids, tokens.special_kinds, strict=True)):
        non_word = {CLS: NonWordSlot.CLS, SEP: NonWordSlot.SEP}.get(SpecialToken(kind), NonWordSlot.OTHER)
        slots[word if word >= 0 else max_words + non_word].append(position)
    pooled = np.zeros((len(slots), len(slots)))
    for i, sources in enumerate(slots):
        if sources:
            rows = np.array([[attention[source, targets].sum() for targets in slots] for source in sources])
            by_pooling = {"mean": rows.mean(0), "first": rows[0], "max": rows.max(0) / rows.max(0).sum()}
            pooled[i] = by_pooling[pooling]
    return pooled


@pytest.mark.parametrize("pooling", POOLINGS)
def test_word_attention_equals_a_loop_over_words(pooling: RowPooling) -> None:
    attention, words = random_attention(INPUTS), word_slots(TokenBatch(INPUTS))
    pooled = word_attention(attention, words, pooling=pooling, include_special=True)
    assert pooled.shape == (3, 2, 4 + len(NonWordSlot), 4 + len(NonWordSlot))
    for row, recorded in enumerate(INPUTS):
        for head in range(2):
            expected = pool_by_loop(attention[row, head].numpy(), recorded.tokens, 4, pooling)
            np.testing.assert_allclose(pooled[row, head].numpy(), expected, atol=1e-6)
    without_special = word_attention(attention, words, pooling=pooling)
    torch.testing.assert_close(without_special, pooled[..., :4, :4])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_several_tokens_outside_words_are_added_to_no_word(pooling: RowPooling) -> None:
    repeated = make_input([-1, -1, 0, 1, -1, -1], [CLS, CLS, NONE, NONE, SEP, SEP], 2)
    attention, words = random_attention([repeated]), word_slots(TokenBatch([repeated]))
    for include_special, size in ((False, 2), (True, 2 + len(NonWordSlot))):
        pooled = word_attention(attention, words, pooling=pooling, include_special=include_special)
        for head in range(2):
            expected = pool_by_loop(attention[0, head].numpy(), repeated.tokens, 2, pooling)[:size, :size]
            np.testing.assert_allclose(pooled[0, head].numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_rows_of_words_with_tokens_sum_to_one(pooling: RowPooling) -> None:
    words = word_slots(TokenBatch(INPUTS))
    sums = word_attention(random_attention(INPUTS), words, pooling=pooling, include_special=True).sum(-1)
    torch.testing.assert_close(sums, (words.slot_sizes[:, None, :-1] > 0).float().expand_as(sums))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_attention_between_unsplit_words_is_unchanged(pooling: RowPooling) -> None:
    unsplit = make_input([-1, 0, 1, 2, -1], [CLS, NONE, NONE, NONE, SEP], 3)
    attention = random_attention([unsplit])
    pooled = word_attention(attention, word_slots(TokenBatch([unsplit])), pooling=pooling)
    torch.testing.assert_close(pooled, attention[:, :, 1:4, 1:4])


def test_the_order_of_summing_and_averaging_does_not_matter() -> None:
    attention, words = random_attention(INPUTS[:1]), word_slots(TokenBatch(INPUTS[:1]))
    rows = attention[:, :, [1, 2, 4]].clone()
    rows[:, :, 1] = (attention[:, :, 2] + attention[:, :, 3]) / 2
    expected = rows[..., [1, 2, 4]].clone()
    expected[..., 1] = rows[..., 2] + rows[..., 3]
    torch.testing.assert_close(word_attention(attention, words), expected)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_rest_of_the_batch_changes_nothing(pooling: RowPooling) -> None:
    attention = random_attention(INPUTS)
    batched = word_attention(attention, word_slots(TokenBatch(INPUTS)), pooling=pooling)
    for row, recorded in enumerate(INPUTS[:2]):
        n, n_words = len(recorded.tokens), recorded.tokens.n_words
        words = word_slots(TokenBatch([recorded]))
        single = word_attention(attention[row : row + 1, :, :n, :n], words, pooling=pooling)
        torch.testing.assert_close(batched[row, :, :n_words, :n_words], single[0])


def test_gradients_pass_through() -> None:
    attention = random_attention(INPUTS).double().requires_grad_()
    words = word_slots(TokenBatch(INPUTS))

    def pool(values: torch.Tensor) -> torch.Tensor:
        return word_attention(values, words, include_special=True)

    assert torch.autograd.gradcheck(pool, attention)


def test_the_attention_itself_is_not_changed() -> None:
    attention = random_attention([replace(INPUTS[0])])
    before = attention.clone()
    word_attention(attention, word_slots(TokenBatch(INPUTS[:1])), pooling="max")
    torch.testing.assert_close(attention, before)


def test_of_two_equally_strong_words_a_random_one_is_taken_the_same_in_all_heads() -> None:
    n = 40
    unsplit = make_input(range(n), [NONE] * n, n)
    attention = torch.zeros(1, 2, n, n)
    attention[..., [3, 30]] = 0.5
    words = word_slots(TokenBatch([unsplit]))
    excluded = torch.zeros(1, 1, n, n, dtype=torch.bool)
    strongest = strongest_words(LayerActivations(0, attention), words, excluded, "mean")
    target, _, ties, _ = strongest[0].unbind(1)
    assert set(target.flatten().tolist()) == {3.0, 30.0}
    assert 10 <= int((target[0] == 3).sum()) <= 30
    assert torch.equal(target[0], target[1]) and (ties == 2).all()
