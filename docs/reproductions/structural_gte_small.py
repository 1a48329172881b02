"""The numbers of structural-gte-small.md: the dependency tree in the geometry of gte-small, layer by layer.

    python docs/reproductions/structural_gte_small.py MODEL TRAIN TEST          # prints the tables
    python docs/reproductions/structural_gte_small.py MODEL TRAIN TEST --write  # and puts them into the page

MODEL is a folder in Hugging Face form, TRAIN and TEST are treebanks in CoNLL-U. `--train-limit` and `--test-limit` take
the first sentences only, `--device cuda` fits on an accelerator. All sentences of the training part of EWT take 5 GB of
memory (3 GB with `--half`) and, with `--ranks`, five and a half minutes on an H200. The page says what it was made of.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from reproduction_page import markdown_table, percent, written

import bertology
from bertology.corpus.builtin import corpus_named
from bertology.encoder.load import load
from bertology.results.estimate import Estimate
from bertology.results.shapes import Curve, LayerCurve

PAGE = Path(__file__).with_name("structural-gte-small.md")
SCORES = ("UUAS", "distance Spearman", "root accuracy", "depth Spearman")

# Hewitt & Manning 2019, figure 1: UUAS of BERT-base by block, read off the plot to about half a percent; and table 1.
BERT_BASE = (57.4, 64.2, 68.0, 72.7, 76.0, 78.5, 79.6, 79.8, 78.9, 76.0, 73.6, 71.9)
PUBLISHED = {
    "linear chain": ("LINEAR", 48.9, 0.58, 2.9, 0.27),
    "embedding layer": ("ELMO0", 26.8, 0.44, 54.3, 0.56),
    "decayed embeddings": ("DECAY0", 51.7, 0.61, 54.3, 0.56),
    "projected embeddings": ("PROJ0", 59.8, 0.73, 64.4, 0.75),
}
BEST_PUBLISHED = ("BERT-base 7", 79.8, 0.85, 88.0, 0.87)
RANKS_PUBLISHED = dict(
    zip((2**n for n in range(10)), (26.6, 38.9, 50.9, 65.9, 74.2, 78.0, 79.5, 79.9, 79.7, 79.7), strict=True)
)


def tables(options: argparse.Namespace) -> str:
    """All tables as Markdown."""
    encoder = load(options.model, device=options.device)
    corpus = corpus_named(options.test, limit=options.test_limit or None)
    common = {"train": options.train, "train_limit": options.train_limit, "half": options.half, "seeds": options.seeds}
    curve = bertology.run("probes/structural", encoder, corpus, rank=options.rank, **common).data
    assert isinstance(curve, LayerCurve)
    parts = [_made_with(curve, options), _by_layer(curve), _baselines(curve)]
    if options.ranks:
        peak = int(curve.measures["UUAS"].value.argmax())
        ranks = bertology.run("probes/structural", encoder, corpus, show="ranks", layer=peak, **common).data
        assert isinstance(ranks, Curve)
        parts.append(_by_rank(ranks, peak))
    return "\n\n".join(parts)


def _made_with(curve: LayerCurve, options: argparse.Namespace) -> str:
    sizes = curve.units["UUAS"].partition("; ")[2]
    rank = f"rank {options.rank}" if options.rank else "the rank of the model's width"
    return f"{sizes[0].upper()}{sizes[1:]}; {options.seeds} seeds, {rank}. Brackets are 95 % intervals over sentences."


def _by_layer(curve: LayerCurve) -> str:
    peak = int(curve.measures["UUAS"].value.argmax())
    rows: list[list[str]] = []
    for layer in range(len(curve.measures["UUAS"].value)):
        seeds = curve.measures["UUAS by seed"][layer]
        fresh = curve.baselines["random weights"]["UUAS"][layer]
        uuas = percent(curve.measures["UUAS"][layer])
        rows.append(
            [
                str(layer),
                f"**{uuas}**" if layer == peak else uuas,
                f"{100 * seeds.low:.1f} to {100 * seeds.high:.1f}",
                percent(fresh),
                *(_scored(name, curve.measures[name][layer]) for name in SCORES[1:]),
                f"{BERT_BASE[layer - 1]:.1f}" if 0 < layer <= len(BERT_BASE) else "",
            ]
        )
    columns = ("layer", "UUAS", "by seed", "random weights", "distance Spearman", "root accuracy", "depth Spearman",
               "UUAS of BERT-base on WSJ")  # fmt: skip
    return f"### By layer\n\n{markdown_table(columns, rows)}"


def _baselines(curve: LayerCurve) -> str:
    peak = int(curve.measures["UUAS"].value.argmax())
    rows = [_row(name, [curve.baselines[name][score][0] for score in SCORES], PUBLISHED[name]) for name in PUBLISHED]
    rows.append(_row(f"layer {peak}", [curve.measures[score][peak] for score in SCORES], BEST_PUBLISHED))
    columns = ("", "UUAS", *SCORES[1:], "in the paper", "UUAS", "DSpr", "Root", "NSpr")
    return f"### Beside the baselines\n\n{markdown_table(columns, rows)}"


def _row(name: str, own: Sequence[Estimate], published: tuple[str, float, float, float, float]) -> list[str]:
    told = [_scored(score, estimate) for score, estimate in zip(SCORES, own, strict=True)]
    called, uuas, distance, root, depth = published
    return [name, *told, called, f"{uuas:.1f}", f"{distance:.2f}", f"{root:.1f}", f"{depth:.2f}"]


def _by_rank(curve: Curve, layer: int) -> str:
    rows = [
        [
            str(int(rank)),
            *(_scored(name, curve.measures[name][place]) for name in SCORES),
            f"{RANKS_PUBLISHED[int(rank)]:.1f}" if int(rank) in RANKS_PUBLISHED else "",
        ]
        for place, rank in enumerate(curve.points)
    ]
    columns = ("rank", "UUAS", *SCORES[1:], "UUAS of BERT-base 7")
    return f"### By rank, layer {layer}\n\n{markdown_table(columns, rows)}"


def _scored(name: str, estimate: Estimate) -> str:
    return percent(estimate) if name in {"UUAS", "root accuracy"} else f"{estimate.value:.3f}"


def main() -> None:
    """Print the tables, and write them into the page where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a folder in Hugging Face form, or a name")
    parser.add_argument("train", help="the treebank to train on")
    parser.add_argument("test", help="the treebank to report on")
    parser.add_argument("--train-limit", type=int, default=0, help="the first so many sentences; 0 for all")
    parser.add_argument("--test-limit", type=int, default=0, help="the first so many sentences; 0 for all")
    parser.add_argument("--rank", type=int, default=64, help="dimensions of the probes; 0 for the model's width")
    parser.add_argument("--seeds", type=int, default=3, help="probes of each kind")
    parser.add_argument("--half", action="store_true", help="keep training vectors in float16")
    parser.add_argument("--ranks", action="store_true", help="sweep the rank in the best layer, too")
    parser.add_argument("--device", default="cpu", help="where to run")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    options = parser.parse_args()
    found = tables(options)
    print(found)
    if options.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), found), "utf-8")


if __name__ == "__main__":
    main()
