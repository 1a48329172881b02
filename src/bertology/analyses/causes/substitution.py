"""How few words must be replaced by like ones before the answer turns (jin2020)?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, mean_over_sentences
from bertology.results.shapes import Example, Examples, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bertology.measures.causes.substituted import Outcome

UNITS = {
    "score": "accuracy after the attack, 0 to 1",
    "success": "share of right answers that were turned, 0 to 1",
    "edited": "share of the words of the text that were replaced, where it was attacked, 0 to 1",
    "likeness": "cosine of the text with what it was, -1 to 1",
    "queries": "texts shown to the model for an item",
}
RANDOM = "random edit"


@analysis(
    question="How few words must be replaced by like ones before the answer turns?",
    special="as the model has them; a class is read at the first piece",
    cites=("jin2020",),
)
def substitution(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    show: Annotated[Literal["table", "examples"], "figures, or the attacked texts with what was replaced"] = "table",
    items: Annotated[int, "attack so many items, drawn by what they say; 0: all"] = 40,
    candidates: Annotated[
        str,
        "where words to put in come from: glove:PATH, static:MODEL or wordnet; left out, the model's own embeddings",
    ] = "",
    nearest: Annotated[int, "try so many candidates for a word"] = 20,
    closeness: Annotated[float, "the least cosine of a candidate with the word, for vectors"] = 0.4,
    same_class: Annotated[bool, "only candidates that can be the same part of speech"] = True,
    treebank: Annotated[str, "the corpus that tells parts of speech"] = "english",
    alike: Annotated[
        str, "a model that says how alike two texts are; left out, the mean of the model's embeddings"
    ] = "",
    least: Annotated[float, "the least cosine of the changed text with the text"] = 0.8,
    budget: Annotated[int, "show the model at most so many texts for an item"] = 300,
    seed: Annotated[int, "seed of the random edits and of the bootstrap"] = 0,
) -> Table | Examples:
    """Accuracy after words were replaced one by one by like ones, 0 to 1, and what that took.

    The search is TextFooler's: words are ranked by how much less sure of its answer the model is without them, and
    each in turn is replaced by the candidate that turns the answer and leaves the text most alike, else by the one that
    leaves the model least sure. Function words, negations and names of no letters stay; of a pair the second text is
    attacked, of multiple choice the passage. An item answered wrongly is not attacked and counts as wrong. Rows are all
    items, and those of each right class. `random edit` replaces as many words at random places by random words of the
    corpus. `success` is over items that were right; `edited`, `likeness` and `queries` over those attacked. Differences
    from the paper: vectors are the user's, not counter-fitted ones, so that near words may be opposites (good, bad)
    and a turned answer may be right; parts of speech come from a treebank's words or from endings; likeness is the
    cosine of mean states of any model, not of a sentence encoder's. A search that has spent its budget counts with what
    it had found, and is told in the notes.
    """
    # Naming an analysis must not import torch.
    from bertology.corpus.builtin import corpus_named
    from bertology.encoder.load import load
    from bertology.measures.causes.substituted import Limits, Substitutions
    from bertology.measures.causes.synonyms import Vectors, WordClasses, candidates_named, static_vectors

    found_in, named = candidates_named(candidates, encoder, count=nearest, closeness=closeness)
    substitutions = Substitutions(
        encoder,
        corpus,
        work,
        items=items,
        candidates=found_in,
        named=named,
        classes=WordClasses(corpus_named(treebank)) if same_class else None,
        alike=Vectors(load(alike)) if alike else static_vectors("", encoder),
        limits=Limits(least, budget),
        seed=seed,
    )
    outcomes = substitutions.run()
    if show == "examples":
        return Examples(examples=tuple(_example(outcome) for outcome in outcomes if outcome.found.edits))
    groups = {"all": outcomes}
    for label in sorted({str(outcome.item.label) for outcome in outcomes}):
        groups[label if substitutions.labels else f"option {int(label) + 1}"] = [
            outcome for outcome in outcomes if str(outcome.item.label) == label
        ]
    return _table(groups, budget, seed)


def _table(groups: dict[str, list[Outcome]], budget: int, seed: int) -> Table:
    rows = list(groups.values())
    usual = max((group for name, group in groups.items() if name != "all"), key=len)
    majority = [[float(outcome.item.label == usual[0].item.label) for outcome in group] for group in rows]

    def over(name: str) -> Estimates:
        return _means([[getattr(outcome, name) for outcome in group] for group in rows], seed)

    def turned(name: str) -> Estimates:
        return _means([[1.0 - getattr(o, name) if o.right_before else np.nan for o in group] for group in rows], seed)

    def where_attacked(values: Sequence[Sequence[float]]) -> Estimates:
        attacked = [[o.right_before for o in group] for group in rows]
        kept = [np.where(flags, some, np.nan) for flags, some in zip(attacked, values, strict=True)]
        return _means(kept, seed)

    edited = where_attacked([[_edited(outcome) for outcome in group] for group in rows])
    return Table(
        rows_named=tuple(groups),
        measures={
            "score": over("right_after"),
            "success": turned("right_after"),
            "edited": edited,
            "likeness": where_attacked([[o.likeness for o in group] for group in rows]),
            "queries": where_attacked([[float(o.found.queries) for o in group] for group in rows]),
        },
        baselines={
            "unattacked": {"score": over("right_before")},
            RANDOM: {
                "score": over("right_at_random"),
                "success": turned("right_at_random"),
                "edited": edited,
                "likeness": where_attacked([[o.likeness_at_random for o in group] for group in rows]),
            },
            "majority": {"score": _means(majority, seed)},
            "budget": {"queries": Estimates.exact(np.full(len(rows), float(budget)))},
        },
        units=UNITS,
        notes={name: _told(group) for name, group in groups.items()},
    )


def _means(values: Sequence[Sequence[float] | NDArray[np.float64]], seed: int) -> Estimates:
    return joined([mean_over_sentences(np.array(some, np.float64), seed=seed) for some in values])


def _edited(outcome: Outcome) -> float:
    return len(outcome.found.edits) / max(1, len(outcome.found.words))


def _told(group: Sequence[Outcome]) -> str:
    attacked = [outcome for outcome in group if outcome.right_before]
    turned = sum(not outcome.right_after for outcome in attacked)
    spent = sum(outcome.found.spent for outcome in attacked)
    told = f"{len(attacked)} of {len(group)} were right and attacked, {turned} turned"
    return told + (f", {spent} ended with their budget spent" if spent else "")


def _example(outcome: Outcome) -> Example:
    edits = "; ".join(f"{old} → {new}" for _, old, new in outcome.found.edits)
    gold = outcome.item.label if outcome.item.kind != "choice" else f"option {int(outcome.item.label or 0) + 1}"
    became = f"{gold} → {outcome.answer}" if not outcome.right_after else f"still {gold}"
    return Example(
        words=outcome.found.words,
        marked={"replaced": tuple(place for place, _, _ in outcome.found.edits)},
        score=outcome.found.probability,
        caption=f"{became}: {edits} ({outcome.found.queries} texts shown, likeness {outcome.likeness:.2f})",
    )
