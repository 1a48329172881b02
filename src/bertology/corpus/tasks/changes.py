"""Sentences that were tampered with: two words swapped, a word replaced, two clauses exchanged (conneau2018).

Half of the sentences are changed, the others are left alone; no sentence is there in both forms. A bag of words is at
chance in `bigram_shift` and `coordination_inversion`, which change only the order, and in `odd_man_out`, where the
changed sentences exchange words among themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from random import Random

from bertology.corpus.sentence import ROOT, Sentence
from bertology.corpus.sentence_tasks import Candidate, task
from bertology.corpus.trees import subtree

SHORTEST = 5
INTACT, CHANGED = "O", "C"


@task("bigram_shift", about="whether two neighbouring words were swapped (I) or not (O)")
def bigram_shift(sentences: Sequence[Sentence], random: Random) -> Iterator[Candidate]:
    """The words are two different ones of letters; the first word of the sentence stays, for its capital would tell."""
    for own in sentences:
        words = own.words
        places = [
            place
            for place in range(1, len(words) - 1)
            if words[place].isalpha() and words[place + 1].isalpha() and words[place] != words[place + 1]
        ]
        if len(words) < SHORTEST or not places:
            continue
        place = random.choice(places)
        swapped = (*words[:place], words[place + 1], words[place], *words[place + 2 :])
        yield Candidate(*((swapped, "I") if random.random() < 0.5 else (words, INTACT)))


@task("odd_man_out", about="whether a noun or verb was replaced by another (C) or not (O)", layers=("pos",))
def odd_man_out(sentences: Sequence[Sentence], random: Random) -> Iterator[Candidate]:
    """The new word has the same tag and about the same frequency, and comes from another changed sentence.

    SentEval asks in addition that the new word's bigrams be as frequent as the old one's, which needs the counts of a
    corpus of millions of sentences.
    """
    counts = Counter(word.lower() for own in sentences for word in own.words)
    alike: dict[tuple[str, int], list[tuple[Sentence, int]]] = defaultdict(list)
    for own in sentences:
        places = [place for place in range(1, len(own)) if _is_replaceable(own, place)]
        if len(own) >= SHORTEST and places:
            place = random.choice(places)
            tag = (own.xpos or own.pos or ())[place]
            alike[tag, counts[own.words[place]].bit_length()].append((own, place))
    for group in alike.values():
        half = len(group) // 2
        yield from _exchanged(group[:half])
        yield from (Candidate(own.words, INTACT) for own, _ in group[half : 2 * half])


def _is_replaceable(own: Sentence, place: int) -> bool:
    word = own.words[place]
    return (own.pos or ())[place] in ("NOUN", "VERB") and word.isalpha() and word == word.lower()


def _exchanged(group: Sequence[tuple[Sentence, int]]) -> Iterator[Candidate]:
    """Every sentence with the word of another one, every word as often as before."""
    ordered = sorted(group, key=lambda some: some[0].words[some[1]])
    most = max(Counter(own.words[place] for own, place in ordered).values(), default=0)
    if 2 * most > len(ordered):
        return
    # Equal words stand together: as many steps on as the most frequent one takes there is another word.
    for (own, place), (giver, given) in zip(ordered, ordered[most:] + ordered[:most], strict=True):
        yield Candidate((*own.words[:place], giver.words[given], *own.words[place + 1 :]), CHANGED)


@task(
    "coordination_inversion",
    about="whether two coordinated clauses were exchanged (I) or not (O)",
    layers=("heads", "relations"),
)
def coordination_inversion(sentences: Sequence[Sentence], random: Random) -> Iterator[Candidate]:
    """Sentences of two coordinated main clauses, each with a subject of its own, and nothing else."""
    for own in sentences:
        parts = _clauses(own)
        if parts is not None:
            inverted = _inverted(own, *parts)
            yield Candidate(*((inverted, "I") if random.random() < 0.5 else (own.words, INTACT)))


def _clauses(own: Sentence) -> tuple[int, int, int] | None:
    """Where the first clause ends, the second begins and ends; between them a conjunction, perhaps with a comma."""
    heads, relations = own.heads or (), own.relations or ()
    root = heads.index(ROOT)
    joined = [w for w, head in enumerate(heads) if head == root and relations[w].split(":")[0] == "conj"]
    if len(joined) != 1 or not _has_subject(own, root) or not _has_subject(own, joined[0]):
        return None
    below = subtree(heads, joined[0])
    links = [w for w in below if heads[w] == joined[0] and relations[w] == "cc"]
    end = len(own)
    while end and relations[end - 1] == "punct":
        end -= 1
    first = min(below)
    contiguous = [word for word in below if word < end] == list(range(first, end))
    if len(links) != 1 or not contiguous or links[0] > first + 1 or not 1 < first < end - 2:
        return None
    if any(relations[word] != "punct" for word in range(first, links[0])):
        return None
    return (first - (relations[first - 1] == "punct"), links[0] + 1, end)


def _has_subject(own: Sentence, verb: int) -> bool:
    pairs = zip(own.heads or (), own.relations or (), strict=True)
    return any(head == verb and relation.startswith(("nsubj", "csubj", "expl")) for head, relation in pairs)


def _inverted(own: Sentence, first_end: int, second: int, end: int) -> tuple[str, ...]:
    """The clauses exchanged, what is between and after them in its place, capitals where they belong."""
    words = list(own.words)
    keeps = words[0] == "I" or words[0].isupper() or (own.pos is not None and own.pos[0] == "PROPN")
    words[0] = words[0] if keeps else words[0][:1].lower() + words[0][1:]
    words[second] = words[second][:1].upper() + words[second][1:]
    return (*words[second:end], *words[first_end:second], *words[:first_end], *words[end:])
