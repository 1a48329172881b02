"""The numbers of sentence-tasks.md: what each layer knows about a sentence as a whole, by ten tasks.

    python docs/reproductions/sentence_tasks.py MODEL TREEBANK -o tasks.json     # measures, and prints the tables
    python docs/reproductions/sentence_tasks.py --from tasks.json --write        # puts them into the page

MODEL is a folder in Hugging Face form, TREEBANK a file in CoNLL-U of which the tasks are made. `--limit` takes so many
sentences of each task, `--tasks` some of the tasks, `--device cuda` runs the model on an accelerator.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction_page import markdown_table, written
from scipy.stats import rankdata

import bertology
from bertology.corpus.builtin import corpus_named
from bertology.encoder.load import load
from bertology.results.estimate import Estimates
from bertology.results.shapes import LayerCurve

PAGE = Path(__file__).with_name("sentence-tasks.md")
VECTORS = {"cls": "[CLS]", "mean": "the mean of the pieces"}

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


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Accuracies with intervals by vector, task and layer, beside their baselines."""
    encoder = load(options.model, device=options.device)
    found: dict[str, Any] = {"seeds": options.seeds, "probe": options.probe, "limit": options.limit, "tasks": {}}
    for task in options.tasks.split(",") if options.tasks else JAWAHAR:
        corpus = corpus_named(f"tasks:{task}:{options.treebank}", limit=options.limit or None)
        for vector in VECTORS:
            start = time.perf_counter()
            curve = bertology.run(
                "probes/sentence", encoder, corpus, vector=vector, probe=options.probe, seeds=options.seeds
            ).data
            assert isinstance(curve, LayerCurve)
            found["tasks"].setdefault(task, {})[vector] = _kept(curve)
            print(f"{task} by {VECTORS[vector]}: {time.perf_counter() - start:.0f} s", flush=True)
    return found


def _kept(curve: LayerCurve) -> dict[str, Any]:
    baselines = {
        name: _numbers(some["accuracy"])
        for name, some in curve.baselines.items()
        if name in {"majority", "random weights", "control labels"}
    }
    return {
        "accuracy": _numbers(curve.measures["accuracy"]),
        "compression": _numbers(curve.measures["compression"]),
        "sizes": curve.units["accuracy"].partition("(")[2].rstrip(")"),
        **baselines,
    }


def _numbers(estimates: Estimates) -> dict[str, list[float]]:
    return {
        "value": estimates.value.tolist(),
        "low": estimates.low.tolist(),
        "high": estimates.high.tolist(),
    }


def tables(found: dict[str, Any]) -> str:
    """All tables as Markdown."""
    parts = [f"{found['seeds']} seeds, {found['probe']} probes.", _sizes(found)]
    parts += [_by_layer(found, vector) for vector in VECTORS]
    parts += [_beside_the_paper(found)]
    return "\n\n".join(parts)


def _sizes(found: dict[str, Any]) -> str:
    rows: list[list[str]] = []
    for task, own in found["tasks"].items():
        kept = own["cls"]
        ours = f"{100 * kept['majority']['value'][0]:.1f}"
        rows.append([_named(task), kept["sizes"], ours, _least_width(kept)])
    columns = ("task", "classes and sentences", "majority", "half an interval, at most")
    return f"### The tasks\n\n{markdown_table(columns, rows)}"


def _least_width(kept: dict[str, Any]) -> str:
    low, high = kept["accuracy"]["low"], kept["accuracy"]["high"]
    return f"{50 * max(b - a for a, b in zip(low, high, strict=True)):.1f}"


def _by_layer(found: dict[str, Any], vector: str) -> str:
    tasks = list(found["tasks"])
    layers = len(found["tasks"][tasks[0]][vector]["accuracy"]["value"])
    peaks = {task: _peak(found["tasks"][task][vector]["accuracy"]["value"]) for task in tasks}
    rows = [
        [str(layer), *(_cell(found["tasks"][task][vector], layer, peaks[task]) for task in tasks)]
        for layer in range(layers)
    ]
    title = f"### By layer, {VECTORS[vector]}"
    said = "Accuracy in percent, in brackets how much above the same architecture with random weights."
    return f"{title}\n\n{said}\n\n{markdown_table(('layer', *map(_named, tasks)), rows)}"


def _cell(kept: dict[str, Any], layer: int, peak: int) -> str:
    value, fresh = (100 * kept[name]["value"][layer] for name in ("accuracy", "random weights"))
    number = f"**{value:.1f}**" if layer == peak else f"{value:.1f}"
    return f"{number} ({value - fresh:.1f})"


def _beside_the_paper(found: dict[str, Any]) -> str:
    rows: list[list[str]] = []
    for task, own in found["tasks"].items():
        ours = [own[vector]["accuracy"] for vector in VECTORS]
        peaks = [_peak(one["value"]) for one in ours]
        told = [
            f"{100 * one['value'][peak]:.1f} [{100 * one['low'][peak]:.1f}, {100 * one['high'][peak]:.1f}] at {peak}"
            for one, peak in zip(ours, peaks, strict=True)
        ]
        paper = JAWAHAR[task]
        best = _peak(paper)
        rows.append([_named(task), *told, f"{paper[best]:.1f} at {best + 1}", _agreement(ours[0]["value"][1:], paper)])
    columns = (
        "task", "best layer, [CLS]", "best layer, mean", "best layer of BERT-base", "Spearman of the two [CLS] curves"
    )  # fmt: skip
    return f"### Beside the paper\n\n{markdown_table(columns, rows)}"


def _agreement(ours: Sequence[float], paper: Sequence[float]) -> str:
    """How alike the order of layers is, where there are as many of them."""
    if len(ours) != len(paper):
        return ""
    return f"{np.corrcoef(rankdata(ours), rankdata(paper))[0, 1]:.2f}"


def _peak(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda layer: values[layer])


def _named(task: str) -> str:
    return task.replace("_", " ")


def main() -> None:
    """Measure or read, print the tables, and write them into the page where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="?", default="", help="a folder in Hugging Face form, or a name")
    parser.add_argument("treebank", nargs="?", default="", help="the treebank to make tasks of")
    parser.add_argument("--from", dest="kept", default="", help="what was measured before, in place of both")
    parser.add_argument("--tasks", default="", help="tasks, with commas between; all ten where it is left out")
    parser.add_argument("--limit", type=int, default=0, help="sentences of each task; 0 for all")
    parser.add_argument("--probe", default="linear", help="linear, or mlp:50 as in the paper")
    parser.add_argument("--seeds", type=int, default=3, help="probes of each layer")
    parser.add_argument("--device", default="cpu", help="where to run the model")
    parser.add_argument("-o", "--output", default="", help="a file for what was measured")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    options = parser.parse_args()
    if not options.kept and not (options.model and options.treebank):
        parser.error("give a model and a treebank, or what was measured with --from")
    found = json.loads(Path(options.kept).read_text("utf-8")) if options.kept else measured(options)
    if options.output:
        Path(options.output).write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    told = tables(found)
    print(told)
    if options.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), told), "utf-8")


if __name__ == "__main__":
    main()
