"""Inputs with special tokens at the same positions are grouped, and features are computed once per batch."""

from __future__ import annotations

import gc
import weakref

import pytest
from tests.statistics.token_batches import CLS, INPUTS, NONE, SEP, make_input, random_attention

import planted
from bertology.encoder.token_batch import TokenBatch
from bertology.statistics.batch_features import (
    KINDS_BY_PUNCTUATION,
    TOKEN_KINDS,
    cached_per_batch,
    is_punctuation,
    mass_by_kind,
    token_kinds,
    token_runs,
)

EQUAL = [make_input([-1, 0, 1, -1], [CLS, NONE, NONE, SEP], 2)] * 3


def test_equal_inputs_are_grouped() -> None:
    (run,) = token_runs(TokenBatch(EQUAL))
    assert (run.batch_rows, run.length) == (slice(0, 3), 4)
    assert (run.non_special, run.special) == ((slice(1, 3),), (slice(0, 1), slice(3, 4)))
    assert [run.non_special for run in token_runs(TokenBatch(INPUTS))] == [
        (slice(1, 5),),
        (slice(1, 4), slice(5, 8)),
        (),
    ]


def test_a_feature_is_computed_once_per_batch_and_dropped_with_it() -> None:
    calls: list[int] = []

    @cached_per_batch
    def n_inputs(batch: TokenBatch) -> int:
        calls.append(len(batch.inputs))
        return len(batch.inputs)

    batch = TokenBatch(INPUTS)
    assert n_inputs(batch) == n_inputs(batch) == 3
    assert calls == [3]
    assert n_inputs(TokenBatch(EQUAL[:1])) == 1
    reference = weakref.ref(batch)
    del batch
    gc.collect()
    assert reference() is None


def test_mass_by_kind_is_the_mean_share_of_rows_with_any_weight() -> None:
    batch = TokenBatch(INPUTS)
    weights = 3 * random_attention(INPUTS)
    weights[0, 0, 2] = 0  # a row without weight has no shares
    kinds = token_kinds(batch)
    mass = mass_by_kind(weights, kinds, batch.token_mask)
    assert mass.shape == (3, 2, len(TOKEN_KINDS))
    for row, recorded in enumerate(INPUTS):
        tokens = range(len(recorded.tokens))
        for head in range(2):
            sources = [weights[row, head, source] for source in tokens if weights[row, head, source].sum() > 0]
            for kind in range(len(TOKEN_KINDS)):
                of_kind = [token for token in tokens if kinds[row, token, kind]]
                shares = [float(source[of_kind].sum() / source.sum()) for source in sources]
                expected = sum(shares) / len(shares) if of_kind else float("nan")
                assert float(mass[row, head, kind]) == pytest.approx(expected, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("token", [".", ",", "`", "``", "''", "##-", "Ġ,", "▁(", "¿", "#"])
def test_punctuation_marks_are_punctuation(token: str) -> None:
    assert is_punctuation(token)


@pytest.mark.parametrize("token", ["a", "##a", "$", "+", "a.", "3", "[UNK]"])
def test_words_and_symbols_are_no_punctuation(token: str) -> None:
    assert not is_punctuation(token)


def test_clark_et_al_count_only_full_stops_and_commas() -> None:
    (recorded_input,) = planted.recorded_inputs(planted.make_corpus("a , b ` c - d ."))
    batch = TokenBatch([recorded_input])
    index = TOKEN_KINDS.index("punctuation")
    marks = {
        punctuation: [recorded_input.tokens.tokens[i] for i in kinds(batch)[0, :, index].nonzero().flatten().tolist()]
        for punctuation, kinds in KINDS_BY_PUNCTUATION.items()
    }
    assert marks == {"all": [",", "`", "-", "."], ".,": [",", "."]}
    assert all((kinds(batch).sum(-1) == 1).all() for kinds in KINDS_BY_PUNCTUATION.values())
