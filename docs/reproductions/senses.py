"""The numbers of senses.md: do nearest neighbours, thresholds and linear maps tell the senses of words?

    python docs/reproductions/senses.py MODEL MODEL ...          # prints the tables
    python docs/reproductions/senses.py MODEL MODEL ... --write  # and puts them into the page

A MODEL is one as `bertology run` takes it. The text is the embedded corpus, its sentences that have a word with
a sense; `--corpus` takes another one with senses.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reproduction_page import markdown_table, percent, written

from bertology.analyses import registry
from bertology.analyses.run import Subject, run_all
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus
from bertology.encoder.load import load
from bertology.results.shapes import Curve, LayerCurve, Matrix

PAGE = Path(__file__).with_name("senses.md")
VOTES = (1, 3, 5, 10)

# Wiedemann et al. 2019: F1 of the most frequent sense, and of the nearest neighbours in BERT-large at the best k.
PUBLISHED = (
    ("Senseval-2, lexical sample", 54.79, 76.52),
    ("Senseval-3, lexical sample", 58.95, 80.12),
    ("SemEval-2007 task 7, coarse all-words", 70.94, 81.20),
    ("SemEval-2007 task 17, fine all-words", 48.44, 60.94),
)


def tables(models: Sequence[str], corpus: Corpus, seeds: int) -> str:
    """All tables as Markdown."""
    found = [_measured(model, corpus, seeds) for model in models]
    names = [Path(model).name for model in models]
    sizes = found[0]["senses"].units["accuracy"].partition("(")[2].rstrip(")")
    parts = [
        f"{len(corpus)} sentences: {sizes}. Brackets are 95 % intervals over sentences and divisions.",
        _beside(names, found),
        *(_by_layer(name, one) for name, one in zip(names, found, strict=True)),
        _by_votes(names, found),
        _by_word(names, found),
        *(_by_dimension(name, one["probe"]) for name, one in zip(names, found, strict=True)),
        *(_joined(name, one["joined"]) for name, one in zip(names, found, strict=True)),
    ]
    return "\n\n".join(parts)


def _measured(model: str, corpus: Corpus, seeds: int) -> dict[str, Any]:
    """Every result of one model, from one pass."""
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "senses": ("senses", {}),
        "pairs": ("context_pairs", {}),
        "words": ("senses", {"by": "lemma"}),
        "probe": ("sense_probe", {}),
        "joined": ("sense_probe", {"show": "joined"}),
    }
    asked |= {f"{votes} votes": ("senses", {"k": votes, "clip": False}) for votes in VOTES}
    wanted = [(registry.get(f"meaning/{name}"), {"seeds": seeds, **options}) for name, options in asked.values()]
    results = run_all(wanted, Subject(corpus, load(model)))
    return {name: result.data for name, result in zip(asked, results, strict=True)}


def _beside(names: Sequence[str], found: Sequence[dict[str, Any]]) -> str:
    rows = [[name, f"{frequent:.1f}", f"{best:.1f}"] for name, frequent, best in PUBLISHED]
    for name, one in zip(names, found, strict=True):
        curve: LayerCurve = one["senses"]
        frequent = curve.baselines["most frequent sense"]["F1"][0]
        rows.append([f"here, {name}", percent(frequent), percent(curve.baselines["last four"]["F1"][0])])
    columns = ("F1 in percent", "most frequent sense", "nearest neighbours, last four layers")
    return f"### Beside the paper\n\n{markdown_table(columns, rows)}"


def _by_layer(name: str, found: dict[str, Any]) -> str:
    senses, pairs = found["senses"], found["pairs"]
    assert isinstance(senses, LayerCurve) and isinstance(pairs, LayerCurve)
    rows = [
        [
            str(layer),
            percent(senses.measures["accuracy"][layer]),
            percent(senses.baselines["random weights"]["accuracy"][layer]),
            percent(senses.baselines["shuffled senses"]["accuracy"][layer]),
            percent(pairs.measures["accuracy"][layer]),
            f"{pairs.measures['area under the curve'].value[layer]:.3f}",
            f"{pairs.baselines['random weights']['area under the curve'].value[layer]:.3f}",
        ]
        for layer in range(len(senses.measures["accuracy"].value))
    ]
    last = [one.baselines["last four"] for one in (senses, pairs)]
    area = last[1]["area under the curve"].value[0]
    rows.append(
        ["last four", percent(last[0]["accuracy"][0]), "", "", percent(last[1]["accuracy"][0]), f"{area:.3f}", ""]
    )
    columns = ("layer", "nearest neighbour", "random weights", "shuffled senses", "pairs by a threshold", "pairs, area",
               "random weights, area")  # fmt: skip
    return f"### By layer, {name}, in percent\n\n{markdown_table(columns, rows)}"


def _by_votes(names: Sequence[str], found: Sequence[dict[str, Any]]) -> str:
    rows = [
        [str(votes), *(percent(one[f"{votes} votes"].baselines["last four"]["accuracy"][0]) for one in found)]
        for votes in VOTES
    ]
    return f"### By the number of neighbours, last four layers, in percent\n\n{markdown_table(('k', *names), rows)}"


def _by_word(names: Sequence[str], found: Sequence[dict[str, Any]]) -> str:
    first = found[0]["words"]
    assert isinstance(first, Matrix)
    rows = [
        [
            word,
            *(percent(one["words"].measures["accuracy"][-1][place]) for one in found),
            percent(first.baselines["most frequent sense"]["accuracy"][-1][place]),
            str(int(first.measures["accuracy"][-1][place].n)),
        ]
        for place, word in enumerate(first.columns_named)
    ]
    columns = ("word", *names, "most frequent sense", "sentences")
    return f"### By word, last four layers, in percent\n\n{markdown_table(columns, rows)}"


def _by_dimension(name: str, curve: Curve) -> str:
    rows = [
        [
            str(int(size)),
            *(percent(one[place]) for one in curve.measures.values()),
            *(percent(one["accuracy"][place]) for one in curve.baselines.values()),
        ]
        for place, size in enumerate(curve.points)
    ]
    columns = ("dimensions", *curve.measures, *curve.baselines)
    return f"### Maps of the last layer, {name}, in percent\n\n{markdown_table(columns, rows)}"


def _joined(name: str, curve: LayerCurve) -> str:
    ratio, nearer = "ratio joined to the other sense", "own sense joined to the other"
    rows: list[list[str]] = []
    for title, one in (
        ("alone", {ratio: curve.measures["ratio alone"], nearer: curve.measures["own sense alone"]}),
        ("joined to the other sense", curve.measures),
        ("joined to the same sense", curve.baselines["joined to same sense"]),
        ("joined to a sentence without the word", curve.baselines["joined to another word"]),
    ):
        last = one[ratio][-1]
        rows.append([title, f"{last.value:.3f} [{last.low:.3f}, {last.high:.3f}]", percent(one[nearer][-1])])
    columns = ("", "own to opposite sense, ratio of cosines", "nearer its own sense, in percent")
    return f"### Joined to another sentence, last layer, {name}\n\n{markdown_table(columns, rows)}"


def _with_senses(corpus: Corpus) -> Corpus:
    """The sentences in which some word has a sense."""
    return replace(corpus, items=tuple(item for item in corpus if any(any(p.senses or ()) for p in item.parts)))


def main() -> None:
    """Print the tables, and write them into the page where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", help="folders in Hugging Face form, or names")
    parser.add_argument("--corpus", default="english", help="a corpus with senses")
    parser.add_argument("--seeds", type=int, default=5, help="divisions into documents to learn from and to test")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    options = parser.parse_args()
    found = tables(options.models, _with_senses(corpus_named(options.corpus)), options.seeds)
    print(found)
    if options.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), found), "utf-8")


if __name__ == "__main__":
    main()
