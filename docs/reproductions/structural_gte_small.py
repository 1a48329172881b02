"""The numbers of structural-gte-small.md: dependency trees in the geometry of gte-small, layer by layer.

    python docs/reproductions/structural_gte_small.py MODEL TRAIN TEST          # prints the tables
    python docs/reproductions/structural_gte_small.py MODEL TRAIN TEST --write  # also writes them into the page

MODEL is a directory in Hugging Face format; TRAIN and TEST are treebanks in CoNLL-U. `--train-size` and `--test-limit`
use fewer sentences, `--device cuda` trains on a GPU. The whole training split of EWT takes 5 GB of memory (3 GB with
`--float16`) and, with `--ranks`, five and a half minutes on an H200.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from reproduction_page import join_parts, markdown_table, percent, write_numbers

import bertology
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.estimates.estimate import Estimate
from bertology.results.shapes import Curve, LayerCurve

PAGE = Path(__file__).with_name("structural-gte-small.md")
SKIP_REASONS = {"one word": "of one word", "words without tokens": "with a word without tokens"}
SCORES = ("UUAS", "distance Spearman", "root accuracy", "depth Spearman")

# Hewitt & Manning 2019, figure 1: UUAS of BERT-base by layer, read off the plot to about half a percent; and table 1.
BERT_BASE = (57.4, 64.2, 68.0, 72.7, 76.0, 78.5, 79.6, 79.8, 78.9, 76.0, 73.6, 71.9)
PUBLISHED = {
    "linear chain": ("LINEAR", 48.9, 0.58, 2.9, 0.27),
    "embedding layer": ("ELMO0", 26.8, 0.44, 54.3, 0.56),
    "decayed embeddings": ("DECAY0", 51.7, 0.61, 54.3, 0.56),
    "random BiLSTM embeddings": ("PROJ0", 59.8, 0.73, 64.4, 0.75),
}
BEST_PUBLISHED = ("BERT-base 7", 79.8, 0.85, 88.0, 0.87)
RANKS_PUBLISHED = dict(
    zip((2**n for n in range(10)), (26.6, 38.9, 50.9, 65.9, 74.2, 78.0, 79.5, 79.9, 79.7, 79.7), strict=True)
)


def tables(options: argparse.Namespace) -> str:
    """All tables as Markdown."""
    encoder = load(options.model, device=options.device)
    corpus = load_corpus(options.test, limit=options.test_limit or None)

    def run(**more: Any) -> object:
        return bertology.run(
            "probes/structural",
            encoder,
            corpus,
            train_corpus=options.train,
            train_size=options.train_size,
            float16=options.float16,
            n_seeds=options.n_seeds,
            **more,
        ).data

    curve = run(rank=options.rank)
    assert isinstance(curve, LayerCurve)
    parts = [_sample(curve, options), _by_layer(curve), _compare_with_baselines(curve)]
    if options.ranks:
        best_layer = _best_layer(curve)
        ranks = run(show="ranks", layer=best_layer)
        assert isinstance(ranks, Curve)
        parts.append(_by_rank(ranks, best_layer))
    return join_parts(parts)


def _best_layer(curve: LayerCurve) -> int:
    return int(curve.measures["UUAS"].value.argmax())


def _sample(curve: LayerCurve, options: argparse.Namespace) -> str:
    sizes = curve.sample
    n_train, n_test, n_edges = (sizes[name] for name in ("training sentences", "test sentences", "test edges"))
    text = f"Train {n_train}, test {n_test} sentences with {n_edges} edges"
    skipped = [
        f"{sizes[key]} {description} in {split}"
        for split in ("training", "test")
        for reason, description in SKIP_REASONS.items()
        if (key := f"skipped {split} sentences ({reason})") in sizes
    ]
    if skipped:
        text += f"; skipped: {', '.join(skipped)}"
    rank = "full rank" if options.rank == "full" else f"rank {options.rank}"
    return f"{text}; {options.n_seeds} seeds, {rank}. Brackets are 95 % intervals over sentences."


def _by_layer(curve: LayerCurve) -> str:
    best_layer = _best_layer(curve)
    rows: list[list[str]] = []
    for layer in range(len(curve.measures["UUAS"].value)):
        seeds = curve.measures["UUAS (range over seeds)"][layer]
        uuas = percent(curve.measures["UUAS"][layer])
        rows.append(
            [
                str(layer),
                f"**{uuas}**" if layer == best_layer else uuas,
                f"{100 * seeds.low:.1f} to {100 * seeds.high:.1f}",
                percent(curve.baselines["untrained model"]["UUAS"][layer]),
                *(_format_score(name, curve.measures[name][layer]) for name in SCORES[1:]),
                f"{BERT_BASE[layer - 1]:.1f}" if 0 < layer <= len(BERT_BASE) else "",
            ]
        )
    columns = ("layer", "UUAS", "range over seeds", "untrained model", *SCORES[1:], "UUAS of BERT-base on WSJ")
    return f"### By layer\n\n{markdown_table(columns, rows)}"


def _compare_with_baselines(curve: LayerCurve) -> str:
    best_layer = _best_layer(curve)
    rows = [
        _comparison_row(name, [curve.baselines[name][score][0] for score in SCORES], published)
        for name, published in PUBLISHED.items()
    ]
    best = [curve.measures[score][best_layer] for score in SCORES]
    rows.append(_comparison_row(f"layer {best_layer}", best, BEST_PUBLISHED))
    columns = ("", *SCORES, "in the paper", "UUAS", "DSpr", "Root", "NSpr")
    return f"### Compared with the baselines\n\n{markdown_table(columns, rows)}"


def _comparison_row(
    name: str, estimates: Sequence[Estimate], published: tuple[str, float, float, float, float]
) -> list[str]:
    scores = [_format_score(score, estimate) for score, estimate in zip(SCORES, estimates, strict=True)]
    published_name, uuas, distance, root, depth = published
    return [name, *scores, published_name, f"{uuas:.1f}", f"{distance:.2f}", f"{root:.1f}", f"{depth:.2f}"]


def _by_rank(curve: Curve, layer: int) -> str:
    rows = [
        [
            str(int(rank)),
            *(_format_score(name, curve.measures[name][row]) for name in SCORES),
            f"{RANKS_PUBLISHED[int(rank)]:.1f}" if int(rank) in RANKS_PUBLISHED else "",
        ]
        for row, rank in enumerate(curve.x)
    ]
    columns = ("rank", *SCORES, "UUAS of BERT-base 7")
    return f"### By rank, layer {layer}\n\n{markdown_table(columns, rows)}"


def _format_score(name: str, estimate: Estimate) -> str:
    return percent(estimate) if name in {"UUAS", "root accuracy"} else f"{estimate.value:.3f}"


def main() -> None:
    """Print the tables; with --write, also write them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="built-in name or directory in Hugging Face format")
    parser.add_argument("train", help="treebank to train on")
    parser.add_argument("test", help="treebank to test on")
    parser.add_argument("--train-size", type=int, default=0, help="maximum number of training sentences (0: all)")
    parser.add_argument("--test-limit", type=int, default=0, help="test only on the first N sentences (0: all)")
    parser.add_argument("--rank", type=_rank, default=64, help="rank of the probes, or `full`")
    parser.add_argument("--n-seeds", type=int, default=3, help="number of repetitions")
    parser.add_argument("--float16", action="store_true", help="store training vectors in float16")
    parser.add_argument("--ranks", action="store_true", help="also vary the rank in the best layer")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    options = parser.parse_args()
    numbers = tables(options)
    print(numbers)
    if options.write:
        write_numbers(PAGE, numbers)


def _rank(text: str) -> int | Literal["full"]:
    return "full" if text == "full" else int(text)


if __name__ == "__main__":
    main()
