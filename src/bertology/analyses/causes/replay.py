"""Where in the model do a text and its attacked form part?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences
from bertology.results.shapes import LayerCurve, Trajectory

if TYPE_CHECKING:
    from bertology.corpus.corpus import Item
    from bertology.measures.causes.attacked import Floats
    from bertology.measures.causes.replayed import Replay

STATES, FIRST, ATTENTION, LOSS, LOST = (
    "distance of states", "distance of the first piece", "change of attention", "rise of loss", "answers lost",
)  # fmt: skip
UNITS = {
    STATES: "1 - cosine of shared pieces, 0 the same to 2 opposite",
    FIRST: "1 - cosine of the first piece, 0 the same to 2 opposite",
    ATTENTION: "total variation over heads and shared pieces, 0 the same to 1 nothing in common",
    LOSS: "nats an item, attacked less original, read by the model's own head after the layer",
    LOST: "score of the original less the attacked, read after the layer, -1 to 1",
}


@analysis(
    question="Where in the model do a text and its attacked form part?",
    special="distances of states leave special tokens out, but for the first piece; attention has them all",
    cites=("si2019",),
)
def replay(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    attack: Annotated[str, "the name of one attack of causes/attacks"] = "words shuffled",
    which: Annotated[
        Literal["turned", "changed"], "items whose answer the attack took, where there are any; or all"
    ] = "turned",
    items: Annotated[int, "replay so many pairs"] = 20,
    among: Annotated[int, "out of so many items, drawn by what they say; 0: all"] = 100,
    show: Annotated[
        Literal["curve", "picture"], "distances by layer; or the states of one pair in the plane"
    ] = "curve",
    pair: Annotated[int, "for the picture: which of the pairs, from 0"] = 0,
    task: Annotated[str, "sentence, pair, qa, choice or mlm; auto: what the model's head is for"] = "auto",
    seed: Annotated[int, "seed of the attack, of hidden pieces and of the bootstrap"] = 0,
) -> LayerCurve | Trajectory:
    """How far the runs of a text and of its attacked form are apart after each layer: 0 the same.

    Layer 0 are the embeddings. States are compared piece by piece where both forms have the piece, in place or moved,
    and so is attention. The answer is read after every layer by the model's own head, as if the layers above it were
    not there. Baselines: the same of the original and a form edited at random as far (`random edit`), which is not
    chosen for having turned the answer as the attacked pairs are, unless `which` says so; and the distances in a model
    of random weights. Where an attack does more than chance its curve leaves that of the random edit. The picture shows
    one pair: the states of every piece of both forms in the one plane of most variance, for all layers.
    """
    # Naming an analysis must not import torch.
    from bertology.measures.causes.replayed import replayed

    found = replayed(encoder, corpus, work, attack=attack, which=which, items=items, among=among, task=task, seed=seed)
    if show == "picture":
        return _picture(encoder, *found.pair(pair))
    layers = encoder.layers + 1
    measures, random, fresh = (
        _curves(values, layers, seed) for values in (found.attacked, found.at_random, found.fresh)
    )
    return LayerCurve(
        measures=measures,
        baselines={
            "random edit": random,
            "random weights": {name: fresh[name] for name in (STATES, FIRST, ATTENTION)},
        },
        units={name: f"{unit} ({found.told})" for name, unit in UNITS.items()},
        first=0,
    )


def _curves(values: Replay, layers: int, seed: int) -> dict[str, Estimates]:
    columns = (values.states, values.first, values.attention, values.losses, values.lost)
    return {name: _estimates(array, layers, seed) for name, array in zip(UNITS, columns, strict=True)}


def _estimates(array: Floats, layers: int, seed: int) -> Estimates:
    return mean_over_sentences(array if len(array) else np.full((1, layers), np.nan), seed=seed)


def _picture(encoder: Encoder, one: Item, other: Item) -> Trajectory:
    """(layer, piece, 2): the states of the first input in which both forms differ."""
    from bertology.measures.causes.replayed import both_runs

    first, second = both_runs(encoder, one, other)
    states = np.concatenate([first.states, second.states], axis=1)
    flat = states.reshape(-1, states.shape[-1])
    centred = flat - flat.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    points = (centred @ axes[:2].T).reshape(*states.shape[:2], 2)
    return Trajectory(
        points=points,
        labels=(*first.pieces.tokens, *second.pieces.tokens),
        groups=_groups(len(first.pieces), len(second.pieces)),
    )


def _groups(first: int, second: int) -> tuple[str, ...]:
    groups: Sequence[str] = ["original"] * first + ["attacked"] * second
    return tuple(groups)
