"""Does the model know which form of a verb agrees with its subject (jawahar2019, goldberg2019, linzen2016)?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.division import random_form, training_part
from bertology.measures.probes.agreeing_verbs import SINGULAR, Verb, agreeing_verbs
from bertology.measures.probes.masked_scores import Question, answer
from bertology.recording.annotation import pieces_of_words
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences
from bertology.results.shapes import Table

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.encoder import Output

Floats = NDArray[np.floating[Any]]

MOST = 4
"""Verbs with so many attractors or more are counted together."""
HEAD = "masked LM"


@dataclass(frozen=True)
class _Case:
    """A verb that is one piece in either form: its input, its place, and the ids of both forms."""

    verb: Verb
    entry: Entry
    place: int
    right: int
    wrong: int

    @property
    def column(self) -> str:
        """What it is reported under."""
        count = min(self.verb.attractors, MOST)
        return f"{count}{' or more' * (count == MOST)} attractor{'s' * (count != 1)}"


@analysis(
    question="Does the model know which form of a verb agrees with its subject?",
    special="seen by the model; only the masked verb is looked at",
    cites=("jawahar2019", "goldberg2019", "linzen2016"),
    version=3,
)
def agreement(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder,
    *,
    share: Annotated[float, "the share of the sentences that the probes are trained on, whole documents"] = 0.5,
    undistracted: Annotated[bool, "train the probes only on verbs without attractors"] = False,
    penalty: Annotated[float, "half of it times the squared weights is added to the probes' loss"] = 0.01,
    legacy: Annotated[bool, "probe the place that the released code looks at, left of the mask"] = False,
    seed: Annotated[int, "seed of the division and of the bootstrap"] = 0,
) -> Table:
    """Share of verbs whose number is found under a mask, by how many nouns distract, 0 to 1; about 0.5 is chance.

    The verb is hidden; every verb and its other form must be one piece. `masked LM` (where the model has that head):
    the right form is more probable than the wrong one. `layer n`: a linear probe on the hidden state of the mask
    predicts singular or plural, trained on some of the sentences and scored on the others; layer 0, the embeddings,
    knows only the mask and its place. Verbs come from minimal pairs that mark them, or from a treebank (present, third
    person, subject before the verb, every noun between is an attractor). The paper's probe has 50 hidden units and is
    trained on a tenth of the data. Its released code looks at the piece whose number is that of the verb's word,
    without counting [CLS] and split words: that is `legacy`. `nearest noun` agrees with the noun right before the verb;
    `majority` is the more frequent number. Intervals are over verbs.
    """
    cases, left = _cases(recording, encoder)
    order = sorted(range(len(cases)), key=lambda case: (cases[case].entry.pieces.ids.tobytes(), cases[case].place))
    cases = [cases[case] for case in order]
    trained = training_part([case.entry for case in cases], share, seed=seed)
    columns = sorted({case.column for case in cases})
    learned = trained & ~(undistracted & np.array([case.verb.attractors > 0 for case in cases]))
    labels = np.array([case.verb.number for case in cases])
    if len(set(labels[learned].tolist())) < 2 or trained.all():
        raise Refusal(
            f"{recording.corpus.name} has too few verbs to train on some and test on others ({learned.sum()} and "
            f"{(~trained).sum()})",
            "verbs of both numbers to train on, and others",
            "Use a larger treebank, or generated:minimal_pairs",
        )

    def found(model: Encoder) -> Floats:
        return _found(model, cases, labels, learned, trained, penalty, legacy)

    own = found(encoder)
    rows = ([HEAD] if len(own) > encoder.layers + 1 else []) + [f"layer {layer}" for layer in range(encoder.layers + 1)]
    everywhere = np.ones((len(rows), 1))
    majority = labels == (SINGULAR if 2 * (labels == SINGULAR).sum() >= len(labels) else 1 - SINGULAR)
    nearest = np.array([case.verb.nearest for case in cases]) == labels
    tables = {"": own, "majority": majority * everywhere, "nearest noun": nearest * everywhere}
    if randomised is not None and (fresh := random_form(encoder)) is not None:
        tables["random weights"] = found(fresh)
    names = np.array([case.column for case in cases])
    estimates = {
        name: {column: _over(values, names == column, seed) for column in columns} for name, values in tables.items()
    }
    return Table(
        measures=estimates.pop(""),
        baselines=estimates,
        units=dict.fromkeys(columns, "share of verbs, 0 to 1"),
        rows_named=tuple(rows),
        notes={rows[0]: _told(cases, learned, trained, left)},
    )


def _cases(recording: Recording, encoder: Encoder) -> tuple[list[_Case], Counter[str]]:
    """The verbs that are one piece in both forms."""
    if encoder.mask_id is None:
        raise Refusal(
            f"probes/agreement masks verbs, and {encoder.name} has no mask token",
            "a model with a mask token",
            "Give one with --model, for example the built-in mini",
        )
    verbs, left = agreeing_verbs(recording.corpus)
    entries = {entry.item: entry for entry in recording.entries if not entry.variant and not entry.window}
    kept = [verb for verb in verbs if verb.item in entries]
    found: list[_Case] = []
    for verb, other in zip(kept, encoder.tokenise([verb.wrong for verb in kept]), strict=True):
        entry = entries[verb.item]
        places = pieces_of_words(entry).get(verb.word, [])
        others = np.flatnonzero(other.word == verb.word).tolist()
        if len(places) == len(others) == 1 and entry.pieces.ids[places[0]] != other.ids[others[0]]:
            found.append(_Case(verb, entry, places[0], int(entry.pieces.ids[places[0]]), int(other.ids[others[0]])))
        else:
            left["forms of several pieces"] += 1
    if not found:
        raise Refusal(
            f"{recording.corpus.name} has no verb that agrees with a noun before it"
            + "".join(f"; left out, {why}: {count}" for why, count in sorted(left.items())),
            "a treebank with lemmas and features, or minimal pairs of agreement",
            "Use a CoNLL-U treebank, or --corpus generated:minimal_pairs --format-option paradigm=agreement",
        )
    return found, left


def _found(
    encoder: Encoder,
    cases: Sequence[_Case],
    labels: NDArray[np.int64],
    learned: NDArray[np.bool_],
    trained: NDArray[np.bool_],
    penalty: float,
    legacy: bool,
) -> Floats:
    """(row, verb) 1 where the number is found, 0 where not, NaN where the probe was trained on its sentence."""
    from bertology.maths.classifier import Recipe, fit

    preferred, states = _masked(encoder, cases, legacy)
    guesses = np.full((len(states), len(cases)), np.nan)
    recipe = Recipe(penalties=(penalty,), iterations=300, tolerance=1e-5)
    probes = fit(states[:, learned], labels[None, learned], 2, recipe)
    guesses[:, ~trained] = probes.predict(states[:, ~trained])[:, 0] == labels[~trained]
    return guesses if preferred is None else np.concatenate([preferred[None], guesses])


def _masked(encoder: Encoder, cases: Sequence[_Case], legacy: bool) -> tuple[Floats | None, Floats]:
    """(verb,) whether the right form is more probable, None without such a head; (layer, verb, width) states."""
    preferred = np.full(len(cases), np.nan)
    states = np.zeros((encoder.layers + 1, len(cases), encoder.width), np.float32)
    looked = np.array([case.verb.word if legacy else case.place for case in cases])

    def keep(some: Sequence[int], places: Tensor, output: Output) -> None:
        import torch

        rows, chosen = torch.arange(len(some), device=places.device), [cases[number] for number in some]
        at = torch.from_numpy(looked[list(some)]).to(places.device)
        for layer, hidden in enumerate(output.hidden):
            states[layer, list(some)] = hidden[rows, at].float().cpu().numpy()
        if "mlm" in output.logits:
            scores = output.logits["mlm"][rows, places].float()
            forms = torch.tensor([(case.right, case.wrong) for case in chosen], device=places.device)
            right, wrong = scores.gather(1, forms).unbind(1)
            preferred[list(some)] = (right > wrong).cpu().numpy()

    answer(encoder, [Question(case.entry.pieces, (case.place,), case.place) for case in cases], keep, hidden=True)
    return (preferred if "mlm" in encoder.outputs else None), states


def _over(values: Floats, own: NDArray[np.bool_], seed: int) -> Estimates:
    return mean_over_sentences(values[:, own].T, seed=seed)


def _told(cases: Sequence[_Case], learned: NDArray[np.bool_], trained: NDArray[np.bool_], left: Counter[str]) -> str:
    told = f"{len(cases)} verbs; probes trained on {learned.sum()}, tested on {(~trained).sum()}"
    return told + "".join(f"; left out, {why}: {count}" for why, count in sorted(left.items()))
