"""The numbers of fine-tuning.md: what learning a task changes in a model, over tasks and seeds.

    python docs/reproductions/fine_tuning.py learn MODEL TASK TRAIN TEST --outside CORPUS --seed 0 -o RUN.json
    python docs/reproductions/fine_tuning.py freeze MODEL TASK TRAIN -o FROZEN.json
    python docs/reproductions/fine_tuning.py page RUN.json ... FROZEN.json ...   # puts the tables into the page

TASK is `sentence` (texts with a class), `pos` (the parts of speech of a treebank) or `dependency` (its trees). `learn`
fine-tunes once, then compares the model before and after on the texts of TEST (in the domain) and of `--outside`. Each
run is one process, so that many can go side by side; `--device cuda` runs on an accelerator.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction_page import markdown_table, written

import bertology
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.finetuning.finetune import finetune
from bertology.finetuning.loop import Recipe
from bertology.recording.policy import Policy
from bertology.results.shapes import Curve, LayerCurve

PAGE = Path(__file__).with_name("fine-tuning.md")
NAMES = {"sentence": "reviews", "pos": "parts of speech", "dependency": "trees"}
STIMULI = 2000
ATTENTION = ("cosine", "divergence")

# Kovaleva et al. 2019, figure 5: mean cosine of the maps of BERT-base before and after, by layer, read off the picture.
KOVALEVA_SST2 = (0.99, 0.93, 0.93, 0.89, 0.87, 0.93, 0.90, 0.86, 0.85, 0.78, 0.64, 0.66)


def learn(options: argparse.Namespace) -> dict[str, Any]:
    """One fine-tuning, and how the model after differs from the model before, by layer."""
    before = load(options.model, device=options.device)
    task, layer = ("token", "pos") if options.task == "pos" else (options.task, None)
    with tempfile.TemporaryDirectory() as folder:
        done = finetune(
            before,
            _corpus(options.train, options.limit),
            task,
            Path(folder) / "model",
            test=_corpus(options.test, 0),
            recipe=Recipe(seed=options.seed, epochs=options.epochs, size=32),
            layer=layer,
            max_pieces=options.pieces,
            device=options.device,
        )
        after = done.encoder
        scores = {name: [e.value, e.low, e.high, e.n] for name, e in done.scores("test").items()}
        places = {"inside": options.test, "outside": options.outside}
        changes = {place: _changes(before, after, _corpus(name, options.texts)) for place, name in places.items()}
    about = {"kind": "learn", "model": Path(options.model).name, "task": options.task, "seed": options.seed}
    return about | {"scores": scores, "changes": changes}


def _changes(before: Encoder, after: Encoder, corpus: Corpus) -> dict[str, Any]:
    policy = Policy(long="truncate", max_pieces=128)
    found = bertology.run(
        "geometry/similarity", before, corpus, against=after, policy=policy, measures="rsa", stimuli=STIMULI
    )
    maps = bertology.run("attention/change", before, corpus, against=after, policy=policy, show="layers")
    assert isinstance(found.data, LayerCurve)
    assert isinstance(maps.data, LayerCurve)
    curves = {
        "rsa": found.data.measures["rsa"],
        "rsa, random weights": found.data.baselines["random weights"]["rsa"],
        "rsa, shuffled": found.data.baselines["shuffled stimuli"]["rsa"],
        **{name: maps.data.measures[name] for name in ATTENTION},
    }
    return {name: [list(map(float, part)) for part in (e.value, e.low, e.high)] for name, e in curves.items()}


def freeze(options: argparse.Namespace) -> dict[str, Any]:
    """The score with the first blocks frozen, and with the blocks above them dropped."""
    task, layer = ("token", "pos") if options.task == "pos" else (options.task, "")
    found = bertology.run(
        "causes/freezing",
        load(options.model, device=options.device),
        _corpus(options.train, options.limit),
        task=task,
        layer=layer,
        items=options.items,
        every=options.every,
        seeds=options.seeds,
        epochs=options.epochs,
        size=32,
    ).data
    assert isinstance(found, Curve)
    measures = {
        name: [list(map(float, part)) for part in (e.value, e.low, e.high)] for name, e in found.measures.items()
    }
    baselines = {name: float(some["frozen"].value[0]) for name, some in found.baselines.items() if "frozen" in some}
    return {
        "kind": "freeze",
        "model": Path(options.model).name,
        "task": options.task,
        "points": found.points.tolist(),
        "measures": measures,
        "baselines": baselines,
        "items": options.items,
        "seeds": options.seeds,
        "epochs": options.epochs,
    }


def _corpus(name: str, limit: int) -> Corpus:
    return corpus_named(name, limit=limit or None)


def tables(runs: Sequence[dict[str, Any]]) -> str:
    """All tables as Markdown."""
    tasks = list(NAMES)
    runs = sorted(runs, key=lambda run: (run["model"] != "mini", run["model"], tasks.index(run["task"])))
    learnt = [run for run in runs if run["kind"] == "learn"]
    frozen = [run for run in runs if run["kind"] == "freeze"]
    models = list(dict.fromkeys(run["model"] for run in runs))
    parts = [_scores(learnt)]
    for model in models:
        own = [run for run in learnt if run["model"] == model]
        if own:
            parts += [_geometry(model, own), _attention(model, own)]
    parts += [_frozen(run) for run in frozen]
    return "\n\n".join(parts)


def _scores(runs: Sequence[dict[str, Any]]) -> str:
    rows: list[list[str]] = []
    for model, task, some in _grouped(runs):
        name = next(iter(some[0]["scores"]))
        values = ", ".join(f"{100 * run['scores'][name][0]:.1f}" for run in some)
        rows.append([model, NAMES[task], name, values, str(some[0]["scores"][name][3])])
    return "### What was learnt\n\n" + markdown_table(("model", "task", "score, %", "by seed", "test items"), rows)


def _geometry(model: str, runs: Sequence[dict[str, Any]]) -> str:
    columns = ["layer"]
    series: list[list[str]] = []
    for _, task, some in _grouped(runs):
        for place in ("inside", "outside"):
            columns.append(f"{NAMES[task]}, {place}")
            series.append(_spread([run["changes"][place]["rsa"][0] for run in some]))
    columns.append("random weights")
    series.append(_spread([run["changes"]["outside"]["rsa, random weights"][0] for run in runs]))
    rows = [[str(layer), *cells] for layer, cells in enumerate(zip(*series, strict=True))]
    return f"### {model}: similarity (RSA) of the states before and after\n\n{markdown_table(columns, rows)}"


def _attention(model: str, runs: Sequence[dict[str, Any]]) -> str:
    columns = ["layer"]
    series: list[list[str]] = []
    for _, task, some in _grouped(runs):
        columns += [f"{NAMES[task]}: cosine", f"{NAMES[task]}: divergence"]
        series += [_spread([run["changes"]["outside"][name][0] for run in some]) for name in ATTENTION]
    layers = len(series[0])
    if layers == len(KOVALEVA_SST2):
        columns.append("BERT-base on SST-2: cosine")
        series.append([f"{value:.2f}" for value in KOVALEVA_SST2])
    rows = [[str(layer), *cells] for layer, cells in enumerate(zip(*series, strict=True), 1)]
    return f"### {model}: change of the attention maps\n\n{markdown_table(columns, rows)}"


def _frozen(run: dict[str, Any]) -> str:
    columns = ("first blocks", "frozen", "alone, the rest dropped")
    cells = {name: [f"{100 * v:.1f} [{100 * a:.1f}, {100 * b:.1f}]" for v, a, b in zip(*some, strict=True)]
             for name, some in run["measures"].items()}  # fmt: skip
    rows = [
        [f"{int(point)}", cells["frozen"][place], cells["truncated"][place]]
        for place, point in enumerate(run["points"])
    ]
    beside = ", ".join(f"{name} {100 * value:.1f}" for name, value in run["baselines"].items())
    head = f"### {run['model']}, {NAMES[run['task']]}: freezing and dropping blocks"
    made = (
        f"{run['items']} items, a quarter of them to judge by, {run['seeds']} seeds, {run['epochs']} epochs. {beside}."
    )
    return f"{head}\n\n{made}\n\n{markdown_table(columns, rows)}"


def _grouped(runs: Sequence[dict[str, Any]]) -> Iterable[tuple[str, str, list[dict[str, Any]]]]:
    keys = dict.fromkeys((run["model"], run["task"]) for run in runs)
    for model, task in keys:
        some = [run for run in runs if (run["model"], run["task"]) == (model, task)]
        yield model, task, sorted(some, key=lambda run: run["seed"])


def _spread(curves: Sequence[Sequence[float]]) -> list[str]:
    """The mean over seeds of each layer, and the lowest and highest."""
    values = np.array(curves)
    return [f"{v.mean():.3f} ({v.min():.3f} to {v.max():.3f})" for v in values.T]


def main() -> None:
    """Learn, freeze, or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("learn", "freeze"):
        one = commands.add_parser(name)
        one.add_argument("model", help="a folder in Hugging Face form, or a name")
        one.add_argument("task", choices=tuple(NAMES))
        one.add_argument("train", help="the corpus to learn from")
        one.add_argument("--limit", type=int, default=0, help="the first so many items; 0 for all")
        one.add_argument("--epochs", type=int, default=3)
        one.add_argument("--device", default="cpu")
        one.add_argument("-o", "--output", type=Path, required=True)
        if name == "learn":
            one.add_argument("test", help="a corpus of the same kind, to judge by and to compare the models on")
            one.add_argument("--outside", required=True, help="texts of another kind to compare the models on")
            one.add_argument("--texts", type=int, default=500, help="so many texts to compare the models on")
            one.add_argument("--seed", type=int, default=0)
            one.add_argument("--pieces", type=int, default=128, help="the longest input while learning")
        else:
            one.add_argument("--items", type=int, default=2000)
            one.add_argument("--every", type=int, default=2)
            one.add_argument("--seeds", type=int, default=3)
    page = commands.add_parser("page")
    page.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    if options.command == "page":
        found = tables([json.loads(file.read_text("utf-8")) for file in options.files])
        print(found)
        PAGE.write_text(written(PAGE.read_text("utf-8"), found), "utf-8")
        return
    done = learn(options) if options.command == "learn" else freeze(options)
    options.output.write_text(json.dumps(done), "utf-8")


if __name__ == "__main__":
    main()
