"""Syntactic tasks: depth of the tree and sequence of top constituents (conneau2018).

SentEval takes both from constituency trees. Here they come from dependency trees: depth is the longest path from the
root, and the constituents are the dependents of the root before its verb group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from bertology.corpus.probing_tasks import MIN_EXAMPLES_PER_CLASS, LabelledCandidate, probing_task
from bertology.corpus.sentence import ROOT, Sentence

DEPTHS = range(3, 7)
MAX_CLASSES = 20
MIN_FRACTION = 0.01
OTHER_LABEL = "OTHER"

_CONSTITUENTS = {
    "nsubj": "NP", "csubj": "S", "expl": "NP", "advmod": "ADVP", "advcl": "SBAR", "mark": "IN", "cc": "CC",
    "discourse": "INTJ", "vocative": "NP", "dislocated": "NP", "obj": "NP", "ccomp": "S",
}  # fmt: skip
"""Relations to the root that form a constituent; others are part of the core, such as the determiner of a noun."""


@probing_task(
    "tree_depth",
    description="SentEval tree depth: longest path in the tree (3, 4, 5 or 6), balanced by sentence length",
    annotations=("governors",),
)
def tree_depth(sentences: Sequence[Sentence], rng: Random) -> Iterator[LabelledCandidate]:
    """Balance classes among sentences of the same length, so that length does not predict depth."""
    for sentence in sentences:
        depth = max_depth(sentence.governors or ())
        if depth in DEPTHS:
            yield LabelledCandidate(sentence.words, str(depth), stratum=str(len(sentence)))


@probing_task(
    "top_constituent",
    description="SentEval top constituents: sequence of constituents below the root",
    annotations=("governors", "relations"),
)
def top_constituent(sentences: Sequence[Sentence], rng: Random) -> list[LabelledCandidate]:
    """Label with the most frequent sequences: at most 19, each of at least 1 % of the sentences; others are OTHER."""
    labelled = [(s.words, " ".join(top_constituents(s))) for s in sentences if len(s) > 1]
    counts = Counter(label for _, label in labelled)
    most_frequent = sorted(counts, key=lambda label: (-counts[label], label))[: MAX_CLASSES - 1]
    min_count = max(MIN_EXAMPLES_PER_CLASS, MIN_FRACTION * len(labelled))
    classes = {label for label in most_frequent if counts[label] >= min_count}
    return [LabelledCandidate(words, label if label in classes else OTHER_LABEL) for words, label in labelled]


def max_depth(governors: Sequence[int]) -> int:
    """Return the number of edges on the longest path from the root."""
    depths: dict[int, int] = {}
    for word in range(len(governors)):
        path = [word]
        while path[-1] not in depths and governors[path[-1]] != ROOT:
            path.append(governors[path[-1]])
        top_depth = depths.setdefault(path[-1], 0)
        for steps, descendant in enumerate(reversed(path)):
            depths.setdefault(descendant, top_depth + steps)
    return max(depths.values(), default=0)


def top_constituents(sentence: Sentence) -> list[str]:
    """Return the dependents of the root before the verb group, the core, and the final punctuation."""
    governors, relations = sentence.governors or (), sentence.relations or ()
    root = governors.index(ROOT)
    dependents = [word for word, governor in enumerate(governors) if governor == root]
    subjects = [w for w in dependents if w < root and relations[w].startswith(("nsubj", "csubj", "expl"))]
    before = [_constituent(sentence, word, subjects) for word in dependents if word < root]
    punctuation = [sentence.words[word] for word in dependents if word > root and relations[word] == "punct"]
    if _tag(sentence, root) in ("VERB", "AUX") or any(relations[word] == "cop" for word in dependents):
        core = "VP"
    else:
        core = "NP" if _tag(sentence, root) in ("NOUN", "PROPN", "PRON") else "X"
    return [*filter(None, before), core, *punctuation[-1:]]


def _constituent(sentence: Sentence, word: int, subjects: Sequence[int]) -> str:
    governors, relations = sentence.governors or (), sentence.relations or ()
    relation = relations[word].split(":")[0]
    if subjects and word > subjects[-1]:
        return ""  # the verb phrase begins after the subject
    if relation == "punct":
        return sentence.words[word]
    if relation in ("aux", "cop"):
        return "AUX" if subjects else ""  # a question
    if relation == "obl":
        has_case = any(g == word and relations[dependent] == "case" for dependent, g in enumerate(governors))
        return "PP" if has_case else "NP"
    return _CONSTITUENTS.get(relation, "")


def _tag(sentence: Sentence, word: int) -> str:
    return sentence.pos[word] if sentence.pos else ""
