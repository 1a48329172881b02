"""Does it know what is missing? Guesses at masked places, and pseudo-log-likelihood (Salazar et al. 2020)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from pretraining.evaluation.subject import Padded, Pieces, Subject, padded_batches
from pretraining.evaluation.treebank import Tree


@dataclass(frozen=True)
class Guess:
    """At one masked place: whether the best piece was the true one, and the true one's log probability in nats."""

    right: bool
    logarithm: float


@torch.inference_mode()
def guess(
    subject: Subject, sequences: Sequence[Sequence[int]], places: Sequence[int], truths: Sequence[int]
) -> list[Guess]:
    """For each sequence, in order, the guess at its place; the place is masked here, nothing else is."""
    masked = [[*ids[:place], subject.mask, *ids[place + 1 :]] for ids, place in zip(sequences, places, strict=True)]
    found: list[Guess | None] = [None] * len(masked)
    for batch in padded_batches(masked, subject.device):
        at = torch.tensor([places[number] for number in batch.indices], device=subject.device)
        truth = torch.tensor([truths[number] for number in batch.indices], device=subject.device)
        logs = _logarithms(subject, batch, at)
        right = (logs.argmax(dim=-1) == truth).tolist()
        values = logs.gather(1, truth[:, None])[:, 0].tolist()
        for number, is_right, value in zip(batch.indices, right, values, strict=True):
            found[number] = Guess(is_right, value)
    return [one for one in found if one is not None]


def _logarithms(subject: Subject, batch: Padded, at: torch.Tensor) -> torch.Tensor:
    """Log probabilities over the vocabulary at one place of each sequence."""
    hidden = subject.model.bert(batch.ids, attention_mask=batch.mask, token_type_ids=batch.segments).last_hidden_state
    rows = torch.arange(len(at), device=at.device)
    scores = subject.model.cls.predictions(hidden[rows, at])
    return scores.float().log_softmax(dim=-1)


@dataclass(frozen=True)
class WordAccuracy:
    """Share of words guessed with one word masked at a time, over `n` words that are one piece; and words left out."""

    top1: float
    top1_without_punctuation: float
    perplexity: float
    n: int
    words_of_several_pieces: int
    sentences_too_long: int


def word_accuracy(subject: Subject, trees: Sequence[Tree]) -> WordAccuracy:
    """Mask each one-piece word in turn in `[CLS] sentence [SEP]` and ask for the best piece."""
    seen: list[tuple[Pieces, int, bool]] = []
    several = too_long = 0
    for tree in trees:
        pieces = subject.pieces(tree.words)
        if pieces is None:
            too_long += 1
            continue
        for word in range(len(tree.words)):
            if pieces.words.count(word) > 1:
                several += 1
            else:
                seen.append((pieces, pieces.words.index(word) + 1, tree.tags[word] == "PUNCT"))
    guesses = guess(
        subject, [one.ids for one, _, _ in seen], [at for _, at, _ in seen], [one.ids[at] for one, at, _ in seen]
    )
    plain = [one.right for one, (_, _, mark) in zip(guesses, seen, strict=True) if not mark]
    mean = sum(one.logarithm for one in guesses) / len(guesses)
    return WordAccuracy(
        top1=sum(one.right for one in guesses) / len(guesses),
        top1_without_punctuation=sum(plain) / len(plain),
        perplexity=float(torch.tensor(-mean).exp()),
        n=len(guesses),
        words_of_several_pieces=several,
        sentences_too_long=too_long,
    )


def pseudo_log_likelihoods(subject: Subject, sentences: Sequence[str]) -> list[float]:
    """For each sentence, the sum over its pieces of their log probability when that piece alone is masked, in nats."""
    encoded = [subject.tokeniser.encode(sentence) for sentence in sentences]
    places = [(number, at) for number, ids in enumerate(encoded) for at in range(1, len(ids) - 1)]
    guesses = guess(
        subject,
        [encoded[number] for number, _ in places],
        [at for _, at in places],
        [encoded[number][at] for number, at in places],
    )
    sums = [0.0] * len(sentences)
    for (number, _), one in zip(places, guesses, strict=True):
        sums[number] += one.logarithm
    return sums
