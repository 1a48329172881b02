"""Accuracy of next-sentence prediction on pairs of passages (Devlin et al. 2019)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from pretraining.evaluation.evaluated_model import EvaluatedModel, padded_batches


@dataclass(frozen=True)
class NextSentenceAccuracy:
    """Accuracy over `n` pairs, half of them true pairs, so that chance is 0.5."""

    accuracy: float
    accuracy_on_true: float
    accuracy_on_random: float
    n: int


@dataclass(frozen=True)
class PassagePairs:
    """Sequences `[CLS] A [SEP] B [SEP]` with their segments; in every second one B is from another document."""

    sequences: list[list[int]]
    segments: list[list[int]]


def sample_pairs(
    model: EvaluatedModel,
    documents: Sequence[Sequence[str]],
    *,
    sample_size: int = 2_000,
    passage_tokens: int = 60,
    seed: int = 0,
) -> PassagePairs:
    """Sample pairs of passages of complete sentences, of about `passage_tokens` tokens if the document allows."""
    rng = random.Random(seed)
    encoded = [
        [model.tokeniser.encode(text, add_special_tokens=False) for text in document]
        for document in documents
        if len(document) > 1
    ]
    sequences: list[list[int]] = []
    segments: list[list[int]] = []
    available = model.config.max_position_embeddings - 3
    for number in range(sample_size):
        index = rng.randrange(len(encoded))
        document = encoded[index]
        boundary = rng.randrange(1, len(document))
        other_index = (index + rng.randrange(1, len(encoded))) % len(encoded)
        first = _last_sentences(document[:boundary], passage_tokens)[-(available // 2) :]
        if number % 2:
            document = encoded[other_index]
            boundary = rng.randrange(len(document))
        second = _first_sentences(document[boundary:], passage_tokens)[: available - len(first)]
        sequences.append([model.cls, *first, model.sep, *second, model.sep])
        segments.append([0] * (len(first) + 2) + [1] * (len(second) + 1))
    return PassagePairs(sequences, segments)


@torch.inference_mode()
def next_sentence_accuracy(model: EvaluatedModel, pairs: PassagePairs) -> NextSentenceAccuracy:
    """Accuracy of the model's NSP head: label 0 if B follows A, 1 if not."""
    predictions = [0] * len(pairs.sequences)
    for batch in padded_batches(pairs.sequences, model.device, segments=pairs.segments):
        output = model.model.bert(batch.ids, attention_mask=batch.mask, token_type_ids=batch.segments)
        labels = model.model.cls.seq_relationship(output.pooler_output).argmax(dim=-1).tolist()
        for index, label in zip(batch.indices, labels, strict=True):
            predictions[index] = label
    true_pairs, random_pairs = predictions[0::2], predictions[1::2]
    on_true = true_pairs.count(0) / len(true_pairs)
    on_random = random_pairs.count(1) / len(random_pairs)
    return NextSentenceAccuracy((on_true + on_random) / 2, on_true, on_random, len(predictions))


def _first_sentences(sentences: Sequence[list[int]], max_tokens: int) -> list[int]:
    """The first sentences, up to `max_tokens` tokens but at least one sentence."""
    ids = list(sentences[0])
    for sentence in sentences[1:]:
        if len(ids) + len(sentence) > max_tokens:
            break
        ids.extend(sentence)
    return ids


def _last_sentences(sentences: Sequence[list[int]], max_tokens: int) -> list[int]:
    """The last sentences, up to `max_tokens` tokens but at least one sentence."""
    ids = list(sentences[-1])
    for sentence in reversed(sentences[:-1]):
        if len(ids) + len(sentence) > max_tokens:
            break
        ids = [*sentence, *ids]
    return ids
