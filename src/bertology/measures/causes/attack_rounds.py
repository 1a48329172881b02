"""A model attacked in one way after another: each item before, attacked, and edited at random as far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bertology.corpus.corpus import Corpus, Item
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.finetuning.division import digest
from bertology.finetuning.metrics import Counts
from bertology.measures.causes.attack_list import (
    Attack,
    Settings,
    attacks_named,
    random_form,
    vocabulary_of,
    words_changed,
)
from bertology.measures.causes.attacked import Floats, Standing, numbered, standing
from bertology.measures.causes.examination import examine
from bertology.measures.causes.unreadable import Misled
from bertology.measures.work import Work


@dataclass(frozen=True)
class Round:
    """One attack on all items: (item,) arrays, of nothing and NaN where the attack changed no item at all.

    An item that it did not change keeps its answer. `told` counts what could not be done.
    """

    attack: Attack
    attacked: Standing
    at_random: Standing
    changed: Floats
    changed_at_random: Floats
    edited: Floats
    edited_at_random: Floats
    told: str


class Rounds:
    """The items that a model can be asked, how it answers them, and how it does under attack."""

    def __init__(
        self, encoder: Encoder, corpus: Corpus, work: Work, *, task: str, items: int, settings: Settings, seed: int
    ) -> None:
        """Draws the items and asks them once, as they are."""
        self.examination = examine(encoder, corpus, task=task, items=items, seed=seed)
        if self.examination.task == "token":
            raise Refusal(
                f"{encoder.name} tags words, and an attack moves them",
                "a model for classes, pairs, answers or choices, or one with a masked-language-model head",
                "Choose another model",
            )
        self.items = numbered(self.examination)
        self.encoder, self.work, self.settings, self.seed = encoder, work, settings, seed
        self.before = standing(encoder, self.examination, self.items, len(self.items), seed=seed)
        self._vocabulary = vocabulary_of(self.items)

    def run(self, names: str) -> list[Round]:
        """The rounds of some attacks, by their names; a finished one is not run again."""
        wanted = attacks_named(names, {item.kind for item in self.items})
        meter = self.work.meter(f"attacking {len(self.items)} items in {len(wanted)} ways")
        found: list[Round] = []
        for place, attack in enumerate(wanted):
            found.append(self._round(attack))
            meter(place + 1, len(wanted))
        return found

    def forms(self, attack: Attack) -> list[Misled]:
        """Every item attacked; as it is where the attack is for others."""
        return [
            attack(item, self.settings, self.seed) if item.kind in attack.kinds else Misled(item) for item in self.items
        ]

    def at_random(self, forms: Sequence[Misled]) -> list[Item]:
        """Every item edited at random as far as it was attacked."""
        pairs = zip(self.items, forms, strict=True)
        return [random_form(item, form.item, self._vocabulary, self.seed) for item, form in pairs]

    def ask(self, forms: Sequence[Item]) -> Standing:
        """How the model answers other forms of all items; an item that is as it was keeps its answer."""
        other = [form for form, item in zip(forms, self.items, strict=True) if _differs(item, form)]
        found = standing(self.encoder, self.examination, other, len(self.items), seed=self.seed)
        same = np.ones(len(self.items), np.bool_)
        same[[int(item.id) for item in other]] = False
        counts = Counts(*(np.where(same, a, b) for a, b in _both(self.before, found)))
        return Standing(counts, np.where(same, self.before.losses, found.losses))

    def _round(self, attack: Attack) -> Round:
        forms = self.forms(attack)
        random = self.at_random(forms)
        changed, changed_at_random = (self._which(some) for some in ([form.item for form in forms], random))
        kept = self._kept(attack, [form.item for form in forms], random)
        attacked, at_random = (Standing(Counts(*map(np.array, counts)), np.zeros(len(self.items))) for counts in kept)
        if not changed.any():
            none, nothing = np.zeros(len(self.items), np.bool_), np.full(len(self.items), np.nan)
            told = f"{attack.about}; changes no item"
            return Round(attack, attacked.only(none), at_random.only(none), nothing, nothing, nothing, nothing, told)
        edited, edited_at_random = (self._edited(some) for some in ([form.item for form in forms], random))
        told = self._told(attack, forms, changed, attacked)
        return Round(attack, attacked, at_random, changed, changed_at_random, edited, edited_at_random, told)

    def _kept(self, attack: Attack, forms: list[Item], random: list[Item]) -> Any:
        about = {
            "analysis": "causes/attacks",
            "format": 1,
            "model": self.encoder.fingerprint,
            "task": self.examination.task,
            "items": digest(self.items),
            "attack": attack.name,
            "settings": asdict(self.settings),
            "seed": self.seed,
        }

        def ask() -> list[list[list[float]]]:
            found = [self.ask(some).counts for some in (forms, random)]
            return [[counts.right.tolist(), counts.of.tolist()] for counts in found]

        return self.work.kept(about, ask)

    def _which(self, forms: Sequence[Item]) -> Floats:
        return np.array([float(_differs(item, form)) for item, form in zip(self.items, forms, strict=True)])

    def _edited(self, forms: Sequence[Item]) -> Floats:
        words = [sum(map(len, item.parts)) for item in self.items]
        pairs = zip(self.items, forms, words, strict=True)
        return np.array([words_changed(item, form) / max(1, count) for item, form, count in pairs])

    def _told(self, attack: Attack, forms: Sequence[Misled], changed: Floats, attacked: Standing) -> str:
        told = [attack.about, f"{int(changed.sum())} of {len(self.items)} items changed"]
        degrees = [degree for form in forms for degree in form.degrees]
        if degrees:
            short = sum(form.short for form in forms)
            told.append(
                f"mean degree of shuffle {np.mean(degrees):.2f}, {short} of {len(degrees)} short of what is asked"
            )
        long = sum(
            any(len(pieces) > self.encoder.max_pieces for pieces in self.encoder.tokenise(form.item.inputs))
            for form, differs in zip(forms, changed, strict=True)
            if differs
        )
        if long:
            told.append(f"{long} too long for the model, and cut or left out")
        if lost := int((self.before.asked & ~attacked.asked).sum()):
            told.append(f"{lost} could not be asked any more")
        return "; ".join(told)


def _differs(item: Item, form: Item) -> bool:
    return any(one.text != other.text for one, other in zip(item.parts, form.parts, strict=True))


def _both(one: Standing, other: Standing) -> list[tuple[Floats, Floats]]:
    return [(one.counts.right, other.counts.right), (one.counts.of, other.counts.of)]
