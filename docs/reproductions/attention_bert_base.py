"""The numbers of attention-bert-base.md: attention of a fine-tuned bert-base, compared with Clark and Kovaleva et al.

    python docs/reproductions/attention_bert_base.py DATA          # prints the tables
    python docs/reproductions/attention_bert_base.py DATA --write  # also writes them into the page

DATA is a directory of .npz files with `attention` (12, 12, n, n) and `tokens`, one per sentence; the page says where
they come from. `pretrained-pair.npz` in it (`attn`, `left`) is one input of the model before fine-tuning.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction_page import join_parts, markdown_table, percent, write_numbers

import bertology
from bertology.analyses.attention.entropy import MEASURES as ENTROPIES
from bertology.analyses.attention.entropy import entropy_site
from bertology.analyses.attention.head_clusters.analysis import MEASURES as SEPARATION
from bertology.analyses.attention.head_clusters.analysis import N_HEADS, P_VALUE, SAME_LAYER, SHUFFLED_LAYERS
from bertology.analyses.attention.pattern_classes import KAPPA
from bertology.analyses.attention.targets.analysis import MEASURES as TARGETS
from bertology.analyses.attention.targets.analysis import TOKEN_SITES, clark_targets_site
from bertology.analyses.attention_patterns.site import PATTERN_CLASSIFIERS
from bertology.analyses.attention_patterns.synthetic import PATTERN_CLASSES
from bertology.analyses.head_grids import UNIFORM_ATTENTION, uniform_baseline
from bertology.analyses.presets import all_presets
from bertology.arrays import Array, FloatArray
from bertology.encoder.token_batch import TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.estimates.estimate import Estimate, Estimates
from bertology.estimates.resampling import bootstrap_mean
from bertology.recording.manifest import open_recording
from bertology.results.shapes import Table
from bertology.statistics.batch_features import KINDS_BY_PUNCTUATION, TOKEN_KINDS, Punctuation

PAGE = Path(__file__).with_name("attention-bert-base.md")
SEED = 0
TO_CLS, TO_SEP, TO_PUNCTUATION = "attention to [CLS]", "attention to [SEP]", "attention to punctuation"
TO_NEXT, TO_PREVIOUS = "attention to next token", "attention to previous token"

# Clark et al. 2019, pre-trained bert-base on segments of up to 128 tokens. Shares and entropies by layer are read off
# the figures of their released notebook (about +-0.02); so are the strongest heads of a layer, where they stand out.
CLARK: dict[str, Sequence[float]] = {
    measure: numbers
    for preset in all_presets()
    if preset.paper == "clark2019" and preset.analysis in {"attention/targets", "attention/entropy"}
    for measure, numbers in preset.by_layer.items()
    if measure != "attention from other tokens to [SEP]"  # hardly differs from attention to [SEP]
}
CLARK_UNIFORM = 4.8
CLARK_HEADS = {
    TO_NEXT: {1: 0.58, 2: 0.49, 3: 0.98, 4: 0.35, 5: 0.25, 6: 0.60},
    TO_PREVIOUS: {1: 0.40, 2: 0.55, 4: 0.68, 7: 0.55, 8: 0.51},
}
# Kovaleva et al. 2019, bert-base fine-tuned on SST-2: percent of all patterns, read off their figure.
KOVALEVA = dict(zip(PATTERN_CLASSES, (36.3, 5.5, 13.1, 3.8, 41.4), strict=True))
# Clark et al.'s types of heads; the last that fits counts. "Broad" is an entropy of 3.8, where the highest is 4.8.
CLARK_TYPES = {
    "next token": "3",
    "previous token": "4",
    "broad": "about 10",
    "[CLS]": "1",
    "[SEP]": "20-25",
    "punctuation": "13",
}
BROAD = 3.8 / CLARK_UNIFORM


def tables(data: Path) -> str:
    """All tables as Markdown."""
    recording = open_recording(data).with_sites([*TOKEN_SITES.values(), entropy_site])
    pair = _pretrained_pair(data / "pretrained-pair.npz").with_sites([clark_targets_site])
    pretrained = pair.stack(clark_targets_site)[0]
    lengths = [len(recorded_input.tokens) for recorded_input in recording.inputs]
    sample = f"{len(recording)} sentences of {min(lengths)} to {max(lengths)} tokens, mean {np.mean(lengths):.1f}."
    return join_parts(
        [
            f"{sample} Brackets are 95 % intervals over sentences.",
            _positional_heads(recording, pretrained),
            _special_tokens(recording, pretrained, pair),
            _punctuation(recording),
            _entropies(recording),
            _pattern_classes(recording),
            _head_clusters(recording),
            _head_types(recording),
        ]
    )


def _positional_heads(recording: bertology.Recording, pretrained: FloatArray) -> str:
    values = recording.stack(clark_targets_site)
    rows: list[list[str]] = []
    above_half: dict[str, list[str]] = {}
    for measure in CLARK_HEADS:
        no_special = TARGETS.index(f"{measure} (no special tokens)")
        estimates = bootstrap_mean(values[..., TARGETS.index(measure)], seed=SEED)
        no_special_estimates = bootstrap_mean(values[..., no_special], seed=SEED)
        is_listed = estimates.low > 0.5
        above_half[measure] = [str(bertology.Head(int(layer), int(head))) for layer, head in np.argwhere(is_listed)]
        is_listed |= estimates.value == np.maximum(estimates.value.max(1, keepdims=True), 0.25)
        for layer, head in np.argwhere(is_listed).tolist():
            is_strongest = head == estimates.value[layer].argmax()
            published = CLARK_HEADS[measure].get(layer + 1) if is_strongest else None
            rows.append(
                [
                    measure,
                    str(bertology.Head(layer, head)),
                    _format(estimates[layer, head]),
                    _format(no_special_estimates[layer, head]),
                    "" if published is None else f"{published:.2f}",
                    f"{pretrained[layer, head, no_special]:.2f}",
                ]
            )
    columns = (
        "",
        "head",
        "of all attention",
        "no special tokens",
        "Clark et al., strongest of the layer",
        "pre-trained pair, no special tokens",
    )
    listed = "; ".join(f"{measure}: {', '.join(heads)}" for measure, heads in above_half.items())
    return (
        f"### Heads that attend to the next or the previous token\n\n{markdown_table(columns, rows)}\n\n"
        f"Heads above one half, beyond their interval: {listed}."
    )


def _special_tokens(recording: bertology.Recording, pretrained: FloatArray, pair: bertology.Recording) -> str:
    values = recording.stack(clark_targets_site)
    by_layer = {name: _by_layer(values[..., TARGETS.index(name)]) for name in CLARK if name in TARGETS}
    delimiters = [TARGETS.index(name) for name in (TO_CLS, TO_SEP)]
    both = _by_layer(values[..., delimiters].sum(-1))
    correlations = np.stack([_pearson(*weights) for weights in _delimiter_weights(recording)])
    correlation = bootstrap_mean(correlations, seed=SEED)
    row_distance = bootstrap_mean(_delimiter_row_distance(recording), seed=SEED)
    (pair_distance,) = _delimiter_row_distance(pair)
    pair_shares = pretrained.mean(1)[:, delimiters]
    rows = [
        [
            str(layer + 1),
            *(f"{_format(estimates[layer])} / {CLARK[name][layer]:.2f}" for name, estimates in by_layer.items()),
            f"{_format(both[layer])} / {CLARK[TO_CLS][layer] + CLARK[TO_SEP][layer]:.2f}",
            _format(correlation[layer]),
            f"{_format(row_distance[layer])} / {pair_distance[layer]:.2f}",
            f"{pair_shares[layer, 0]:.2f}, {pair_shares[layer, 1]:.2f}",
        ]
        for layer in range(recording.encoder.layers)
    ]
    uniform = uniform_baseline(recording, clark_targets_site)[:, 0].mean(0)
    uniform_cells = [f"{uniform[TARGETS.index(name)]:.2f}" for name in by_layer]
    rows.append([UNIFORM_ATTENTION, *uniform_cells, f"{uniform[delimiters].sum():.2f}", "", "", ""])
    columns = (
        "layer",
        *(name.replace("punctuation", "full stops and commas") for name in by_layer),
        "attention to [CLS] and [SEP]",
        "correlation of [CLS] and [SEP]",
        "distance of their rows (here / pre-trained pair)",
        "pre-trained pair: [CLS], [SEP]",
    )
    return f"### Special tokens and punctuation by layer (here / Clark et al.)\n\n{markdown_table(columns, rows)}"


def _punctuation(recording: bertology.Recording) -> str:
    """Attention to punctuation by both definitions, of all attention and of attention among non-special tokens."""
    rows: list[list[str]] = []
    definitions: dict[str, Punctuation] = {"all punctuation": "all", "full stops and commas": ".,"}
    for name, marks in definitions.items():
        for special_tokens in ("all attention", "no special tokens"):
            shares, uniform = _punctuation_shares(recording, marks, special_tokens == "all attention")
            highest = int(shares.mean(0)[:10].argmax())
            differences = [shares[:, 10:].mean(1) - other for other in (uniform, shares[:, highest])]
            rows.append(
                [
                    f"{name}, {special_tokens}",
                    f"{uniform.mean():.3f}",
                    f"{shares[:, :10].mean():.3f}",
                    f"{shares[:, highest].mean():.3f} (layer {highest + 1})",
                    *(f"{shares[:, layer].mean():.3f}" for layer in (10, 11)),
                    *(_format(bootstrap_mean(difference, seed=SEED)[()], 3) for difference in differences),
                ]
            )
    columns = (
        "",
        "uniform attention",
        "mean of layers 1 to 10",
        "highest of layers 1 to 10",
        "layer 11",
        "layer 12",
        "layers 11 and 12 - uniform",
        "layers 11 and 12 - highest",
    )
    return f"### Punctuation by two definitions\n\n{markdown_table(columns, rows)}"


def _punctuation_shares(
    recording: bertology.Recording, marks: Punctuation, special_tokens: bool
) -> tuple[FloatArray, FloatArray]:
    """(sentence, layer) shares of attention to punctuation, and (sentence,) those of uniform attention.

    Without special tokens, rows with less than a thousandth of their attention on other tokens are skipped.
    """
    shares: list[FloatArray] = []
    uniform: list[float] = []
    for recorded_input, attention in zip(recording.inputs, recording["attention"], strict=True):
        kinds = KINDS_BY_PUNCTUATION[marks](TokenBatch([recorded_input]))[0].numpy()
        is_mark, is_special = kinds[:, TOKEN_KINDS.index("punctuation")], recorded_input.tokens.special_kinds > 0
        counted = np.ones_like(is_special) if special_tokens else ~is_special
        weights = attention.astype(np.float64)[:, :, counted][..., counted]
        total = weights.sum(-1)
        to_marks = np.where(total > 1e-3, weights[..., is_mark[counted]].sum(-1), np.nan)
        shares.append(np.nanmean(to_marks / np.maximum(total, 1e-3), axis=(1, 2)))
        uniform.append(float(is_mark[counted].mean()))
    return np.array(shares), np.array(uniform)


def _delimiter_row_distance(recording: bertology.Recording) -> FloatArray:
    """(sentence, layer) total variation distance of the rows of [CLS] and of the last [SEP], averaged over heads."""
    distances: list[FloatArray] = []
    for recorded_input, attention in zip(recording.inputs, recording["attention"], strict=True):
        kinds = recorded_input.tokens.special_kinds
        cls, sep = np.flatnonzero(kinds == SpecialToken.CLS)[0], np.flatnonzero(kinds == SpecialToken.SEP)[-1]
        difference = attention[:, :, cls].astype(np.float64) - attention[:, :, sep]
        distances.append(np.abs(difference).sum(-1).mean(-1) / 2)
    return np.array(distances)


def _delimiter_weights(recording: bertology.Recording) -> Iterable[tuple[Array, Array]]:
    """(layer, head x from) weights that the tokens of each sentence give to [CLS] and to its last [SEP]."""
    for recorded_input, attention in zip(recording.inputs, recording["attention"], strict=True):
        kinds = recorded_input.tokens.special_kinds
        cls, sep = np.flatnonzero(kinds == SpecialToken.CLS)[0], np.flatnonzero(kinds == SpecialToken.SEP)[-1]
        yield attention[..., cls].reshape(len(attention), -1), attention[..., sep].reshape(len(attention), -1)


def _pearson(first: Array, second: Array) -> FloatArray:
    """(layer,) Pearson's correlation."""
    return np.array([np.corrcoef(a, b, dtype=np.float64)[0, 1] for a, b in zip(first, second, strict=True)])


def _pretrained_pair(pair: Path) -> bertology.Recording:
    """The one input of the model before fine-tuning."""
    with np.load(pair) as arrays:
        tokens, attention = arrays["left"].tolist(), arrays["attn"]
    attention = attention.reshape(attention.shape[-4:])
    return bertology.Recording.from_arrays([tokens], attention=[attention], name="bert-base-uncased")


def _entropies(recording: bertology.Recording) -> str:
    values = recording.stack(entropy_site)
    uniform = _uniform_entropy(recording)
    rows: list[list[str]] = []
    by_layer = {name: _by_layer(values[..., ENTROPIES.index(name)]) for name in CLARK if name in ENTROPIES}
    for layer in range(recording.encoder.layers):
        row = [str(layer + 1)]
        for name, estimates in by_layer.items():
            row += [f"{_format(estimates[layer])} / {CLARK[name][layer]:.2f}"]
            row += [f"{estimates.value[layer] / uniform:.2f} / {CLARK[name][layer] / CLARK_UNIFORM:.2f}"]
        rows.append(row)
    rows.append([UNIFORM_ATTENTION, *(f"{uniform:.2f} / {CLARK_UNIFORM:.2f}", "1.00 / 1.00") * 2])
    columns = ("layer", "entropy, nats", "relative to uniform", "entropy of [CLS], nats", "relative to uniform")
    return f"### Entropy by layer (here / Clark et al.)\n\n{markdown_table(columns, rows)}"


def _pattern_classes(recording: bertology.Recording) -> str:
    by_classifier = {
        name: _run("attention/pattern_classes", recording, pattern_classifier=name) for name in PATTERN_CLASSIFIERS
    }
    overall = [
        [name, *(percent(table.measures[name][-1]) for table in by_classifier.values()), f"{KOVALEVA[name]:.1f}"]
        for name in PATTERN_CLASSES
    ]
    columns = ("class", *by_classifier, "Kovaleva et al., SST-2")
    rule = by_classifier["rule"]
    by_layer = [
        [
            row_name,
            *(f"{100 * rule.measures[name].value[row]:.0f}" for name in PATTERN_CLASSES),
            _format(rule.measures[KAPPA][row]),
        ]
        for row, row_name in enumerate(rule.row_names)
    ]
    return (
        f"### Pattern classes, percent of attention patterns\n\n{markdown_table(columns, overall)}\n\n"
        "The rule by layer, and Cohen's kappa of rule "
        f"and CNN:\n\n{markdown_table(('', *PATTERN_CLASSES, 'kappa'), by_layer)}"
    )


def _head_clusters(recording: bertology.Recording) -> str:
    table = _run("attention/head_clusters", recording)
    shuffled = table.baselines[SHUFFLED_LAYERS]
    rows = [
        [
            row_name,
            *(_format(table.measures[name][row], 3) for name in SEPARATION),
            f"{table.measures[P_VALUE].value[row]:.3f}",
        ]
        for row, row_name in enumerate(table.row_names)
    ]
    rows.append([SHUFFLED_LAYERS, *(_format(shuffled[name][-1], 3) for name in SEPARATION), ""])
    clusters = _run("attention/head_clusters", recording, show="clusters")
    n_heads, same_layer = clusters.measures[N_HEADS].value, clusters.measures[SAME_LAYER].value
    heads = clusters.attributes["heads"]
    chance = clusters.baselines["chance"][SAME_LAYER].value[0]
    largest = "\n".join(
        f"- {int(size)} heads, {100 * same_layer[row]:.0f} % of their pairs from the same layer: {heads[row]}"
        for row, size in enumerate(n_heads)
        if size > 1
    )
    single = ", ".join(str(heads[row]) for row, size in enumerate(n_heads) if size == 1)
    return (
        f"### Do heads of the same layer attend alike?\n\n{markdown_table(('', *SEPARATION, P_VALUE), rows)}\n\n"
        f"Heads in twelve clusters by average linkage (chance: {100 * chance:.0f} % of pairs are from the same layer):"
        f"\n\n{largest}\n- single heads: {single}"
    )


def _head_types(recording: bertology.Recording) -> str:
    """The number of heads of each of Clark et al.'s types, by their thresholds."""
    means = recording.stack(clark_targets_site).mean(0)
    entropy = recording.stack(entropy_site).mean(0)[..., ENTROPIES.index("entropy")]
    attention = {name: means[..., index] for index, name in enumerate(TARGETS)}
    has_type = {
        "next token": attention[TO_NEXT] > 0.5,
        "previous token": attention[TO_PREVIOUS] > 0.5,
        "broad": entropy > BROAD * _uniform_entropy(recording),
        "[CLS]": attention[TO_CLS] > 0.6,
        "[SEP]": attention[TO_SEP] > 0.6,
        "punctuation": attention[TO_PUNCTUATION] > 0.6,
    }
    types = np.full(entropy.shape, "none", object)
    for name, mask in has_type.items():
        types[mask] = name
    rows = [[name, str(int((types == name).sum())), published] for name, published in CLARK_TYPES.items()]
    both = int((attention[TO_CLS] + attention[TO_SEP] > 0.6).sum())
    rows += [["[CLS] and [SEP] together", str(both), ""], ["none of these", str(int((types == "none").sum())), ""]]
    columns = ("type", "heads here", "heads in Clark et al. (by eye)")
    return f"### Heads by Clark et al.'s types\n\n{markdown_table(columns, rows)}"


def _run(analysis: str, recording: bertology.Recording, **options: Any) -> Table:
    table = bertology.run(analysis, recording=recording, seed=SEED, **options).data
    assert isinstance(table, Table)
    return table


def _uniform_entropy(recording: bertology.Recording) -> float:
    """The entropy of uniform attention, averaged over sentences."""
    return float(np.mean([np.log(len(recorded_input.tokens)) for recorded_input in recording.inputs]))


def _by_layer(values: Array) -> Estimates:
    """(layer,) the mean over heads, then over sentences, from (sentence, layer, head)."""
    return bootstrap_mean(values.mean(2), seed=SEED)


def _format(estimate: Estimate, digits: int = 2) -> str:
    value, low, high = (f"{number:.{digits}f}" for number in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]".replace("-0.000 ", "0.000 ")


def main() -> None:
    """Print the tables; with --write, also write them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="directory of .npz files")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    parser.add_argument("--page", type=Path, default=PAGE, help="page to write to")
    options = parser.parse_args()
    numbers = tables(options.data)
    print(numbers)
    if options.write:
        write_numbers(options.page, numbers)


if __name__ == "__main__":
    main()
