"""Role schemes for the tokens of a sentence: by position, a single role, or by the path in a tree (mccoy2019).

| scheme | the role of a token |
|---|---|
| left to right | its position from the left |
| right to left | its position from the right |
| bidirectional | both |
| bag of words | always the same |
| tree | the path of left and right turns from the root of a binary tree to its word |

[CLS] and [SEP] have roles of their own; the tokens of a word share its role in the tree. A role that is rare in the
training data is replaced by the nearest frequent one: the nearest position, pair of positions, or a shorter path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from bertology.corpus.hashing import seeded_hash
from bertology.corpus.sentence import ROOT
from bertology.encoder.token_batch import RecordedInput, word_governors
from bertology.encoder.tokens import SpecialToken

Role = tuple[int, ...]
Scheme = Callable[[RecordedInput], list[Role]]

MIN_ROLE_COUNT = 5
_SPECIAL_ROLES = {SpecialToken.CLS: (-1,), SpecialToken.SEP: (-2,), SpecialToken.OTHER: (-3,)}
_LEFT, _RIGHT = 0, 1


def tree_paths(governors: Sequence[int | None]) -> list[Role]:
    """The path to each word in a binary tree over the words: 0 for a left turn, 1 for a right turn.

    A governor is first separated from its dependents on the left, the farthest first, then from those on the right.
    """
    dependents: dict[int, list[int]] = {}
    for word, governor in enumerate(governors):
        dependents.setdefault(ROOT if governor is None else governor, []).append(word)
    paths: list[Role] = [()] * len(governors)
    stack: list[tuple[int, Role]] = []
    path: Role = ()
    roots = dependents.get(ROOT, [])
    for number, root in enumerate(roots, start=1):  # the roots of several sentences branch to the right
        stack.append((root, path if number == len(roots) else (*path, _LEFT)))
        path = (*path, _RIGHT)
    while stack:
        word, path = stack.pop()
        for dependent in (other for other in dependents.get(word, ()) if other < word):
            stack.append((dependent, (*path, _LEFT)))
            path = (*path, _RIGHT)
        for dependent in reversed([other for other in dependents.get(word, ()) if other > word]):
            stack.append((dependent, (*path, _RIGHT)))
            path = (*path, _LEFT)
        paths[word] = path
    return paths


def random_paths(n_words: int, seed: int | bytes) -> list[Role]:
    """The paths of a binary tree over the words in which every span is split at a random position."""
    rng = Random(seed)
    paths: list[Role] = [()] * n_words
    stack: list[tuple[int, int, Role]] = [(0, n_words, ())]
    while stack:
        start, end, path = stack.pop()
        if end - start == 1:
            paths[start] = path
        elif end > start:
            middle = rng.randrange(start + 1, end)
            stack += [(start, middle, (*path, _LEFT)), (middle, end, (*path, _RIGHT))]
    return paths


def _positional_scheme(role: Callable[[int, int], Role]) -> Scheme:
    """A scheme from a function of a token's position among the non-special tokens, and their number."""

    def roles(recorded_input: RecordedInput) -> list[Role]:
        kinds = recorded_input.tokens.special_kinds.tolist()
        count, position, token_roles = kinds.count(SpecialToken.NONE), 0, list[Role]()
        for kind in kinds:
            if kind == SpecialToken.NONE:
                token_roles.append(role(position, count))
                position += 1
            else:
                token_roles.append(_SPECIAL_ROLES[SpecialToken(kind)])
        return token_roles

    return roles


def _tree_scheme(word_paths: Callable[[RecordedInput], list[Role]]) -> Scheme:
    """A scheme from a function that gives the path of each word."""

    def roles(recorded_input: RecordedInput) -> list[Role]:
        paths = word_paths(recorded_input)
        tokens = recorded_input.tokens
        return [
            _SPECIAL_ROLES[SpecialToken(kind)] if kind != SpecialToken.NONE else paths[word] if word >= 0 else ()
            for kind, word in zip(tokens.special_kinds.tolist(), tokens.word_ids.tolist(), strict=True)
        ]

    return roles


SCHEMES: dict[str, Scheme] = {
    "left to right": _positional_scheme(lambda position, count: (position,)),
    "right to left": _positional_scheme(lambda position, count: (count - 1 - position,)),
    "bag of words": _positional_scheme(lambda position, count: (0,)),
    "bidirectional": _positional_scheme(lambda position, count: (position, count - 1 - position)),
    "tree": _tree_scheme(lambda recorded_input: tree_paths(word_governors(recorded_input))),
}


def random_tree(seed: int) -> Scheme:
    """Roles from a random tree over the words of each sentence; it depends on all tokens and on the seed."""

    def word_paths(recorded_input: RecordedInput) -> list[Role]:
        tokens = recorded_input.tokens
        return random_paths(tokens.n_words, seeded_hash(" ".join(map(str, tokens.ids.tolist())), seed))

    return _tree_scheme(word_paths)


def role_numbering(name: str, train_roles: Sequence[list[Role]]) -> Callable[[Role], int]:
    """The function from a role to its number; rare roles get that of the nearest role frequent in training."""
    counts = Counter(role for roles in train_roles for role in roles)
    frequent = sorted(role for role, count in counts.items() if count >= MIN_ROLE_COUNT) or sorted(counts)
    numbers = {role: number for number, role in enumerate(frequent)}
    is_tree = "tree" in name

    def number(role: Role) -> int:
        while is_tree and role not in numbers and len(role) > 0 and min(role) >= 0:
            role = role[:-1]
        if role not in numbers:
            candidates = [other for other in frequent if len(other) == len(role)] or frequent
            numbers[role] = numbers[min(candidates, key=lambda other: (_role_distance(other, role), other))]
        return numbers[role]

    return number


def _role_distance(left: Role, right: Role) -> int:
    return sum(abs(a - b) for a, b in zip(left, right, strict=False)) + abs(len(left) - len(right))
