"""Marked stimuli: a target, its antecedent and what distracts from it, and the factors of their design (lin2019).

The published files name only the condition; generated stimuli name every factor. What can be read off the sentence
itself is read there, so that both are treated alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bertology.corpus.corpus import Corpus
from bertology.corpus.factors import factors
from bertology.recording.entry import Entry

UNNAMED = "all"
# Condition -> whether the object and the noun in the relative clause match the antecedent; R3 and R4 have one of them.
_REFLEXIVES: dict[str, tuple[bool, bool]] = {
    "R1": (True, True),
    "R2": (False, False),
    "R3": (True, True),
    "R4": (False, False),
    "R5": (True, True),
    "R6": (True, False),
    "R7": (False, True),
    "R8": (False, False),
}


@dataclass(frozen=True)
class Stimulus:
    """One marked sentence, words counted along the word axis of its input.

    `candidates` are the noun phrases that could be the antecedent, itself first. `kind` is `agreement`, `reflexive`
    or empty, `auxiliary` is `modal`, `inflected` or empty.
    """

    target: tuple[int, ...]
    candidates: tuple[tuple[int, ...], ...]
    condition: str
    kind: str
    auxiliary: str

    @property
    def antecedent(self) -> tuple[int, ...]:
        """The words of the antecedent."""
        return self.candidates[0]

    @property
    def distance(self) -> int:
        """Words from the antecedent's last word to the target."""
        return self.target[0] - self.antecedent[-1]

    @property
    def distracted(self) -> bool:
        """Whether there is another candidate."""
        return len(self.candidates) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """What it is reported under: its condition, and with the kind of auxiliary."""
        both = (f"{self.condition} {self.auxiliary}",) if self.auxiliary else ()
        return (self.condition, *both)

    def design(self) -> dict[str, float]:
        """The factors of the regression by name, structure and its surface."""
        if self.kind == "agreement":
            return {
                "relative clause": float(self.condition in ("A3", "A4")),
                "inflected auxiliary": float(self.auxiliary == "inflected"),
                "distractor matches": float(self.condition in ("A1", "A3")),
                "distance": float(self.distance),
            }
        if self.kind == "reflexive":
            return self._reflexive()
        return {"distractors": float(len(self.candidates) - 1), "distance": float(self.distance)}

    def _reflexive(self) -> dict[str, float]:
        # "... the wizard by himself": an object ends right before `by`, any other distractor is in the clause.
        others = self.candidates[1:]
        has_object = any(words[-1] == self.target[0] - 2 for words in others)
        has_clause = len(others) > has_object
        object_matches, clause_matches = _REFLEXIVES[self.condition]
        matching = has_object * object_matches + has_clause * clause_matches
        return {
            "relative clause": float(self.condition not in ("R1", "R2")),
            "noun in the clause": float(has_clause),
            "it matches": float(has_clause and clause_matches),
            "object": float(has_object),
            "object matches": float(has_object and object_matches),
            "distractors": float(len(others)),
            "matching distractors": float(matching),
            "distance": float(self.distance),
        }


def marked(entry: Entry) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]] | None:
    """The words of the target and of each candidate, the antecedent first.

    None where no target and antecedent are marked, or where a cut took a word of them away.
    """
    start = 0
    for part in entry.input.parts:
        marks = {role: tuple(start + word for word in words) for role, words in part.marks.items()}
        start += len(part)
        if marks.get("target") and marks.get("antecedent"):
            candidates = (marks["antecedent"], *_runs(marks.get("distractor", ())))
            needed = {*marks["target"], *(word for words in candidates for word in words)}
            return (marks["target"], candidates) if needed.issubset(entry.pieces.word.tolist()) else None
    return None


def stimulus_of(entry: Entry, corpus: Corpus) -> Stimulus | None:
    """The stimulus of an entry, see `marked`; its condition is that of its item in the corpus."""
    found = marked(entry)
    if found is None:
        return None
    known = factors(corpus[entry.item])
    condition = known.get("condition", UNNAMED)
    kind = "agreement" if condition in ("A1", "A2", "A3", "A4") else "reflexive" if condition in _REFLEXIVES else ""
    return Stimulus(*found, condition, kind, _auxiliary(known))


def _auxiliary(known: dict[str, str]) -> str:
    cell = known.get("cell", "")
    if "auxiliary" in known or not cell.startswith("agr."):
        return known.get("auxiliary", "")
    return "inflected" if int(cell.removeprefix("agr.")) % 2 else "modal"


def _runs(words: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Words that stand side by side, together: each is one noun phrase."""
    run: list[int] = []
    for word in sorted(words):
        if run and word != run[-1] + 1:
            yield tuple(run)
            run = []
        run.append(word)
    if run:
        yield tuple(run)
