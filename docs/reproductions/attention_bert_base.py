"""The numbers of attention-bert-base.md: attention of a fine-tuned bert-base beside what Clark and Kovaleva published.

    python docs/reproductions/attention_bert_base.py DATA          # prints the tables
    python docs/reproductions/attention_bert_base.py DATA --write  # and puts them into the page

DATA is a folder of .npz files with `attention` (12, 12, n, n) and `tokens`, one a sentence; see the page for its
origin. `pretrained-pair.npz` in it (`attn`, `left`) is one input of the model before it was fine-tuned.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reproduction_page import markdown_table, percent, written

import bertology
from bertology.analyses.attention.entropy import ENTROPY
from bertology.analyses.attention.entropy import MEASURES as ENTROPIES
from bertology.analyses.attention.targets import MEASURES as TARGETED
from bertology.analyses.attention.targets import TARGETS
from bertology.encoder.pieces import Special
from bertology.maths.map_shapes import SHAPES
from bertology.measures.attention.head_measures import uniform_attention
from bertology.recording.opening import open_recording
from bertology.results.estimate import Estimate, Estimates
from bertology.results.sampling import mean_over_sentences
from bertology.results.shapes import Table

Shares = NDArray[np.floating[Any]]

PAGE = Path(__file__).with_name("attention-bert-base.md")
SEED = 0
CLASSIFIERS = ("rule", "network")

# Clark et al. 2019, pre-trained bert-base on segments of up to 128 pieces. Shares and entropies by layer are read off
# the figures of their released notebook (about +-0.02); so are the strongest heads of a layer, where they stand out.
CLARK: dict[str, Sequence[float]] = {
    "to [CLS]": (0.05, 0.26, 0.24, 0.15, 0.02, 0.02, 0.01, 0.01, 0.01, 0.01, 0.03, 0.01),
    "to [SEP]": (0.02, 0.05, 0.08, 0.21, 0.49, 0.55, 0.54, 0.57, 0.57, 0.48, 0.06, 0.07),
    "to punctuation": (0.07, 0.11, 0.09, 0.09, 0.05, 0.05, 0.05, 0.05, 0.06, 0.08, 0.51, 0.58),
    "[SEP] to [SEP]": (0.16, 0.14, 0.11, 0.47, 0.90, 0.91, 0.89, 0.91, 0.87, 0.37, 0.07, 0.10),
    "all": (3.60, 2.85, 2.55, 2.73, 2.43, 1.91, 1.93, 1.74, 2.21, 2.51, 2.79, 2.81),
    "cls": (3.66, 3.56, 2.07, 2.75, 2.45, 2.37, 2.63, 2.06, 2.24, 2.80, 3.52, 3.92),
}
CLARK_UNIFORM = 4.8
CLARK_HEADS = {
    "to next": {1: 0.58, 2: 0.49, 3: 0.98, 4: 0.35, 5: 0.25, 6: 0.60},
    "to previous": {1: 0.40, 2: 0.55, 4: 0.68, 7: 0.55, 8: 0.51},
}
# Kovaleva et al. 2019, bert-base fine-tuned on SST-2: percent of all maps, read off their figure.
KOVALEVA = dict(zip(SHAPES, (36.3, 5.5, 13.1, 3.8, 41.4), strict=True))
# Clark's names for heads, in order: the last that fits counts. "Broad" is an entropy of 3.8 where the highest is 4.8.
BEHAVIOURS = {"next": "3", "previous": "4", "broad": "about 10", "[CLS]": "1", "[SEP]": "20-25", "punctuation": "13"}
BROAD = 3.8 / CLARK_UNIFORM


def tables(data: Path) -> str:
    """All tables as Markdown."""
    recording = open_recording(data).with_derived([TARGETS, ENTROPY])
    before = _pretrained(data / "pretrained-pair.npz")
    lengths = [len(entry.pieces) for entry in recording.entries]
    opening = f"{len(recording)} sentences of {min(lengths)} to {max(lengths)} pieces, mean {np.mean(lengths):.1f}."
    parts = [
        f"{opening} Brackets are 95 % intervals over sentences.",
        _next_and_previous(recording, before),
        _special_tokens(recording, before),
        _entropies(recording),
        _shapes(recording),
        _clusters(recording),
        _behaviours(recording),
    ]
    return "\n\n".join(parts)


def _next_and_previous(recording: bertology.Recording, before: Shares) -> str:
    values = recording.stacked(TARGETS)
    rows: list[list[str]] = []
    above: dict[str, list[str]] = {}
    for kind in CLARK_HEADS:
        found = mean_over_sentences(values[..., TARGETED.index(kind)], seed=SEED)
        inner = mean_over_sentences(values[..., TARGETED.index(f"{kind}, ordinary")], seed=SEED)
        strong = found.low > 0.5
        above[kind] = [str(bertology.Head(int(a), int(b))) for a, b in np.argwhere(strong)]
        strong |= found.value == np.maximum(found.value.max(1, keepdims=True), 0.25)
        for layer, head in np.argwhere(strong).tolist():
            published = CLARK_HEADS[kind].get(layer + 1) if head == found.value[layer].argmax() else None
            beside = "" if published is None else f"{published:.2f}"
            pair = before[layer, head, TARGETED.index(f"{kind}, ordinary")]
            own = (_shown(found[layer, head]), _shown(inner[layer, head]))
            rows.append([kind, str(bertology.Head(layer, head)), *own, beside, f"{pair:.2f}"])
    columns = (
        "",
        "head",
        "of all attention",
        "ordinary pieces only",
        "Clark, strongest of the layer",
        "pre-trained pair, ordinary only",
    )
    listed = "; ".join(f"{kind}: {', '.join(heads)}" for kind, heads in above.items())
    return (
        f"### Heads that look at the next or the previous piece\n\n{markdown_table(columns, rows)}\n\n"
        f"Heads above one half, beyond their interval: {listed}."
    )


def _special_tokens(recording: bertology.Recording, before: Shares) -> str:
    values = recording.stacked(TARGETS)
    measured = {name: _by_layer(values[..., TARGETED.index(name)]) for name in CLARK if name in TARGETED}
    places = [TARGETED.index(name) for name in ("to [CLS]", "to [SEP]")]
    both = _by_layer(values[..., places].sum(-1))
    alike = mean_over_sentences(np.stack([_alike(*arrays) for arrays in _columns(recording)]), seed=SEED)
    pair = before.mean(1)[:, places]
    rows = [
        [
            str(layer + 1),
            *(f"{_shown(found[layer])} / {CLARK[name][layer]:.2f}" for name, found in measured.items()),
            f"{_shown(both[layer])} / {CLARK['to [CLS]'][layer] + CLARK['to [SEP]'][layer]:.2f}",
            _shown(alike[layer]),
            f"{pair[layer, 0]:.2f}, {pair[layer, 1]:.2f}",
        ]
        for layer in range(recording.encoder.layers)
    ]
    even = uniform_attention(recording, TARGETS)[:, 0].mean(0)
    alone = [f"{even[TARGETED.index(name)]:.2f}" for name in measured]
    rows.append(["uniform", *alone, f"{even[places].sum():.2f}", "", ""])
    columns = ("layer", *measured, "[CLS] and [SEP]", "r of [CLS], [SEP]", "pre-trained pair: [CLS], [SEP]")
    return f"### Special tokens and punctuation by layer (here / Clark)\n\n{markdown_table(columns, rows)}"


def _columns(recording: bertology.Recording) -> Iterable[tuple[NDArray[Any], NDArray[Any]]]:
    """The weights (layer, head x from) that each sentence's pieces give to [CLS] and to its last [SEP]."""
    for entry, maps in zip(recording.entries, recording["attention"], strict=True):
        places = [np.flatnonzero(entry.pieces.special == kind) for kind in (Special.CLS, Special.SEP)]
        cls, sep = places[0][0], places[1][-1]
        yield maps[..., cls].reshape(len(maps), -1), maps[..., sep].reshape(len(maps), -1)


def _alike(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """(layer,) Pearson's correlation."""
    return np.array([np.corrcoef(a, b, dtype=np.float64)[0, 1] for a, b in zip(one, other, strict=True)])


def _pretrained(pair: Path) -> Shares:
    """(layer, head, target): the shares of the one pre-trained input."""
    with np.load(pair) as arrays:
        tokens, attention = arrays["left"].tolist(), arrays["attn"]
    attention = attention.reshape(attention.shape[-4:])
    recording = bertology.Recording.from_arrays([tokens], attention=[attention], name="bert-base-uncased")
    return recording.with_derived([TARGETS]).stacked(TARGETS)[0]


def _entropies(recording: bertology.Recording) -> str:
    values = recording.stacked(ENTROPY)
    highest = _highest_entropy(recording)
    rows: list[list[str]] = []
    found = {name: _by_layer(values[..., ENTROPIES.index(name)]) for name in ("all", "cls")}
    for layer in range(recording.encoder.layers):
        row = [str(layer + 1)]
        for name, estimates in found.items():
            row += [f"{_shown(estimates[layer])} / {CLARK[name][layer]:.2f}"]
            row += [f"{estimates.value[layer] / highest:.2f} / {CLARK[name][layer] / CLARK_UNIFORM:.2f}"]
        rows.append(row)
    rows.append(["uniform", *(f"{highest:.2f} / {CLARK_UNIFORM:.2f}", "1.00 / 1.00") * 2])
    columns = ("layer", "all rows, nats", "of the highest", "[CLS] row, nats", "of the highest")
    return f"### Entropy by layer (here / Clark)\n\n{markdown_table(columns, rows)}"


def _shapes(recording: bertology.Recording) -> str:
    found = {name: _asked("attention/kovaleva", recording, classifier=name) for name in CLASSIFIERS}
    whole = [
        [shape, *(percent(found[name].measures[shape][-1]) for name in CLASSIFIERS), f"{KOVALEVA[shape]:.1f}"]
        for shape in SHAPES
    ]
    columns = ("shape", "rule", "network", "Kovaleva, SST-2")
    rule = found["rule"]
    by_layer = [
        [
            name,
            *(f"{100 * rule.measures[shape].value[place]:.0f}" for shape in SHAPES),
            _shown(rule.measures["kappa"][place]),
        ]
        for place, name in enumerate(rule.rows_named)
    ]
    return (
        f"### Five shapes, percent of maps\n\n{markdown_table(columns, whole)}\n\n"
        "The rule by layer, and Cohen's kappa of rule "
        f"and network:\n\n{markdown_table(('', *SHAPES, 'kappa'), by_layer)}"
    )


def _clusters(recording: bertology.Recording) -> str:
    table = _asked("attention/clusters", recording)
    shuffled = table.baselines["shuffled layers"]
    names = ("within", "between", "difference", "silhouette")
    rows = [
        [name, *(_shown(table.measures[m][place], 3) for m in names), f"{table.measures['p'].value[place]:.3f}"]
        for place, name in enumerate(table.rows_named)
    ]
    rows.append(["layers shuffled", *(_shown(shuffled[m][-1], 3) for m in names), ""])
    groups = _asked("attention/clusters", recording, show="clusters")
    sizes, same = groups.measures["heads"].value, groups.measures["of one layer"].value
    chance = groups.baselines["by chance"]["of one layer"].value[0]
    largest = "\n".join(
        f"- {int(sizes[place])} heads, {100 * same[place]:.0f} % of their pairs of one layer: {groups.notes[name]}"
        for place, name in enumerate(groups.rows_named)
        if sizes[place] > 1
    )
    alone = ", ".join(groups.notes[n] for place, n in enumerate(groups.rows_named) if sizes[place] == 1)
    return (
        f"### Do heads of one layer attend alike?\n\n{markdown_table(('', *names, 'p'), rows)}\n\n"
        "Heads in twelve clusters by "
        f"average linkage (by chance {100 * chance:.0f} % of pairs are of one layer):\n\n{largest}\n- alone: {alone}"
    )


def _behaviours(recording: bertology.Recording) -> str:
    """How many heads get each of Clark's names, by his thresholds."""
    means = recording.stacked(TARGETS).mean(0)
    entropy = recording.stacked(ENTROPY).mean(0)[..., ENTROPIES.index("all")]
    highest = _highest_entropy(recording)
    share = {name: means[..., place] for place, name in enumerate(TARGETED)}
    fits = {
        "next": share["to next"] > 0.5,
        "previous": share["to previous"] > 0.5,
        "broad": entropy > BROAD * highest,
        "[CLS]": share["to [CLS]"] > 0.6,
        "[SEP]": share["to [SEP]"] > 0.6,
        "punctuation": share["to punctuation"] > 0.6,
    }
    named = np.full(entropy.shape, "none", object)
    for name, those in fits.items():
        named[those] = name
    rows = [[name, str(int((named == name).sum())), there] for name, there in BEHAVIOURS.items()]
    both = int((share["to [CLS]"] + share["to [SEP]"] > 0.6).sum())
    rows += [["[CLS] and [SEP] together", str(both), ""], ["none of Clark's", str(int((named == "none").sum())), ""]]
    return f"### Heads by Clark's names\n\n{markdown_table(('name', 'heads here', 'heads in Clark (by eye)'), rows)}"


def _asked(analysis: str, recording: bertology.Recording, **options: Any) -> Table:
    found = bertology.run(analysis, recording=recording, seed=SEED, **options).data
    assert isinstance(found, Table)
    return found


def _highest_entropy(recording: bertology.Recording) -> float:
    """What attention to all pieces alike would have, mean over sentences."""
    return float(np.mean([np.log(len(entry.pieces)) for entry in recording.entries]))


def _by_layer(values: NDArray[Any]) -> Estimates:
    """(layer,) the mean over heads, then over sentences, from (sentence, layer, head)."""
    return mean_over_sentences(values.mean(2), seed=SEED)


def _shown(estimate: Estimate, digits: int = 2) -> str:
    value, low, high = (f"{number:.{digits}f}" for number in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]".replace("-0.000 ", "0.000 ")


def main() -> None:
    """Print the tables; with --write put them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of .npz files")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write to")
    options = parser.parse_args()
    numbers = tables(options.data)
    print(numbers)
    if options.write:
        options.page.write_text(written(options.page.read_text("utf-8"), numbers), "utf-8")


if __name__ == "__main__":
    main()
