"""Dependency trees as arrays of heads: is it a tree, and which words stand below a word."""

from __future__ import annotations

from collections.abc import Sequence

from bertology.corpus.faults import Fault
from bertology.corpus.sentence import ROOT

REMEDY = "Correct the head column"


def check_tree(heads: Sequence[int], lines: Sequence[int]) -> None:
    """Raise a fault unless `heads` (0-based, ROOT for the root) is one tree; `lines` are the words' line numbers."""
    for head, line in zip(heads, lines, strict=True):
        if not ROOT <= head < len(heads):
            found = f"The head {head + 1} lies outside the sentence of {len(heads)} words"
            raise Fault("head out of range", found, f"a head from 0 to {len(heads)}", REMEDY, line=line)
    roots = [index for index, head in enumerate(heads) if head == ROOT]
    if not roots:
        raise Fault("no root", "No word has the head 0", "exactly one root a sentence", REMEDY, line=lines[0])
    cycle = _on_cycle(heads)
    if cycle is not None:
        found = f"Following the heads up from word {cycle + 1} comes back to it"
        raise Fault("head cycle", found, "a tree", REMEDY, line=lines[cycle])
    if len(roots) > 1:
        found = f"{len(roots)} words have the head 0"
        raise Fault("several roots", found, "exactly one root a sentence", REMEDY, line=lines[roots[1]])


def _on_cycle(heads: Sequence[int]) -> int | None:
    """The first word found on a cycle, each word being walked over once."""
    finished = [False] * len(heads)
    for start in range(len(heads)):
        walk: set[int] = set()
        word = start
        while word != ROOT and not finished[word]:
            if word in walk:
                return word
            walk.add(word)
            word = heads[word]
        for word in walk:
            finished[word] = True
    return None


def subtree(heads: Sequence[int], top: int, *, without: int | None = None) -> list[int]:
    """The words at or below `top` in order; what hangs below `without` (itself included) is left out."""
    children: dict[int, list[int]] = {}
    for word, head in enumerate(heads):
        children.setdefault(head, []).append(word)
    found: list[int] = []
    waiting = [top]
    while waiting:
        word = waiting.pop()
        if word == without:
            continue
        found.append(word)
        waiting.extend(children.get(word, ()))
    return sorted(found)
