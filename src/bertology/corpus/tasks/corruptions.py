"""Corruption tasks: swapped words, a replaced word, exchanged clauses (conneau2018).

Half of the sentences are corrupted, the others intact; no sentence is used in both forms. A bag of words is at chance
in `bigram_shift` and `coordination_inversion`, which change only the order, and in `odd_man_out`, where the corrupted
sentences exchange words among themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from random import Random

from bertology.corpus.probing_tasks import LabelledCandidate, probing_task
from bertology.corpus.sentence import ROOT, Sentence, subtree

MIN_WORDS = 5
INTACT, REPLACED, INVERTED = "O", "C", "I"


@probing_task("bigram_shift", description="SentEval bigram shift: two neighbouring words swapped (I) or original (O)")
def bigram_shift(sentences: Sequence[Sentence], rng: Random) -> Iterator[LabelledCandidate]:
    """Swap two different alphabetic words; the first word stays, because its capital would reveal the swap."""
    for sentence in sentences:
        words = sentence.words
        indices = [
            index
            for index in range(1, len(words) - 1)
            if words[index].isalpha() and words[index + 1].isalpha() and words[index] != words[index + 1]
        ]
        if len(words) < MIN_WORDS or not indices:
            continue
        index = rng.choice(indices)
        swapped = (*words[:index], words[index + 1], words[index], *words[index + 2 :])
        yield LabelledCandidate(*((swapped, INVERTED) if rng.random() < 0.5 else (words, INTACT)))


@probing_task(
    "odd_man_out",
    description="SentEval odd man out: noun or verb replaced (C) or original (O)",
    annotations=("pos",),
)
def odd_man_out(sentences: Sequence[Sentence], rng: Random) -> Iterator[LabelledCandidate]:
    """Replace a word by one with the same tag and similar frequency from another corrupted sentence.

    SentEval also requires that the bigrams of the new word are as frequent as those of the old one, which needs counts
    from millions of sentences.
    """
    counts = Counter(word.lower() for sentence in sentences for word in sentence.words)
    groups: dict[tuple[str, int], list[tuple[Sentence, int]]] = defaultdict(list)
    for sentence in sentences:
        indices = [index for index in range(1, len(sentence)) if _is_replaceable(sentence, index)]
        if len(sentence) >= MIN_WORDS and indices:
            index = rng.choice(indices)
            tag = (sentence.xpos or sentence.pos or ())[index]
            groups[tag, counts[sentence.words[index]].bit_length()].append((sentence, index))
    for group in groups.values():
        half = len(group) // 2
        yield from _exchange_words(group[:half])
        yield from (LabelledCandidate(sentence.words, INTACT) for sentence, _ in group[half : 2 * half])


def _is_replaceable(sentence: Sentence, index: int) -> bool:
    word = sentence.words[index]
    return (sentence.pos or ())[index] in ("NOUN", "VERB") and word.isalpha() and word == word.lower()


def _exchange_words(group: Sequence[tuple[Sentence, int]]) -> Iterator[LabelledCandidate]:
    """Give every sentence the word of another one, so that word frequencies do not change."""
    ordered = sorted(group, key=lambda member: member[0].words[member[1]])
    max_count = max(Counter(sentence.words[index] for sentence, index in ordered).values(), default=0)
    if 2 * max_count > len(ordered):
        return
    # Equal words are adjacent, so that a rotation by the highest count gives every sentence a different word.
    rotated = ordered[max_count:] + ordered[:max_count]
    for (sentence, index), (donor, donor_index) in zip(ordered, rotated, strict=True):
        words = (*sentence.words[:index], donor.words[donor_index], *sentence.words[index + 1 :])
        yield LabelledCandidate(words, REPLACED)


@probing_task(
    "coordination_inversion",
    description="SentEval coordination inversion: coordinated clauses exchanged (I) or original (O)",
    annotations=("governors", "relations"),
)
def coordination_inversion(sentences: Sequence[Sentence], rng: Random) -> Iterator[LabelledCandidate]:
    """Use sentences that consist of two coordinated main clauses, each with a subject."""
    for sentence in sentences:
        boundaries = _clause_boundaries(sentence)
        if boundaries is not None:
            inverted = _invert_clauses(sentence, *boundaries)
            yield LabelledCandidate(*((inverted, INVERTED) if rng.random() < 0.5 else (sentence.words, INTACT)))


def _clause_boundaries(sentence: Sentence) -> tuple[int, int, int] | None:
    """Return the end of the first clause, and start and end of the second; a conjunction is between them."""
    governors, relations = sentence.governors or (), sentence.relations or ()
    root = governors.index(ROOT)
    conjuncts = [w for w, g in enumerate(governors) if g == root and relations[w].split(":")[0] == "conj"]
    if len(conjuncts) != 1 or not _has_subject(sentence, root) or not _has_subject(sentence, conjuncts[0]):
        return None
    clause = subtree(governors, conjuncts[0])
    conjunctions = [w for w in clause if governors[w] == conjuncts[0] and relations[w] == "cc"]
    end = len(sentence)
    while end and relations[end - 1] == "punct":
        end -= 1
    first = min(clause)
    is_contiguous = [word for word in clause if word < end] == list(range(first, end))
    if len(conjunctions) != 1 or not is_contiguous or conjunctions[0] > first + 1 or not 1 < first < end - 2:
        return None
    if any(relations[word] != "punct" for word in range(first, conjunctions[0])):
        return None
    return (first - (relations[first - 1] == "punct"), conjunctions[0] + 1, end)


def _has_subject(sentence: Sentence, verb: int) -> bool:
    pairs = zip(sentence.governors or (), sentence.relations or (), strict=True)
    return any(governor == verb and relation.startswith(("nsubj", "csubj", "expl")) for governor, relation in pairs)


def _invert_clauses(sentence: Sentence, first_end: int, second_start: int, end: int) -> tuple[str, ...]:
    """Exchange the clauses, with the words between and after them in place, and adjust capitals."""
    words = list(sentence.words)
    is_proper = words[0] == "I" or words[0].isupper() or (sentence.pos is not None and sentence.pos[0] == "PROPN")
    words[0] = words[0] if is_proper else words[0][:1].lower() + words[0][1:]
    words[second_start] = words[second_start][:1].upper() + words[second_start][1:]
    return (*words[second_start:end], *words[first_end:second_start], *words[:first_end], *words[end:])
