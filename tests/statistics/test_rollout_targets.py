"""Targets of rollout: every pair of tokens has one, and the mass of each is the mean over rows."""

from __future__ import annotations

import math

import torch
from tests.statistics.token_batches import CLS, INPUTS, NONE, SEP, make_input, random_attention

from bertology.encoder.token_batch import TokenBatch
from bertology.statistics.rollout_targets import (
    EFFECTIVE_TOKENS,
    MEASURES,
    SOURCES,
    TARGETS,
    mass_by_target,
    target_masks,
    uniform_like,
)

SENTENCE = make_input([-1, 0, 1, 2, 3, -1], [CLS, NONE, NONE, NONE, NONE, SEP], 4)


def _target(source: int, target: int) -> str:
    """The target of a pair of `SENTENCE`, by its definition."""
    if source == target:
        return "itself"
    if target in (0, 5):
        return "[CLS]" if target == 0 else "[SEP]"
    return "neighbours" if abs(source - target) == 1 else "other"


def test_every_pair_of_tokens_has_the_target_of_its_definition() -> None:
    masks = target_masks(TokenBatch([SENTENCE]))
    for source in range(6):
        for target in range(6):
            found = [name for name, mask in zip(TARGETS, masks.by_target, strict=True) if mask[0, source, target]]
            assert found == [_target(source, target)]


def test_pairs_with_padding_have_no_target() -> None:
    batch = TokenBatch(INPUTS)
    total = torch.stack(target_masks(batch).by_target).sum(0)
    assert torch.equal(total, (batch.token_mask[:, :, None] & batch.token_mask[:, None, :]).long())


def test_sources_are_cls_all_tokens_and_tokens_that_are_not_special() -> None:
    sources = target_masks(TokenBatch(INPUTS)).sources
    assert sources[1].sum(0).tolist() == [1, 9, 6]
    assert sources[2].sum(0).tolist() == [1, 2, 0]


def test_mass_is_the_mean_over_the_rows_of_a_source() -> None:
    weights = random_attention([SENTENCE], heads=1)[:, 0]
    mass = mass_by_target(weights, target_masks(TokenBatch([SENTENCE])))[0]
    rows = {"cls": [0], "all": range(6), "non-special": range(1, 5)}
    for source, name in enumerate(SOURCES):
        matrix = weights[0].clone()
        if name == "non-special":
            matrix[:, [0, 5]] = 0
            matrix /= matrix.sum(-1, keepdim=True)
        for measure, target in enumerate(TARGETS):
            values = [sum(float(matrix[i, j]) for j in range(6) if _target(i, j) == target) for i in rows[name]]
            expected = sum(values) / len(values)
            impossible = (name == "cls" and target == "[CLS]") or (
                name == "non-special" and target in ("[CLS]", "[SEP]")
            )
            actual = float(mass[source, measure])
            assert math.isnan(actual) if impossible else math.isclose(actual, expected, abs_tol=1e-6), (name, target)


def test_effective_tokens_are_all_under_uniform_weights_and_one_where_a_token_gets_everything() -> None:
    masks = target_masks(TokenBatch([SENTENCE]))
    column = MEASURES.index(EFFECTIVE_TOKENS)
    uniform = mass_by_target(torch.full((1, 6, 6), 1 / 6), masks)[0, :, column]
    torch.testing.assert_close(uniform, torch.ones(3))
    single = mass_by_target(torch.eye(6)[None], masks)[0, :, column]
    torch.testing.assert_close(single, torch.tensor([1 / 6, 1 / 6, 1 / 4]))


def test_a_sentence_without_words_has_no_mass_from_words() -> None:
    weights = random_attention(INPUTS, heads=1)[:, 0]
    mass = mass_by_target(weights, target_masks(TokenBatch(INPUTS)))
    assert mass[2, SOURCES.index("non-special")].isnan().all()
    assert not mass[2, SOURCES.index("all"), 0].isnan()


def test_uniform_attention_is_over_what_a_model_lets_a_token_see() -> None:
    """A weight of 0 within what is seen is rounding; one offset that is never seen is a mask."""
    batch = TokenBatch([SENTENCE, make_input([-1, 0, -1], [CLS, NONE, SEP], 1)])
    visible = torch.ones(6, 6).tril().triu(-2)  # causal, within a window of two
    attention = (visible / visible.sum(-1, keepdim=True)).expand(2, 1, 6, 6).clone()
    attention[:, :, 4, 3] = 0.0
    attention = attention * batch.token_mask[:, None, None, :]
    uniform = uniform_like(attention, batch)
    assert uniform.shape == (2, 1, 6, 6)
    torch.testing.assert_close(uniform[0, 0], visible / visible.sum(-1, keepdim=True))
    expected = torch.tensor([[1.0, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]])
    torch.testing.assert_close(uniform[1, 0, :3, :3], expected)
    torch.testing.assert_close(uniform.sum(-1), torch.ones(2, 1, 6))
