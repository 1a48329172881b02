"""Masked-word prediction, and pseudo-log-likelihood (Salazar et al. 2020)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from pretraining.evaluation.evaluated_model import EvaluatedModel, PaddedBatch, TokenisedSentence, padded_batches
from pretraining.evaluation.treebank import Tree


@dataclass(frozen=True)
class MaskedPrediction:
    """The prediction of one masked token: whether it is correct, and the true token's log-probability in nats."""

    correct: bool
    log_probability: float


@torch.inference_mode()
def predict_masked(
    model: EvaluatedModel, sequences: Sequence[Sequence[int]], positions: Sequence[int]
) -> list[MaskedPrediction]:
    """For each sequence, in order, mask the token at its position and predict it."""
    masked = [
        [*ids[:position], model.mask, *ids[position + 1 :]] for ids, position in zip(sequences, positions, strict=True)
    ]
    predictions: dict[int, MaskedPrediction] = {}
    for batch in padded_batches(masked, model.device):
        batch_positions = torch.tensor([positions[index] for index in batch.indices], device=model.device)
        gold = torch.tensor([sequences[index][positions[index]] for index in batch.indices], device=model.device)
        log_probabilities = _log_probabilities(model, batch, batch_positions)
        correct = (log_probabilities.argmax(dim=-1) == gold).tolist()
        gold_log_probabilities = log_probabilities.gather(1, gold[:, None])[:, 0].tolist()
        for index, is_correct, value in zip(batch.indices, correct, gold_log_probabilities, strict=True):
            predictions[index] = MaskedPrediction(is_correct, value)
    return [predictions[index] for index in range(len(masked))]


def _log_probabilities(model: EvaluatedModel, batch: PaddedBatch, positions: torch.Tensor) -> torch.Tensor:
    """Log-probabilities over the vocabulary at one position of each sequence."""
    hidden = model.model.bert(batch.ids, attention_mask=batch.mask, token_type_ids=batch.segments).last_hidden_state
    rows = torch.arange(len(positions), device=positions.device)
    logits = model.model.cls.predictions(hidden[rows, positions])
    return logits.float().log_softmax(dim=-1)


@dataclass(frozen=True)
class MaskedWordAccuracy:
    """Accuracy on the `n` single-token words, each masked alone, and counts of what was skipped."""

    top1: float
    top1_without_punctuation: float
    perplexity: float
    n: int
    multi_token_words: int
    sentences_too_long: int


def masked_word_accuracy(model: EvaluatedModel, trees: Sequence[Tree]) -> MaskedWordAccuracy:
    """Mask each single-token word of `[CLS] sentence [SEP]` in turn and predict it."""
    words: list[tuple[TokenisedSentence, int, bool]] = []
    multi_token_words = sentences_too_long = 0
    for tree in trees:
        sentence = model.tokenise(tree.words)
        if sentence is None:
            sentences_too_long += 1
            continue
        for word in range(len(tree.words)):
            if sentence.word_indices.count(word) > 1:
                multi_token_words += 1
            else:
                words.append((sentence, sentence.word_indices.index(word) + 1, tree.tags[word] == "PUNCT"))
    predictions = predict_masked(
        model, [sentence.ids for sentence, _, _ in words], [position for _, position, _ in words]
    )
    not_punctuation = [
        prediction.correct
        for prediction, (_, _, is_punctuation) in zip(predictions, words, strict=True)
        if not is_punctuation
    ]
    mean_log_probability = sum(prediction.log_probability for prediction in predictions) / len(predictions)
    return MaskedWordAccuracy(
        top1=sum(prediction.correct for prediction in predictions) / len(predictions),
        top1_without_punctuation=sum(not_punctuation) / len(not_punctuation),
        perplexity=float(torch.tensor(-mean_log_probability).exp()),
        n=len(predictions),
        multi_token_words=multi_token_words,
        sentences_too_long=sentences_too_long,
    )


def pseudo_log_likelihoods(model: EvaluatedModel, sentences: Sequence[str]) -> list[float]:
    """For each sentence, the sum of its tokens' log-probabilities in nats, each token masked alone."""
    encoded = [model.tokeniser.encode(sentence) for sentence in sentences]
    masked = [(index, position) for index, ids in enumerate(encoded) for position in range(1, len(ids) - 1)]
    predictions = predict_masked(model, [encoded[index] for index, _ in masked], [position for _, position in masked])
    sums = [0.0] * len(sentences)
    for (index, _), prediction in zip(masked, predictions, strict=True):
        sums[index] += prediction.log_probability
    return sums
