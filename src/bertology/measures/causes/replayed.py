"""Pairs of a text and its attacked form, run side by side: what differs after each layer, and what is answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bertology.corpus.corpus import Corpus, Item
from bertology.encoder.encoder import Encoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.errors import Refusal
from bertology.measures.causes.ablation import LayerChange, ablation
from bertology.measures.causes.attack_list import Settings, attacks_named
from bertology.measures.causes.attack_rounds import Rounds
from bertology.measures.causes.attacked import Floats
from bertology.measures.causes.divergence import Run, divergence, run_of
from bertology.measures.causes.examination import Marks, asked_again
from bertology.measures.division import random_form
from bertology.measures.work import Work


@dataclass(frozen=True)
class Replay:
    """(pair, layer + 1) arrays; NaN where a pair cannot be compared."""

    states: Floats
    first: Floats
    attention: Floats
    losses: Floats
    lost: Floats


@dataclass(frozen=True)
class Replayed:
    """The attacked pairs, the same items edited at random, and the attacked pairs in a model of random weights."""

    attacked: Replay
    at_random: Replay
    fresh: Replay
    told: str
    pairs: Sequence[tuple[Item, Item]]

    def pair(self, number: int) -> tuple[Item, Item]:
        """One pair by its number."""
        if not 0 <= number < len(self.pairs):
            raise Refusal(
                f"There is no pair {number}", f"a number below {len(self.pairs)}", "Choose another --pair or --attack"
            )
        return self.pairs[number]


def replayed(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    attack: str,
    which: Literal["turned", "changed"],
    items: int,
    among: int,
    task: str,
    seed: int,
) -> Replayed:
    """Replays pairs of one attack."""
    rounds = Rounds(encoder, corpus, work, task=task, items=among, settings=Settings(), seed=seed)
    (wanted,) = attacks_named(attack, {item.kind for item in rounds.items})[:1]
    forms = rounds.forms(wanted)
    random = rounds.at_random(forms)
    attacked = rounds.ask([form.item for form in forms])
    differs = [form.item.parts != item.parts for form, item in zip(forms, rounds.items, strict=True)]
    asked = rounds.before.asked & attacked.asked & np.array(differs, np.bool_)
    turned = asked & (attacked.counts.right < rounds.before.counts.right)
    chosen = np.flatnonzero(turned if which == "turned" and turned.any() else asked)[:items]
    pairs = [(rounds.items[place], forms[place].item) for place in chosen]
    controls = [(rounds.items[place], random[place]) for place in chosen]
    fresh = random_form(encoder)
    kind = "turned" if which == "turned" and turned.any() else "changed"
    return Replayed(
        _replay(encoder, rounds, pairs, work),
        _replay(encoder, rounds, controls, work),
        _replay(fresh or encoder, None, pairs if fresh is not None else [], work),
        f"{len(pairs)} pairs of {int(turned.sum())} turned and {int(asked.sum())} changed by '{attack}': {kind} ones",
        pairs,
    )


def both_runs(encoder: Encoder, one: Item, other: Item) -> tuple[Run, Run]:
    """The runs of the first input in which two forms of an item differ."""
    for first, second in zip(one.inputs, other.inputs, strict=True):
        if first.parts != second.parts:
            runs = run_of(encoder, first), run_of(encoder, second)
            if runs[0] is not None and runs[1] is not None:
                return runs[0], runs[1]
    raise Refusal("Both forms are too long for the model, or empty", "a pair that can be run", "Choose another --pair")


def _replay(encoder: Encoder, rounds: Rounds | None, pairs: Sequence[tuple[Item, Item]], work: Work) -> Replay:
    depth = encoder.layers + 1
    nothing = np.full((len(pairs), depth), np.nan)
    states, first, attention, losses, lost = (nothing.copy() for _ in range(5))
    for row, (one, other) in enumerate(pairs):
        found = divergence(encoder, one, other)
        if found is not None:
            states[row], first[row], attention[row] = found.states, found.first, found.attention
    if rounds is not None and pairs:
        before, after = (_read(encoder, rounds, [pair[side] for pair in pairs], work) for side in (0, 1))
        losses, lost = after[0] - before[0], before[1] - after[1]
    return Replay(states, first, attention, losses, lost)


def _read(encoder: Encoder, rounds: Rounds, items: Sequence[Item], work: Work) -> tuple[Floats, Floats]:
    """(item, layer + 1) the loss and the score, read after each layer; NaN for an item that cannot be asked."""
    depth = encoder.layers + 1
    losses, scores = (np.full((len(items), depth), np.nan) for _ in range(2))
    rows = {int(item.id): row for row, item in enumerate(items)}
    try:
        asked = asked_again(encoder, rounds.examination, items, seed=rounds.seed)
    except Refusal:
        return losses, scores
    if not isinstance(encoder, HuggingFaceEncoder):
        return losses, scores
    cut = [LayerChange(tuple(range(k))) for k in range(encoder.layers)]
    whole, *early = ablation(encoder, asked).judge(asked, cut, work)
    places = np.array([rows[int(item.id)] for item in asked.items])
    for layer, marks in enumerate([*early, whole]):
        losses[:, layer], scores[:, layer] = _by_item(marks, places, len(items))
    return losses, scores


def _by_item(marks: Marks, places: np.ndarray[tuple[int], np.dtype[np.int64]], count: int) -> tuple[Floats, Floats]:
    """The mean loss and the score of each item, over the texts it is asked in."""
    sums = np.zeros((4, count))
    for row, values in enumerate((marks.losses, np.ones(len(places)), marks.counts.right, marks.counts.of)):
        np.add.at(sums[row], places, values)
    mean, score = (
        np.divide(top, bottom, out=np.full(count, np.nan), where=bottom > 0)
        for top, bottom in ((sums[0], sums[1]), (sums[2], sums[3]))
    )
    return mean, score
