"""The numbers of fine-tuning.md: what fine-tuning changes in a model, over tasks and seeds.

    python docs/reproductions/fine_tuning.py finetune MODEL TASK TRAIN TEST --out-of-domain CORPUS --seed 0 -o RUN.json
    python docs/reproductions/fine_tuning.py freeze MODEL TASK TRAIN -o FROZEN.json
    python docs/reproductions/fine_tuning.py page RUN.json ... FROZEN.json ...   # writes the tables into the page

TASK is `sentence` (labelled texts), `pos` (parts of speech of a treebank) or `dependency` (its trees). `finetune`
fine-tunes once, then compares the model before and after on the texts of TEST (in domain) and of `--out-of-domain`.
Each run is one process, so that several can run in parallel; `--device cuda` runs on a GPU.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction_page import capitalise, join_parts, markdown_table, write_numbers

import bertology
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.estimates.estimate import Estimates
from bertology.recording.plan import RecordingConfig
from bertology.results.shapes import Curve, LayerCurve
from bertology.training.finetune import finetune
from bertology.training.loop import TrainingConfig

PAGE = Path(__file__).with_name("fine-tuning.md")
TASK_NAMES = {"sentence": "reviews", "pos": "parts of speech", "dependency": "trees"}
IN_DOMAIN, OUT_OF_DOMAIN = "in domain", "out of domain"
RSA_SAMPLE_SIZE = 2000
RSA, UNTRAINED_RSA = "RSA", "RSA, untrained model"
SIMILARITIES = {"cosine": "cosine similarity", "divergence": "Jensen-Shannon divergence"}
FROZEN, FIRST_LAYERS = "score (first k layers frozen)", "score (first k layers only)"

# Kovaleva et al. 2019, figure 5: mean cosine of the attention patterns of BERT-base before and after, by layer.
KOVALEVA_SST2 = (0.99, 0.93, 0.93, 0.89, 0.87, 0.93, 0.90, 0.86, 0.85, 0.78, 0.64, 0.66)


def measure_finetuning(options: argparse.Namespace) -> dict[str, Any]:
    """One fine-tuning, and the similarity of the models before and after by layer."""
    before = load(options.model, device=options.device)
    task, label = _task_and_label(options.task)
    with tempfile.TemporaryDirectory() as folder:
        finetuned = finetune(
            before,
            _load_corpus(options.train, options.limit),
            task,
            Path(folder) / "model",
            test=_load_corpus(options.test, 0),
            config=TrainingConfig(seed=options.seed, epochs=options.epochs, batch_size=32),
            label=label or None,
            max_length=options.max_length,
            device=options.device,
        )
        scores = {name: [e.value, e.low, e.high, e.n] for name, e in finetuned.scores("test").items()}
        corpora = {IN_DOMAIN: options.test, OUT_OF_DOMAIN: options.out_of_domain}
        similarities = {
            domain: _similarities(before, finetuned.encoder, _load_corpus(name, options.sample_size))
            for domain, name in corpora.items()
        }
    description = {"kind": "finetune", "model": Path(options.model).name, "task": options.task, "seed": options.seed}
    return description | {"scores": scores, "similarities": similarities}


def _task_and_label(task: str) -> tuple[Any, str]:
    return ("token", "pos") if task == "pos" else (task, "")


def _similarities(before: Encoder, after: Encoder, corpus: Corpus) -> dict[str, Any]:
    config = RecordingConfig(overflow="truncate", max_length=128)
    states = bertology.run(
        "geometry/representation_similarity",
        before,
        corpus,
        against=after,
        config=config,
        measures="rsa",
        sample_size=RSA_SAMPLE_SIZE,
    ).data
    attention = bertology.run(
        "attention/model_similarity", before, corpus, against=after, config=config, show="layers"
    ).data
    assert isinstance(states, LayerCurve) and isinstance(attention, LayerCurve)
    curves = {
        RSA: states.measures[RSA],
        UNTRAINED_RSA: states.baselines["untrained model"][RSA],
        **{name: attention.measures[measure] for name, measure in SIMILARITIES.items()},
    }
    return {name: _to_lists(estimates) for name, estimates in curves.items()}


def measure_freezing(options: argparse.Namespace) -> dict[str, Any]:
    """The score with the first layers frozen, and with the layers above them dropped."""
    task, label = _task_and_label(options.task)
    curve = bertology.run(
        "interventions/layer_freezing",
        load(options.model, device=options.device),
        _load_corpus(options.train, options.limit),
        task=task,
        label=label,
        sample_size=options.sample_size,
        layer_step=options.layer_step,
        n_seeds=options.n_seeds,
        epochs=options.epochs,
        batch_size=32,
    ).data
    assert isinstance(curve, Curve)
    baselines = {
        name: float(measures[FROZEN].value[0]) for name, measures in curve.baselines.items() if FROZEN in measures
    }
    return {
        "kind": "freeze",
        "model": Path(options.model).name,
        "task": options.task,
        "n_layers": curve.x.tolist(),
        "measures": {name: _to_lists(curve.measures[name]) for name in (FROZEN, FIRST_LAYERS)},
        "baselines": baselines,
        "sample_size": options.sample_size,
        "n_seeds": options.n_seeds,
        "epochs": options.epochs,
    }


def _to_lists(estimates: Estimates) -> list[list[float]]:
    return [array.tolist() for array in (estimates.value, estimates.low, estimates.high)]


def _load_corpus(name: str, limit: int) -> Corpus:
    return load_corpus(name, limit=limit or None)


def tables(runs: Sequence[dict[str, Any]]) -> str:
    """All tables as Markdown."""
    tasks = list(TASK_NAMES)
    runs = sorted(runs, key=lambda run: (run["model"] != "mini", run["model"], tasks.index(run["task"])))
    finetuned = [run for run in runs if run["kind"] == "finetune"]
    parts = [_scores(finetuned)]
    for model in dict.fromkeys(run["model"] for run in finetuned):
        model_runs = [run for run in finetuned if run["model"] == model]
        parts += [_state_similarity(model, model_runs), _attention_similarity(model, model_runs)]
    parts += [_freezing(run) for run in runs if run["kind"] == "freeze"]
    return join_parts(parts)


def _scores(runs: Sequence[dict[str, Any]]) -> str:
    rows: list[list[str]] = []
    for model, task, seed_runs in _group(runs):
        metric = next(iter(seed_runs[0]["scores"]))
        values = ", ".join(f"{100 * run['scores'][metric][0]:.1f}" for run in seed_runs)
        rows.append([model, TASK_NAMES[task], metric, values, str(seed_runs[0]["scores"][metric][3])])
    columns = ("model", "task", "metric", "score by seed, %", "test examples")
    return f"### Task scores\n\n{markdown_table(columns, rows)}"


def _state_similarity(model: str, runs: Sequence[dict[str, Any]]) -> str:
    columns = ["layer"]
    series: list[list[str]] = []
    for _, task, seed_runs in _group(runs):
        for domain in (IN_DOMAIN, OUT_OF_DOMAIN):
            columns.append(f"{TASK_NAMES[task]}, {domain}")
            series.append(_mean_and_range([run["similarities"][domain][RSA][0] for run in seed_runs]))
    columns.append("untrained model")
    series.append(_mean_and_range([run["similarities"][OUT_OF_DOMAIN][UNTRAINED_RSA][0] for run in runs]))
    rows = [[str(layer), *cells] for layer, cells in enumerate(zip(*series, strict=True))]
    title = f"### {model}: similarity (RSA) of hidden states before and after"
    return f"{title}\n\n{markdown_table(columns, rows)}"


def _attention_similarity(model: str, runs: Sequence[dict[str, Any]]) -> str:
    columns = ["layer"]
    series: list[list[str]] = []
    for _, task, seed_runs in _group(runs):
        for name in SIMILARITIES:
            columns.append(f"{TASK_NAMES[task]}: {name}")
            series.append(_mean_and_range([run["similarities"][OUT_OF_DOMAIN][name][0] for run in seed_runs]))
    if len(series[0]) == len(KOVALEVA_SST2):
        columns.append("BERT-base on SST-2: cosine")
        series.append([f"{value:.2f}" for value in KOVALEVA_SST2])
    rows = [[str(layer), *cells] for layer, cells in enumerate(zip(*series, strict=True), 1)]
    title = f"### {model}: similarity of attention patterns before and after"
    return f"{title}\n\n{markdown_table(columns, rows)}"


def _freezing(run: dict[str, Any]) -> str:
    cells = {
        name: [f"{100 * v:.1f} [{100 * low:.1f}, {100 * high:.1f}]" for v, low, high in zip(*arrays, strict=True)]
        for name, arrays in run["measures"].items()
    }
    rows = [
        [str(int(n_layers)), cells[FROZEN][row], cells[FIRST_LAYERS][row]]
        for row, n_layers in enumerate(run["n_layers"])
    ]
    baselines = ", ".join(f"{name} {100 * value:.1f}" for name, value in run["baselines"].items())
    title = f"### {run['model']}, {TASK_NAMES[run['task']]}: freezing and dropping layers"
    sample = (
        f"{run['sample_size']} examples, a quarter of them for testing, {run['n_seeds']} seeds, "
        f"{run['epochs']} epochs. {capitalise(baselines)}."
    )
    return f"{title}\n\n{sample}\n\n{markdown_table(('layers', FROZEN, FIRST_LAYERS), rows)}"


def _group(runs: Sequence[dict[str, Any]]) -> Iterable[tuple[str, str, list[dict[str, Any]]]]:
    """The runs of each model and task, by seed."""
    for model, task in dict.fromkeys((run["model"], run["task"]) for run in runs):
        group = [run for run in runs if (run["model"], run["task"]) == (model, task)]
        yield model, task, sorted(group, key=lambda run: run["seed"])


def _mean_and_range(curves: Sequence[Sequence[float]]) -> list[str]:
    """The mean over seeds of each layer, with the lowest and highest value."""
    values = np.array(curves)
    return [f"{v.mean():.3f} ({v.min():.3f} to {v.max():.3f})" for v in values.T]


def main() -> None:
    """Fine-tune, freeze, or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("finetune", "freeze"):
        command = commands.add_parser(name)
        command.add_argument("model", help="built-in name or directory in Hugging Face format")
        command.add_argument("task", choices=tuple(TASK_NAMES))
        command.add_argument("train", help="corpus to train on")
        command.add_argument("--limit", type=int, default=0, help="use only the first N examples (0: all)")
        command.add_argument("--epochs", type=int, default=3, help="training epochs")
        command.add_argument("--device", default="cpu", help="cpu or cuda")
        command.add_argument("-o", "--output", type=Path, required=True, help="JSON file to write")
        if name == "finetune":
            command.add_argument("test", help="corpus to test on and to compare the models on, in domain")
            command.add_argument("--out-of-domain", required=True, help="corpus to compare the models on")
            command.add_argument("--sample-size", type=int, default=500, help="texts to compare the models on")
            command.add_argument("--seed", type=int, default=0, help="random seed")
            command.add_argument("--max-length", type=int, default=128, help="maximum training length in tokens")
        else:
            command.add_argument("--sample-size", type=int, default=2000, help="number of examples")
            command.add_argument("--layer-step", type=int, default=2, help="freeze every Nth number of layers")
            command.add_argument("--n-seeds", type=int, default=3, help="number of repetitions")
    page = commands.add_parser("page", help="write the page")
    page.add_argument("files", nargs="+", type=Path, help="JSON files of measured runs")
    options = parser.parse_args()
    if options.command == "page":
        numbers = tables([json.loads(file.read_text("utf-8")) for file in options.files])
        print(numbers)
        write_numbers(PAGE, numbers)
        return
    run = measure_finetuning(options) if options.command == "finetune" else measure_freezing(options)
    options.output.write_text(json.dumps(run), "utf-8")


if __name__ == "__main__":
    main()
