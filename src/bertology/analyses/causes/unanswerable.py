"""What does a model learn from questions that cannot be answered (si2019)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.measures.work import Work
from bertology.results.estimate import Estimate, Estimates
from bertology.results.sampling import joined
from bertology.results.shapes import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bertology.finetuning.metrics import Counts

SCORE, DROP, NO_LEAD = "score", "drop", "no lead"
CLEAN = "clean"


@analysis(
    question="What does a model learn from questions that cannot be answered?",
    special="as the model has them; an option is read at the first piece",
    cites=("si2019",),
    version=2,
)
def unanswerable(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    lessons: Annotated[str, "only these, with commas, such as P-Shuffle,Q-Remove; all six where empty"] = "",
    items: Annotated[int, "use so many items, a quarter of them to judge by"] = 200,
    seeds: Annotated[int, "so many runs of each, each with a head, an order and dropout of its own"] = 1,
    epochs: Annotated[int, "passes over the items"] = 3,
    rate: Annotated[float, "the highest learning rate; 0: by the width of the model, 5e-5 for 768"] = 0.0,
    size: Annotated[int, "examples in a batch"] = 16,
    degree: Annotated[float, "shuffle until the edit distance by length is this; si2019 gives no number"] = 0.6,
    seed: Annotated[int, "seed of the division, of the first run and of the bootstrap"] = 0,
) -> Table:
    """Score on clean held-out questions, 0 to 1, of a model that was trained on questions no one could answer.

    `P-Shuffle`, `Q-Shuffle`, `PQ-Shuffle` train on passages, questions or both with their words shuffled; `P-Remove`,
    `Q-Remove`, `PQ-Remove` on nothing in their place (a passage that answers are marked in is never removed). What is
    judged on is not changed, as in the paper: all models answer the same readable questions. `clean` is trained on the
    items as they are, and `drop` is its score less that of the row, of the same questions. Baselines: the place that is
    right most often (of marked answers the first words), the longest option, each option alike, and random weights
    trained on clean items. How far a score lies above the first of these is told for the same questions as well, with
    an interval that resamples both together. Far above says that the task is learnt without reading; a drop of 0 says
    nothing where `clean` is no better than guessing. Questions on one passage are never on both sides. All epochs are
    run and the last counts; intervals resample questions and runs together. Takes minutes on a CPU: `clean`, random
    weights and six others are trained for every seed.
    """
    # Naming an analysis must not import torch.
    from bertology.finetuning.loop import Recipe
    from bertology.measures.causes.blind_lessons import BlindLessons
    from bertology.measures.causes.perturbations import Shuffling
    from bertology.measures.variant_sweep import change_over_seeds, over_seeds

    recipe = Recipe(seed=seed, epochs=epochs, size=size, rate=rate or None, patience=None)
    names = [name.strip() for name in lessons.split(",") if name.strip()]
    taught = BlindLessons(
        encoder, corpus, work, items=items, recipe=recipe, seeds=seeds, rule=Shuffling(degree), names=names
    )
    found, fresh = taught.run(), taught.fresh()
    rows = tuple(found)
    guessed = taught.guesses()
    usual = next(iter(guessed))
    lead = f"{SCORE} less {usual}"
    guesses = {name: over_seeds([counts], seed) for name, counts in guessed.items()}
    guesses["random weights"] = over_seeds(fresh, seed)
    return Table(
        rows_named=rows,
        measures={
            SCORE: joined([over_seeds(counts, seed) for counts in found.values()]),
            DROP: joined([change_over_seeds(found[CLEAN], counts, seed) for counts in found.values()]),
            lead: joined(
                [change_over_seeds(counts, [guessed[usual]] * len(counts), seed) for counts in found.values()]
            ),
        },
        baselines={
            NO_LEAD: {lead: Estimates.exact(np.zeros(len(rows)))},
            **{
                name: {SCORE: guess.everywhere((len(rows),)), DROP: _below(found[CLEAN], guess, seed, len(rows))}
                for name, guess in guesses.items()
            },
        },
        units={
            SCORE: f"{taught.measure}, 0 to 1, on clean questions",
            DROP: f"{taught.measure} of clean training less that of this, -1 to 1",
            lead: f"{taught.measure} less that of the {usual}, of the same questions, -1 to 1",
        },
        notes={name: taught.told(name) for name in rows},
    )


def _below(clean: Sequence[Counts], guess: Estimate, seed: int, count: int) -> Estimates:
    """How far a guess lies below clean training; without an interval."""
    from bertology.measures.variant_sweep import over_seeds

    return Estimates.exact(np.full(count, over_seeds(clean, seed).value - guess.value), guess.n)
