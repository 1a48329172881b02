"""The numbers of sentence-tasks.md: what each layer encodes about a sentence as a whole, by ten probing tasks.

    python docs/reproductions/sentence_tasks.py MODEL TREEBANK -o tasks.json     # measures, and prints the tables
    python docs/reproductions/sentence_tasks.py --from tasks.json --write        # writes them into the page

MODEL is a directory in Hugging Face format, TREEBANK a CoNLL-U file that the tasks are made from. `--limit` uses only
the first sentences of each task, `--tasks` selects tasks, `--device cuda` runs the model on a GPU.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction_page import join_parts, markdown_table, write_numbers
from scipy.stats import rankdata

import bertology
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.estimates.estimate import Estimates
from bertology.results.shapes import LayerCurve

PAGE = Path(__file__).with_name("sentence-tasks.md")
POOLINGS = {"cls": "[CLS]", "mean": "mean over tokens"}
MAJORITY, UNTRAINED, CONTROL = "majority class", "untrained model", "control task"

# Jawahar et al. 2019, table 2: accuracy of bert-base-uncased by layer 1 to 12, [CLS], SentEval's data.
JAWAHAR = {
    "length": (93.9, 95.9, 96.2, 94.2, 92.0, 88.4, 83.7, 82.9, 80.1, 77.0, 73.9, 69.5),
    "word_content": (24.9, 65.0, 66.5, 69.8, 69.2, 63.5, 56.9, 51.1, 47.9, 43.4, 42.8, 49.1),
    "tree_depth": (35.9, 40.6, 39.7, 39.4, 40.6, 41.3, 40.1, 39.2, 38.5, 38.1, 36.3, 34.7),
    "top_constituent": (63.6, 71.3, 71.5, 71.3, 81.3, 83.3, 84.1, 84.0, 83.1, 81.7, 80.3, 76.5),
    "bigram_shift": (50.3, 55.8, 64.9, 74.4, 81.4, 82.9, 83.0, 83.9, 87.0, 86.7, 86.8, 86.4),
    "tense": (82.2, 85.9, 86.6, 87.6, 89.5, 89.8, 89.9, 89.9, 90.0, 89.7, 89.9, 89.5),
    "subject_number": (77.6, 82.5, 82.0, 81.9, 85.8, 88.1, 87.4, 87.5, 87.6, 87.1, 85.7, 84.0),
    "object_number": (76.7, 80.6, 80.3, 81.4, 81.2, 82.0, 82.2, 81.2, 81.8, 80.5, 78.9, 78.7),
    "odd_man_out": (49.9, 53.8, 55.8, 59.0, 60.2, 60.7, 61.6, 62.1, 63.4, 63.3, 64.4, 65.2),
    "coordination_inversion": (53.9, 58.5, 59.3, 58.1, 64.1, 71.1, 74.8, 76.4, 78.7, 78.4, 77.6, 74.9),
}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Accuracies with intervals by task, pooling and layer, and their baselines."""
    encoder = load(options.model, device=options.device)
    tasks: dict[str, Any] = {}
    for task in options.tasks.split(",") if options.tasks else JAWAHAR:
        corpus = load_corpus(f"tasks:{task}:{options.treebank}", limit=options.limit or None)
        for pooling in POOLINGS:
            start = time.perf_counter()
            curve = bertology.run(
                "probes/sentence", encoder, corpus, pooling=pooling, probe=options.probe, n_seeds=options.n_seeds
            ).data
            assert isinstance(curve, LayerCurve)
            tasks.setdefault(task, {})[pooling] = _to_json(curve)
            print(f"{task} by {POOLINGS[pooling]}: {time.perf_counter() - start:.0f} s", flush=True)
    return {"n_seeds": options.n_seeds, "probe": options.probe, "limit": options.limit, "tasks": tasks}


def _to_json(curve: LayerCurve) -> dict[str, Any]:
    return {
        "accuracy": _estimates_to_json(curve.measures["accuracy"]),
        "compression": _estimates_to_json(curve.measures["compression"]),
        "sample": dict(curve.sample),
        **{name: _estimates_to_json(curve.baselines[name]["accuracy"]) for name in (MAJORITY, UNTRAINED, CONTROL)},
    }


def _estimates_to_json(estimates: Estimates) -> dict[str, list[float]]:
    return {
        "value": estimates.value.tolist(),
        "low": estimates.low.tolist(),
        "high": estimates.high.tolist(),
    }


def tables(results: dict[str, Any]) -> str:
    """All tables as Markdown."""
    return join_parts(
        [
            f"{results['n_seeds']} seeds, {results['probe']} probes.",
            _tasks(results),
            *(_by_layer(results, pooling) for pooling in POOLINGS),
            _compare_with_paper(results),
        ]
    )


def _tasks(results: dict[str, Any]) -> str:
    rows: list[list[str]] = []
    for task, by_pooling in results["tasks"].items():
        result = by_pooling["cls"]
        sizes = result["sample"]
        sample = (
            f"{sizes['labels']} labels; train {sizes['training examples']}, test {sizes['test examples']} sentences"
        )
        rows.append(
            [_task_name(task), sample, f"{100 * result[MAJORITY]['value'][0]:.1f}", _largest_half_width(result)]
        )
    columns = ("task", "labels and sentences", MAJORITY, "largest half-width of an interval")
    return f"### The tasks\n\n{markdown_table(columns, rows)}"


def _largest_half_width(result: dict[str, Any]) -> str:
    low, high = result["accuracy"]["low"], result["accuracy"]["high"]
    return f"{50 * max(upper - lower for lower, upper in zip(low, high, strict=True)):.1f}"


def _by_layer(results: dict[str, Any], pooling: str) -> str:
    by_task = {task: by_pooling[pooling] for task, by_pooling in results["tasks"].items()}
    n_layers = len(next(iter(by_task.values()))["accuracy"]["value"])
    rows = [
        [str(layer), *(_format_accuracy(result, layer) for result in by_task.values())] for layer in range(n_layers)
    ]
    title = f"### By layer, {POOLINGS[pooling]}"
    explanation = "Accuracy in percent; in brackets the difference from the untrained model."
    return f"{title}\n\n{explanation}\n\n{markdown_table(('layer', *map(_task_name, by_task)), rows)}"


def _format_accuracy(result: dict[str, Any], layer: int) -> str:
    accuracy, untrained = (100 * result[name]["value"][layer] for name in ("accuracy", UNTRAINED))
    is_best = layer == _best_layer(result["accuracy"]["value"])
    number = f"**{accuracy:.1f}**" if is_best else f"{accuracy:.1f}"
    return f"{number} ({accuracy - untrained:.1f})"


def _compare_with_paper(results: dict[str, Any]) -> str:
    rows: list[list[str]] = []
    for task, by_pooling in results["tasks"].items():
        published = JAWAHAR[task]
        best = _best_layer(published)
        rows.append(
            [
                _task_name(task),
                *(_format_best(by_pooling[pooling]["accuracy"]) for pooling in POOLINGS),
                f"{published[best]:.1f} at {best + 1}",
                _spearman(by_pooling["cls"]["accuracy"]["value"][1:], published),
            ]
        )
    columns = (
        "task",
        "best layer, [CLS]",
        "best layer, mean",
        "best layer of BERT-base",
        "Spearman of the two [CLS] curves",
    )
    return f"### Compared with the paper\n\n{markdown_table(columns, rows)}"


def _format_best(accuracy: dict[str, list[float]]) -> str:
    layer = _best_layer(accuracy["value"])
    value, low, high = (100 * accuracy[name][layer] for name in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}] at {layer}"


def _spearman(values: Sequence[float], published: Sequence[float]) -> str:
    """Spearman's correlation over layers; empty if the models have different numbers of layers."""
    if len(values) != len(published):
        return ""
    return f"{np.corrcoef(rankdata(values), rankdata(published))[0, 1]:.2f}"


def _best_layer(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda layer: values[layer])


def _task_name(task: str) -> str:
    return task.replace("_", " ")


def main() -> None:
    """Measure or read the results, print the tables, and with --write, write them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="?", default="", help="built-in name or directory in Hugging Face format")
    parser.add_argument("treebank", nargs="?", default="", help="treebank that the tasks are made from")
    parser.add_argument("--from", dest="source", default="", help="file with results, instead of model and treebank")
    parser.add_argument("--tasks", default="", help="tasks, comma-separated (default: all ten)")
    parser.add_argument("--limit", type=int, default=0, help="use only the first N sentences of each task (0: all)")
    parser.add_argument("--probe", default="linear", help="linear, or mlp:50 as in the paper")
    parser.add_argument("--n-seeds", type=int, default=3, help="number of repetitions")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("-o", "--output", default="", help="file for the results")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    options = parser.parse_args()
    if not options.source and not (options.model and options.treebank):
        parser.error("give a model and a treebank, or a file with results (--from)")
    results = json.loads(Path(options.source).read_text("utf-8")) if options.source else measure(options)
    if options.output:
        Path(options.output).write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    numbers = tables(results)
    print(numbers)
    if options.write:
        write_numbers(PAGE, numbers)


if __name__ == "__main__":
    main()
