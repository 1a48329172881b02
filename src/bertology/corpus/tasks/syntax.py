"""The shape of the tree: how deep it is, and which constituents a sentence is made of at the top (conneau2018).

SentEval takes both from constituency trees. Here they come from dependency trees: depth is the longest path from the
root, and the constituents are the root's dependents before its verb group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from bertology.corpus.sentence import ROOT, Sentence
from bertology.corpus.sentence_tasks import LEAST, Candidate, task

DEPTHS = range(3, 7)
CLASSES = 20
SHARE = 0.01
OTHER = "OTHER"

_CONSTITUENTS = {
    "nsubj": "NP", "csubj": "S", "expl": "NP", "advmod": "ADVP", "advcl": "SBAR", "mark": "IN", "cc": "CC",
    "discourse": "INTJ", "vocative": "NP", "dislocated": "NP", "obj": "NP", "ccomp": "S",
}  # fmt: skip
"""Relations to the root that make a constituent of their own; others are part of the core (a determiner of a noun)."""


@task("tree_depth", about="the longest path down the tree: 3, 4, 5 or 6, equally long sentences", layers=("heads",))
def tree_depth(sentences: Sequence[Sentence], random: Random) -> Iterator[Candidate]:
    """Classes are balanced among sentences of the same length, so that length tells nothing of depth."""
    for own in sentences:
        depth = deepest(own.heads or ())
        if depth in DEPTHS:
            yield Candidate(own.words, str(depth), stratum=str(len(own)))


@task("top_constituent", about="the sequence of constituents at the top of the tree", layers=("heads", "relations"))
def top_constituent(sentences: Sequence[Sentence], random: Random) -> list[Candidate]:
    """The most frequent sequences, at most 19 and each a hundredth of the sentences, and all others together."""
    labelled = [(own.words, " ".join(top_constituents(own))) for own in sentences if len(own) > 1]
    counts = Counter(label for _, label in labelled)
    frequent = sorted(counts, key=lambda label: (-counts[label], label))[: CLASSES - 1]
    named = {label for label in frequent if counts[label] >= max(LEAST, SHARE * len(labelled))}
    return [Candidate(words, label if label in named else OTHER) for words, label in labelled]


def deepest(heads: Sequence[int]) -> int:
    """The number of edges on the longest path from the root."""
    depths: dict[int, int] = {}
    for word in range(len(heads)):
        path = [word]
        while path[-1] not in depths and heads[path[-1]] != ROOT:
            path.append(heads[path[-1]])
        below = depths.setdefault(path[-1], 0)
        for up, own in enumerate(reversed(path)):
            depths.setdefault(own, below + up)
    return max(depths.values(), default=0)


def top_constituents(own: Sentence) -> list[str]:
    """What a sentence is made of: the root's dependents before the verb group, its core, and the punctuation after."""
    heads, relations = own.heads or (), own.relations or ()
    root = heads.index(ROOT)
    dependents = [word for word, head in enumerate(heads) if head == root]
    subjects = [w for w in dependents if w < root and relations[w].startswith(("nsubj", "csubj", "expl"))]
    before = [_constituent(own, word, subjects) for word in dependents if word < root]
    after = [own.words[word] for word in dependents if word > root and relations[word] == "punct"]
    core = "VP" if _is_clause(own, root, dependents) else "NP" if _tag(own, root) in ("NOUN", "PROPN", "PRON") else "X"
    return [*filter(None, before), core, *after[-1:]]


def _constituent(own: Sentence, word: int, subjects: Sequence[int]) -> str:
    relation = (own.relations or ())[word].split(":")[0]
    if subjects and word > subjects[-1]:
        return ""  # after its subject the verb phrase has begun
    if relation == "punct":
        return own.words[word]
    if relation in ("aux", "cop"):
        return "AUX" if subjects else ""  # a question
    if relation == "obl":
        heads, relations = own.heads or (), own.relations or ()
        cased = any(head == word and relations[other] == "case" for other, head in enumerate(heads))
        return "PP" if cased else "NP"
    return _CONSTITUENTS.get(relation, "")


def _is_clause(own: Sentence, root: int, dependents: Sequence[int]) -> bool:
    return _tag(own, root) in ("VERB", "AUX") or any((own.relations or ())[w] == "cop" for w in dependents)


def _tag(own: Sentence, word: int) -> str:
    return own.pos[word] if own.pos else ""
