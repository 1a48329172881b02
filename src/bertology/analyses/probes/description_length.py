"""In how few bits can labels be sent to someone who has the hidden states of a layer (voita2020)?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.probes.token import word_task
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.division import Division, random_form
from bertology.measures.probes.code_lengths import Numbers, online, variational
from bertology.measures.probes.probe_material import WORD_SITE, Task
from bertology.measures.probes.probe_report import by_frequency, compression
from bertology.measures.probes.probe_scores import Setting, setting_of
from bertology.measures.probes.word_labels import Label
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import over_seeds
from bertology.results.shapes import LayerCurve
from bertology.results.spread import BY_SEED

CODES: dict[str, Callable[..., tuple[Numbers, Numbers]]] = {"online": online, "variational": variational}


@analysis(
    question="In how few bits can labels be sent to someone who has the hidden states?",
    special="seen by the model; only words are probed, each by the mean of its pieces",
    cites=("voita2020", "louizos2017"),
    sites=(WORD_SITE,),
    version=3,
)
def description_length(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    label: Annotated[Label, "what to tell of a word"] = "upos",
    probe: Annotated[str, "linear, mlp:N or mlp:N:N, with N units"] = "linear",
    minimum: Annotated[int, "a label counts from this many words"] = 10,
    train: Annotated[str, "a corpus whose labels to send, by name or path; empty: a part of this one"] = "",
    train_limit: Annotated[
        int, "send the labels of at most N sentences: the first of --train, or drawn at random; 0 for all"
    ] = 0,
    share: Annotated[float, "without --train: the share of the sentences whose labels to send, whole documents"] = 0.7,
    legacy_nats: Annotated[
        bool, "leave cross-entropies in nats beside a uniform code in bits, as the released code does"
    ] = False,
    seeds: Annotated[int, "how many codes, each with its own order, held-out documents and control labels"] = 3,
    seed: Annotated[int, "the first of these seeds"] = 0,
) -> LayerCurve:
    """Bits a label costs by a probe of each layer, from near 0 to log2 of the number of labels and beyond.

    `online` code: sentences come in portions of 0.1 %, 0.2 % and so on up to all of them; the labels of the first go by
    the uniform code, those of every further portion by a probe that was fitted on all before it, with the penalties
    (or the end) that suit held-out documents, which are no part of the message; a probe of n words is believed
    with weight n / (n + 1), for one of very few would be sure without a reason. `variational` code: the divergence
    of a probe's weights from their prior plus the expected cross-entropy, with a factor a unit that can shut it
    (Louizos et al. 2017). Compression is how many times shorter than the uniform code a code is; 1 where the states
    tell nothing.

    What is sent is what probes/token trains on, so that its numbers stand beside these. Lengths are in bits. The
    released code adds cross-entropies in nats to a first portion in bits and compares with a uniform code in bits,
    which makes codes about 1.4 times shorter than they are: `legacy_nats`. Its variational probes draw factors anew
    for every example and take minibatches for 200 epochs; here they are drawn once a step of full-batch Adam.
    Baselines: the uniform code; a code that knows how frequent labels are; control labels (one a form of a word, at
    random); the model with random weights. Intervals go from the lowest seed to the highest.
    """
    setting = setting_of(probe, seeds, seed)
    if setting.recipe.form not in {"linear", "mlp"}:
        raise Refusal(f"There is no variational code for {probe!r}", "linear or mlp:N", "Give one of these")
    division, purpose = Division(train, train_limit, share, seed), "probes/description_length"
    task = word_task(recording, encoder, division, label, minimum, purpose=purpose)
    own = _codes(task, setting, legacy_nats, control=True)
    layers, classes = len(task.learned.features), len(task.labels)
    uniform = {name: Estimates.exact(np.full(layers, np.log2(classes))) for name in CODES}
    uniform |= {f"{name} compression": Estimates.exact(np.ones(layers)) for name in CODES}
    known = by_frequency(task)
    frequent = {name: Estimates.exact(np.full(layers, np.log2(classes) / known)) for name in CODES}
    frequent |= {f"{name} compression": Estimates.exact(np.full(layers, known)) for name in CODES}
    baselines = {"uniform code": uniform, "label frequencies": frequent, "control labels": own[1]}
    if randomised is not None:
        fresh = word_task(randomised, random_form(encoder), division, label, minimum, purpose=purpose)
        baselines["random weights"] = _codes(fresh, setting, legacy_nats, control=False)[0]
    said = f"{classes} labels, {len(task.learned)} words{task.not_drawn}"
    units = dict.fromkeys(CODES, f"{'bits and nats' if legacy_nats else 'bits'} a label ({said}), {BY_SEED}")
    units |= {
        f"{name} compression": f"uniform code over this code, 1 where states tell nothing; {BY_SEED}" for name in CODES
    }
    return LayerCurve(measures=own[0], baselines=baselines, units=units)


def _codes(task: Task, setting: Setting, legacy_nats: bool, *, control: bool) -> list[dict[str, Estimates]]:
    """For each labelling the bits a label and the compression by each code."""
    found: list[dict[str, Estimates]] = [{} for _ in range(1 + control)]
    for name, code in CODES.items():
        bits, counted = code(task, setting, legacy_nats=legacy_nats, control=control)
        for kind, own in enumerate(found):
            own[name] = over_seeds(bits[kind] / counted[:, None])
            own[f"{name} compression"] = compression(task, bits[kind], counted)
    return found
