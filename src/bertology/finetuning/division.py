"""Which items are learnt from, and which decide? No document, or text, is on both sides.

Items come in an order of their own, by their content: how a file is sorted changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.storage import item_to_json
from bertology.errors import Refusal

FEWEST_DOCUMENTS = 10
FEWEST_ITEMS = 4


@dataclass(frozen=True)
class Division:
    """Items to learn from and items to decide by; `kept_together` says what is never on both sides."""

    learnt: list[Item]
    held_out: list[Item]
    kept_together: str


def divided(corpus: Corpus, share: float, *, seed: int) -> Division:
    """Hold out about `share` of the items: whole documents where there are many, else all items with the same text."""
    if not 0 < share < 1:
        raise Refusal(f"--dev-share was given {share}", "a share between 0 and 1", "Leave it out for a tenth")
    if len(corpus) < FEWEST_ITEMS:
        raise Refusal(
            f"{corpus.name} has {len(corpus)} items that the task can use",
            f"at least {FEWEST_ITEMS}, to learn from some and decide by others",
            "Give more data, or items of their own to decide by with --dev",
        )
    documents = {_document(item) for item in corpus}
    by_document = "" not in documents and len(documents) >= FEWEST_DOCUMENTS
    groups: dict[str, list[Item]] = {}
    for item in ordered(corpus.items):
        groups.setdefault(_document(item) if by_document else _text(item), []).append(item)
    wanted = max(1, round(share * len(corpus)))
    held_out: list[Item] = []
    learnt: list[Item] = []
    for name in sorted(groups, key=lambda name: _hash(f"{seed} {name}")):
        # The first group that is enough ends it; one far too large is left for learning.
        room = len(held_out) < wanted and len(held_out) + len(groups[name]) <= max(2 * wanted, 1)
        (held_out if room else learnt).extend(groups[name])
    if not held_out or not learnt:
        raise Refusal(
            f"{corpus.name} cannot be divided: all its items have the same text",
            "items with texts of their own",
            "Give items to decide by with --dev",
        )
    return Division(ordered(learnt), ordered(held_out), "document" if by_document else "text")


def ordered(items: Sequence[Item]) -> list[Item]:
    """The items in an order that follows from their content alone."""
    return sorted(items, key=_content)


def digest(items: Sequence[Item]) -> str:
    """A hash of the items, whatever their order."""
    return _hash("".join(sorted(map(_content, items))))[:32]


def _content(item: Item) -> str:
    return _hash(json.dumps(item_to_json(item), ensure_ascii=False, sort_keys=True))


def _document(item: Item) -> str:
    return item.parts[-1 if item.kind == "question" else 0].document


def _text(item: Item) -> str:
    """What the items about one text have in common: of a question its passage, of a pair the first text."""
    return item.parts[1 if item.kind == "question" else 0].text


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
