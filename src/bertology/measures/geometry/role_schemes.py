"""Roles that the pieces of a sentence may fill: by position, by nothing, or by their place in a tree (mccoy2019).

| scheme | the role of a piece |
|---|---|
| left to right | its number from the left |
| right to left | its number from the right |
| bidirectional | both |
| bag of words | always the same |
| tree | the path of left and right turns from the root of a binary tree to its word |

[CLS] and [SEP] fill roles of their own; the pieces of a word share its role in the tree. A role that training shows too
rarely is replaced by the nearest one that it shows often: the nearest number, pair of numbers, or a shorter path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from bertology.corpus.sentence import ROOT
from bertology.encoder.pieces import Special
from bertology.recording.annotation import word_heads
from bertology.recording.entry import Entry

Role = tuple[int, ...]
Scheme = Callable[[Entry], list[Role]]

ENOUGH = 5
_SPECIAL = {Special.CLS: (-1,), Special.SEP: (-2,), Special.OTHER: (-3,)}
_LEFT, _RIGHT = 0, 1


def tree_paths(heads: Sequence[int | None]) -> list[Role]:
    """The path to each word in a binary tree over the words: 0 for a turn to the left, 1 to the right.

    A head is first parted from its dependents to the left, the farthest first, then from those to the right.
    """
    below: dict[int, list[int]] = {}
    for word, head in enumerate(heads):
        below.setdefault(ROOT if head is None else head, []).append(word)
    paths: list[Role] = [()] * len(heads)
    waiting: list[tuple[int, Role]] = []
    top: Role = ()
    for place, root in enumerate(below.get(ROOT, [])):  # several sentences, one after the other
        last = place + 1 == len(below[ROOT])
        waiting.append((root, top if last else (*top, _LEFT)))
        top = (*top, _RIGHT)
    while waiting:
        word, path = waiting.pop()
        for other in (own for own in below.get(word, ()) if own < word):
            waiting.append((other, (*path, _LEFT)))
            path = (*path, _RIGHT)
        for other in reversed([own for own in below.get(word, ()) if own > word]):
            waiting.append((other, (*path, _RIGHT)))
            path = (*path, _LEFT)
        paths[word] = path
    return paths


def random_paths(words: int, seed: int) -> list[Role]:
    """The paths of a binary tree with as many leaves, every span divided at a random place."""
    random = Random(seed)
    paths: list[Role] = [()] * words
    waiting: list[tuple[int, int, Role]] = [(0, words, ())]
    while waiting:
        start, end, path = waiting.pop()
        if end - start == 1:
            paths[start] = path
        elif end > start:
            middle = random.randrange(start + 1, end)
            waiting += [(start, middle, (*path, _LEFT)), (middle, end, (*path, _RIGHT))]
    return paths


def _by_place(role: Callable[[int, int], Role]) -> Scheme:
    """A role from a piece's number among the ordinary pieces, and how many of them there are."""

    def roles(entry: Entry) -> list[Role]:
        kinds = entry.pieces.special.tolist()
        count, place, found = kinds.count(Special.NONE), 0, list[Role]()
        for kind in kinds:
            found.append(role(place, count) if kind == Special.NONE else _SPECIAL[Special(kind)])
            place += kind == Special.NONE
        return found

    return roles


def _by_word(paths_of: Callable[[Entry], list[Role]]) -> Scheme:
    def roles(entry: Entry) -> list[Role]:
        paths = paths_of(entry)
        pairs = zip(entry.pieces.special.tolist(), entry.pieces.word.tolist(), strict=True)
        return [
            _SPECIAL[Special(kind)] if kind != Special.NONE else paths[word] if word >= 0 else ()
            for kind, word in pairs
        ]

    return roles


SCHEMES: dict[str, Scheme] = {
    "left to right": _by_place(lambda place, count: (place,)),
    "right to left": _by_place(lambda place, count: (count - 1 - place,)),
    "bag of words": _by_place(lambda place, count: (0,)),
    "bidirectional": _by_place(lambda place, count: (place, count - 1 - place)),
    "tree": _by_word(lambda entry: tree_paths(word_heads(entry))),
}
RANDOM_TREE: Scheme = _by_word(
    lambda entry: random_paths(entry.pieces.words, int.from_bytes(entry.pieces.ids.tobytes()[-8:], "little"))
)


def numbered(name: str, trained: Sequence[list[Role]]) -> Callable[[Role], int]:
    """The number of each role: of those that training shows often enough, and of others the nearest such role."""
    counts = Counter(role for roles in trained for role in roles)
    frequent = {role for role, count in counts.items() if count >= ENOUGH}
    kept = sorted(frequent or set(counts))
    numbers = {role: number for number, role in enumerate(kept)}
    trees = "tree" in name

    def number(role: Role) -> int:
        while trees and role not in numbers and len(role) > 0 and min(role) >= 0:
            role = role[:-1]
        if role not in numbers:
            alike = [other for other in kept if len(other) == len(role)] or kept
            numbers[role] = numbers[min(alike, key=lambda other: (_apart(other, role), other))]
        return numbers[role]

    return number


def _apart(one: Role, other: Role) -> int:
    return sum(abs(a - b) for a, b in zip(one, other, strict=False)) + abs(len(one) - len(other))
