"""Cost of ablating every head and every layer, relative to one full forward pass for each.

    python benchmarks/ablation.py                # 500 sentences, about ten minutes of one thread
    python benchmarks/ablation.py --limit 32     # a quick look
    python benchmarks/ablation.py --device cuda

A 12 x 12 encoder with a classifier: each of the 144 heads and 12 layers is ablated in turn (output 0), with the loss
and the prediction of every sentence. This is compared with one full pass per ablation in plain transformers with SDPA
and a hook before the output projection: naively, with sentences in file order in batches of 32, and on bertology's
batches, sorted by length. Both are timed on a few ablations, which all cost the same, and extrapolated to all. The
losses of all methods are compared.

The target is 0.3 of the naive method. On the same batches the arithmetic alone is 0.44: layers below an ablation are
run once, the ablated layer from its heads on (9 of 12 parts), the last layer only for [CLS], and all layers between in
full. Finally, the speed of the model with heads pruned.
"""

from __future__ import annotations

import argparse
import copy
import statistics
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.evaluation.ablation import AblationRunner, HeadAblation
from bertology.analyses.evaluation.evaluation import Evaluation, prepare_evaluation
from bertology.analyses.evaluation.score_change import Scores
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.encoder.builtin import tokenizer_definition
from bertology.encoder.families import layer_spec
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.huggingface_loading import untrained_bert
from bertology.encoder.layer_variants import LayerVariant, transformer_layers
from bertology.encoder.load import load
from bertology.encoder.pruning import prune
from bertology.encoder.task_heads import add_task_head
from recording_cost.setup import MODEL, load_sentences
from timing import NAME_WIDTH, Time, measure_time

TARGET = 0.3
SENTENCES, BATCH_SIZE = 500, 32
TIMED_BEFORE = 2
"""Ablations timed before bertology's run; the others are timed after it."""
LABELS = ("no", "yes")
PRUNED_FRACTIONS = (0.25, 0.5, 0.75)

Losses = NDArray[np.float64]


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    encoder, corpus = _encoder(options), _with_labels(load_sentences(options.limit))
    evaluation, ablations = prepare_evaluation(encoder, corpus), _all_ablations(encoder)
    runner = AblationRunner(encoder, "zero")
    runner.evaluate(replace(evaluation, batches=evaluation.batches[:1]), ablations[:1], AnalysisCache())  # warms up
    plain = _plain_model(encoder)
    batches = {"naive": _file_order_batches(encoder, corpus), "sorted": _sorted_batches(evaluation)}
    # One head early and late, one layer early and late: all cost the same.
    sample = [ablations[index] for index in (5, -1, len(ablations) // 2, -encoder.layers)]
    times: dict[str, list[Time]] = {method: [] for method in batches}
    expected: dict[str, list[Losses]] = {method: [] for method in batches}
    for ablation in sample[:TIMED_BEFORE]:
        _run_full_pass(plain, encoder, batches, ablation, times, expected)
    scores: list[Scores] = []
    cost = measure_time(lambda: scores.extend(runner.evaluate(evaluation, ablations, AnalysisCache())))
    for ablation in sample[TIMED_BEFORE:]:
        _run_full_pass(plain, encoder, batches, ablation, times, expected)
    print(
        f"{encoder.name}: {encoder.layers} layers x {encoder.heads} heads, {encoder.device}, "
        f"{torch.get_num_threads()} threads, {len(evaluation.examples)} sentences, {len(ablations)} ablations"
    )
    _print_costs({method: _extrapolate(measured, len(ablations)) for method, measured in times.items()}, cost, batches)
    print(f"arithmetic alone, on the same batches: {_relative_arithmetic(encoder):.2f}")
    bertology_losses = [scores[1 + ablations.index(ablation)].losses for ablation in sample]
    for method, losses in expected.items():
        difference = max(float(np.abs(a - b).max()) for a, b in zip(losses, bertology_losses, strict=True))
        print(f"largest difference of a loss from the {method} method: {difference:.1e}")
    _print_pruned(encoder, evaluation)


@dataclass(frozen=True)
class LabelledBatch:
    """A padded batch for a plain model, the gold labels of its rows and their indices in the corpus."""

    inputs: dict[str, Tensor]
    gold: Tensor
    indices: list[int]


def _plain_model(encoder: HuggingFaceEncoder) -> Any:
    """The same weights in a plain transformers model with SDPA, without bertology's hooks."""
    config = copy.deepcopy(encoder.model.config)
    config._attn_implementation = "sdpa"
    model = type(encoder.model)(config)
    model.load_state_dict(encoder.model.state_dict())
    return model.eval().to(encoder.device)


def _file_order_batches(encoder: HuggingFaceEncoder, corpus: Corpus) -> list[LabelledBatch]:
    """Sentences in file order, 32 per batch, each batch padded to its longest."""
    batches: list[LabelledBatch] = []
    for start in range(0, len(corpus), BATCH_SIZE):
        indices = list(range(start, min(start + BATCH_SIZE, len(corpus))))
        texts = [corpus.examples[index].segments[0].text for index in indices]
        inputs = encoder.hf_tokenizer(texts, padding=True, return_tensors="pt")
        batches.append(
            _labelled_batch(encoder.device, dict(inputs), [corpus.examples[index] for index in indices], indices)
        )
    return batches


def _sorted_batches(evaluation: Evaluation) -> list[LabelledBatch]:
    """Bertology's batches of sentences sorted by length."""
    return [
        _labelled_batch(
            str(batch.inputs.input_ids.device),
            {
                "input_ids": batch.inputs.input_ids,
                "token_type_ids": batch.inputs.token_type_ids,
                "attention_mask": batch.inputs.attention_mask,
            },
            [evaluation.examples[index] for index in batch.examples],
            batch.examples,
        )
        for batch in evaluation.batches
    ]


def _labelled_batch(
    device: str, inputs: dict[str, Tensor], examples: list[Example], indices: list[int]
) -> LabelledBatch:
    gold = torch.tensor([LABELS.index(str(example.label)) for example in examples], device=device)
    return LabelledBatch({name: tensor.to(device) for name, tensor in inputs.items()}, gold, indices)


def _run_full_pass(
    plain: Any,
    encoder: HuggingFaceEncoder,
    batches: dict[str, list[LabelledBatch]],
    ablation: HeadAblation,
    times: dict[str, list[Time]],
    expected: dict[str, list[Losses]],
) -> None:
    """Run and time one full pass of a plain model for one ablation on both kinds of batches."""
    hooks = _ablate_heads(plain, encoder, ablation)
    for method, method_batches in batches.items():
        losses = np.zeros(sum(len(batch.indices) for batch in method_batches))

        def run(method_batches: list[LabelledBatch] = method_batches, losses: Losses = losses) -> None:
            for batch in method_batches:
                logits = plain(**batch.inputs).logits
                batch_losses = nn.functional.cross_entropy(logits, batch.gold, reduction="none")
                losses[batch.indices] = batch_losses.cpu().numpy()
                logits.argmax(-1).cpu()

        with torch.no_grad():
            times[method].append(measure_time(run))
        expected[method].append(losses)
    for hook in hooks:
        hook.remove()


def _ablate_heads(plain: Any, encoder: HuggingFaceEncoder, ablation: HeadAblation) -> list[Any]:
    """Hooks that set the outputs of the ablated heads to 0 before the output projection."""
    hooks: list[Any] = []
    for layer in np.flatnonzero(ablation.mask.any(1)):
        head_scale = torch.from_numpy(~ablation.mask[layer]).float().repeat_interleave(encoder.width // encoder.heads)
        block = transformer_layers(plain)[int(layer)]
        spec = layer_spec(block)
        assert spec is not None, "the family of the benchmark's model is known"
        projection = block.get_submodule(spec.output_projection)

        def scale_heads(
            _: nn.Module, inputs: tuple[Tensor], head_scale: Tensor = head_scale.to(encoder.device)
        ) -> tuple[Tensor]:
            return (inputs[0] * head_scale,)

        hooks.append(projection.register_forward_pre_hook(scale_heads))
    return hooks


def _extrapolate(measured: list[Time], ablations: int) -> Time:
    wall, cpu = (statistics.mean(getattr(time, clock) for time in measured) for clock in ("wall", "cpu"))
    return Time(ablations * wall, ablations * cpu)


def _print_costs(full: dict[str, Time], bertology: Time, batches: dict[str, list[LabelledBatch]]) -> None:
    naive, by_length = full["naive"], full["sorted"]
    tokens = {method: sum(batch.inputs["input_ids"].numel() for batch in batches[method]) for method in full}
    print(f"{'':<{NAME_WIDTH}}{'seconds':>9}{'x naive':>9}{'x naive':>9}{'x sorted':>10}")
    print(f"{'':<{NAME_WIDTH}}{'':>9}{'(clock)':>9}{'(cpu)':>9}{'(cpu)':>10}")
    rows = {
        "naive: plain full passes, file order, batches of 32": naive,
        "plain full passes, sorted by length": by_length,
        "bertology": bertology,
    }
    for name, time in rows.items():
        ratios = f"{time.wall / naive.wall:>9.2f}{time.cpu / naive.cpu:>9.2f}{time.cpu / by_length.cpu:>10.2f}"
        print(f"{name:<{NAME_WIDTH}}{time.wall:>9.1f}{ratios}")
    print(f"\ntarget: at most {TARGET:.2f} x naive; by processor time {bertology.cpu / naive.cpu:.2f}")
    print(f"tokens per pass, including padding: {tokens['naive']} naive, {tokens['sorted']} sorted by length")


def _relative_arithmetic(encoder: HuggingFaceEncoder) -> float:
    """Multiplications with weights relative to full passes, without attention scores and softmax."""
    layers, ratio = encoder.layers, encoder.model.config.intermediate_size / encoder.width
    after_heads = (1 + 2 * ratio) / (4 + 2 * ratio)  # the output projection and the feed-forward network
    return sum(after_heads + layers - 2 - layer for layer in range(layers - 1)) / layers**2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=SENTENCES, help="number of sentences")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument(
        "--model", default="", help="model (default: ../shared/models/gte-small if present, otherwise untrained)"
    )
    return parser.parse_args()


def _encoder(options: argparse.Namespace) -> HuggingFaceEncoder:
    if options.model or MODEL.is_dir():
        encoder = load(options.model or str(MODEL), device=options.device)
        assert isinstance(encoder, HuggingFaceEncoder), "only transformers can be compared with plain ones"
    else:
        encoder = untrained_bert(tokenizer_definition(), "untrained", layers=12, heads=12, width=384, seed=0)
        encoder.model.to(options.device)
    return add_task_head(encoder, "label", LABELS, variant=LayerVariant(), seed=0)


def _with_labels(corpus: Corpus) -> Corpus:
    """The corpus with arbitrary labels, which do not affect the time."""
    return replace(
        corpus, examples=tuple(replace(example, label=LABELS[index % 2]) for index, example in enumerate(corpus))
    )


def _all_ablations(encoder: HuggingFaceEncoder) -> list[HeadAblation]:
    layers, heads = encoder.layers, encoder.heads
    single_heads = np.eye(layers * heads, dtype=np.bool_).reshape(-1, layers, heads)
    full_layers = np.broadcast_to(np.eye(layers, dtype=np.bool_)[:, :, None], (layers, layers, heads))
    return [HeadAblation(mask) for mask in (*single_heads, *full_layers)]


def _print_pruned(encoder: HuggingFaceEncoder, evaluation: Evaluation) -> None:
    """Print the speed with the first heads of every layer pruned; which heads does not affect the time."""
    print(f"\n{'pruned heads':<{NAME_WIDTH}}{'seconds':>9}{'speed-up':>9}{'speed-up':>9}")
    print(f"{'':<{NAME_WIDTH}}{'':>9}{'(clock)':>9}{'(cpu)':>9}")
    full = _fastest(encoder, evaluation)
    print(f"{'none':<{NAME_WIDTH}}{full.wall:>9.2f}{1.0:>9.2f}{1.0:>9.2f}")
    for fraction in PRUNED_FRACTIONS:
        head_mask = np.ones((encoder.layers, encoder.heads), np.bool_)
        head_mask[:, : round(fraction * encoder.heads)] = False
        time = _fastest(prune(encoder, head_mask), evaluation)
        label = f"{int((~head_mask).sum())} of {head_mask.size}"
        speed_ups = f"{full.wall / time.wall:>9.2f}{full.cpu / time.cpu:>9.2f}"
        print(f"{label:<{NAME_WIDTH}}{time.wall:>9.2f}{speed_ups}", flush=True)


def _fastest(encoder: HuggingFaceEncoder, evaluation: Evaluation) -> Time:
    """The faster of two runs over all sentences, by processor time."""
    return min((measure_time(lambda: evaluation.scores(encoder.forward)) for _ in range(2)), key=lambda time: time.cpu)


if __name__ == "__main__":
    main()
