"""Does it know which sentence follows? Next-sentence prediction on sentence pairs (Devlin et al. 2019)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from pretraining.evaluation.subject import Subject, padded_batches


@dataclass(frozen=True)
class Following:
    """Share of pairs judged rightly (chance .5 by construction), over `n` pairs, half of them true."""

    accuracy: float
    accuracy_on_true: float
    accuracy_on_random: float
    n: int


@dataclass(frozen=True)
class Pairs:
    """Sequences `[CLS] A [SEP] B [SEP]` with their segments; every second one's B comes from another document."""

    sequences: list[list[int]]
    segments: list[list[int]]


def draw_pairs(
    subject: Subject, documents: Sequence[Sequence[str]], *, pairs: int = 2_000, tokens: int = 60, seed: int = 0
) -> Pairs:
    """Passages of whole sentences, about `tokens` pieces each where the document is long enough."""
    choose = random.Random(seed)
    usable = [
        [subject.tokeniser.encode(text, add_special_tokens=False) for text in one] for one in documents if len(one) > 1
    ]
    sequences: list[list[int]] = []
    segments: list[list[int]] = []
    room = subject.config.max_position_embeddings - 3
    for number in range(pairs):
        at = choose.randrange(len(usable))
        document = usable[at]
        cut = choose.randrange(1, len(document))
        other = (at + choose.randrange(1, len(usable))) % len(usable)
        first = _backwards(document[:cut], tokens)[-(room // 2) :]
        if number % 2:
            document = usable[other]
            cut = choose.randrange(len(document))
        second = _forwards(document[cut:], tokens)[: room - len(first)]
        sequences.append([subject.cls, *first, subject.sep, *second, subject.sep])
        segments.append([0] * (len(first) + 2) + [1] * (len(second) + 1))
    return Pairs(sequences, segments)


@torch.inference_mode()
def next_sentence_accuracy(subject: Subject, pairs: Pairs) -> Following:
    """What the model's own head says: 0 that B follows A, 1 that it does not."""
    says = [0] * len(pairs.sequences)
    for batch in padded_batches(pairs.sequences, subject.device, segments=pairs.segments):
        out = subject.model.bert(batch.ids, attention_mask=batch.mask, token_type_ids=batch.segments)
        judged = subject.model.cls.seq_relationship(out.pooler_output).argmax(dim=-1).tolist()
        for index, label in zip(batch.indices, judged, strict=True):
            says[index] = label
    true, other = says[0::2], says[1::2]
    on_true = true.count(0) / len(true)
    on_random = other.count(1) / len(other)
    return Following((on_true + on_random) / 2, on_true, on_random, len(says))


def _forwards(sentences: Sequence[list[int]], tokens: int) -> list[int]:
    """Whole sentences from the front until `tokens` pieces are reached; at least one sentence."""
    ids = list(sentences[0])
    for sentence in sentences[1:]:
        if len(ids) + len(sentence) > tokens:
            break
        ids.extend(sentence)
    return ids


def _backwards(sentences: Sequence[list[int]], tokens: int) -> list[int]:
    """Whole sentences from the back until `tokens` pieces are reached; at least one sentence."""
    ids = list(sentences[-1])
    for sentence in reversed(sentences[:-1]):
        if len(ids) + len(sentence) > tokens:
            break
        ids = [*sentence, *ids]
    return ids
