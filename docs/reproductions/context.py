"""The numbers of context.md: frozen contextual, static and random features with the same classifiers.

    python docs/reproductions/context.py MODEL GLOVE DATA          # prints the tables
    python docs/reproductions/context.py MODEL GLOVE DATA --write  # also writes them into the page

MODEL is a model as for `bertology run --model`, GLOVE a file or directory of word vectors, DATA a directory with `ner`,
`sentiment` and `nli` (the page says which files). With `--store` an interrupted run resumes, and the tables of one
`--task` can be made before the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reproduction_page import join_parts, markdown_table, percent, write_numbers

import bertology
from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.estimates.estimate import Estimate
from bertology.recording.overflow import slice_sentence
from bertology.results.shapes import Curve, Table

PAGE = Path(__file__).with_name("context.md")


@dataclass(frozen=True)
class Task:
    """A corpus with its format, the options of its analyses, another classifier, and the maximum length of a text."""

    title: str
    file: str
    format: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    classifier: str = ""
    max_words: int = 0


TASKS = {
    "wnut": Task(
        "Named entities in WNUT-17: span F1",
        "ner/emerging.dev.conll",
        options={"train_corpus": "ner/wnut17train.conll", "train_size": 500, "sample_size": 400},
        classifier="bilstm-crf",
    ),
    "crossner": Task(
        "Named entities in CrossNER politics: span F1",
        "ner/crossner-politics/test.txt",
        options={"train_corpus": "ner/crossner-politics/train.txt"},
    ),
    "imdb": Task("Sentiment in IMDB: accuracy", "sentiment/imdb", "labelled", {"sample_size": 400}, max_words=100),
    "mr": Task("Sentiment in MR: accuracy", "sentiment/mr", "labelled", classifier="cnn"),
    "snli": Task("Entailment in SNLI: accuracy", "nli/snli", "pairs"),
    "mnli": Task("Entailment in MNLI: accuracy", "nli/mnli_matched", "pairs"),
}
LAYERS = "layers"
SPLITS = {"train": "training", "validation": "validation", "test": "test"}
MAX_CLASSIFIER_SEEDS = 2


def tables(options: argparse.Namespace) -> str:
    """All tables as Markdown."""
    features = {
        "model": "model",
        "input embeddings": "static",
        options.second_model: options.second_model,
        "GloVe 50-d": f"glove:{options.glove}",
        "random 300-d": "circulant:300",
    }
    names = options.task or [*TASKS, LAYERS]
    return join_parts(_layers(options) if name == LAYERS else _task(TASKS[name], features, options) for name in names)


def _layers(options: argparse.Namespace) -> str:
    """Named entities in WNUT-17 by single layers of the model, on fewer examples."""
    task = TASKS["wnut"]
    n_layers = bertology.load(options.model).layers
    layers = sorted({round(n_layers * fraction) for fraction in (1 / 3, 2 / 3)})
    table: Table = _run(
        "features/comparison",
        options,
        _read(task, options),
        {
            "features": ",".join([*(f"model#{layer}" for layer in layers), "model", "static"]),
            "train_corpus": str(options.data / task.options["train_corpus"]),
            "train_size": 250,
            "sample_size": 200,
            "n_seeds": min(3, options.n_seeds),
        },
    )
    score = "score (linear)"
    rows = [[name, percent(table.measures[score][row])] for row, name in enumerate(table.row_names)]
    title = f"### Named entities in WNUT-17 by layer: span F1\n\n{_sample(table)}"
    return f"{title}\n\n{markdown_table(('', score), rows)}"


def _task(task: Task, features: Mapping[str, str], options: argparse.Namespace) -> str:
    corpus = _read(task, options)
    run_options = {**task.options, "features": ",".join(features.values()), "n_seeds": options.n_seeds}
    if "train_corpus" in run_options:
        run_options["train_corpus"] = str(options.data / run_options["train_corpus"])
        run_options["train_size"] = min(run_options.get("train_size", 0) or options.sample_size, options.sample_size)
    run_options["sample_size"] = min(run_options.get("sample_size", options.sample_size), options.sample_size)
    sizes = {"n_train_sizes": options.n_train_sizes, "min_train_fraction": options.min_train_fraction}
    curve: Curve = _run("features/learning_curves", options, corpus, {**run_options, **sizes})
    efficiency: Table = _run("features/data_efficiency", options, corpus, {**run_options, **sizes})
    labels = {feature: label for label, feature in features.items()}
    parts = [f"### {task.title}\n\n{_sample(curve)}", _learning_curves(curve, labels)]
    if task.classifier:
        n_seeds = min(MAX_CLASSIFIER_SEEDS, options.n_seeds)
        classifier_options = {**run_options, "classifiers": task.classifier, "n_seeds": n_seeds}
        comparison: Table = _run("features/comparison", options, corpus, classifier_options)
        parts.append(_other_classifier(comparison, task.classifier, labels))
    return "\n\n".join([*parts, _data_efficiency(efficiency, labels)])


def _run(analysis: str, options: argparse.Namespace, corpus: Corpus, run_options: Mapping[str, Any]) -> Any:
    encoder = bertology.load(options.model)
    inputs = RunInputs(corpus, encoder, store=options.store)
    progress = _print_progress if options.progress else None
    return run_analysis(registry.get(analysis), inputs, run_options, progress=progress).data


def _print_progress(title: str) -> Callable[[int, int], None]:
    return lambda done, total: print(f"{title}: {done} of {total}", flush=True) if done == total else None


def _read(task: Task, options: argparse.Namespace) -> Corpus:
    """The test corpus, with long texts truncated to their first words."""
    corpus = load_corpus(str(options.data / task.file), task.format)
    if not task.max_words:
        return corpus
    truncated = tuple(
        replace(
            example,
            segments=tuple(
                slice_sentence(segment, 0, min(len(segment), task.max_words)) for segment in example.segments
            ),
        )
        for example in corpus
    )
    return replace(corpus, examples=truncated)


def _sample(result: Curve | Table) -> str:
    sizes = result.sample
    splits = ", ".join(f"{short} {sizes[f'{split} examples']}" for short, split in SPLITS.items())
    return f"{sizes['labels']} labels; {splits} examples; {sizes['seeds']} seeds."


def _learning_curves(curve: Curve, labels: Mapping[str, str]) -> str:
    first = next(iter(labels))
    baselines = {name: measures[first] for name, measures in curve.baselines.items() if first in measures}
    rows = [
        [
            str(int(size)),
            *(percent(curve.measures[feature][row]) for feature in labels),
            *(f"{100 * estimates.value[row]:.1f}" for estimates in baselines.values()),
        ]
        for row, size in enumerate(curve.x)
    ]
    return markdown_table(("training examples", *labels.values(), *baselines), rows)


def _other_classifier(table: Table, classifier: str, labels: Mapping[str, str]) -> str:
    """One row: the scores of another classifier with all training examples."""
    estimates = table.measures[f"score ({classifier})"]
    scores = [percent(estimates[table.row_names.index(feature)]) for feature in labels]
    row = [f"{classifier}, {table.sample['seeds']} seeds", *scores]
    return markdown_table(("all training examples", *labels.values()), [row])


def _data_efficiency(table: Table, labels: Mapping[str, str]) -> str:
    rows: list[list[str]] = []
    for row, name in enumerate(table.row_names):
        better, _, weaker = name.partition(" over ")
        bound = "at least " if table.attributes["ratio_is_lower_bound"][row] else ""
        rows.append(
            [
                f"{labels[better]} over {labels[weaker]}",
                percent(table.measures["score difference"][row]),
                bound + _one_digit(table.measures["data ratio"][row]),
                _one_digit(table.measures["crossing point"][row]),
            ]
        )
    return markdown_table(("", "score difference", "data ratio", "crossing point"), rows)


def _one_digit(estimate: Estimate) -> str:
    return f"{estimate.value:.1f} [{estimate.low:.1f}, {estimate.high:.1f}]" if estimate.n else ""


def main() -> None:
    """Print the tables; with --write, also write them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="model, as for `bertology run --model`")
    parser.add_argument("glove", type=Path, help="file or directory of word vectors")
    parser.add_argument("data", type=Path, help="directory with ner, sentiment and nli")
    parser.add_argument("--second-model", default="mini", help="another model to compare")
    parser.add_argument("--task", action="append", choices=[*TASKS, LAYERS], help="only this task; may be repeated")
    parser.add_argument("--sample-size", type=int, default=1000, help="maximum number of training and test examples")
    parser.add_argument("--n-seeds", type=int, default=5, help="number of repetitions")
    parser.add_argument("--n-train-sizes", type=int, default=7, help="number of training sizes")
    parser.add_argument("--min-train-fraction", type=float, default=0.01, help="smallest training size, as a fraction")
    parser.add_argument("--store", type=Path, help="directory for features and finished results")
    parser.add_argument("--progress", action="store_true", help="print progress")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    options = parser.parse_args()
    numbers = tables(options)
    print(numbers)
    if options.write:
        write_numbers(PAGE, numbers)


if __name__ == "__main__":
    main()
