"""The whole structural sweep on one device: distance and depth probes of all layers x seeds, with scores and times.

    python benchmarks/structural_sweep.py MODEL TRAIN TEST --device cuda -o sweep.json

MODEL is a directory in Hugging Face format, TRAIN and TEST are treebanks in CoNLL-U. `--random` adds the untrained
model, `--ranks` a sweep of ranks in the layer with the highest UUAS; `--train-size` and `--test-limit` take the first
sentences only. Every stage is timed by the clock. The `whole` is recording, fitting and scoring the model with its
baselines; starting the device, random weights and the sweep of ranks are told apart. It needs nothing but what
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

from bertology.analyses.probes.structural.analysis import CONTEXT_FREE_BASELINES, context_free_states
from bertology.analyses.probes.structural.scores import UUAS, chain_baseline, probe_predictor, score_trees
from bertology.analyses.probing.train_test_split import randomised_encoder
from bertology.analyses.structural_probing.dataset import SITE, TreeDataset, tree_dataset
from bertology.analyses.structural_probing.training import StructuralProbeConfig
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.estimates.estimate import Estimates
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record

KINDS = ("distance", "depth")
TARGET = 120
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
    config = StructuralProbeConfig(
        options.n_seeds, options.epochs, options.learning_rate, options.batch_size, legacy=False, seed=0
    )
    results = _run_sweep(encoder, config, options, clock)
    started = ("start the device, load the model", "untrained model", "ranks")
    whole = sum(seconds for name, seconds in clock.seconds.items() if not name.startswith(started))
    clock.seconds["whole"] = whole
    _print(results, whole)
    if options.output:
        output = {"options": vars(options), "machine": _machine(options.device), "seconds": clock.seconds, **results}
        Path(options.output).write_text(json.dumps(output, indent=1, default=str) + "\n", "utf-8")


def _run_sweep(
    encoder: Encoder, config: StructuralProbeConfig, options: argparse.Namespace, clock: Clock
) -> dict[str, Any]:
    """Scores of every layer and baseline, by name."""
    train, test = _recorded(encoder, options, clock, "")
    layers, _, width = train.states[0].shape
    rank = min(options.rank, width) or width
    with clock.stage("baselines from embeddings alone"):
        train, test = (_with_contextless(part) for part in (train, test))
    own = _scored(train, test, config, rank, options.device, clock, "")
    with clock.stage("score the chain"):
        chain = score_trees(test, chain_baseline(test)).measures(seed=0)
    results: dict[str, Any] = {
        "sizes": {
            "train": {"sentences": len(train.inputs), "words": sum(train.lengths), "skipped": train.skipped},
            "test": {"sentences": len(test.inputs), "words": sum(test.lengths), "skipped": test.skipped},
        },
        "layers": {name: estimates_to_json(some[:layers]) for name, some in own.items()},
        "linear chain": {name: estimates_to_json(some) for name, some in chain.items()},
    }
    for place, name in enumerate(CONTEXT_FREE_BASELINES, start=layers):
        results[name] = {score: estimates_to_json(some[place : place + 1]) for score, some in own.items()}
    if options.random:
        untrained = randomised_encoder(encoder)
        assert untrained is not None, "a transformer has a form with random weights"
        parts = _recorded(untrained, options, clock, "untrained model: ")
        some = _scored(*parts, config, rank, options.device, clock, "untrained model: ")
        results["untrained model"] = {name: estimates_to_json(one) for name, one in some.items()}
    if options.ranks:
        peak = int(own[UUAS].value[:layers].argmax())
        one = [replace(part, states=part.states.select_layers([peak])) for part in (train, test)]
        ranks = [*(2**power for power in range(width.bit_length()) if 2**power < width), width]
        results["ranks"] = {"layer": peak, **_by_rank(one[0], one[1], config, ranks, options.device, clock)}
    return results


def _recorded(
    encoder: Encoder, options: argparse.Namespace, clock: Clock, prefix: str
) -> tuple[TreeDataset, TreeDataset]:
    results: list[TreeDataset] = []
    for name, path, limit in (
        ("train", options.train, options.train_size),
        ("test", options.test, options.test_limit),
    ):
        with clock.stage(f"{prefix}record {name}"):
            corpus = load_corpus(path, limit=limit or None)
            recording = record(encoder, corpus, [SITE], config=RecordingConfig(half_precision=options.float16))
            results.append(tree_dataset(recording, range(len(recording))))
    return results[0], results[1]


def _with_contextless(part: TreeDataset) -> TreeDataset:
    embeddings = [states[0].astype("float32") for states in part.states]
    return replace(part, states=part.states.with_extra_layers(context_free_states(embeddings)))


def _scored(
    train: TreeDataset,
    test: TreeDataset,
    config: StructuralProbeConfig,
    rank: int,
    device: str,
    clock: Clock,
    prefix: str,
) -> Scored:
    with clock.stage(f"{prefix}fit"):
        probes = config.fit(train, KINDS, [rank], device)
    print(f"  epochs to the best: {int(probes.epochs.min())} to {int(probes.epochs.max())}", flush=True)
    with clock.stage(f"{prefix}score"):
        return score_trees(test, probe_predictor(probes, test, rank)).measures(seed=0)


def _by_rank(
    train: TreeDataset,
    test: TreeDataset,
    config: StructuralProbeConfig,
    ranks: Sequence[int],
    device: str,
    clock: Clock,
) -> dict[str, Any]:
    with clock.stage("ranks: fit"):
        probes = config.fit(train, KINDS, ranks, device)
    with clock.stage("ranks: score"):
        return {
            str(rank): {
                name: estimates_to_json(some)
                for name, some in score_trees(test, probe_predictor(probes, test, rank)).measures(seed=0).items()
            }
            for rank in ranks
        }


def estimates_to_json(estimates: Estimates) -> list[dict[str, float]]:
    """Each with its interval."""
    columns: dict[str, Callable[[], list[float]]] = {
        "value": estimates.value.tolist,
        "low": estimates.low.tolist,
        "high": estimates.high.tolist,
    }
    rows = zip(*(read() for read in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _print(results: dict[str, Any], whole: float) -> None:
    names = [name for name in results["layers"] if not name.endswith("(range over seeds)")]
    print(f"\n{'layer':<24}" + "".join(f"{name:>20}" for name in names))
    rows: list[tuple[str, dict[str, list[dict[str, float]]], int]] = [
        (str(layer), results["layers"], layer) for layer in range(len(results["layers"][UUAS]))
    ]
    rows += [(name, results[name], 0) for name in ("linear chain", *CONTEXT_FREE_BASELINES)]
    if "untrained model" in results:
        layers = range(len(results["untrained model"][UUAS]))
        rows += [(f"untrained model {layer}", results["untrained model"], layer) for layer in layers]
    for name, scores, place in rows:
        print(f"{name:<24}" + "".join(f"{scores[score][place]['value']:>20.4f}" for score in names))
    for rank, scores in results.get("ranks", {}).items():
        if rank != "layer":
            print(f"{f'rank {rank}':<24}" + "".join(f"{scores[score][0]['value']:>20.4f}" for score in names))
    print(f"\nwhole sweep: {whole:.1f} s; target: under {TARGET} s")


def _machine(device: str) -> dict[str, str]:
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu"
    return {"device": name, "torch": torch.__version__}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="?", default="", help="a folder in Hugging Face form")
    parser.add_argument("train", nargs="?", default="", help="the treebank to train on")
    parser.add_argument("test", nargs="?", default="", help="the treebank to report on")
    parser.add_argument("--device", default="cpu", help="where to record and to fit")
    parser.add_argument("--threads", type=int, default=0, help="torch threads; 0 leaves it to torch")
    parser.add_argument("--train-size", type=int, default=0, help="use only the first N sentences (0: all)")
    parser.add_argument("--test-limit", type=int, default=0, help="use only the first N sentences (0: all)")
    parser.add_argument("--rank", type=int, default=64, help="dimensions of the probes; 0 for the model's width")
    parser.add_argument("--ranks", action="store_true", help="sweep the rank in the best layer, too")
    parser.add_argument("--random", action="store_true", help="the model with random weights, too")
    parser.add_argument("--float16", action="store_true", help="keep word vectors in float16")
    parser.add_argument("--n-seeds", type=int, default=3, help="probes of each kind and layer")
    parser.add_argument("--epochs", type=int, default=40, help="passes over the training sentences at most")
    parser.add_argument("--learning-rate", type=float, default=0.01, help="Adam's rate at the start")
    parser.add_argument("--batch-size", type=int, default=20, help="sentences in a batch")
    parser.add_argument("-o", "--output", default="", help="a file for everything as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
