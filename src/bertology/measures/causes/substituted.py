"""Items attacked by substitution one after the other, each kept when it is done, beside as many random edits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from bertology.corpus.corpus import Corpus, Item, Kind
from bertology.encoder.encoder import Encoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.task_heads import labels_of
from bertology.errors import Refusal
from bertology.finetuning.division import digest
from bertology.measures.causes.attack_list import random_form, vocabulary_of
from bertology.measures.causes.attacked import Floats, numbered
from bertology.measures.causes.examination import Examination, asked_again, examine
from bertology.measures.causes.perturbations import FUNCTION_WORDS, NEGATIONS
from bertology.measures.causes.rewording import Slot, reworded, slots
from bertology.measures.causes.substitution_search import Candidates, Found, Words, search
from bertology.measures.causes.synonyms import Vectors, WordClasses
from bertology.measures.work import Work

ATTACKED: dict[Kind, int] = {"sentence": 0, "pair": 1, "choice": 0}
"""The part whose words are replaced: the text, the second text of a pair, the passage."""


@dataclass(frozen=True)
class Limits:
    """What a substitution must keep to: how like the text must stay, and how many texts an item may cost."""

    least: float
    budget: int


@dataclass(frozen=True)
class Outcome:
    """What became of one item, and of the same item with as many words replaced at random."""

    item: Item
    attacked: Item
    right_before: bool
    right_after: bool
    right_at_random: bool
    likeness: float
    likeness_at_random: float
    found: Found
    answer: str


class Substitutions:
    """Attacks every item that a classifier can be asked."""

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus,
        work: Work,
        *,
        items: int,
        candidates: Candidates,
        named: str,
        classes: WordClasses | None,
        alike: Vectors,
        limits: Limits,
        seed: int,
    ) -> None:
        """`named` says in words where the candidates come from: part of what finished items are kept under."""
        self.examination = examine(encoder, corpus, items=items, seed=seed)
        if self.examination.task not in ("sentence", "pair", "choice"):
            raise Refusal(
                f"{encoder.name} is asked the task {self.examination.task}, whose answers are no classes",
                "a model fine-tuned for classes of texts or pairs, or for choices",
                "Choose such a model, for example mini-sentiment, and a corpus with labels",
            )
        assert isinstance(encoder, HuggingFaceEncoder), "only such a one has the head of a task"
        self.items = numbered(self.examination)
        self.labels = labels_of(encoder) if self.examination.task != "choice" else ()
        self._encoder, self._work, self._seed, self._limits = encoder, work, seed, limits
        self._candidates, self._named, self._classes, self._alike = candidates, named, classes, alike
        self._vocabulary = vocabulary_of(self.items)

    def run(self) -> list[Outcome]:
        """The outcome of every item; one that was finished before is not attacked again."""
        meter = self._work.meter(f"substituting words of {len(self.items)} items")
        found: list[Outcome] = []
        for place, item in enumerate(self.items):
            found.append(self._outcome(item))
            meter(place + 1, len(self.items))
        return found

    def right(self, item: Item) -> int:
        """The number of the right class or option."""
        return self.labels.index(str(item.label)) if self.labels else int(item.label or 0)

    def _outcome(self, item: Item) -> Outcome:
        about = {
            "analysis": "causes/substitution",
            "format": 2,
            "model": self._encoder.fingerprint,
            "item": digest([replace(item, id="")]),
            "candidates": self._named,
            "classes": self._classes is not None,
            "alike": self._alike.encoder.fingerprint,
            "limits": asdict(self._limits),
            "seed": self._seed,
        }
        part = ATTACKED[item.kind]
        known = self._work.kept(about, lambda: self._attack(item, part))
        found = Found(
            tuple(known["words"]),
            tuple((int(place), old, new) for place, old, new in known["edits"]),
            int(known["answer"]),
            float("nan") if known["probability"] is None else known["probability"],
            known["queries"],
            known["spent"],
        )
        attacked = _changed(item, part, found.words)
        answer = self.labels[found.answer] if self.labels else f"option {found.answer + 1}"
        return Outcome(
            item,
            attacked,
            bool(known["right_before"]),
            bool(known["right_after"]),
            bool(known["right_at_random"]),
            float(known["likeness"]),
            float(known["likeness_at_random"]),
            found,
            answer,
        )

    def _attack(self, item: Item, part: int) -> dict[str, Any]:
        words, right = item.parts[part].words, self.right(item)
        alike = self._alike.alike(words)
        found = search(
            words,
            right,
            [place for place, word in enumerate(words) if _may_change(word)],
            ask=lambda texts: self.chances([_changed(item, part, text) for text in texts]),
            candidates=self._of_same_class,
            alike=alike,
            least=self._limits.least,
            budget=self._limits.budget,
        )
        random = random_form(item, _changed(item, part, found.words), self._vocabulary, self._seed)
        chances = self.chances([item, random])
        likeness = alike([found.words, random.parts[part].words])
        return {
            **asdict(found),
            "probability": found.probability if np.isfinite(found.probability) else None,
            "right_before": int(np.argmax(chances[0])) == right,
            "right_after": found.answer == right and int(np.argmax(chances[0])) == right,
            "right_at_random": int(np.argmax(chances[1])) == right,
            "likeness": float(likeness[0]),
            "likeness_at_random": float(likeness[1]),
        }

    def _of_same_class(self, word: str) -> list[str]:
        classes = self._classes
        fitting = (other for other in self._candidates(word) if classes is None or classes.agree(word, other))
        return [other.capitalize() if word[:1].isupper() else other for other in fitting]

    def chances(self, items: Sequence[Item]) -> Floats:
        """(item, class) the probability of each class or option; NaN for an item that cannot be asked."""
        return class_chances(self._encoder, self.examination, items)


def class_chances(encoder: Encoder, before: Examination, items: Sequence[Item]) -> Floats:
    """(item, class) the probabilities that a model gives other forms of items; NaN for one that it cannot be shown."""
    forms = [replace(item, id=str(place)) for place, item in enumerate(items)]
    try:
        again = asked_again(encoder, before, forms)
    except Refusal:
        return np.full((len(items), 1), np.nan)
    rows: dict[int, Floats] = {}
    for sheet in again.sheets:
        with torch.no_grad():
            logits = encoder.run(sheet.shown).logits["choice" if before.task == "choice" else "label"].double()
        if before.task == "choice":
            there = sheet.shown.mask[:, 0].reshape(len(sheet.items), -1) > 0
            logits = logits.reshape(len(sheet.items), -1).masked_fill(~there, float("-inf"))
        for place, chances in zip(sheet.items, logits.softmax(-1).cpu().numpy(), strict=True):
            rows[int(again.items[place].id)] = chances
    width = max(map(len, rows.values()))
    found = np.full((len(items), width), np.nan)
    for place, chances in rows.items():
        found[place] = np.pad(chances, (0, width - len(chances)))
    return found


def _may_change(word: str) -> bool:
    return word.isalpha() and word.lower() not in FUNCTION_WORDS | NEGATIONS


def _changed(item: Item, part: int, words: Words) -> Item:
    """The item with other words in one part; a text with fewer words than it had is one with a word left out."""
    old = item.parts[part]
    if len(words) == len(old):
        wanted = [Slot(new, slot.source) for new, slot in zip(words, slots(old), strict=True)]
    else:
        wanted = _without_one(slots(old), words)
    parts = list(item.parts)
    parts[part] = reworded(old, wanted)
    return replace(item, parts=tuple(parts))


def _without_one(own: list[Slot], words: Words) -> list[Slot]:
    gone = next((place for place, word in enumerate(words) if own[place].word != word), len(words))
    return own[:gone] + own[gone + 1 :]
