"""What fine-tuning changed, layer by layer or head by head (merchant2020, kovaleva2019)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from bertology.analyses.attention.model_similarity.analysis import (
    CLASS_CHANGE,
    COSINE,
    DIVERGENCE,
    model_similarity,
    model_similarity_site,
)
from bertology.analyses.attention_patterns.site import pattern_class_site
from bertology.analyses.declaration import analysis
from bertology.analyses.geometry.representation_similarity.analysis import representation_similarity
from bertology.analyses.head_selection.selection import head_attributes
from bertology.analyses.probes.word import word
from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.probing.layer_curves import ACCURACY
from bertology.analyses.probing.word_labels import word_task
from bertology.corpus.corpus import Corpus
from bertology.estimates.estimate import Estimates
from bertology.recording.recording import Recording
from bertology.results.shapes import AttributeValue, Head, HeadGrid, LayerCurve, Table

STATE_MEASURES = "rsa,unbiased-cka"
ATTENTION_MEASURES = (COSINE, DIVERGENCE, f"{DIVERGENCE} (no special tokens)", CLASS_CHANGE)
PROBE_MODEL, PROBE_AGAINST = "probing accuracy (model)", "probing accuracy (against)"
CLASS_ATTRIBUTES = ("class_before", "proportion_before", "class_after", "proportion_after")


def _check_probe_label(corpus: Corpus, options: Mapping[str, Any]) -> None:
    if options["probe_label"]:
        word_task(options["probe_label"], corpus)


@analysis(
    question="In which layers did fine-tuning change representations, attention and probing accuracy?",
    special_tokens="Special tokens: included in attention, except in measures marked (no special tokens); not in the "
    "comparison of hidden states.",
    citations=("merchant2020", "kovaleva2019", "kornblith2019"),
    sites=lambda options: ("hidden", pattern_class_site(), *((WORD_SITE,) if options["probe_label"] else ())),
    check_corpus=_check_probe_label,
    paired_sites=(model_similarity_site,),
    version=3,
    report_section="Effects of fine-tuning",
)
def finetuning_change(
    recording: Recording,
    against: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        Literal["layers", "heads"],
        "`layers`: one value per layer, averaged over heads; `heads`: the heads that changed most.",
    ] = "layers",
    max_heads: Annotated[int, "Number of heads to list, the most changed first."] = 20,
    sample_size: Annotated[
        int, "Number of tokens for comparing hidden states, sampled at random; all if there are fewer."
    ] = 5000,
    probe_label: Annotated[
        str,
        "Also report probing accuracy of both models for this word property (see probes/word --label); empty: none.",
    ] = "",
    seed: Annotated[int, "Random seed (sample, jackknife groups, probes, bootstrap)."] = 0,
) -> Table:
    """Similarity of a model (--model) and its fine-tuned version (--against): 1 if unchanged.

    One table of geometry/representation_similarity (RSA and unbiased CKA of hidden states) and
    attention/model_similarity (cosine and divergence of attention patterns, proportion of patterns whose class
    changed), which define the measures; a layer's attention is the mean over its heads. Divergence and class change are
    0 if nothing changed. Notes and attributes name the heads whose most frequent pattern class changed. `--probe-label`
    adds the accuracy of probes/word on each layer of both models. Compare every number with its baselines: `untrained
    model` shows how dissimilar an untrained model is; `shuffled stimuli` and `different head of the layer` are chance.
    An untrained model attends almost uniformly, so a broad head is more similar to it than a focused one. RSA and CKA
    weight directions by their variance: one direction that grew can lower them while all others stayed the same.
    """
    recordings = recording, against, randomised
    attention = model_similarity(*recordings, show=show, seed=seed)
    class_changes = model_similarity(*recordings, show="pattern-classes", seed=seed)
    assert isinstance(class_changes, Table)
    if show == "heads":
        assert isinstance(attention, HeadGrid)
        return _build_head_table(attention, class_changes, max_heads)
    states = representation_similarity(*recordings, measures=STATE_MEASURES, sample_size=sample_size, seed=seed)
    assert isinstance(states, LayerCurve) and isinstance(attention, LayerCurve)
    probe_curves = _probe_both(recording, against, probe_label, seed) if probe_label else {}
    return _build_layer_table(states, attention, class_changes, probe_curves)


def _probe_both(recording: Recording, against: Recording, label: str, seed: int) -> dict[str, LayerCurve]:
    """Probing accuracy of each layer of both models."""
    curves = {
        name: word(model_recording, None, None, label=label, seed=seed)
        for name, model_recording in ((PROBE_MODEL, recording), (PROBE_AGAINST, against))
    }
    return {name: curve for name, curve in curves.items() if isinstance(curve, LayerCurve)}


def _build_layer_table(
    states: LayerCurve, attention: LayerCurve, class_changes: Table, probe_curves: Mapping[str, LayerCurve]
) -> Table:
    measures = dict(states.measures)
    measures |= {name: _with_embeddings(attention.measures[name]) for name in ATTENTION_MEASURES}
    measures |= {name: curve.measures[ACCURACY] for name, curve in probe_curves.items()}
    baselines: dict[str, dict[str, Estimates]] = defaultdict(dict)
    for name, estimates in states.baselines.items():
        baselines[name] |= estimates
    for name, estimates in attention.baselines.items():
        baselines[name] |= {
            measure: _with_embeddings(estimates[measure]) for measure in ATTENTION_MEASURES if measure in estimates
        }
    for measure, curve in probe_curves.items():
        for name, estimates in curve.baselines.items():
            baselines[name] |= {measure: estimates[ACCURACY]} if ACCURACY in estimates else {}
    n_layers = next(iter(attention.measures.values())).shape[0] + 1
    notes: dict[str, list[str]] = defaultdict(list)
    for head, (before, proportion_before, after, proportion_after) in _changed_classes(class_changes).items():
        change = f"{before} ({proportion_before:.0%} of patterns) -> {after} ({proportion_after:.0%})"
        notes[f"layer {head[0] + 1}"].append(f"{head}: {change}")
    probe_units = {name: curve.units[ACCURACY] for name, curve in probe_curves.items()}
    units = {**states.units, **attention.units, **probe_units}
    return Table(
        measures=measures,
        baselines=dict(baselines),
        units={name: units[name] for name in measures},
        row_names=tuple(f"layer {layer}" for layer in range(n_layers)),
        attributes={"layer": tuple(range(n_layers))},
        notes={row: "; ".join(sorted(changes)) for row, changes in notes.items()},
    )


def _build_head_table(attention: HeadGrid, class_changes: Table, max_heads: int) -> Table:
    divergence = attention.measures[DIVERGENCE].value
    order = np.argsort(-np.nan_to_num(divergence, nan=-1.0), axis=None, kind="stable")[: max(1, max_heads)]
    indices = np.unravel_index(order, divergence.shape)
    heads = [Head(int(layer), int(head)) for layer, head in zip(*indices, strict=True)]
    classes = _changed_classes(class_changes)
    return Table(
        measures={name: estimates[indices] for name, estimates in attention.measures.items()},
        baselines={
            name: {measure: estimates[indices] for measure, estimates in baseline.items()}
            for name, baseline in attention.baselines.items()
        },
        units=attention.units,
        row_names=tuple(str(head) for head in heads),
        attributes={
            **head_attributes(heads),
            **{
                name: tuple(classes[head][index] if head in classes else None for head in heads)
                for index, name in enumerate(CLASS_ATTRIBUTES)
            },
        },
    )


def _changed_classes(class_changes: Table) -> dict[Head, tuple[AttributeValue, ...]]:
    """The class attributes of the heads whose most frequent pattern class differs between the models."""
    rows = zip(*(class_changes.attributes[name] for name in CLASS_ATTRIBUTES), strict=True)
    return {
        Head.parse(name): classes
        for name, classes in zip(class_changes.row_names, rows, strict=True)
        if classes[0] != classes[2]
    }


def _with_embeddings(estimates: Estimates) -> Estimates:
    """Estimates by layer from 1, with a missing value for the embeddings, which have no attention."""
    return Estimates.concatenate([Estimates.empty(1), estimates])
