"""The numbers of removal.md: what happens to fine-tuned models when heads and layers are taken away.

    python docs/reproductions/removal.py measure MODEL CORPUS --items 200 -o FILE.json
    python docs/reproductions/removal.py page FILE.json ...   # puts the tables into the page

MODEL is a name or a folder in Hugging Face form, CORPUS what it can be asked. One process a model.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction_page import markdown_table, written

import bertology
from bertology.corpus.builtin import corpus_named
from bertology.results.estimate import Estimates
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Table

PAGE = Path(__file__).with_name("removal.md")
SCORE, LOSS = "change of score", "change of loss"
ORDERS = ("gradient", "relevance", "confidence", "ablation", "random")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Everything of one model as plain numbers."""
    corpus = corpus_named(options.corpus)
    encoder = bertology.load(options.model)
    few: dict[str, Any] = {"items": options.items}

    def run(name: str, **more: Any) -> Any:
        return bertology.run(name, encoder, corpus, store=options.store, **few, **more).data

    heads, layers, alone = (
        run("causes/heads"),
        run("causes/heads", by="layer"),
        run("causes/heads", by="layer_except_one", how="zero"),
    )
    assert isinstance(heads, HeadGrid) and isinstance(layers, LayerCurve) and isinstance(alone, LayerCurve)
    foretold = run("causes/importance_against_ablation")
    assert isinstance(foretold, Table)
    pruned = run("causes/pruning", order=",".join(ORDERS), step=0.125, scale="none")
    gated = run("causes/gates", penalties=options.prices)
    assert isinstance(pruned, Curve) and isinstance(gated, Curve)
    return {
        "model": Path(options.model).name,
        "corpus": Path(options.corpus).name,
        "items": options.items,
        "unit": heads.units[SCORE],
        "heads": {name: _numbers(heads.measures[name]) for name in (SCORE, LOSS, "helps", "hurts")},
        "layers": {name: _numbers(layers.measures[name]) for name in (SCORE, LOSS, "helps", "hurts")},
        "alone": _numbers(alone.measures[SCORE]),
        "foretold": {row: _numbers(foretold.measures["change"])[0][place]
                     for place, row in enumerate(foretold.rows_named)},
        "foretold_chance": [float(part[0]) for part in _bounds(foretold.baselines["shuffled"]["change"])],
        "left": pruned.points.tolist(),
        "pruned": {name: _numbers(one) for name, one in pruned.measures.items()},
        "whole": float(pruned.baselines["whole model"]["gradient"].value[0]),
        "prices": gated.points.tolist(),
        "gated": {name: _numbers(one) for name, one in gated.measures.items()},
        "gated_random": _numbers(gated.baselines["as many random heads"]["score"]),
        "gated_share": _numbers(gated.baselines.get("share kept of all heads", {}).get("positional")),
    }  # fmt: skip


def _numbers(estimates: Estimates | None) -> list[Any]:
    return [] if estimates is None else [part.tolist() for part in (estimates.value, estimates.low, estimates.high)]


def _bounds(estimates: Estimates) -> tuple[Any, Any]:
    return estimates.low, estimates.high


def tables(runs: Sequence[dict[str, Any]]) -> str:
    """All tables as Markdown."""
    return "\n\n".join(part for run in runs for part in _of_model(run))


def _of_model(run: dict[str, Any]) -> list[str]:
    title = f"### {run['model']} on {run['corpus']}\n\n{run['unit']}."
    return [title, _heads(run), _layers(run), _foretold(run), _pruned(run), _gated(run)]


def _heads(run: dict[str, Any]) -> str:
    value, low, high = (np.array(part) for part in run["heads"][SCORE])
    helps, hurts = (np.array(run["heads"][name][0]).sum() for name in ("helps", "hurts"))
    order = np.argsort(value, axis=None)
    named = [(int(place), *np.unravel_index(place, value.shape)) for place in (*order[:3], *order[-3:])]
    rows = [
        [f"{layer + 1}-{head + 1}", _points(value[layer, head], low[layer, head], high[layer, head])]
        for _, layer, head in named
    ]
    clear = f"Of {value.size} heads {int(helps)} clearly help and {int(hurts)} clearly hurt (loss, Holm's correction)."
    mean = f"Mean over heads {100 * value.mean():+.2f} points."
    return f"**One head at a time** attends to all pieces alike. {clear} {mean}\n\n" + markdown_table(
        ("head", "change of the score, points"), rows
    )


def _layers(run: dict[str, Any]) -> str:
    rows = [
        [str(layer + 1), _points(*(part[layer] for part in run["layers"][SCORE])),
         _points(*(part[layer] for part in run["alone"]))]
        for layer in range(len(run["alone"][0]))
    ]  # fmt: skip
    columns = ("layer", "all heads attend to all alike", "all but the best head removed")
    return f"**A whole layer**, change of the score in points:\n\n{markdown_table(columns, rows)}"


def _foretold(run: dict[str, Any]) -> str:
    low, high = run["foretold_chance"]
    rows = [[name, f"{value:.2f}"] for name, value in run["foretold"].items()]
    head = (
        f"**What foretells a removal?** Rank correlation with the change of the loss; chance {low:.2f} to {high:.2f}."
    )
    return f"{head}\n\n{markdown_table(('measure', 'correlation'), rows)}"


def _pruned(run: dict[str, Any]) -> str:
    rows = [
        [f"{int(left)}", *(f"{100 * run['pruned'][name][0][place]:.1f}" for name in ORDERS)]
        for place, left in enumerate(run["left"])
    ]
    wide = max(
        run["pruned"]["gradient"][2][place] - run["pruned"]["gradient"][1][place] for place in range(len(run["left"]))
    )
    head = (
        f"**Pruning**, score in % by heads left and by what they are ordered by; whole model {100 * run['whole']:.1f}, "
        f"intervals up to {50 * wide:.1f} points to each side."
    )
    return f"{head}\n\n{markdown_table(('heads left', *ORDERS), rows)}"


def _gated(run: dict[str, Any]) -> str:
    functions = [name for name in run["gated"] if name not in ("score", "heads kept")]
    rows: list[list[str]] = []
    for place, price in enumerate(run["prices"]):
        kept = run["gated"]["heads kept"]
        row = [f"{price:g}", f"{kept[0][place]:.0f}", _share(run["gated"]["score"], place)]
        row += [_share(run["gated_random"], place), *(f"{run['gated'][name][0][place]:.2f}" for name in functions)]
        rows.append([*row, f"{run['gated_share'][0][place]:.2f}" if run["gated_share"] else ""])
    columns = (
        "price",
        "heads kept",
        "score",
        "as many random heads",
        *(f"{name} kept" for name in functions),
        "all kept",
    )
    return f"**Gates**, by the price of an open head:\n\n{markdown_table(columns, rows)}"


def _points(value: float, low: float, high: float) -> str:
    return f"{100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def _share(parts: Sequence[Sequence[float]], place: int) -> str:
    value, low, high = (part[place] for part in parts)
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def main() -> None:
    """Measure one model, or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure")
    one.add_argument("model")
    one.add_argument("corpus")
    one.add_argument("--items", type=int, default=200)
    one.add_argument("--prices", default="0.01,0.05,0.2")
    one.add_argument("--store", type=Path, help="where finished parts are kept")
    one.add_argument("-o", "--output", type=Path, required=True)
    page = commands.add_parser("page")
    page.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    if options.command == "measure":
        options.output.write_text(json.dumps(measure(options)), "utf-8")
        return
    found = tables([json.loads(file.read_text("utf-8")) for file in options.files])
    print(found)
    PAGE.write_text(written(PAGE.read_text("utf-8"), found), "utf-8")


if __name__ == "__main__":
    main()
