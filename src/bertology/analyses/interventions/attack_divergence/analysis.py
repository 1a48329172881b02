"""Divergence, layer by layer, of the hidden states of a text and of its attacked version."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import analysis
from bertology.analyses.evaluation.options import AttackOptions, RandomBaselineOption
from bertology.analyses.interventions.attack_divergence.divergence import ATTENTION, FIRST_TOKEN, STATES
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.encoder.encoder import Encoder
from bertology.estimates.resampling import bootstrap_mean
from bertology.results.illustrations import Trajectory
from bertology.results.shapes import LayerCurve

DISTANCES = (STATES, FIRST_TOKEN, ATTENTION)
UNITS = {
    STATES: "1 - cosine, 0 to 2",
    FIRST_TOKEN: "1 - cosine, 0 to 2",
    ATTENTION: "total variation, 0 to 1",
    "change in loss": "nats per example",
    "score drop": "change in score, -1 to 1",
}


@analysis(
    question="At which layer do the hidden states of a text and of its attacked version diverge?",
    special_tokens="Special tokens: excluded from hidden-state distances, except for the first token; included in "
    "attention distances.",
    citations=("si2019",),
    version=2,
)
def attack_divergence(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    attack: Annotated[str, "Name of one attack of interventions/attacks."] = "shuffled words",
    select: Annotated[
        Literal["flipped", "changed"],
        "`flipped`: examples whose prediction the attack changed from right to wrong (if any); `changed`: all examples "
        "whose text it changed.",
    ] = "flipped",
    max_pairs: Annotated[int, Ge(1), "Maximum number of clean and attacked text pairs to compare."] = 20,
    show: Annotated[
        Literal["layers", "trajectory"],
        "`layers` (distance by layer) or `trajectory` (hidden states of one text pair in the plane).",
    ] = "layers",
    example: Annotated[int, Ge(1), "Text pair to draw with --show trajectory, counted from 1."] = 1,
    random_baseline: RandomBaselineOption = True,
    options: AttackOptions = AttackOptions(),
) -> LayerCurve | Trajectory:
    """Distance between the activations of a text and of its attacked version after each layer; 0: identical.

    Layer 0 is the embeddings. Hidden states and attention are compared at the tokens that both versions share, whether
    in place or moved. Loss and score are read after every layer by the model's task head, as if the layers above did
    not exist. Baselines: the distances to a random edit of the same amount, which is not selected for having flipped
    the prediction as the attacked pairs are (unless with `--select changed`); and the distances in an untrained model.
    If an attack does more than a random edit, its curve departs from that baseline. `--show trajectory` projects the
    states of all tokens of one pair, for all layers, onto their first two principal components.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.interventions.attack_divergence.replay import replay_attack

    replay = replay_attack(
        encoder,
        corpus,
        cache,
        options,
        attack=attack,
        select=select,
        max_pairs=max_pairs,
        random_baseline=random_baseline,
    )
    if show == "trajectory":
        return _build_trajectory(encoder, *replay.pair(example))
    missing = np.full((1, encoder.layers + 1), np.nan)
    attacked, random_edits, untrained = (
        {
            name: bootstrap_mean(values if len(values) else missing, seed=options.seed)
            for name, values in divergence.items()
        }
        for divergence in (replay.attacked, replay.random_edits, replay.randomised)
    )
    return LayerCurve(
        measures=attacked,
        baselines={
            "random edits (same amount)": random_edits,
            **({"untrained model": {name: untrained[name] for name in DISTANCES}} if random_baseline else {}),
        },
        units=UNITS,
        sample=replay.sample
        | {
            "text pairs": len(replay.pairs),
            "flipped examples": replay.n_flipped,
            "changed examples": replay.n_changed,
        },
        first_layer=0,
    )


def _build_trajectory(encoder: Encoder, clean: Example, attacked: Example) -> Trajectory:
    """(layer, token, 2) states of the first input in which both versions differ."""
    from bertology.analyses.interventions.attack_divergence.replay import activations_of_both

    first, second = activations_of_both(encoder, clean, attacked)
    states = np.concatenate([first.hidden_states, second.hidden_states], axis=1)
    flat = states.reshape(-1, states.shape[-1])
    centred = flat - flat.mean(0)
    _, _, components = np.linalg.svd(centred, full_matrices=False)
    return Trajectory(
        points=(centred @ components[:2].T).reshape(*states.shape[:2], 2),
        labels=(*first.tokens.tokens, *second.tokens.tokens),
        groups=("original",) * len(first.tokens) + ("attacked",) * len(second.tokens),
    )
