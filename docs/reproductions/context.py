"""The numbers of context.md: frozen contextual, static and random features under the same small models.

    python docs/reproductions/context.py MODEL GLOVE DATA          # prints the tables
    python docs/reproductions/context.py MODEL GLOVE DATA --write  # and puts them into the page

MODEL is a model as `bertology run` takes it, GLOVE a file or folder of word vectors, DATA a folder with `ner`,
`sentiment` and `nli` (the page says which files). `--store` keeps features and finished cells, so that a run that was
stopped goes on and the tables of one `--task` can be made before the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reproduction_page import markdown_table, percent, written

import bertology
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus
from bertology.recording.shorten import cut
from bertology.results.estimate import Estimate
from bertology.results.shapes import Curve, Table

PAGE = Path(__file__).with_name("context.md")


@dataclass(frozen=True)
class Lesson:
    """One task: the file judged (and learnt from), how it is read, and what else is learnt with."""

    title: str
    file: str
    format: str | None
    options: dict[str, Any]
    learners: str = ""
    words: int = 0


LESSONS = {
    "wnut": Lesson(
        "Names in WNUT-17: span F1",
        "ner/emerging.dev.conll",
        None,
        {"train": "ner/wnut17train.conll", "train_limit": 500, "items": 400},
        "bilstm-crf",
    ),
    "crossner": Lesson(
        "Names in CrossNER politics: span F1",
        "ner/crossner-politics/test.txt",
        None,
        {"train": "ner/crossner-politics/train.txt"},
    ),
    "imdb": Lesson("Sentiment in IMDB: accuracy", "sentiment/imdb", "labelled", {"items": 400}, words=100),
    "mr": Lesson("Sentiment in MR: accuracy", "sentiment/mr", "labelled", {}, "cnn"),
    "snli": Lesson("Entailment in SNLI: accuracy", "nli/snli", "pairs", {}),
    "mnli": Lesson("Entailment in MNLI: accuracy", "nli/mnli_matched", "pairs", {}),
}


LAYERS = "layers"


def tables(options: argparse.Namespace) -> str:
    """All tables as Markdown."""
    names = {
        "model": "model",
        "its input vectors": "static",
        options.second: options.second,
        "GloVe 50-d": f"glove:{options.glove}",
        "random 300-d": "circulant:300",
    }
    asked = options.task or [*LESSONS, LAYERS]
    parts = [_layers(options) if key == LAYERS else _of(LESSONS[key], names, options) for key in asked]
    return "\n\n".join(parts)


def _layers(options: argparse.Namespace) -> str:
    """Names in WNUT-17 by single layers of the model, on fewer items."""
    lesson = LESSONS["wnut"]
    depth = bertology.load(options.model).layers
    places = sorted({round(depth * share) for share in (1 / 3, 2 / 3)})
    given = {
        "features": ",".join([*(f"model#{place}" for place in places), "model", "static"]),
        "train": str(options.data / lesson.options["train"]),
        "train_limit": 250,
        "items": 200,
        "seeds": min(3, options.seeds),
    }
    table: Table = _run("meaning/compare", options, _read(lesson, options), given, None)
    rows = [[row, percent(table.measures["linear"][place])] for place, row in enumerate(table.rows_named)]
    said = table.units["linear"].partition("; ")[2]
    title = f"### Names in WNUT-17 by layer: span F1\n\n{said[0].upper()}{said[1:]}."
    return f"{title}\n\n{markdown_table(('', 'linear'), rows)}"


def _of(lesson: Lesson, names: dict[str, str], options: argparse.Namespace) -> str:
    corpus = _read(lesson, options)
    given: dict[str, Any] = {**lesson.options, "features": ",".join(names.values()), "seeds": options.seeds}
    if "train" in given:
        given["train"] = str(options.data / given["train"])
        given["train_limit"] = min(given.get("train_limit", 0) or options.items, options.items)
    given["items"] = min(given.get("items", options.items), options.items)

    def ran(analysis: str, **more: Any) -> Any:
        tell = _tell if options.progress else None
        return _run(analysis, options, corpus, {**given, **more}, tell)

    curve: Curve = ran("meaning/curves", sizes=options.sizes, least=options.least)
    met: Table = ran("meaning/crossings", sizes=options.sizes, least=options.least)
    labels = {name: label for label, name in names.items()}
    sizes = next(iter(curve.units.values())).partition("; ")[2]
    parts = [f"### {lesson.title}\n\n{sizes[0].upper()}{sizes[1:]}.", _curves(curve, labels)]
    if lesson.learners:
        found: Table = ran("meaning/compare", learners=lesson.learners, seeds=min(2, options.seeds))
        parts.append(_other(found, lesson.learners, labels))
    return "\n\n".join([*parts, _meetings(met, labels)])


def _run(analysis: str, options: argparse.Namespace, corpus: Corpus, given: dict[str, Any], tell: Any) -> Any:
    from bertology.analyses import registry
    from bertology.analyses.run import Subject, run

    encoder = bertology.load(options.model)
    return run(registry.get(analysis), Subject(corpus, encoder, store=options.store), given, progress=tell).data


def _tell(title: str) -> Callable[[int, int], None]:
    return lambda done, total: print(f"{title}: {done} of {total}", flush=True) if done == total else None


def _read(lesson: Lesson, options: argparse.Namespace) -> Corpus:
    """The items judged, long texts cut to their first words."""
    corpus = corpus_named(str(options.data / lesson.file), lesson.format)
    if not lesson.words:
        return corpus
    longest = lesson.words
    items = tuple(replace(item, parts=tuple(cut(p, 0, min(len(p), longest)) for p in item.parts)) for item in corpus)
    return replace(corpus, items=items)


def _curves(curve: Curve, labels: dict[str, str]) -> str:
    first = next(iter(labels))
    guesses = {name: own[first] for name, own in curve.baselines.items() if first in own}
    rows = [
        [
            str(int(size)),
            *(percent(curve.measures[name][place]) for name in labels),
            *(f"{100 * guess.value[place]:.1f}" for guess in guesses.values()),
        ]
        for place, size in enumerate(curve.points)
    ]
    return markdown_table(("items", *labels.values(), *guesses), rows)


def _other(table: Table, learner: str, labels: dict[str, str]) -> str:
    """One row: what another learner gets at full data."""
    scores = {row: table.measures[learner][place] for place, row in enumerate(table.rows_named)}
    row = [f"{learner}, 2 seeds", *(percent(scores[name]) for name in labels)]
    return markdown_table(("all items", *labels.values()), [row])


def _meetings(table: Table, labels: dict[str, str]) -> str:
    rows: list[list[str]] = []
    for place, row in enumerate(table.rows_named):
        better, _, weaker = row.partition(" over ")
        bound = "at least " if "at least" in table.notes[row] else ""
        rows.append(
            [
                f"{labels[better]} over {labels[weaker]}",
                percent(table.measures["leads by"][place]),
                bound + _number(table.measures["data factor"][place]),
                _number(table.measures["curves meet at"][place]),
            ]
        )
    return markdown_table(("", "leads by", "data factor", "curves meet at"), rows)


def _number(estimate: Estimate) -> str:
    if not estimate.n:
        return ""
    return f"{estimate.value:.1f} [{estimate.low:.1f}, {estimate.high:.1f}]"


def main() -> None:
    """Print the tables; with --write put them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a model, as `bertology run --model` takes it")
    parser.add_argument("glove", type=Path, help="a file or folder of word vectors")
    parser.add_argument("data", type=Path, help="the folder with ner, sentiment and nli")
    parser.add_argument("--second", default="mini", help="another model")
    parser.add_argument("--task", action="append", choices=[*LESSONS, LAYERS], help="only this one; may be given again")
    parser.add_argument("--items", type=int, default=1000, help="the most items to learn from and be judged by")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sizes", type=int, default=7)
    parser.add_argument("--least", type=float, default=0.01, help="the smallest training size, as a share of all")
    parser.add_argument("--store", type=Path, help="keep features and finished cells here")
    parser.add_argument("--progress", action="store_true", help="tell what is done")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    options = parser.parse_args()
    numbers = tables(options)
    print(numbers)
    if options.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), numbers), "utf-8")


if __name__ == "__main__":
    main()
