"""What did fine-tuning change, and where (merchant2020; kovaleva2019)?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from bertology.analyses.attention.change import CHANGE, SHAPE, change
from bertology.analyses.attention.kovaleva import shapes
from bertology.analyses.declaration import Analysis, Sites, analysis
from bertology.analyses.geometry.similarity import similarity
from bertology.analyses.probes.token import token
from bertology.errors import unknown_name
from bertology.measures.probes.probe_material import WORD_SITE
from bertology.measures.probes.probe_report import ACCURACY
from bertology.measures.probes.word_labels import WORD_LABELS
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Table

By = Literal["layers", "heads"]

STATES = "rsa,unbiased-cka"
ATTENTION = ("cosine", "divergence", "divergence, ordinary", SHAPE)
ORDER = "divergence"
EMBEDDINGS = "embeddings"
BEFORE, AFTER = "probe before", "probe after"


def _sites(options: Mapping[str, Any]) -> Sites:
    return ("hidden", shapes(), *((WORD_SITE,) if options["probe"] else ()))


@analysis(
    question="What did fine-tuning change, and where?",
    special="left out of the comparison of states; kept in that of attention, but for the measures called ordinary",
    cites=("merchant2020", "kovaleva2019", "kornblith2019"),
    sites=_sites,
    paired=(CHANGE,),
    version=2,
)
def finetuning(
    recording: Recording,
    against: Recording,
    randomised: Recording | None,
    *,
    by: Annotated[By, "`layers`: states and attention of each layer; `heads`: the heads that changed most"] = "layers",
    most: Annotated[int, "so many heads are listed, those that changed most first"] = 20,
    stimuli: Annotated[int, "so many pieces are drawn to compare states, or all where there are fewer"] = 5000,
    probe: Annotated[
        str, f"also probe both models' layers for a label of words: {', '.join(WORD_LABELS)}; empty for none"
    ] = "",
    seed: Annotated[int, "seed of the sample, of the groups left out, of the probes and of the bootstrap"] = 0,
) -> Table:
    """Likeness of a model (--model) and what was made of it (--against): 1 unchanged (divergence, shape changed: 0).

    One table of `geometry/similarity` (RSA, unbiased CKA of states) and `attention/change` (cosine and divergence of
    maps, share of maps whose shape changed), which say how each is measured; a layer's attention is the mean of its
    heads. Notes name the heads whose most frequent shape changed, from what to what. `--probe` adds the accuracy of
    `probes/token` on each layer before (--model) and after (--against), as the shares of words told right. Read every
    number beside its baselines: `random weights` is how unlike an untrained model is, `shuffled stimuli` and `another
    head` are chance. An untrained model attends to all alike, so a broad head is nearer to it than a focused one. RSA
    and CKA weigh directions by their variance: one direction that grew can lower them while all else stayed.
    """
    attention = _of(change, recording, against, randomised, show="layers" if by == "layers" else "heads", seed=seed)
    moved = _of(change, recording, against, randomised, show="shapes", seed=seed)
    assert isinstance(moved, Table)
    if by == "heads":
        assert isinstance(attention, HeadGrid)
        return _by_head(attention, moved, most)
    states = _of(similarity, recording, against, randomised, measures=STATES, stimuli=stimuli, seed=seed)
    assert isinstance(states, LayerCurve) and isinstance(attention, LayerCurve)
    probed = _probed(recording, against, probe, seed) if probe else {}
    return _by_layer(states, attention, moved, probed)


def _probed(recording: Recording, against: Recording, label: str, seed: int) -> dict[str, LayerCurve]:
    """The probes of each layer before and after."""
    if label not in WORD_LABELS:
        raise unknown_name("label of words to probe for", label, WORD_LABELS)
    settled = token.settled({"label": label, "seed": seed})
    found = {name: token.function(one, None, None, **settled) for name, one in ((BEFORE, recording), (AFTER, against))}
    return {name: curve for name, curve in found.items() if isinstance(curve, LayerCurve)}


def _of(
    compared: Analysis, recording: Recording, against: Recording, randomised: Recording | None, **options: Any
) -> object:
    return compared.function(recording, against, randomised, **compared.settled(options))


def _by_layer(states: LayerCurve, attention: LayerCurve, moved: Table, probed: Mapping[str, LayerCurve]) -> Table:
    measures = {**states.measures, **{name: _below(attention.measures[name]) for name in ATTENTION}}
    measures |= {name: curve.measures[ACCURACY] for name, curve in probed.items()}
    baselines: dict[str, dict[str, Estimates]] = defaultdict(dict)
    for name, found in states.baselines.items():
        baselines[name] |= found
    for name, found in attention.baselines.items():
        baselines[name] |= {measure: _below(found[measure]) for measure in ATTENTION if measure in found}
    for measure, curve in probed.items():
        for name, found in curve.baselines.items():
            baselines[name] |= {measure: found[ACCURACY]} if ACCURACY in found else {}
    layers = next(iter(attention.measures.values())).shape[0]
    rows = (EMBEDDINGS, *(f"layer {layer + 1}" for layer in range(layers)))
    told: dict[str, list[str]] = defaultdict(list)
    for head, note in _changes(moved).items():
        told[f"layer {Head.parse(head)[0] + 1}"].append(f"{head}: {note}")
    return Table(
        measures=measures,
        baselines=dict(baselines),
        units={name: ({**states.units, **attention.units}).get(name, "share of words, 0 to 1") for name in measures},
        rows_named=rows,
        notes={row: "; ".join(sorted(notes)) for row, notes in told.items()},
    )


def _by_head(attention: HeadGrid, moved: Table, most: int) -> Table:
    changed = attention.measures[ORDER].value
    order = np.argsort(-np.nan_to_num(changed, nan=-1.0), axis=None, kind="stable")[: max(1, most)]
    places = np.unravel_index(order, changed.shape)
    heads = [Head(int(layer), int(head)) for layer, head in zip(*places, strict=True)]
    notes = _changes(moved)
    return Table(
        measures={name: values[places] for name, values in attention.measures.items()},
        baselines={
            name: {measure: values[places] for measure, values in found.items()}
            for name, found in attention.baselines.items()
        },
        units=attention.units,
        rows_named=tuple(str(head) for head in heads),
        notes={str(head): notes[str(head)] for head in heads if str(head) in notes},
    )


def _changes(moved: Table) -> dict[str, str]:
    """The notes on heads whose most frequent shape changed, none where no head's did."""
    return {head: note for head, note in moved.notes.items() if " in " in note}


def _below(estimates: Estimates) -> Estimates:
    """What layers have that attend, with nothing in front for the embeddings, which do not."""
    missing = {name: np.concatenate([[np.nan], getattr(estimates, name)]) for name in ("value", "low", "high")}
    return Estimates(**missing, n=np.concatenate([[0], estimates.n]))
