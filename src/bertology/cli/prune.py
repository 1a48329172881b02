"""`bertology prune`: remove attention heads from a model permanently."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertology.cli import options
from bertology.errors import Refusal, count_noun
from bertology.number_ranges import COUNT_OR_ZERO

if TYPE_CHECKING:
    from bertology.arrays import BoolArray
    from bertology.encoder.encoder import Encoder, ModelInputs, TaskEncoder
    from bertology.results.shapes import RemovalOrder

HELP = (
    "Remove attention heads from a model permanently; outputs equal those with the heads' output set to zero. "
    "The directory loads in plain transformers, which has no models with fewer heads in some layers: it computes the "
    "same outputs from zeros, at the size and speed of the full model. bertology loads it with smaller matrices, in "
    "families whose heads have their own (BERT, RoBERTa, XLM-R, CamemBERT, ELECTRA, DistilBERT). In the others (MPNet, "
    "DeBERTa, ModernBERT, GPT-2) heads are set to zero only; ALBERT, whose layers share weights, is refused."
)
USAGE = "Write heads as `3-10,4-6`: layer and head counted from 1, comma-separated"
SOURCES = ("interventions/head_pruning", "interventions/head_gates")
"""The analyses whose results give an order of removal."""
N_TEXTS, N_ROUNDS, N_WARM_UPS, MAX_SECONDS = 16, 15, 2, 30.0
"""The two models are timed in alternation on this many texts, for so many rounds or until the time is over."""


def prune_command(
    model: Annotated[str, typer.Argument(help="Built-in name, directory in Hugging Face format, or hub name.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Directory to write to.")],
    heads: Annotated[
        str | None, typer.Option(metavar="HEADS", help="Heads to remove, as layer-head counted from 1: 3-10,4-6.")
    ] = None,
    result: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="RESULT.json",
            help=f"Take the heads from a result of {' or '.join(SOURCES)} of this model (`run ... --json`).",
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --from: the order of removal, as `gradient` or `L0 penalty 0.05`."),
    ] = None,
    keep: Annotated[
        int | None,
        COUNT_OR_ZERO,
        typer.Option(metavar="N", help="With --from: keep this many heads. [default: as the result suggests]"),
    ] = None,
    any_model: Annotated[
        bool, typer.Option("--any-model", help="With --from: accept a result of another model of the same size.")
    ] = False,
    corpus: Annotated[
        str, typer.Option("--corpus", "-c", metavar="CORPUS", help="Texts to measure the speed-up on.")
    ] = options.DEFAULT_CORPUS,
    loading: options.ModelOptions = options.ModelOptions(),
    as_json: options.Json = False,
) -> None:
    """Prune, and print the directory of the model, or with --json what was removed."""
    from bertology.encoder import pruning
    from bertology.encoder.encoder import TaskEncoder, parse_head_mask

    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise Refusal(f"{output} already exists", "a new or empty directory", "Choose another one with -o")
    if (heads is None) == (result is None) or (result is None and (order is not None or keep is not None)):
        raise Refusal(
            "The heads to remove are given twice, or not at all",
            "either --heads, or --from with --order and --keep",
            f"{USAGE}, or give a result with --from",
        )
    encoder = loading.load(model)
    if not isinstance(encoder, TaskEncoder):
        raise _no_heads_refusal(encoder)
    if result is not None:
        heads = _heads_from_result(result, encoder, order, keep, any_model=any_model)
    removed = parse_head_mask(heads or "", encoder, "--heads", USAGE)
    pruning.save_pruned(encoder, ~removed, output)
    summary: dict[str, Any] = {
        "removed": int(removed.sum()),
        "heads": removed.size,
        "removed_heads": (heads or "").replace(" ", "").split(","),
        "smaller": pruning.can_shrink(encoder),
    }
    options.print_message(f"Removed {summary['removed']} of {summary['heads']} heads.")
    if summary["smaller"]:
        summary |= _measure_savings(encoder, ~removed, corpus)
    else:
        options.print_message(
            "Their weights are set to zero: heads of this family share projections or positions, so that the model is "
            "neither smaller nor faster."
        )
    options.print_message(
        "Plain transformers loads the directory too, at the size and speed of the full model, with the same outputs."
    )
    typer.echo(json.dumps({"model": str(output), **summary}, ensure_ascii=False) if as_json else str(output))


def _heads_from_result(
    path: Path, encoder: TaskEncoder, order_name: str | None, keep: int | None, *, any_model: bool
) -> str:
    """The heads to remove, from the result of an analysis that orders them."""
    from bertology.results.read_result import read_result
    from bertology.results.shapes import Curve

    result = read_result(path)
    orders = result.data.removal_orders if isinstance(result.data, Curve) else ()
    if not orders:
        raise Refusal(
            f"{path} is a result of {result.analysis}, which orders no heads for removal",
            f"a result of {' or '.join(SOURCES)}",
            f"`bertology run {SOURCES[0]} --model {encoder.name} --corpus CORPUS --json > {path.name}`",
        )
    measured = result.inputs.get("model", {}).get("model", {})
    if measured.get("fingerprint") != encoder.fingerprint and not any_model:
        raise Refusal(
            f"{path} is a result of {measured.get('name', 'an unknown model')} "
            f"({measured.get('fingerprint', 'no fingerprint')}), not of {encoder.name} ({encoder.fingerprint})",
            "a result of the model to prune",
            f"Run {result.analysis} on {encoder.name}, or add --any-model",
        )
    order = _select_order(orders, order_name, path)
    n_heads = len(order.heads)
    n_removed = order.n_removed if keep is None else n_heads - keep
    if n_heads != encoder.layers * encoder.heads:
        raise Refusal(
            f"{path} orders {n_heads} heads, and {encoder.name} has {encoder.layers * encoder.heads}",
            "an order of all heads of the model",
            "Use a result of a model of the same size",
        )
    if not 0 < n_removed <= n_heads:
        kept = f"--keep {keep} leaves nothing to remove" if keep is not None else f"{order.name} keeps all heads"
        raise Refusal(
            f"In {path}, {kept}" + (f" ({order.criterion})" if keep is None else ""),
            f"from 0 to {n_heads - 1} heads to keep",
            "Say how many with --keep, or choose another order with --order",
        )
    if result.options.get("model_weights") == "trained" or result.options.get("retrain_steps"):
        options.print_message("The scores of this result are those of trained weights; the weights here stay as given.")
    options.print_message(f"{result.analysis}, {order.name}: {', '.join(order.heads[:n_removed])} removed.")
    return ",".join(order.heads[:n_removed])


def _select_order(orders: tuple[RemovalOrder, ...], name: str | None, path: Path) -> RemovalOrder:
    by_name = {order.name: order for order in orders}
    if name is None and len(orders) == 1:
        return orders[0]
    if name not in by_name:
        raise Refusal(
            f"{path} has {count_noun(len(orders), 'orders')} of removal" + (f", none called {name!r}" if name else ""),
            f"one of: {', '.join(by_name)}",
            f"Add --order '{orders[0].name}'",
        )
    return by_name[name]


@dataclass(frozen=True)
class _Timing:
    """Seconds per text of the full and of the pruned model, in (round,) pairs measured in alternation."""

    before: list[float]
    after: list[float]

    @property
    def ratios(self) -> list[float]:
        """Speed-up of each round: seconds before over seconds after."""
        return [before / after for before, after in zip(self.before, self.after, strict=True)]


def _measure_savings(encoder: TaskEncoder, head_mask: BoolArray, corpus: str) -> dict[str, Any]:
    """Parameters and seconds per text before and after, printed and as fields."""
    from bertology.encoder import pruning

    pruned = pruning.prune(encoder, head_mask)
    sizes = [sum(weights.numel() for weights in m.model.parameters()) for m in (encoder, pruned)]
    options.print_message(f"Parameters: {sizes[0]:,} before, {sizes[1]:,} after ({sizes[1] / sizes[0]:.1%}).")
    timing = _time_in_alternation(encoder, pruned, _batch(encoder, corpus))
    low, ratio, high = quantiles(timing.ratios, n=4, method="inclusive")
    before, after = (median(seconds) for seconds in (timing.before, timing.after))
    options.print_message(
        f"Time per text: {1000 * before:.2f} ms before, {1000 * after:.2f} ms after: {ratio:.2f} times as fast (half "
        f"of {count_noun(len(timing.ratios), 'rounds')} from {low:.2f} to {high:.2f}, in alternation on {corpus})."
    )
    return {
        "parameters_before": sizes[0],
        "parameters_after": sizes[1],
        "seconds_per_text_before": before,
        "seconds_per_text_after": after,
        "speed_up": {"median": ratio, "quartiles": [low, high], "rounds": len(timing.ratios), "corpus": corpus},
    }


def _batch(encoder: TaskEncoder, corpus: str) -> ModelInputs:
    from bertology.corpus.read import load_corpus
    from bertology.encoder.token_batch import RecordedInput, TokenBatch

    texts = [text for example in load_corpus(corpus, limit=2 * N_TEXTS) for text in example.text_inputs]
    tokenised = [(text, tokens) for text, tokens in zip(texts, encoder.tokenise(texts), strict=True)]
    fitting = [(text, tokens) for text, tokens in tokenised if len(tokens) <= encoder.max_length][:N_TEXTS]
    if not fitting:
        raise Refusal(
            f"No text of {corpus} fits into the {encoder.max_length} tokens that {encoder.name} takes",
            "texts to measure the speed-up on",
            "Choose others with --corpus",
        )
    inputs = [RecordedInput(index, 0, 0, text, tokens) for index, (text, tokens) in enumerate(fitting)]
    return TokenBatch(inputs, encoder.device).model_inputs


def _time_in_alternation(full: Encoder, pruned: Encoder, batch: ModelInputs) -> _Timing:
    from bertology.lazy import torch

    def seconds(encoder: Encoder) -> float:
        start = perf_counter()
        encoder.forward(batch)
        if encoder.device.startswith("cuda"):
            torch.cuda.synchronize(encoder.device)  # kernels run after the call has returned
        return (perf_counter() - start) / len(batch.input_ids)

    timing = _Timing([], [])
    end = perf_counter() + MAX_SECONDS
    with torch.inference_mode():
        for round_number in range(N_WARM_UPS + N_ROUNDS):
            pair = seconds(full), seconds(pruned)
            if round_number >= N_WARM_UPS:
                timing.before.append(pair[0])
                timing.after.append(pair[1])
            if len(timing.before) > 1 and perf_counter() > end:
                break
    return timing


def _no_heads_refusal(encoder: Encoder) -> Refusal:
    return Refusal(f"{encoder.name} has no attention heads", "a transformer", "Choose another model")
