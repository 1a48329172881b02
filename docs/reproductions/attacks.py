"""The numbers of attacks.md: what small models lose to text that nobody can read, to like words, and to blind training.

    python docs/reproductions/attacks.py READER MR SNLI                     # prints the tables
    python docs/reproductions/attacks.py READER MR SNLI --store S --write   # keeps finished work in S, writes the page

READER is a model fine-tuned on `generated:reading` (page: how), MR and SNLI are files of labelled texts and pairs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduction_page import markdown_table, written

import bertology
from bertology.results.estimate import Estimate
from bertology.results.shapes import LayerCurve, Table

PAGE = Path(__file__).with_name("attacks.md")
READING = "generated:reading@7:100"
CHANGES = {
    "AddSent2Pas-Shuffle": "-49.5 %",
    "AddSent2Opt-Shuffle": "-37.3 %",
    "AddAns2Opt-Shuffle": "-8.2 %",
    "Sent2Opt-Shuffle": "-54.7 %",
    "Ans2Opt-Shuffle": "-27.4 %",
    "AddSent2Opt": "-50.3 %",
    "AddAns2Opt": "-26.3 %",
}
"""Si et al.'s table 2: relative change of accuracy, mean over seven data sets."""
BLIND = {
    "P-Shuffle": "46.8 to 86.5",
    "Q-Shuffle": "50.5 to 86.7",
    "PQ-Shuffle": "41.2 to 83.3",
    "P-Remove": "38.7 to 76.8",
    "Q-Remove": "57.7 to 84.5",
    "PQ-Remove": "31.8 to 72.5",
    "clean": "62.8 to 87.7",
}
"""Their tables 2 and 3: lowest and highest accuracy over the data sets."""


@dataclass(frozen=True)
class Subjects:
    """The models and data of the page."""

    reader: str
    sentiment: str
    pairs: str
    base: str
    reviews: Path
    entailment: Path


@dataclass(frozen=True)
class Sizes:
    """How many items of each; where finished work is kept."""

    texts: int
    questions: int
    substituted: int
    blind: int
    epochs: int
    store: Path | None


def tables(who: Subjects, sizes: Sizes) -> str:
    """All tables as Markdown."""
    parts: list[str] = []
    for heading, model, corpus, items in (
        ("Film reviews (MR)", who.sentiment, str(who.reviews), sizes.texts),
        ("Templates of entailment (`generated:nli`)", who.pairs, "generated:nli@7:900", sizes.texts),
        ("SNLI", who.pairs, str(who.entailment), sizes.texts),
        ("Multiple choice (`generated:reading`)", who.reader, READING, sizes.questions),
    ):
        found = bertology.run("causes/attacks", model, corpus, items=items, store=sizes.store).data
        parts.append(_printed(f"### Attacked: {heading}", _attacks(found)))
    for heading, model, corpus in (
        ("film reviews (MR)", who.sentiment, str(who.reviews)),
        ("templates of entailment", who.pairs, "generated:nli@7:900"),
    ):
        found = bertology.run("causes/substitution", model, corpus, items=sizes.substituted, store=sizes.store).data
        parts.append(_printed(f"### Substituted: {heading}", _substitution(found)))
    blind = bertology.run(
        "causes/unanswerable", who.base, f"generated:reading@2019:{sizes.blind}",
        items=sizes.blind, epochs=sizes.epochs, size=32, store=sizes.store,
    ).data  # fmt: skip
    parts.append(_printed("### Trained blind (`generated:reading`)", _blind(blind)))
    curve = bertology.run(
        "causes/replay", who.pairs, "generated:nli@7:900", among=min(sizes.texts, 100), store=sizes.store
    ).data
    parts.append(_printed("### Replayed: shuffled pairs, layer by layer", _replay(curve)))
    return "\n\n".join(parts)


def _printed(heading: str, table: str) -> str:
    part = f"{heading}\n\n{table}"
    print(f"{part}\n", flush=True)
    return part


def _attacks(table: object) -> str:
    assert isinstance(table, Table)
    score, drop, edited = (table.measures[name] for name in ("score", "drop", "edited"))
    random, alone = table.baselines["random edit"]["drop"], table.baselines["unattacked"]["score"]
    paper = any(row in CHANGES for row in table.rows_named)
    rows = [["none", _percent(alone[0]), "", "", "", *([""] if paper else [])]]
    for place, row in enumerate(table.rows_named):
        told = [_percent(score[place]), _percent(drop[place]), _percent(random[place]), _whole(edited[place])]
        rows.append([row, *told, *([CHANGES.get(row, "")] if paper else [])])
    rows.append(
        ["always the commonest", _percent(table.baselines["majority"]["score"][0]), "", "", "", *([""] * paper)]
    )
    columns = ["attack", "accuracy", "drop", "drop by random edits", "words edited"]
    return _count(score, markdown_table([*columns, *(["Si et al., change"] if paper else [])], rows))


def _substitution(table: object) -> str:
    assert isinstance(table, Table)
    measures, beside = table.measures, table.baselines
    rows = [
        [
            row,
            _percent(beside["unattacked"]["score"][place]),
            _percent(measures["score"][place]),
            _percent(beside["random edit"]["score"][place]),
            _percent(measures["edited"][place]),
            f"{measures['queries'][place].value:.0f}",
            table.notes.get(row, ""),
        ]
        for place, row in enumerate(table.rows_named)
    ]
    columns = ("items", "accuracy", "after the attack", "after random edits", "words replaced", "texts shown", "")
    return markdown_table(columns, rows)


def _blind(table: object) -> str:
    assert isinstance(table, Table)
    score, drop = table.measures["score"], table.measures["drop"]
    rows = [
        [row, _percent(score[place]), _percent(drop[place]), BLIND.get(row, "")]
        for place, row in enumerate(table.rows_named)
    ]
    rows += [[name, _percent(found["score"][0]), "", ""] for name, found in table.baselines.items() if "score" in found]
    return _count(score, markdown_table(("trained on", "accuracy", "drop", "Si et al., lowest to highest"), rows))


def _replay(curve: object) -> str:
    assert isinstance(curve, LayerCurve)
    names = ("distance of states", "change of attention", "rise of loss")
    rows = [
        [
            str(layer),
            *(
                _plain(found[name][layer])
                for name in names
                for found in (curve.measures, curve.baselines["random edit"])
            ),
        ]
        for layer in range(len(curve.measures[names[0]].value))
    ]
    return markdown_table(("layer", *(heading for name in names for heading in (name, "random edits"))), rows)


def _count(estimates: object, table: str) -> str:
    ns: Sequence[int] = getattr(estimates, "n").tolist()  # noqa: B009
    return f"{max(ns)} items.\n\n{table}"


def _percent(estimate: Estimate) -> str:
    if not estimate.n or estimate.value != estimate.value:
        return ""
    if estimate.low != estimate.low or estimate.low == estimate.high:
        return f"{100 * estimate.value:.1f}"
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def _whole(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.0f} %" if estimate.n else ""


def _plain(estimate: Estimate) -> str:
    if not estimate.n or estimate.value != estimate.value:
        return ""
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def main() -> None:
    """Print the tables; with --write put them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("reader", help="a model fine-tuned for multiple choice on generated:reading")
    parser.add_argument("reviews", type=Path, help="labelled texts (MR)")
    parser.add_argument("entailment", type=Path, help="labelled pairs (SNLI)")
    parser.add_argument("--sentiment", default="mini-sentiment", help="the classifier of texts")
    parser.add_argument("--pairs", default="mini-pairs", help="the classifier of pairs")
    parser.add_argument("--base", default="mini", help="the model that is trained blind")
    parser.add_argument("--texts", type=int, default=200, help="texts and pairs to attack")
    parser.add_argument("--questions", type=int, default=50, help="questions to attack")
    parser.add_argument("--substituted", type=int, default=16, help="texts to substitute words in")
    parser.add_argument("--blind", type=int, default=6000, help="questions of blind training and its test")
    parser.add_argument("--epochs", type=int, default=4, help="epochs of blind training")
    parser.add_argument("--store", type=Path, help="where finished work is kept")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    o = parser.parse_args()
    who = Subjects(o.reader, o.sentiment, o.pairs, o.base, o.reviews, o.entailment)
    numbers = tables(who, Sizes(o.texts, o.questions, o.substituted, o.blind, o.epochs, o.store))
    if o.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), numbers), "utf-8")


if __name__ == "__main__":
    main()
