"""The numbers of attacks.md: what small models lose to unreadable text, similar words and unanswerable training.

    python docs/reproductions/attacks.py CHOICE_MODEL MR SNLI                     # prints the tables
    python docs/reproductions/attacks.py CHOICE_MODEL MR SNLI --store S --write   # stores results in S, writes the page

CHOICE_MODEL is a model fine-tuned on `generated:reading_comprehension` (the page says how); MR and SNLI are files of
labelled texts and pairs.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from reproduction_page import join_parts, markdown_table, percent, wrap_prose, write_numbers

import bertology
from bertology.estimates.estimate import Estimate, Estimates
from bertology.results.shapes import LayerCurve, Table

PAGE = Path(__file__).with_name("attacks.md")
READING, NLI = "generated:reading_comprehension@7:100", "generated:nli@7:900"
CLEAN, RANDOM_EDITS, MAJORITY = "clean input", "random edits (same amount)", "majority class"
# Si et al. 2019, table 2: relative change in accuracy, mean over seven datasets.
PUBLISHED_CHANGES = {
    "AddSent2Pas-Shuffle": "-49.5 %",
    "AddSent2Opt-Shuffle": "-37.3 %",
    "AddAns2Opt-Shuffle": "-8.2 %",
    "Sent2Opt-Shuffle": "-54.7 %",
    "Ans2Opt-Shuffle": "-27.4 %",
    "AddSent2Opt": "-50.3 %",
    "AddAns2Opt": "-26.3 %",
}
# Si et al. 2019, tables 2 and 3: lowest and highest accuracy over the datasets.
PUBLISHED_RANGES = {
    "P-Shuffle": "46.8 to 86.5",
    "Q-Shuffle": "50.5 to 86.7",
    "PQ-Shuffle": "41.2 to 83.3",
    "P-Remove": "38.7 to 76.8",
    "Q-Remove": "57.7 to 84.5",
    "PQ-Remove": "31.8 to 72.5",
    "uncorrupted": "62.8 to 87.7",
}


@dataclass(frozen=True)
class ModelsAndData:
    """Models and data of the page."""

    choice_model: str
    sentiment_model: str
    pair_model: str
    base_model: str
    reviews: Path
    entailment: Path


@dataclass(frozen=True)
class Sizes:
    """Number of examples per experiment, epochs, and the directory for stored results."""

    texts: int
    questions: int
    substituted: int
    training_questions: int
    epochs: int
    store: Path | None


def tables(models_and_data: ModelsAndData, sizes: Sizes) -> str:
    """All tables as Markdown; each is printed as soon as it is measured."""
    parts: list[str] = []
    store = sizes.store
    for title, model, corpus, sample_size in (
        ("film reviews (MR)", models_and_data.sentiment_model, str(models_and_data.reviews), sizes.texts),
        ("entailment templates (`generated:nli`)", models_and_data.pair_model, NLI, sizes.texts),
        ("SNLI", models_and_data.pair_model, str(models_and_data.entailment), sizes.texts),
        ("multiple choice (`generated:reading_comprehension`)", models_and_data.choice_model, READING, sizes.questions),
    ):
        table = bertology.run("interventions/attacks", model, corpus, sample_size=sample_size, store=store).data
        parts.append(_print_part(f"### Attacks: {title}", _attacks(table)))
    for title, model, corpus in (
        ("film reviews (MR)", models_and_data.sentiment_model, str(models_and_data.reviews)),
        ("entailment templates", models_and_data.pair_model, NLI),
    ):
        size = sizes.substituted
        table = bertology.run("interventions/word_substitution", model, corpus, sample_size=size, store=store).data
        parts.append(_print_part(f"### Word substitution: {title}", _word_substitution(table)))
    table = bertology.run(
        "interventions/unanswerable_training",
        models_and_data.base_model,
        f"generated:reading_comprehension@2019:{sizes.training_questions}",
        sample_size=sizes.training_questions,
        epochs=sizes.epochs,
        batch_size=32,
        store=store,
    ).data
    title = "### Unanswerable training (`generated:reading_comprehension`)"
    parts.append(_print_part(title, _unanswerable_training(table)))
    size = min(sizes.texts, 100)
    curve = bertology.run(
        "interventions/attack_divergence", models_and_data.pair_model, NLI, sample_size=size, store=store
    )
    parts.append(_print_part("### Divergence of shuffled pairs by layer", _divergence(curve.data)))
    return join_parts(parts)


def _print_part(title: str, table: str) -> str:
    part = f"{title}\n\n{table}"
    print(f"{wrap_prose(part)}\n", flush=True)
    return part


def _attacks(table: object) -> str:
    assert isinstance(table, Table)
    score, drop = table.measures["score under attack"], table.measures["score drop"]
    edit_distance = table.measures["edit distance per word"]
    random_drop = table.baselines[RANDOM_EDITS]["score drop"]
    clean, majority = (table.baselines[name]["score under attack"][0] for name in (CLEAN, MAJORITY))
    has_published = any(name in PUBLISHED_CHANGES for name in table.row_names)
    rows = [["none (clean input)", _percent(clean), "", "", "", ""]]
    rows += [
        [
            name,
            _percent(score[row]),
            _percent(drop[row]),
            _percent(random_drop[row]),
            _round_percent(edit_distance[row]),
            PUBLISHED_CHANGES.get(name, ""),
        ]
        for row, name in enumerate(table.row_names)
    ]
    rows.append([MAJORITY, _percent(majority), "", "", "", ""])
    columns = ["attack", "accuracy", "score drop", "score drop (random edits)", "words edited", "Si et al., change"]
    n_columns = len(columns) if has_published else len(columns) - 1
    return _with_sample_size(score, markdown_table(columns[:n_columns], [row[:n_columns] for row in rows]))


def _word_substitution(table: object) -> str:
    assert isinstance(table, Table)
    score, n_queries = table.measures["accuracy under attack"], table.measures["queries"]
    counts = zip(*(table.attributes[name] for name in ("n_attacked", "n_examples", "n_flipped")), strict=True)
    rows = [
        [
            "all" if name == "all examples" else name,
            _percent(table.baselines[CLEAN]["accuracy under attack"][row]),
            _percent(score[row]),
            _percent(table.baselines[RANDOM_EDITS]["accuracy under attack"][row]),
            _percent(table.measures["perturbed words (proportion)"][row]),
            f"{n_queries[row].value:.0f}",
            f"{n_attacked} of {n_examples} correct and attacked, {n_flipped} flipped",
        ]
        for row, (name, (n_attacked, n_examples, n_flipped)) in enumerate(zip(table.row_names, counts, strict=True))
    ]
    columns = (
        "examples",
        "accuracy",
        "accuracy under attack",
        "accuracy after random edits",
        "perturbed words",
        "queries",
        "",
    )
    return markdown_table(columns, rows)


def _unanswerable_training(table: object) -> str:
    assert isinstance(table, Table)
    score, drop = table.measures["score"], table.measures["score drop"]
    rows = [
        [name, _percent(score[row]), _percent(drop[row]), PUBLISHED_RANGES.get(name, "")]
        for row, name in enumerate(table.row_names)
    ]
    rows += [
        [name, _percent(baseline["score"][0]), "", ""]
        for name, baseline in table.baselines.items()
        if "score" in baseline
    ]
    columns = ("trained on", "accuracy", "score drop", "Si et al., lowest to highest")
    return _with_sample_size(score, markdown_table(columns, rows))


def _divergence(curve: object) -> str:
    assert isinstance(curve, LayerCurve)
    measures = ("hidden-state distance", "attention distance", "change in loss")
    series = [source[name] for name in measures for source in (curve.measures, curve.baselines[RANDOM_EDITS])]
    rows = [
        [str(layer), *(_two_digits(estimates[layer]) for estimates in series)] for layer in range(len(series[0].value))
    ]
    return markdown_table(("layer", *(column for name in measures for column in (name, "random edits"))), rows)


def _with_sample_size(estimates: Estimates, table: str) -> str:
    return f"{int(estimates.n.max())} examples.\n\n{table}"


def _percent(estimate: Estimate) -> str:
    if not estimate.n or estimate.value != estimate.value:
        return ""
    if estimate.low != estimate.low or estimate.low == estimate.high:
        return f"{100 * estimate.value:.1f}"
    return percent(estimate)


def _round_percent(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.0f} %" if estimate.n else ""


def _two_digits(estimate: Estimate) -> str:
    if not estimate.n or estimate.value != estimate.value:
        return ""
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def main() -> None:
    """Print the tables; with --write, also write them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("choice_model", help="model fine-tuned for multiple choice on generated:reading_comprehension")
    parser.add_argument("reviews", type=Path, help="labelled texts (MR)")
    parser.add_argument("entailment", type=Path, help="labelled pairs (SNLI)")
    parser.add_argument("--sentiment-model", default="mini-sentiment", help="classifier of texts")
    parser.add_argument("--pair-model", default="mini-pairs", help="classifier of pairs")
    parser.add_argument("--base-model", default="mini", help="model for unanswerable training")
    parser.add_argument("--texts", type=int, default=200, help="number of texts and pairs to attack")
    parser.add_argument("--questions", type=int, default=50, help="number of questions to attack")
    parser.add_argument("--substituted", type=int, default=16, help="number of texts for word substitution")
    parser.add_argument("--training-questions", type=int, default=6000, help="questions of unanswerable training")
    parser.add_argument("--epochs", type=int, default=4, help="epochs of unanswerable training")
    parser.add_argument("--store", type=Path, help="directory for finished results")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    options = parser.parse_args()
    models_and_data = ModelsAndData(
        options.choice_model,
        options.sentiment_model,
        options.pair_model,
        options.base_model,
        options.reviews,
        options.entailment,
    )
    sizes = Sizes(
        options.texts,
        options.questions,
        options.substituted,
        options.training_questions,
        options.epochs,
        options.store,
    )
    numbers = tables(models_and_data, sizes)
    if options.write:
        write_numbers(PAGE, numbers)


if __name__ == "__main__":
    main()
