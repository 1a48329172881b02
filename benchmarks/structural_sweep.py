"""The whole structural sweep on one device: distance and depth probes of all layers x seeds, with scores and times.

    python benchmarks/structural_sweep.py MODEL TRAIN TEST --device cuda -o sweep.json

MODEL is a folder in Hugging Face form, TRAIN and TEST are treebanks in CoNLL-U. `--random` adds the model with random
weights, `--ranks` a sweep of ranks in the layer with the highest UUAS; `--train-limit` and `--test-limit` take the
first sentences only. Every stage is timed by the clock. The `whole` is recording, fitting and scoring the model with
its baselines; starting the device, random weights and the sweep of ranks are told apart. It needs nothing but what
bertology needs to load a model.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from bertology.corpus.builtin import corpus_named
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.measures.division import random_form
from bertology.measures.probes.contextless import NAMES, contextless
from bertology.measures.probes.tree_lessons import SITE, TreeLessons, tree_lessons
from bertology.measures.probes.tree_probes import Fitting
from bertology.measures.probes.tree_scores import UUAS, by_chain, by_probes, scores_of
from bertology.recording.policy import Policy
from bertology.recording.recorder import record
from bertology.results.estimate import Estimates

KINDS = ("distance", "depth")
MARK = 120
Scored = dict[str, Estimates]


@dataclass
class Clock:
    """Seconds by stage."""

    device: str
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Time what is done inside, all of it: an accelerator is waited for."""
        start = time.perf_counter()
        yield
        if self.device.startswith("cuda"):
            torch.cuda.synchronize()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        print(f"{name:<40}{self.seconds[name]:>8.1f} s", flush=True)


def main() -> None:
    """Sweep, print, and write where asked to."""
    options = _options()
    if not options.test:
        print("Nothing was measured: give a MODEL, and treebanks to TRAIN on and to TEST on.")
        return
    if options.threads:
        torch.set_num_threads(options.threads)
    clock = Clock(options.device)
    with clock.stage("start the device, load the model"):
        encoder = load(options.model, device=options.device)
        torch.ones(1, device=options.device).sum().item()
    fitting = Fitting(options.seeds, options.epochs, options.rate, options.batch, legacy=False, seed=0)
    swept = _swept(encoder, fitting, options, clock)
    started = ("start the device, load the model", "random weights", "ranks")
    whole = sum(seconds for name, seconds in clock.seconds.items() if not name.startswith(started))
    clock.seconds["whole"] = whole
    _print(swept, whole)
    if options.output:
        told = {"options": vars(options), "machine": _machine(options.device), "seconds": clock.seconds, **swept}
        Path(options.output).write_text(json.dumps(told, indent=1, default=str) + "\n", "utf-8")


def _swept(encoder: Encoder, fitting: Fitting, options: argparse.Namespace, clock: Clock) -> dict[str, Any]:
    """Scores of every layer and baseline, by name."""
    learned, tested = _recorded(encoder, options, clock, "")
    layers, _, width = learned.states[0].shape
    rank = min(options.rank, width) or width
    with clock.stage("baselines from embeddings alone"):
        learned, tested = (_with_contextless(part) for part in (learned, tested))
    own = _scored(learned, tested, fitting, rank, options.device, clock, "")
    with clock.stage("score the chain"):
        chain = scores_of(tested, by_chain(tested)).measures(seed=0)
    found: dict[str, Any] = {
        "sizes": {
            "train": {"sentences": len(learned.entries), "words": sum(learned.lengths), "left out": learned.skipped},
            "test": {"sentences": len(tested.entries), "words": sum(tested.lengths), "left out": tested.skipped},
        },
        "layers": {name: told(some[:layers]) for name, some in own.items()},
        "linear chain": {name: told(some) for name, some in chain.items()},
    }
    for place, name in enumerate(NAMES, start=layers):
        found[name] = {score: told(some[place : place + 1]) for score, some in own.items()}
    if options.random:
        fresh = random_form(encoder)
        assert fresh is not None, "a transformer has a form with random weights"
        parts = _recorded(fresh, options, clock, "random weights: ")
        some = _scored(*parts, fitting, rank, options.device, clock, "random weights: ")
        found["random weights"] = {name: told(one) for name, one in some.items()}
    if options.ranks:
        peak = int(own[UUAS].value[:layers].argmax())
        one = [replace(part, states=part.states.of_layers([peak])) for part in (learned, tested)]
        ranks = [*(2**power for power in range(width.bit_length()) if 2**power < width), width]
        found["ranks"] = {"layer": peak, **_by_rank(one[0], one[1], fitting, ranks, options.device, clock)}
    return found


def _recorded(
    encoder: Encoder, options: argparse.Namespace, clock: Clock, prefix: str
) -> tuple[TreeLessons, TreeLessons]:
    found: list[TreeLessons] = []
    for name, path, limit in (
        ("train", options.train, options.train_limit),
        ("test", options.test, options.test_limit),
    ):
        with clock.stage(f"{prefix}record {name}"):
            corpus = corpus_named(path, limit=limit or None)
            recording = record(encoder, corpus, [SITE], policy=Policy(half=options.half))
            found.append(tree_lessons(recording, range(len(recording))))
    return found[0], found[1]


def _with_contextless(part: TreeLessons) -> TreeLessons:
    embeddings = [states[0].astype("float32") for states in part.states]
    return replace(part, states=part.states.with_more(contextless(embeddings)))


def _scored(
    learned: TreeLessons,
    tested: TreeLessons,
    fitting: Fitting,
    rank: int,
    device: str,
    clock: Clock,
    prefix: str,
) -> Scored:
    with clock.stage(f"{prefix}fit"):
        probes = fitting.fit(learned, KINDS, [rank], device)
    print(f"  epochs to the best: {int(probes.epochs.min())} to {int(probes.epochs.max())}", flush=True)
    with clock.stage(f"{prefix}score"):
        return scores_of(tested, by_probes(probes, tested, rank)).measures(seed=0)


def _by_rank(
    learned: TreeLessons, tested: TreeLessons, fitting: Fitting, ranks: Sequence[int], device: str, clock: Clock
) -> dict[str, Any]:
    with clock.stage("ranks: fit"):
        probes = fitting.fit(learned, KINDS, ranks, device)
    with clock.stage("ranks: score"):
        return {
            str(rank): {
                name: told(some)
                for name, some in scores_of(tested, by_probes(probes, tested, rank)).measures(seed=0).items()
            }
            for rank in ranks
        }


def told(estimates: Estimates) -> list[dict[str, float]]:
    """Each with its interval."""
    columns: dict[str, Callable[[], list[float]]] = {
        "value": estimates.value.tolist,
        "low": estimates.low.tolist,
        "high": estimates.high.tolist,
    }
    rows = zip(*(read() for read in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _print(swept: dict[str, Any], whole: float) -> None:
    names = [name for name in swept["layers"] if not name.endswith("by seed")]
    print(f"\n{'layer':<24}" + "".join(f"{name:>20}" for name in names))
    rows: list[tuple[str, dict[str, list[dict[str, float]]], int]] = [
        (str(layer), swept["layers"], layer) for layer in range(len(swept["layers"][UUAS]))
    ]
    rows += [(name, swept[name], 0) for name in ("linear chain", *NAMES)]
    if "random weights" in swept:
        layers = range(len(swept["random weights"][UUAS]))
        rows += [(f"random weights {layer}", swept["random weights"], layer) for layer in layers]
    for name, scores, place in rows:
        print(f"{name:<24}" + "".join(f"{scores[score][place]['value']:>20.4f}" for score in names))
    for rank, scores in swept.get("ranks", {}).items():
        if rank != "layer":
            print(f"{f'rank {rank}':<24}" + "".join(f"{scores[score][0]['value']:>20.4f}" for score in names))
    print(f"\nwhole sweep: {whole:.1f} s; mark: under {MARK} s")


def _machine(device: str) -> dict[str, str]:
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu"
    return {"device": name, "torch": torch.__version__}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="?", default="", help="a folder in Hugging Face form")
    parser.add_argument("train", nargs="?", default="", help="the treebank to train on")
    parser.add_argument("test", nargs="?", default="", help="the treebank to report on")
    parser.add_argument("--device", default="cpu", help="where to record and to fit")
    parser.add_argument("--threads", type=int, default=0, help="threads of torch; 0 leaves it to torch")
    parser.add_argument("--train-limit", type=int, default=0, help="the first so many sentences; 0 for all")
    parser.add_argument("--test-limit", type=int, default=0, help="the first so many sentences; 0 for all")
    parser.add_argument("--rank", type=int, default=64, help="dimensions of the probes; 0 for the model's width")
    parser.add_argument("--ranks", action="store_true", help="sweep the rank in the best layer, too")
    parser.add_argument("--random", action="store_true", help="the model with random weights, too")
    parser.add_argument("--half", action="store_true", help="keep word vectors in float16")
    parser.add_argument("--seeds", type=int, default=3, help="probes of each kind and layer")
    parser.add_argument("--epochs", type=int, default=40, help="passes over the training sentences at most")
    parser.add_argument("--rate", type=float, default=0.01, help="Adam's rate at the start")
    parser.add_argument("--batch", type=int, default=20, help="sentences in a batch")
    parser.add_argument("-o", "--output", default="", help="a file for everything as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
