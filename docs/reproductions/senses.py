"""The numbers of senses.md: word senses by nearest neighbours, thresholds and linear projections.

    python docs/reproductions/senses.py MODEL MODEL ...          # prints the tables
    python docs/reproductions/senses.py MODEL MODEL ... --write  # also writes them into the page

A MODEL is one as for `bertology run --model`. The text is the sentences of the built-in corpus that contain a word with
an annotated sense; `--corpus` names another one with senses.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reproduction_page import join_parts, markdown_table, percent, write_numbers

from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_all
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.results.shapes import Curve, LayerCurve, Matrix

PAGE = Path(__file__).with_name("senses.md")
N_NEIGHBOURS = (1, 3, 5, 10)
LAST_FOUR, UNTRAINED, MOST_FREQUENT = "last four layers", "untrained model", "most frequent sense"
RATIO, OTHER_SENSE_RATIO = "similarity ratio", "similarity ratio (with other-sense sentence)"
NEARER, OTHER_SENSE_NEARER = "nearer own sense", "nearer own sense (with other-sense sentence)"

# Wiedemann et al. 2019: F1 of the most frequent sense, and of the nearest neighbours in BERT-large at the best k.
PUBLISHED = (
    ("Senseval-2, lexical sample", 54.79, 76.52),
    ("Senseval-3, lexical sample", 58.95, 80.12),
    ("SemEval-2007 task 7, coarse all-words", 70.94, 81.20),
    ("SemEval-2007 task 17, fine all-words", 48.44, 60.94),
)


def tables(models: Sequence[str], corpus: Corpus, n_seeds: int) -> str:
    """All tables as Markdown."""
    results = {Path(model).name: _run_analyses(model, corpus, n_seeds) for model in models}
    sizes = next(iter(results.values()))["senses"].sample
    sample = (
        f"{len(corpus)} sentences: train {sizes['training occurrences']}, test {sizes['test occurrences']} occurrences "
        f"in the first of {sizes['splits']} splits; {sizes['ambiguous lemmas']} of {sizes['lemmas']} words are "
        "ambiguous. Brackets are 95 % intervals over sentences and splits."
    )
    return join_parts(
        [
            sample,
            _compare_with_paper(results),
            *(_by_layer(name, result) for name, result in results.items()),
            _by_neighbours(results),
            _by_word(results),
            *(_by_rank(name, result["ranks"]) for name, result in results.items()),
            *(_concatenation(name, result["concatenation"]) for name, result in results.items()),
        ]
    )


def _run_analyses(model: str, corpus: Corpus, n_seeds: int) -> dict[str, Any]:
    """All results of one model, from one pass over the corpus."""
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "senses": ("senses/disambiguation", {}),
        "pairs": ("senses/word_in_context", {}),
        "words": ("senses/disambiguation", {"group_by": "lemma"}),
        "ranks": ("senses/subspace_probe", {}),
        "concatenation": ("senses/subspace_probe", {"show": "concatenation"}),
    }
    requests |= {f"k={k}": ("senses/disambiguation", {"k": k, "clip_k": False}) for k in N_NEIGHBOURS}
    analyses = [(registry.get(name), {"n_seeds": n_seeds, **options}) for name, options in requests.values()]
    results = run_all(analyses, RunInputs(corpus, load(model))).results()
    return {name: result.data for name, result in zip(requests, results, strict=True)}


def _compare_with_paper(results: Mapping[str, dict[str, Any]]) -> str:
    rows = [[name, f"{most_frequent:.1f}", f"{best:.1f}"] for name, most_frequent, best in PUBLISHED]
    for name, result in results.items():
        curve: LayerCurve = result["senses"]
        scores = [percent(curve.baselines[baseline]["F1"][0]) for baseline in (MOST_FREQUENT, LAST_FOUR)]
        rows.append([f"here, {name}", *scores])
    columns = ("F1 in percent", MOST_FREQUENT, "nearest neighbours, last four layers")
    return f"### Compared with the paper\n\n{markdown_table(columns, rows)}"


def _by_layer(name: str, result: dict[str, Any]) -> str:
    senses, pairs = result["senses"], result["pairs"]
    assert isinstance(senses, LayerCurve) and isinstance(pairs, LayerCurve)
    rows = [
        [
            str(layer),
            percent(senses.measures["accuracy"][layer]),
            percent(senses.baselines[UNTRAINED]["accuracy"][layer]),
            percent(senses.baselines["shuffled senses"]["accuracy"][layer]),
            percent(pairs.measures["accuracy"][layer]),
            f"{pairs.measures['ROC AUC'].value[layer]:.3f}",
            f"{pairs.baselines[UNTRAINED]['ROC AUC'].value[layer]:.3f}",
        ]
        for layer in range(len(senses.measures["accuracy"].value))
    ]
    sense_accuracy, pair_accuracy = (percent(curve.baselines[LAST_FOUR]["accuracy"][0]) for curve in (senses, pairs))
    auc = pairs.baselines[LAST_FOUR]["ROC AUC"].value[0]
    rows.append([LAST_FOUR, sense_accuracy, "", "", pair_accuracy, f"{auc:.3f}", ""])
    columns = (
        "layer",
        "nearest neighbour",
        UNTRAINED,
        "shuffled senses",
        "pairs by a threshold",
        "pairs, ROC AUC",
        f"{UNTRAINED}, ROC AUC",
    )
    return f"### By layer, {name}, in percent\n\n{markdown_table(columns, rows)}"


def _by_neighbours(results: Mapping[str, dict[str, Any]]) -> str:
    rows = [
        [str(k), *(percent(result[f"k={k}"].baselines[LAST_FOUR]["accuracy"][0]) for result in results.values())]
        for k in N_NEIGHBOURS
    ]
    return f"### By the number of neighbours, last four layers, in percent\n\n{markdown_table(('k', *results), rows)}"


def _by_word(results: Mapping[str, dict[str, Any]]) -> str:
    matrices: list[Matrix] = [result["words"] for result in results.values()]
    first = matrices[0]
    rows = [
        [
            word,
            *(percent(matrix.measures["accuracy"][-1][column]) for matrix in matrices),
            percent(first.baselines[MOST_FREQUENT]["accuracy"][-1][column]),
            str(int(first.measures["accuracy"][-1][column].n)),
        ]
        for column, word in enumerate(first.column_names)
    ]
    columns = ("word", *results, MOST_FREQUENT, "sentences")
    return f"### By word, last four layers, in percent\n\n{markdown_table(columns, rows)}"


def _by_rank(name: str, curve: Curve) -> str:
    series = {**curve.measures, **{baseline: scores["accuracy"] for baseline, scores in curve.baselines.items()}}
    rows = [
        [str(int(rank)), *(percent(estimates[row]) for estimates in series.values())]
        for row, rank in enumerate(curve.x)
    ]
    return f"### Projections of the last layer, {name}, in percent\n\n{markdown_table(('rank', *series), rows)}"


def _concatenation(name: str, curve: LayerCurve) -> str:
    conditions = [("alone", curve.measures, RATIO, NEARER)]
    conditions.append(("with an other-sense sentence", curve.measures, OTHER_SENSE_RATIO, OTHER_SENSE_NEARER))
    for baseline in ("with a same-sense sentence", "with a sentence without the word"):
        conditions.append((baseline, curve.baselines[baseline], OTHER_SENSE_RATIO, OTHER_SENSE_NEARER))
    rows: list[list[str]] = []
    for condition, measures, ratio, nearer in conditions:
        last = measures[ratio][-1]
        rows.append([condition, f"{last.value:.3f} [{last.low:.3f}, {last.high:.3f}]", percent(measures[nearer][-1])])
    columns = ("", "similarity ratio (own to opposite sense)", "nearer own sense, in percent")
    title = f"### Concatenation with another sentence, last layer, {name}"
    return f"{title}\n\n{markdown_table(columns, rows)}"


def _with_senses(corpus: Corpus) -> Corpus:
    """The sentences that contain a word with an annotated sense."""
    examples = (example for example in corpus if any(any(segment.senses or ()) for segment in example.segments))
    return replace(corpus, examples=tuple(examples))


def main() -> None:
    """Print the tables; with --write, also write them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", help="built-in names or directories in Hugging Face format")
    parser.add_argument("--corpus", default="english", help="corpus with senses")
    parser.add_argument("--n-seeds", type=int, default=5, help="number of splits into training and test documents")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    options = parser.parse_args()
    numbers = tables(options.models, _with_senses(load_corpus(options.corpus)), options.n_seeds)
    print(numbers)
    if options.write:
        write_numbers(PAGE, numbers)


if __name__ == "__main__":
    main()
