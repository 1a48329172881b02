"""Can a sentence's vector be made of its words in roles, and in which roles (mccoy2019; jawahar2019, section 6)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import Encoder
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.measures.division import random_form, training_part
from bertology.measures.geometry.role_schemes import RANDOM_TREE, SCHEMES, Scheme, numbered
from bertology.measures.probes.options import Epochs, Seed
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences
from bertology.results.shapes import LayerCurve

Floats = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]

HELD_OUT = 0.1
UNKNOWN_SIZE = 100
"""The size of random fillers where the model's own embeddings cannot be had."""


@dataclass(frozen=True)
class _Material:
    """Sentences with their vectors (layer, sentence, width) and the filler of each piece as a row of a table.

    `part` is 0 for training, 1 for what is held out to end it, 2 for the test.
    """

    entries: tuple[Entry, ...]
    vectors: Floats
    table: Floats
    fillers: tuple[NDArray[np.intp], ...]
    part: NDArray[np.int64]


@dataclass(frozen=True)
class _Settings:
    """How decompositions are fitted."""

    size: int
    seeds: tuple[int, ...]
    epochs: int
    rate: float


@analysis(
    question="Can a sentence's vector be made of its words in roles, and in which roles?",
    special="[CLS] and [SEP] are fillers like other pieces, in roles of their own",
    cites=("mccoy2019", "jawahar2019"),
    sites=("hidden",),
    layers=("heads",),
)
def tensor_products(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    vector: Annotated[
        Literal["cls", "mean"], "a sentence's vector: its first piece's, or the mean of its words'"
    ] = "cls",
    size: Annotated[int, "the size of a role vector"] = 6,
    epochs: Epochs = 100,
    rate: Annotated[float, "Adam's rate"] = 1e-3,
    share: Annotated[float, "the share of the sentences to train on, whole documents"] = 0.7,
    seeds: Annotated[int, "how many times each decomposition is fitted, from different initial weights"] = 1,
    seed: Seed = 0,
) -> LayerCurve:
    """Mean squared error of sentence vectors rebuilt from words in roles, by layer; 0 is exact.

    v = W vec(sum of filler x role) + b: fillers are the model's input embeddings, fixed; role vectors and W are learned
    by Adam with the best epoch on held-out sentences (the paper's trainable map of the fillers is part of W). Roles:
    position from the left, from the right, from both, none (a bag of words), or the path to the word in a binary tree,
    here made from the dependency tree where the paper has SNLI's parses. Equal sentences are on one side of the split.
    The released code reads 1,000 premises and skips training for so few; here every sentence counts. Compare schemes
    within a layer: layers differ in scale. What cannot be learned from so few sentences stays at the mean vector, and
    schemes of many roles (`bidirectional`, `tree`) need the most. Baselines: the mean vector of training; a random tree
    of as many words, for `tree`; the model with random weights, on its own scale. Without the model itself fillers are
    random vectors. Intervals are over test sentences.
    """
    settings = _Settings(size, tuple(range(seed, seed + seeds)), epochs, rate)
    material = _material(recording, encoder, vector, share, seed)
    measures = {name: _errors(name, scheme, material, settings) for name, scheme in SCHEMES.items()}
    baselines = {
        "mean vector": dict.fromkeys(SCHEMES, _mean_vector(material, seed)),
        "random tree": {"tree": _errors("random tree", RANDOM_TREE, material, settings)},
    }
    if randomised is not None:
        fresh = _material(randomised, random_form(encoder), vector, share, seed)
        baselines["random weights"] = {name: _errors(name, own, fresh, settings) for name, own in SCHEMES.items()}
        baselines["mean vector of random weights"] = dict.fromkeys(SCHEMES, _mean_vector(fresh, seed))
    return LayerCurve(
        measures=measures,
        baselines=baselines,
        units=dict.fromkeys(measures, "mean squared error of a component, 0 exact"),
    )


def _material(recording: Recording, encoder: Encoder | None, vector: str, share: float, seed: int) -> _Material:
    """The sentences with trees in an order of their own, divided."""
    kept = [
        place
        for place, entry in enumerate(recording.entries)
        if all(part.heads is not None for part in entry.input.parts) and _whole(entry)
    ]
    kept.sort(key=lambda place: recording.entries[place].pieces.ids.tobytes())
    entries = tuple(recording.entries[place] for place in kept)
    part = _divided(entries, share, seed)
    if set(part.tolist()) != {0, 1, 2}:
        raise Refusal(
            f"{recording.corpus.name} has too few sentences with trees for a decomposition ({len(entries)})",
            "some to train on, some to hold out and some to test on",
            "Use a larger treebank, or another --share",
        )
    rows = {number: row for row, number in enumerate(sorted({int(i) for e in entries for i in e.pieces.ids}))}
    fillers = tuple(np.array([rows[int(number)] for number in entry.pieces.ids]) for entry in entries)
    vectors = np.stack([_vector(np.asarray(recording["hidden"][p]), recording.entries[p], vector) for p in kept], 1)
    return _Material(entries, vectors.astype(np.float32), _table(encoder, list(rows)), fillers, part)


def _whole(entry: Entry) -> bool:
    return not entry.window and bool((entry.pieces.special == Special.NONE).any())


def _divided(entries: Sequence[Entry], share: float, seed: int) -> NDArray[np.int64]:
    """0 to train on, 1 to hold out, 2 to test on; equal sentences and whole documents together."""
    trained = training_part(entries, share, seed=seed) if entries else np.zeros(0, np.bool_)
    part = np.where(trained, 0, 2)
    within = np.flatnonzero(trained)
    if len(within):
        held = ~training_part([entries[place] for place in within.tolist()], 1 - HELD_OUT, seed=seed)
        part[within[held]] = 1
    return part


def _vector(hidden: Floats, entry: Entry, how: str) -> Floats:
    """(layer, width)."""
    return hidden[:, 0] if how == "cls" else hidden[:, entry.pieces.special == Special.NONE].mean(1)


def _table(encoder: Encoder | None, ids: Sequence[int]) -> Floats:
    """(filler, size), of a mean length of 1: Adam's steps are as long whatever the scale, and must not be too long."""
    from bertology.encoder.huggingface import HuggingFaceEncoder

    if isinstance(encoder, HuggingFaceEncoder):
        table = np.asarray(encoder.input_vectors(), np.float32)[list(ids)]
    else:
        table = np.stack([np.random.default_rng(number).normal(size=UNKNOWN_SIZE) for number in ids])
    return table / (np.linalg.norm(table, axis=1).mean() or 1.0)


def _errors(name: str, scheme: Scheme, material: _Material, settings: _Settings) -> Estimates:
    """(layer,) the squared error of a scheme, mean over components, seeds and test sentences."""
    from bertology.maths.tensor_product import NOTHING, Sequences, fit, predict

    roles = [scheme(entry) for entry in material.entries]
    trained = material.part == 0
    number = numbered(name, [own for own, chosen in zip(roles, trained, strict=True) if chosen])
    longest = max(len(own) for own in roles)
    filled = np.full((2, len(roles), longest), NOTHING)
    for place, own in enumerate(roles):
        filled[:, place, : len(own)] = material.fillers[place], [number(role) for role in own]
    sequences = Sequences(np.maximum(filled[0], 0), filled[1])
    # Every layer on the same scale while it is fitted, so that one rate suits all.
    mean, scale = _moments(material)
    targets = np.repeat((material.vectors - mean) / scale, len(settings.seeds), axis=0)
    parts = [np.flatnonzero(material.part == own) for own in range(3)]
    (first, wanted), (held, watched) = ((sequences[own], targets[:, own]) for own in parts[:2])
    model = fit(
        material.table,
        first,
        wanted,
        held,
        watched,
        roles=int(filled[1].max()) + 1,
        size=settings.size,
        seeds=settings.seeds,
        epochs=settings.epochs,
        rate=settings.rate,
    )
    squared = np.square(predict(model, sequences[parts[2]]) - targets[:, parts[2]]).mean(-1)
    by_layer = squared.reshape(len(mean), len(settings.seeds), -1).mean(1) * np.square(scale[:, :, 0])
    return mean_over_sentences(by_layer.T, seed=settings.seeds[0])


def _moments(material: _Material) -> tuple[Floats, Floats]:
    """(layer, 1, width) mean vectors and (layer, 1, 1) scales of the training vectors; 1 where they do not vary."""
    vectors = material.vectors[:, material.part == 0]
    mean = vectors.mean(1, keepdims=True)
    scale = np.sqrt(np.square(vectors - mean).mean((1, 2), keepdims=True))
    return mean, np.where(scale > 1e-6 * np.abs(mean).max((1, 2), keepdims=True), scale, 1.0)


def _mean_vector(material: _Material, seed: int) -> Estimates:
    """(layer,) the squared error of the mean vector of training."""
    apart = material.vectors[:, material.part == 2] - _moments(material)[0]
    return mean_over_sentences(np.square(apart).mean(-1).T, seed=seed)
