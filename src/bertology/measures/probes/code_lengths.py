"""How many bits it takes to send labels to someone who has the hidden states (voita2020)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.measures.probes.probe_material import Task, held_out
from bertology.measures.probes.probe_scores import HELD, Setting, control_of, fitted

Numbers = NDArray[Any]

FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Of the sentences, as in the released settings."""

SOLVED = 5e-5
"""Bits depend on chances, not on the likeliest label alone: linear probes that send labels are solved more closely."""


def portions(sentences: int) -> list[int]:
    """How many sentences are known at each step: the fractions that make a difference among so few."""
    return sorted({max(1, round(fraction * sentences)) for fraction in FRACTIONS})


def online(task: Task, setting: Setting, *, legacy_nats: bool = False, control: bool = True) -> tuple[Numbers, Numbers]:
    """(labelling, seed, layer) bits of the training labels by the online code, and (seed,) how many labels.

    The labels of the first portion of sentences go by the uniform code; those of every further portion by a probe that
    was fitted on all portions before it. Labellings are the labels, then control labels. What a probe holds out to
    weigh penalties by is no part of the message. A probe of n cases is believed with weight n / (n + 1), the uniform
    code with the rest: one of very few cases would be sure of itself without a reason. `legacy_nats` leaves the parts
    after the first in nats.
    """
    kinds = 1 + control
    layers = len(task.learned.features)
    bits = np.zeros((kinds, len(setting.seeds), layers))
    counted = np.zeros(len(setting.seeds))
    for number, seed in enumerate(setting.seeds):
        labels = _labellings(task, seed, control)
        held = held_out(task.learned, HELD, seed)
        order = _shuffled(task, held, seed)
        rank = np.full(len(task.learned.entries), -1)
        rank[order] = np.arange(len(order))
        place = rank[task.learned.entry]
        counted[number] = (place >= 0).sum()
        steps = portions(len(order))
        bits[:, number] += ((place >= 0) & (place < steps[0])).sum() * np.log2(len(task.labels))
        for known, until in pairwise(steps):
            nats = _next_portion(task, setting, labels, held, place, known, until, seed)
            bits[:, number] += nats if legacy_nats else nats / np.log(2)
    return bits, counted


def _labellings(task: Task, seed: int, control: bool) -> Numbers:
    """(labelling, case)."""
    own = task.numbered(task.learned)[None]
    return np.concatenate([own, control_of(task, task.learned.type, (seed,))]) if control else own


def _next_portion(
    task: Task,
    setting: Setting,
    labels: Numbers,
    held: NDArray[np.bool_],
    place: Numbers,
    known: int,
    until: int,
    seed: int,
) -> Numbers:
    """(labelling, layer) nats of the labels of sentences `known` to `until`, told by a probe of those before."""
    seen = ((place >= 0) & (place < known)) | held
    sent = (place >= known) & (place < until)
    if not sent.any():
        return np.zeros((len(labels), len(task.learned.features)))
    linear = setting.recipe.form == "linear"
    recipe = replace(setting.recipe, tolerance=SOLVED) if linear else setting.recipe
    found = fitted(
        task.learned.features[:, seen],
        labels[:, seen],
        np.tile(held[seen], (len(labels), 1)),
        len(task.labels),
        recipe,
        (seed,) * len(labels),
    )
    logs = found.log_chances(task.learned.features[:, sent])
    told = np.exp(np.take_along_axis(logs, labels[None, :, sent, None], -1)[..., 0].astype(np.float64))
    doubt = 1 / (1 + int((~held[seen]).sum()))
    return -np.log((1 - doubt) * told + doubt / len(task.labels)).sum(-1).T


def _shuffled(task: Task, held: NDArray[np.bool_], seed: int) -> Sequence[int]:
    """The sentences that are sent, in an order that depends on their words and the seed alone."""
    held_entries = set(task.learned.entry[held].tolist())
    sent = sorted(set(task.learned.entry.tolist()) - held_entries)

    def drawn(place: int) -> bytes:
        return hashlib.sha256(f"{seed}\n{' '.join(task.learned.entries[place].input.words)}".encode()).digest()

    return sorted(sent, key=drawn)


def variational(
    task: Task, setting: Setting, *, legacy_nats: bool = False, control: bool = True
) -> tuple[Numbers, Numbers]:
    """(labelling, seed, layer) bits of the training labels by the variational code, and (seed,) how many labels.

    `legacy_nats` leaves all of it in nats.
    """
    from bertology.maths.variational_classifier import VariationalRecipe, code_lengths

    seeds = setting.seeds
    each = np.stack([_labellings(task, seed, control) for seed in seeds], 1)
    kinds = len(each)
    code = code_lengths(
        task.learned.features,
        each.reshape(-1, each.shape[-1]),
        len(task.labels),
        VariationalRecipe(setting.recipe.sizes),
        seeds=seeds * kinds,
    )
    nats = (code.model + code.data).T.reshape(kinds, len(seeds), -1)
    return nats if legacy_nats else nats / np.log(2), np.full(len(seeds), float(len(task.learned)))
