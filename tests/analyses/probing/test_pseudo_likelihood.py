"""Pseudo-log-likelihoods equal those of one forward pass per token, and those of minicons."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bertology.analyses.probing.pseudo_likelihood import Masking, masked_copies, masked_log_probs, tokeniser_words
from bertology.corpus.read import as_corpus
from bertology.encoder.encoder import Encoder, ModelInputs, TaskEncoder
from bertology.encoder.load import load
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import Int32Array, SpecialToken, TokenisedInput


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load("tiny")


def tokenise(encoder: Encoder, *texts: str) -> list[tuple[TokenisedInput, Int32Array]]:
    """Tokens, and the word of each token."""
    inputs = [example.text_inputs[0] for example in as_corpus(texts)]
    recorded = [
        RecordedInput(index, 0, 0, text, tokens)
        for index, (text, tokens) in enumerate(zip(inputs, encoder.tokenise(inputs), strict=True))
    ]
    return [(r.tokens, words) for r, words in zip(recorded, tokeniser_words(encoder, recorded), strict=True)]


def log_probs_one_by_one(encoder: TaskEncoder, tokens: TokenisedInput, text: str, masking: str) -> list[float]:
    """The definition: one forward pass per token, without batches; words as transformers gives them."""
    words = encoder.hf_tokenizer(text).word_ids()
    log_probs: list[float] = []
    for position in range(len(tokens)):
        if tokens.special_kinds[position] != SpecialToken.NONE:
            continue
        ids = torch.tensor(tokens.ids.astype(np.int64))[None]
        gold = int(ids[0, position])
        for other in range(len(tokens)):
            same_word = words[other] == words[position]
            is_masked = {"token": other == position, "word-l2r": same_word and other >= position, "word": same_word}
            if is_masked[masking]:
                ids[0, other] = encoder.mask_token_id or 0
        type_ids = torch.tensor(tokens.type_ids.astype(np.int64))[None]
        with torch.no_grad():
            logits = encoder.forward(ModelInputs(ids, type_ids, torch.ones_like(ids))).logits["mlm"][0, position]
        log_probs.append(float(logits.log_softmax(-1)[gold]))
    return log_probs


@pytest.mark.parametrize("masking", ["token", "word-l2r", "word"])
def test_log_probabilities_are_those_of_one_pass_per_token(tiny: Encoder, masking: Masking) -> None:
    assert isinstance(tiny, TaskEncoder)
    texts = (
        "An unbelievable chrysanthemum withered .",
        "Yes",
        "Cats , dogs and hippopotamuses",
        "They haven't well-being",
    )
    inputs = tokenise(tiny, *texts)
    assert any(len(tokens) > tokens.n_words + 2 for tokens, _ in inputs), "no word is split into tokens"
    copies = [copy for tokens, words in inputs for copy in masked_copies(tokens, masking, words)]
    expected = [
        score
        for (tokens, _), text in zip(inputs, texts, strict=True)
        for score in log_probs_one_by_one(tiny, tokens, text, masking)
    ]
    np.testing.assert_allclose(masked_log_probs(tiny, copies), expected, atol=1e-5)


def test_words_of_the_tokeniser_split_contractions(tiny: Encoder) -> None:
    ((tokens, words),) = tokenise(tiny, "They haven't slept")
    positions = tokens.positions_by_word()[1]
    assert len(positions) > 1 and len(set(tokens.word_ids[positions].tolist())) == 1  # one word of the corpus
    assert len(set(words[positions].tolist())) > 1
    masked = {copy.scored_position: copy.masked_positions for copy in masked_copies(tokens, "word-l2r", words)}
    assert positions[-1] not in masked[positions[0]]


def total(log_probs: torch.Tensor) -> float:
    return float(log_probs.sum(0))


def test_log_probabilities_agree_with_minicons(tiny: Encoder) -> None:
    scorer = pytest.importorskip("minicons.scorer")
    assert isinstance(tiny, TaskEncoder)
    texts = ["The cat sat on the mat .", "An unbelievable chrysanthemum withered .", "They haven't slept, she's said ."]
    minicons = scorer.MaskedLMScorer(tiny.model, "cpu", tokenizer=tiny.hf_tokenizer)
    inputs = tokenise(tiny, *texts)
    metrics: dict[Masking, str] = {"token": "original", "word-l2r": "within_word_l2r"}
    for masking, metric in metrics.items():
        sums = [masked_log_probs(tiny, list(masked_copies(tokens, masking, words))).sum() for tokens, words in inputs]
        expected = minicons.sequence_score(texts, reduction=total, PLL_metric=metric)
        np.testing.assert_allclose(sums, expected, atol=1e-4)
