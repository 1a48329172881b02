"""The numbers of removal.md: the effect of removing heads and layers from fine-tuned models.

    python docs/reproductions/removal.py measure MODEL CORPUS --sample-size 200 -o FILE.json
    python docs/reproductions/removal.py page FILE.json ...   # writes the tables into the page

MODEL is a built-in name or a directory in Hugging Face format, CORPUS a corpus for its task. One process per model.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction_page import capitalise, join_parts, markdown_table, write_numbers

import bertology
from bertology.corpus.read import load_corpus
from bertology.estimates.estimate import Estimates
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Table

PAGE = Path(__file__).with_name("removal.md")
SCORE_CHANGE, LOSS_CHANGE = "change in score", "change in loss"
USEFUL, HARMFUL = "significantly useful", "significantly harmful"
CORRELATION = "correlation with absolute loss change"
RANDOM_HEADS, ALL_KEPT = "random heads (same number)", "all heads kept (proportion)"
RANKINGS = ("gradient", "relevance", "confidence", "ablation", "random")
PRUNE_FRACTION = 0.125
N_LISTED_HEADS = 3


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All results of one model as plain numbers."""
    corpus = load_corpus(options.corpus)
    encoder = bertology.load(options.model)

    def run(name: str, **analysis_options: Any) -> Any:
        result = bertology.run(
            name, encoder, corpus, store=options.store, sample_size=options.sample_size, **analysis_options
        )
        return result.data

    heads = run("interventions/head_ablation")
    layers = run("interventions/head_ablation", ablate="layer")
    single_heads = run("interventions/head_ablation", ablate="all-but-one", ablation="zero")
    assert isinstance(heads, HeadGrid)
    assert isinstance(layers, LayerCurve) and isinstance(single_heads, LayerCurve)
    prediction = run("interventions/importance_vs_ablation")
    assert isinstance(prediction, Table)
    pruning = run(
        "interventions/head_pruning", rank_by=",".join(RANKINGS), prune_fraction=PRUNE_FRACTION, normalise="none"
    )
    gates = run("interventions/head_gates", l0_penalties=options.l0_penalties)
    assert isinstance(pruning, Curve) and isinstance(gates, Curve)
    ablation_measures = (SCORE_CHANGE, LOSS_CHANGE, USEFUL, HARMFUL)
    shuffled = prediction.baselines["shuffled heads"][CORRELATION]
    kept_proportions = gates.baselines.get(ALL_KEPT, {})
    return {
        "model": Path(options.model).name,
        "corpus": Path(options.corpus).name,
        "unit": heads.units[SCORE_CHANGE],
        "sample": dict(heads.sample),
        "heads": {name: _to_lists(heads.measures[name]) for name in ablation_measures},
        "layers": {name: _to_lists(layers.measures[name]) for name in ablation_measures},
        "all_but_one": _to_lists(single_heads.measures[SCORE_CHANGE]),
        "correlations": dict(zip(prediction.row_names, prediction.measures[CORRELATION].value.tolist(), strict=True)),
        "shuffled_correlations": [float(shuffled.low[0]), float(shuffled.high[0])],
        "heads_left": pruning.x.tolist(),
        "pruning": {ranking: _to_lists(pruning.measures[f"score ({ranking})"]) for ranking in RANKINGS},
        "all_heads": float(pruning.baselines["all heads"]["score (gradient)"].value[0]),
        "l0_penalties": gates.x.tolist(),
        "gates": {name: _to_lists(estimates) for name, estimates in gates.measures.items()},
        "random_heads": _to_lists(gates.baselines[RANDOM_HEADS]["score"]),
        "all_kept": next((_to_lists(estimates) for estimates in kept_proportions.values()), []),
    }


def _to_lists(estimates: Estimates) -> list[Any]:
    return [array.tolist() for array in (estimates.value, estimates.low, estimates.high)]


def tables(runs: Sequence[dict[str, Any]]) -> str:
    """All tables as Markdown."""
    return join_parts(part for run in runs for part in _model_parts(run))


def _model_parts(run: dict[str, Any]) -> list[str]:
    reference = next(value for name, value in run["sample"].items() if name.endswith("of the intact model"))
    sample = f"{capitalise(run['unit'])} (reference {reference:.3f}, {run['sample']['examples']} examples)."
    title = f"### {run['model']} on {run['corpus']}\n\n{sample}"
    return [title, _heads(run), _layers(run), _correlations(run), _pruning(run), _gates(run)]


def _heads(run: dict[str, Any]) -> str:
    value, low, high = (np.array(array) for array in run["heads"][SCORE_CHANGE])
    n_useful, n_harmful = (int(np.array(run["heads"][name][0]).sum()) for name in (USEFUL, HARMFUL))
    order = np.argsort(value, axis=None).tolist()
    rows: list[list[str]] = []
    for index in (*order[:N_LISTED_HEADS], *order[-N_LISTED_HEADS:]):
        bounds = (float(array.flat[index]) for array in (value, low, high))
        rows.append([str(Head(*divmod(index, value.shape[1]))), _points(*bounds)])
    summary = (
        f"Of {value.size} heads {n_useful} are significantly useful and {n_harmful} significantly harmful "
        f"(loss, Holm correction). Mean over heads {100 * value.mean():+.2f} points."
    )
    table = markdown_table(("head", "change in score, points"), rows)
    return f"**One head at a time** with uniform attention. {summary}\n\n{table}"


def _layers(run: dict[str, Any]) -> str:
    rows = [
        [
            str(layer + 1),
            _points(*(array[layer] for array in run["layers"][SCORE_CHANGE])),
            _points(*(array[layer] for array in run["all_but_one"])),
        ]
        for layer in range(len(run["all_but_one"][0]))
    ]
    columns = ("layer", "uniform attention in all heads", "all but the best head removed")
    return f"**A whole layer**, change in score, points:\n\n{markdown_table(columns, rows)}"


def _correlations(run: dict[str, Any]) -> str:
    low, high = run["shuffled_correlations"]
    rows = [[name, f"{value:.2f}"] for name, value in run["correlations"].items()]
    title = (
        "**What predicts the effect of a removal?** Rank correlation with the absolute change in loss; "
        f"chance {low:.2f} to {high:.2f}."
    )
    return f"{title}\n\n{markdown_table(('importance measure', CORRELATION), rows)}"


def _pruning(run: dict[str, Any]) -> str:
    rows = [
        [str(int(n_heads)), *(f"{100 * run['pruning'][ranking][0][row]:.1f}" for ranking in RANKINGS)]
        for row, n_heads in enumerate(run["heads_left"])
    ]
    _, low, high = run["pruning"]["gradient"]
    width = max(upper - lower for lower, upper in zip(low, high, strict=True))
    title = (
        f"**Pruning**, score in % by heads left and importance measure; all heads {100 * run['all_heads']:.1f}, "
        f"intervals up to {50 * width:.1f} points to each side."
    )
    return f"{title}\n\n{markdown_table(('heads left', *RANKINGS), rows)}"


def _gates(run: dict[str, Any]) -> str:
    functions = [name for name in run["gates"] if name.endswith(" heads kept")]
    rows = [
        [
            f"{penalty:g}",
            f"{run['gates']['heads kept'][0][row]:.0f}",
            _percent(run["gates"]["score"], row),
            _percent(run["random_heads"], row),
            *(f"{run['gates'][name][0][row]:.2f}" for name in functions),
            f"{run['all_kept'][0][row]:.2f}" if run["all_kept"] else "",
        ]
        for row, penalty in enumerate(run["l0_penalties"])
    ]
    columns = ("L0 penalty", "heads kept", "score", RANDOM_HEADS, *functions, ALL_KEPT)
    return f"**Gates**, by L0 penalty:\n\n{markdown_table(columns, rows)}"


def _points(value: float, low: float, high: float) -> str:
    return f"{100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def _percent(arrays: Sequence[Sequence[float]], row: int) -> str:
    value, low, high = (array[row] for array in arrays)
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def main() -> None:
    """Measure one model, or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("measure", help="measure one model")
    command.add_argument("model", help="built-in name or directory in Hugging Face format")
    command.add_argument("corpus", help="corpus for the model's task")
    command.add_argument("--sample-size", type=int, default=200, help="number of examples")
    command.add_argument("--l0-penalties", default="0.01,0.05,0.2", help="penalties on open gates")
    command.add_argument("--store", type=Path, help="directory for finished results")
    command.add_argument("-o", "--output", type=Path, required=True, help="JSON file to write")
    page = commands.add_parser("page", help="write the page")
    page.add_argument("files", nargs="+", type=Path, help="JSON files of measured models")
    options = parser.parse_args()
    if options.command == "measure":
        options.output.write_text(json.dumps(measure(options)), "utf-8")
        return
    numbers = tables([json.loads(file.read_text("utf-8")) for file in options.files])
    print(numbers)
    write_numbers(PAGE, numbers)


if __name__ == "__main__":
    main()
