"""Stimuli with a target, its antecedent and distractors, and the factors of their design (Lin et al. 2019).

The published files name only the condition; generated stimuli name every factor. Factors that follow from the sentence
are read from the sentence, so that both are treated alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bertology.corpus.corpus import Corpus
from bertology.encoder.token_batch import RecordedInput

NO_CONDITION = "all stimuli"
AGREEMENT_CONDITIONS = ("A1", "A2", "A3", "A4")
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
CONDITION_LABELS: dict[str, str] = {
    "A0": "no distractor",
    "A1": "same-number distractor",
    "A2": "other-number distractor",
    "A3": "same-number distractor in relative clause",
    "A4": "other-number distractor in relative clause",
    "R0": "no distractor",
    "R1": "matching object",
    "R2": "mismatching object",
    "R3": "matching distractor, relative clause",
    "R4": "mismatching distractor, relative clause",
    "R5": "matching object and noun in relative clause",
    "R6": "matching object, mismatching noun in relative clause",
    "R7": "mismatching object, matching noun in relative clause",
    "R8": "mismatching object and noun in relative clause",
}
"""What distracts in each condition of Lin et al. (2019)."""


@dataclass(frozen=True)
class Stimulus:
    """One sentence with marked words, indexed along the word axis of its input.

    `candidates` are the noun phrases that could be the antecedent, the antecedent first. `phenomenon` is `agreement`,
    `reflexive` or empty, `auxiliary` is `modal`, `inflected` or empty.
    """

    target: tuple[int, ...]
    candidates: tuple[tuple[int, ...], ...]
    condition: str
    phenomenon: str
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
    def has_distractor(self) -> bool:
        """Whether there is a candidate besides the antecedent."""
        return len(self.candidates) > 1

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups it is reported in: its condition, and condition and type of auxiliary."""
        name = f"{self.condition} {CONDITION_LABELS.get(self.condition, '')}".strip()
        return (name, f"{name} ({self.auxiliary})") if self.auxiliary else (name,)

    def design(self) -> dict[str, float]:
        """The factors of the regression by name."""
        if self.phenomenon == "agreement":
            return {
                "relative clause": float(self.condition in ("A3", "A4")),
                "inflected auxiliary": float(self.auxiliary == "inflected"),
                "distractor matches": float(self.condition in ("A1", "A3")),
                "distance": float(self.distance),
            }
        if self.phenomenon == "reflexive":
            return self._reflexive_design()
        return {"distractors": float(len(self.candidates) - 1), "distance": float(self.distance)}

    def _reflexive_design(self) -> dict[str, float]:
        # "... the wizard by himself": an object ends right before `by`, any other distractor is in the clause.
        distractors = self.candidates[1:]
        has_object = any(words[-1] == self.target[0] - 2 for words in distractors)
        has_clause = len(distractors) > has_object
        object_matches, clause_matches = _REFLEXIVES[self.condition]
        n_matching = has_object * object_matches + has_clause * clause_matches
        return {
            "relative clause": float(self.condition not in ("R1", "R2")),
            "noun in relative clause": float(has_clause),
            "distractor matches": float(has_clause and clause_matches),
            "object": float(has_object),
            "object matches": float(has_object and object_matches),
            "distractors": float(len(distractors)),
            "matching distractors": float(n_matching),
            "distance": float(self.distance),
        }


def target_and_candidates(recorded_input: RecordedInput) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]] | None:
    """The words of the target and of each candidate, the antecedent first.

    None if no target and antecedent are marked, or if truncation removed one of their words.
    """
    start = 0
    for segment in recorded_input.text.segments:
        marked = {role: tuple(start + word for word in words) for role, words in segment.marked_words.items()}
        start += len(segment)
        if marked.get("target") and marked.get("antecedent"):
            candidates = (marked["antecedent"], *_contiguous_runs(marked.get("distractor", ())))
            required = {*marked["target"], *(word for words in candidates for word in words)}
            complete = required.issubset(recorded_input.tokens.word_ids.tolist())
            return (marked["target"], candidates) if complete else None
    return None


def parse_stimulus(recorded_input: RecordedInput, corpus: Corpus) -> Stimulus | None:
    """The stimulus of an input, with the condition of its example in the corpus; None if nothing is marked."""
    words = target_and_candidates(recorded_input)
    if words is None:
        return None
    factors = corpus[recorded_input.example_index].factors
    condition = factors.get("condition", NO_CONDITION)
    agreement, reflexive = condition in AGREEMENT_CONDITIONS, condition in _REFLEXIVES
    phenomenon = "agreement" if agreement else "reflexive" if reflexive else ""
    return Stimulus(*words, condition, phenomenon, _auxiliary_type(factors))


def _auxiliary_type(example_factors: Mapping[str, str]) -> str:
    cell = example_factors.get("cell", "")
    if "auxiliary" in example_factors or not cell.startswith("agr."):
        return example_factors.get("auxiliary", "")
    return "inflected" if int(cell.removeprefix("agr.")) % 2 else "modal"


def _contiguous_runs(words: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Groups of adjacent words: each group is one noun phrase."""
    run: list[int] = []
    for word in sorted(words):
        if run and word != run[-1] + 1:
            yield tuple(run)
            run = []
        run.append(word)
    if run:
        yield tuple(run)
