"""How many answers survive when a text cannot be read any more (si2019)?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, mean_over_sentences, pooled_over_sentences
from bertology.results.shapes import Table

if TYPE_CHECKING:
    from bertology.measures.causes.attacked import Floats, Standing

SCORE, DROP, CHANGED, EDITED = "score", "drop", "changed", "edited"
RANDOM = "random edit"


@analysis(
    question="How many answers survive when a text cannot be read any more?",
    special="as the model has them; a class is read at the first piece",
    cites=("si2019",),
)
def attacks(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    task: Annotated[str, "sentence, pair, qa, choice or mlm; auto: what the model's head is for"] = "auto",
    attack: Annotated[str, "names of attacks with commas; all: every one that fits the items"] = "all",
    items: Annotated[int, "ask so many items, drawn by what they say; 0: all"] = 100,
    degree: Annotated[float, "shuffle until the edit distance by length is this; si2019 gives no number"] = 0.6,
    shared_sentence: Annotated[
        bool, "one drawn sentence for all distractors of a question, as in si2019's example"
    ] = False,
    slips: Annotated[float, "the share of longer words that are mistyped"] = 0.2,
    seed: Annotated[int, "seed of the attacks, of hidden pieces and of the bootstrap"] = 0,
) -> Table:
    """Score on attacked items, 0 to 1, and how far it drops below that on the same items left alone, -1 to 1.

    A row is an attack, at test time only: the model is as it was. Order probes shuffle words or sentences; partial
    inputs leave a question, passage or first text out; the seven of si2019 work on multiple choice and leave question
    and right option as they are. `random edit` replaces, adds or drops as many words at random places of the same
    texts, so that the length and the edit distance in words are those of the attack: one that costs no more misleads
    no better than chance. `drop` is over all items, `changed` says how many of them the attack could do anything to,
    `edited` is the edit distance by the words of the item. The score is accuracy, of answers F1, of hidden pieces
    accuracy (these are drawn anew from the attacked text). An attack that changes nothing has no numbers. The words of
    an answer are never changed. What could not be done is in the notes.
    """
    # Naming an analysis must not import torch.
    from bertology.measures.causes.attack_list import Settings
    from bertology.measures.causes.attack_rounds import Rounds
    from bertology.measures.causes.perturbations import Shuffling
    from bertology.measures.causes.unreadable import Rule

    if not 0 <= degree <= 1 or not 0 <= slips <= 1:
        raise Refusal(
            f"--degree is {degree} and --slips {slips}", "numbers from 0 to 1", "Leave them out for 0.6 and 0.2"
        )
    settings = Settings(Rule(Shuffling(degree), shared_sentence), slips)
    rounds = Rounds(encoder, corpus, work, task=task, items=items, settings=settings, seed=seed)
    found = rounds.run(attack)
    guess = rounds.examination.guess
    measure = rounds.examination.measure
    before = rounds.before.counts
    alone = pooled_over_sentences(before.right, before.of, seed=seed)[()]
    baselines = {
        "unattacked": {SCORE: alone.everywhere((len(found),))},
        RANDOM: {
            SCORE: _scores([one.at_random for one in found], seed),
            DROP: _drops(rounds.before, [one.at_random for one in found], seed),
            CHANGED: _shares([one.changed_at_random for one in found], seed),
            EDITED: _shares([one.edited_at_random for one in found], seed),
        },
    }
    if guess is not None:
        usual = pooled_over_sentences(guess.right, guess.of, seed=seed)[()]
        baselines["majority"] = {SCORE: usual.everywhere((len(found),))}
    return Table(
        rows_named=tuple(one.attack.name for one in found),
        measures={
            SCORE: _scores([one.attacked for one in found], seed),
            DROP: _drops(rounds.before, [one.attacked for one in found], seed),
            CHANGED: _shares([one.changed for one in found], seed),
            EDITED: _shares([one.edited for one in found], seed),
        },
        baselines=baselines,
        units={
            SCORE: f"{measure}, 0 to 1",
            DROP: f"{measure} before less after, -1 to 1, 0 no harm",
            CHANGED: "share of items the attack changed, 0 to 1",
            EDITED: "words edited by words there were, 0 none",
        },
        notes={one.attack.name: one.told for one in found},
    )


def _scores(standings: Sequence[Standing], seed: int) -> Estimates:
    right, of = (np.stack([getattr(one.counts, name) for one in standings], axis=1) for name in ("right", "of"))
    return pooled_over_sentences(right, of, seed=seed)


def _drops(before: Standing, standings: Sequence[Standing], seed: int) -> Estimates:
    from bertology.measures.causes.attacked import paired_drop

    return joined([paired_drop(before.counts, one.counts, seed=seed) for one in standings])


def _shares(values: Sequence[Floats], seed: int) -> Estimates:
    return mean_over_sentences(np.stack(values, axis=1), seed=seed)
