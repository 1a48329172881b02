"""The command line: train a partner, store its difference, report its figures."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from pretraining.partners.data import TASKS
from pretraining.partners.loop import train
from pretraining.partners.report import choose_rank, report, trained
from pretraining.partners.store import store
from pretraining.partners.task import prepare, recipe_of, start


def run_name(task: str, seed: int, *, fresh: bool) -> str:
    """The folder of a run."""
    return f"{task}-{'fresh-' if fresh else ''}{seed}"


def _train(given: argparse.Namespace) -> None:
    task = prepare(given.task, given.base, given.data)
    model = start(task, given.base, seed=given.seed, fresh=given.fresh).to(given.device)
    folder = given.runs / run_name(given.task, given.seed, fresh=given.fresh)
    recipe = recipe_of(given.task, given.seed)
    progress = train(model, task.train, task.score(task.stop), recipe, folder)
    _write({"recipe": asdict(recipe), **asdict(progress)}, folder / "run.json")


def _store(given: argparse.Namespace) -> None:
    task = prepare(given.task, given.base, given.data)
    run = given.runs / run_name(given.task, given.seed, fresh=False)
    model = trained(task, given.base, run)
    tried = choose_rank(task, model, given.base)
    store(model, given.base, given.partner, rank=tried[-1].rank)
    _write([asdict(one) for one in tried], run / "ranks.json")


def _report(given: argparse.Namespace) -> None:
    task = prepare(given.task, given.base, given.data)
    runs = sorted(path.parent for path in given.runs.glob(f"{given.task}-*/run.json"))
    shipped = given.runs / run_name(given.task, given.seed, fresh=False)
    figures = report(task, given.base, given.partner, runs, shipped)
    figures["training"] = {run.name: json.loads((run / "run.json").read_text("utf-8")) for run in runs}
    figures["ranks"] = json.loads((shipped / "ranks.json").read_text("utf-8"))
    _write(figures, given.output)


def _write(value: object, path: Path) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    print(path, file=sys.stderr)


def main() -> None:
    """Train, store or report a partner of a pre-trained model."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.partners", description=main.__doc__)
    commands = parser.add_subparsers(required=True)
    for name, do, about in (
        ("train", _train, "fine-tune, or train fresh weights of the same shape; a stopped run goes on"),
        ("store", _store, "write a run's difference at the smallest rank that keeps its answers"),
        ("report", _report, "measure the stored partner, its runs and its baselines"),
    ):
        command = commands.add_parser(name, help=about)
        command.set_defaults(do=do)
        command.add_argument("base", type=Path, help="BertForPreTraining directory")
        command.add_argument("data", type=Path, help="folder that holds sentiment/, ner/ and nli/")
        command.add_argument("task", choices=list(TASKS))
        command.add_argument("--runs", type=Path, required=True, help="folder of runs")
        command.add_argument("--seed", type=int, default=0, help="of the run to train, or the one that ships")
        if name == "train":
            command.add_argument("--fresh", action="store_true", help="from random weights: the baseline")
            command.add_argument(
                "--device", default="cpu", help="where to train; the figures are always taken on the CPU"
            )
        else:
            command.add_argument("--partner", type=Path, required=True, help="folder of the stored difference")
        if name == "report":
            command.add_argument("-o", "--output", type=Path, required=True, help="JSON file to write")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.do(given)


if __name__ == "__main__":
    main()
