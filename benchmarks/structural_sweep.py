"""Scores and times of a structural sweep on one device: distance and depth probes of all layers x seeds.

    python benchmarks/structural_sweep.py MODEL TRAIN TEST --device cuda -o sweep.json

MODEL is a directory in Hugging Face format, TRAIN and TEST are treebanks in CoNLL-U. `--untrained` adds the untrained
model, `--ranks` a sweep of ranks in the layer with the highest UUAS; `--train-size` and `--test-size` use only the
first sentences. Every stage is timed by the clock. The `total` is recording, fitting and scoring the model with its
baselines, without starting the device, the untrained model and the sweep of ranks.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from bertology.analyses.probes.structural.analysis import CONTEXT_FREE_BASELINES, context_free_states
from bertology.analyses.probes.structural.scores import UUAS, chain_baseline, probe_predictor, score_trees
from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.probing.train_test_split import randomised_encoder
from bertology.analyses.structural_probing.dataset import TreeDataset, tree_dataset
from bertology.analyses.structural_probing.training import StructuralProbeConfig
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.estimates.estimate import Estimates
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record

KINDS = ("distance", "depth")
TARGET = 120
Scores = dict[str, Estimates]


@dataclass
class StageTimer:
    """Wall-clock seconds by stage."""

    device: str
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Time the body; a GPU is synchronised first."""
        start = time.perf_counter()
        yield
        if self.device.startswith("cuda"):
            torch.cuda.synchronize()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        print(f"{name:<40}{self.seconds[name]:>8.1f} s", flush=True)


def main() -> None:
    """Run the sweep, print its scores and optionally write them."""
    options = _options()
    if not options.test:
        print("Nothing measured: MODEL, TRAIN and TEST are required.")
        return
    if options.threads:
        torch.set_num_threads(options.threads)
    timer = StageTimer(options.device)
    with timer.stage("start the device, load the model"):
        encoder = load(options.model, device=options.device)
        torch.ones(1, device=options.device).sum().item()
    config = StructuralProbeConfig(
        epochs=options.epochs, learning_rate=options.learning_rate, batch_size=options.batch_size
    )
    results = _run_sweep(encoder, config, options, timer)
    not_counted = ("start the device, load the model", "untrained model", "ranks")
    total = sum(seconds for name, seconds in timer.seconds.items() if not name.startswith(not_counted))
    timer.seconds["total"] = total
    _print_scores(results, total)
    if options.output:
        output = {"options": vars(options), "machine": _machine(options.device), "seconds": timer.seconds, **results}
        Path(options.output).write_text(json.dumps(output, indent=1, default=str) + "\n", "utf-8")


def _run_sweep(
    encoder: Encoder, config: StructuralProbeConfig, options: argparse.Namespace, timer: StageTimer
) -> dict[str, Any]:
    """Scores of every layer and baseline."""
    train, test = _record(encoder, options, timer, "")
    layers, _, width = train.states[0].shape
    rank = min(options.rank, width) or width
    with timer.stage("context-free baselines"):
        train, test = (_with_context_free_layers(dataset) for dataset in (train, test))
    scores = _fit_and_score(train, test, config, rank, options, timer, "")
    with timer.stage("score the linear chain"):
        chain = score_trees(test, chain_baseline(test)).measures(seed=0)
    results: dict[str, Any] = {
        "sizes": {
            "train": {"sentences": len(train.inputs), "words": sum(train.lengths), "skipped": train.skipped},
            "test": {"sentences": len(test.inputs), "words": sum(test.lengths), "skipped": test.skipped},
        },
        "layers": {name: estimates_to_json(estimates[:layers]) for name, estimates in scores.items()},
        "linear chain": {name: estimates_to_json(estimates) for name, estimates in chain.items()},
    }
    for index, name in enumerate(CONTEXT_FREE_BASELINES, start=layers):
        results[name] = {
            measure: estimates_to_json(estimates[index : index + 1]) for measure, estimates in scores.items()
        }
    if options.untrained:
        untrained = randomised_encoder(encoder)
        assert untrained is not None, "a transformer can be randomised"
        datasets = _record(untrained, options, timer, "untrained model: ")
        untrained_scores = _fit_and_score(*datasets, config, rank, options, timer, "untrained model: ")
        results["untrained model"] = {
            name: estimates_to_json(estimates) for name, estimates in untrained_scores.items()
        }
    if options.ranks:
        best_layer = int(scores[UUAS].value[:layers].argmax())
        train, test = (replace(dataset, states=dataset.states.select_layers([best_layer])) for dataset in (train, test))
        ranks = [*(2**power for power in range(width.bit_length()) if 2**power < width), width]
        results["ranks"] = {"layer": best_layer, **_score_ranks(train, test, config, ranks, options, timer)}
    return results


def _record(
    encoder: Encoder, options: argparse.Namespace, timer: StageTimer, prefix: str
) -> tuple[TreeDataset, TreeDataset]:
    datasets: list[TreeDataset] = []
    for name, path, limit in (
        ("train", options.train, options.train_size),
        ("test", options.test, options.test_size),
    ):
        with timer.stage(f"{prefix}record {name}"):
            corpus = load_corpus(path, limit=limit or None)
            recording = record(encoder, corpus, [WORD_SITE], config=RecordingConfig(half_precision=options.float16))
            datasets.append(tree_dataset(recording, range(len(recording))))
    return datasets[0], datasets[1]


def _with_context_free_layers(dataset: TreeDataset) -> TreeDataset:
    embeddings = [states[0].astype("float32") for states in dataset.states]
    return replace(dataset, states=dataset.states.with_extra_layers(context_free_states(embeddings)))


def _fit_and_score(
    train: TreeDataset,
    test: TreeDataset,
    config: StructuralProbeConfig,
    rank: int,
    options: argparse.Namespace,
    timer: StageTimer,
    prefix: str,
) -> Scores:
    with timer.stage(f"{prefix}fit"):
        probes = config.fit(train, KINDS, [rank], range(options.n_seeds), device=options.device)
    print(f"  best epochs: {int(probes.epochs.min())} to {int(probes.epochs.max())}", flush=True)
    with timer.stage(f"{prefix}score"):
        return score_trees(test, probe_predictor(probes, test, rank)).measures(seed=0)


def _score_ranks(
    train: TreeDataset,
    test: TreeDataset,
    config: StructuralProbeConfig,
    ranks: Sequence[int],
    options: argparse.Namespace,
    timer: StageTimer,
) -> dict[str, Any]:
    with timer.stage("ranks: fit"):
        probes = config.fit(train, KINDS, ranks, range(options.n_seeds), device=options.device)
    with timer.stage("ranks: score"):
        return {
            str(rank): {
                name: estimates_to_json(estimates)
                for name, estimates in score_trees(test, probe_predictor(probes, test, rank)).measures(seed=0).items()
            }
            for rank in ranks
        }


def estimates_to_json(estimates: Estimates) -> list[dict[str, float]]:
    """Value and interval of each estimate."""
    columns = (estimates.value.tolist(), estimates.low.tolist(), estimates.high.tolist())
    return [{"value": value, "low": low, "high": high} for value, low, high in zip(*columns, strict=True)]


def _print_scores(results: dict[str, Any], total: float) -> None:
    names = [name for name in results["layers"] if not name.endswith("(range over seeds)")]
    print(f"\n{'layer':<24}" + "".join(f"{name:>20}" for name in names))
    rows: list[tuple[str, dict[str, list[dict[str, float]]], int]] = [
        (str(layer), results["layers"], layer) for layer in range(len(results["layers"][UUAS]))
    ]
    rows += [(name, results[name], 0) for name in ("linear chain", *CONTEXT_FREE_BASELINES)]
    if "untrained model" in results:
        layers = range(len(results["untrained model"][UUAS]))
        rows += [(f"untrained model {layer}", results["untrained model"], layer) for layer in layers]
    for name, scores, index in rows:
        print(f"{name:<24}" + "".join(f"{scores[measure][index]['value']:>20.4f}" for measure in names))
    for rank, scores in results.get("ranks", {}).items():
        if rank != "layer":
            print(f"{f'rank {rank}':<24}" + "".join(f"{scores[measure][0]['value']:>20.4f}" for measure in names))
    print(f"\ntotal: {total:.1f} s; target: under {TARGET} s")


def _machine(device: str) -> dict[str, str]:
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu"
    return {"device": name, "torch": torch.__version__}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="?", default="", help="directory in Hugging Face format")
    parser.add_argument("train", nargs="?", default="", help="treebank to train on")
    parser.add_argument("test", nargs="?", default="", help="treebank to test on")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=0, help="torch threads (0: default of torch)")
    parser.add_argument("--train-size", type=int, default=0, help="use only the first N training sentences (0: all)")
    parser.add_argument("--test-size", type=int, default=0, help="use only the first N test sentences (0: all)")
    parser.add_argument("--rank", type=int, default=64, help="rank of the probes (0: width of the model)")
    parser.add_argument("--ranks", action="store_true", help="also sweep the rank in the best layer")
    parser.add_argument("--untrained", action="store_true", help="also score the untrained model")
    parser.add_argument("--float16", action="store_true", help="store word representations in float16")
    parser.add_argument("--n-seeds", type=int, default=3, help="probes per kind and layer")
    parser.add_argument("--epochs", type=int, default=40, help="maximum number of epochs")
    parser.add_argument("--learning-rate", type=float, default=0.01, help="initial learning rate of Adam")
    parser.add_argument("--batch-size", type=int, default=20, help="sentences per batch")
    parser.add_argument("-o", "--output", default="", help="JSON file for options, scores and times")
    return parser.parse_args()


if __name__ == "__main__":
    main()
