"""Cost of ablating every head and every layer, relative to one full forward pass for each.

    python benchmarks/ablation.py                # 500 sentences, about ten minutes of one thread
    python benchmarks/ablation.py --limit 32     # a quick look
    python benchmarks/ablation.py --device cuda

A 12 x 12 encoder with a classifier on top, all 144 heads and all 12 layers disabled in turn (their output 0), the loss
and the answer of every sentence taken each time. Beside it what one full pass for each of the 156 costs, in plain
transformers with SDPA, the heads silenced by a hook before the output projection: the naive way, sentences in file
order, 32 at once, padded to the longest of them; and over the same batches, sorted by length, that bertology has. Both
are run for some of the ablations, which all cost the same, and extrapolated to all. The losses of all ways are
compared.

The target is 0.3 of the naive way. Over the same batches arithmetic alone leaves 0.44: what lies below an ablation is
run once, of the changed layer what comes after its heads is run (9 of 12 parts), of the last one what [CLS] reads,
which is next to nothing, and every layer between is run whole. Last, how much faster the model is once heads are cut
out of it for good.
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

from bertology.analyses.evaluation.ablation import AblationRunner, HeadAblation
from bertology.analyses.evaluation.evaluation import Evaluation, prepare_evaluation
from bertology.analyses.evaluation.score_change import Scores
from bertology.analyses.run import AnalysisCache
from bertology.corpus.corpus import Corpus, Example
from bertology.encoder.builtin import tokenizer_definition
from bertology.encoder.families import layer_spec
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.huggingface_loading import untrained_bert
from bertology.encoder.layer_variants import LayerVariant, transformer_layers
from bertology.encoder.load import load
from bertology.encoder.pruning import prune
from bertology.encoder.task_heads import add_task_head
from recording_cost.material import MODEL, load_sentences
from timing import NAME_WIDTH, Time, measure_time

TARGET = 0.3
SENTENCES, AT_ONCE = 500, 32
ROUNDS = 2
"""Before bertology's way and after it, each with ablations of its own."""
LABELS = ("no", "yes")
PRUNED_FRACTIONS = (0.25, 0.5, 0.75)

Losses = NDArray[np.float64]


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    encoder, corpus = _encoder(options), _labelled(load_sentences(options.limit))
    evaluation, ablations = prepare_evaluation(encoder, corpus), _changes(encoder)
    ours = AblationRunner(encoder, "zero")
    ours.evaluate(replace(evaluation, batches=evaluation.batches[:1]), ablations[:1], AnalysisCache())  # warms up
    plain = _plain(encoder)
    batches = {"naive": _in_file_order(encoder, corpus), "sorted": _in_sorted_batches(evaluation)}
    # One head early and late, one layer early and late: all cost the same.
    sample = [ablations[index] for index in (5, -1, len(ablations) // 2, -encoder.layers)]
    times: dict[str, list[Time]] = {way: [] for way in batches}
    expected: dict[str, list[Losses]] = {way: [] for way in batches}
    for ablation in sample[:ROUNDS]:
        _run_fully(plain, encoder, batches, ablation, times, expected)
    scores: list[Scores] = []
    cost = measure_time(lambda: scores.extend(ours.evaluate(evaluation, ablations, AnalysisCache())))
    for ablation in sample[ROUNDS:]:
        _run_fully(plain, encoder, batches, ablation, times, expected)
    print(
        f"{encoder.name}: {encoder.layers} layers x {encoder.heads} heads, {encoder.device}, "
        f"{torch.get_num_threads()} threads, {len(evaluation.examples)} sentences, {len(ablations)} ablations"
    )
    _print_costs({way: _for_all(some, len(ablations)) for way, some in times.items()}, cost, batches)
    print(f"arithmetic alone, over the same batches: {_arithmetic(encoder):.2f}")
    own = [scores[1 + ablations.index(ablation)].losses for ablation in sample]
    for way, losses in expected.items():
        difference = max(float(np.abs(a - b).max()) for a, b in zip(losses, own, strict=True))
        print(f"largest difference of a loss from the {way} way: {difference:.1e}")
    _print_pruned(encoder, evaluation)


@dataclass(frozen=True)
class Rows:
    """A padded batch for a plain model, the gold classes of its rows and their indices in the corpus."""

    inputs: dict[str, Tensor]
    gold: Tensor
    indices: list[int]


def _plain(encoder: HuggingFaceEncoder) -> Any:
    """The same weights in a model of transformers that nothing of bertology touches, with SDPA."""
    config = copy.deepcopy(encoder.model.config)
    config._attn_implementation = "sdpa"
    made = type(encoder.model)(config)
    made.load_state_dict(encoder.model.state_dict())
    return made.eval().to(encoder.device)


def _in_file_order(encoder: HuggingFaceEncoder, corpus: Corpus) -> list[Rows]:
    """Sentences as they come, 32 at once, each batch padded to its longest."""
    batches: list[Rows] = []
    for start in range(0, len(corpus), AT_ONCE):
        indices = list(range(start, min(start + AT_ONCE, len(corpus))))
        texts = [corpus.examples[index].segments[0].text for index in indices]
        inputs = encoder.hf_tokenizer(texts, padding=True, return_tensors="pt")
        batches.append(_rows(encoder.device, dict(inputs), [corpus.examples[index] for index in indices], indices))
    return batches


def _in_sorted_batches(evaluation: Evaluation) -> list[Rows]:
    """The sentences sorted by length, in the same batches that bertology runs."""
    return [
        _rows(
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


def _rows(device: str, inputs: dict[str, Tensor], examples: list[Example], indices: list[int]) -> Rows:
    gold = torch.tensor([LABELS.index(str(example.label)) for example in examples], device=device)
    return Rows({name: tensor.to(device) for name, tensor in inputs.items()}, gold, indices)


def _run_fully(
    plain: Any,
    encoder: HuggingFaceEncoder,
    batches: dict[str, list[Rows]],
    ablation: HeadAblation,
    times: dict[str, list[Time]],
    expected: dict[str, list[Losses]],
) -> None:
    """One full pass of a plain model for one ablation, in either way; what it took and the losses are noted."""
    hooks = _ablate_heads(plain, encoder, ablation)
    for way, some in batches.items():
        losses = np.zeros(sum(len(rows.indices) for rows in some))

        def run(some: list[Rows] = some, losses: Losses = losses) -> None:
            for rows in some:
                logits = plain(**rows.inputs).logits
                losses[rows.indices] = nn.functional.cross_entropy(logits, rows.gold, reduction="none").cpu().numpy()
                logits.argmax(-1).cpu()

        with torch.no_grad():
            times[way].append(measure_time(run))
        expected[way].append(losses)
    for hook in hooks:
        hook.remove()


def _ablate_heads(plain: Any, encoder: HuggingFaceEncoder, ablation: HeadAblation) -> list[Any]:
    """The outputs of the heads of an ablation set to 0 before the output projection of their layer."""
    hooks: list[Any] = []
    for layer in np.flatnonzero(ablation.mask.any(1)):
        kept = torch.from_numpy(~ablation.mask[layer]).float().repeat_interleave(encoder.width // encoder.heads)
        block = transformer_layers(plain)[int(layer)]
        spec = layer_spec(block)
        assert spec is not None, "the layers of the benchmark's models are known"
        projection = block.get_submodule(spec.output_projection)

        def scale_heads(_: nn.Module, inputs: tuple[Tensor], kept: Tensor = kept.to(encoder.device)) -> tuple[Tensor]:
            return (inputs[0] * kept,)

        hooks.append(projection.register_forward_pre_hook(scale_heads))
    return hooks


def _for_all(some: list[Time], ablations: int) -> Time:
    return Time(*(ablations * statistics.mean(getattr(taken, kind) for taken in some) for kind in ("wall", "cpu")))


def _print_costs(full: dict[str, Time], ours: Time, batches: dict[str, list[Rows]]) -> None:
    naive, by_length = full["naive"], full["sorted"]
    tokens = {way: sum(rows.gold.numel() * rows.inputs["input_ids"].shape[1] for rows in batches[way]) for way in full}
    print(f"{'':<{NAME_WIDTH}}{'seconds':>9}{'x naive':>9}{'x naive':>9}{'x sorted':>10}")
    print(f"{'':<{NAME_WIDTH}}{'':>9}{'(clock)':>9}{'(cpu)':>9}{'(cpu)':>10}")
    rows = {
        "naive: plain full passes, file order, 32 at once": naive,
        "plain full passes, sorted by length": by_length,
        "bertology": ours,
    }
    for name, taken in rows.items():
        ratios = f"{taken.wall / naive.wall:>9.2f}{taken.cpu / naive.cpu:>9.2f}{taken.cpu / by_length.cpu:>10.2f}"
        print(f"{name:<{NAME_WIDTH}}{taken.wall:>9.1f}{ratios}")
    print(f"\ntarget: at most {TARGET:.2f} x naive; by processor time {ours.cpu / naive.cpu:.2f}")
    print(f"tokens a pass, padding among them: {tokens['naive']} naive, {tokens['sorted']} sorted by length")


def _arithmetic(encoder: HuggingFaceEncoder) -> float:
    """Products of the weights that are left, as a share of those of full passes; scores and softmax left out."""
    layers, wide = encoder.layers, encoder.model.config.intermediate_size / encoder.width
    after_heads = (1 + 2 * wide) / (4 + 2 * wide)  # the output projection and the feed-forward network
    return sum(after_heads + layers - 2 - layer for layer in range(layers - 1)) / layers**2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=SENTENCES, help="sentences of the treebank")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument("--device", default="cpu", help="where the model is")
    parser.add_argument(
        "--model", default="", help="a model; the real encoder beside the checkout, or one of its shape"
    )
    return parser.parse_args()


def _encoder(options: argparse.Namespace) -> HuggingFaceEncoder:
    if options.model or MODEL.is_dir():
        bare = load(options.model or str(MODEL), device=options.device)
        assert isinstance(bare, HuggingFaceEncoder), "the benchmark is about transformers"
    else:
        bare = untrained_bert(tokenizer_definition(), "untrained", layers=12, heads=12, width=384, seed=0)
        bare.model.to(options.device)
    return add_task_head(bare, "label", LABELS, variant=LayerVariant(), seed=0)


def _labelled(corpus: Corpus) -> Corpus:
    """With classes that mean nothing: what is timed is asking."""
    return replace(corpus, examples=tuple(replace(item, label=LABELS[k % 2]) for k, item in enumerate(corpus)))


def _changes(encoder: HuggingFaceEncoder) -> list[HeadAblation]:
    layers, heads = encoder.layers, encoder.heads
    single = np.eye(layers * heads, dtype=np.bool_).reshape(-1, layers, heads)
    whole = np.broadcast_to(np.eye(layers, dtype=np.bool_)[:, :, None], (layers, layers, heads))
    return [HeadAblation(mask) for mask in (*single, *whole)]


def _print_pruned(encoder: HuggingFaceEncoder, evaluation: Evaluation) -> None:
    """The first heads, a share of every layer: which ones are gone does not ablation the time."""
    print(f"\n{'heads cut out for good':<{NAME_WIDTH}}{'seconds':>9}{'speed-up':>9}{'speed-up':>9}")
    print(f"{'':<{NAME_WIDTH}}{'':>9}{'(clock)':>9}{'(cpu)':>9}")
    whole = _quickest(encoder, evaluation)
    print(f"{'none':<{NAME_WIDTH}}{whole.wall:>9.2f}{1.0:>9.2f}{1.0:>9.2f}")
    for fraction in PRUNED_FRACTIONS:
        kept = np.ones((encoder.layers, encoder.heads), np.bool_)
        kept[:, : round(fraction * encoder.heads)] = False
        taken = _quickest(prune(encoder, kept), evaluation)
        label = f"{int((~kept).sum())} of {kept.size}"
        speed_ups = f"{whole.wall / taken.wall:>9.2f}{whole.cpu / taken.cpu:>9.2f}"
        print(f"{label:<{NAME_WIDTH}}{taken.wall:>9.2f}{speed_ups}", flush=True)


def _quickest(encoder: HuggingFaceEncoder, evaluation: Evaluation) -> Time:
    """The quicker of two runs over all sentences, by the processor."""
    return min(
        (measure_time(lambda: evaluation.scores(encoder.forward)) for _ in range(2)), key=lambda taken: taken.cpu
    )


if __name__ == "__main__":
    main()
