"""Time of a forward pass and size in memory after pruning heads, by the number of heads removed.

    python benchmarks/pruning.py                                    # batches of 1 and 16, about two minutes
    python benchmarks/pruning.py --fractions 0.5 --batch-sizes 1  # a quick look

The limit is the full model without hooks. It is compared with heads gated to 0, which has the same output and saves
nothing (gated attention is not fused, which costs more), and with the same heads pruned. Heads are sampled at random
from all layers. Methods alternate; ratios are medians over pairs, on one thread by default. The heads' proportion of
the parameters outside embeddings bounds what pruning can save.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import ModelInputs
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.pruning import HeadMask, PrunedEncoder, prune
from recording_cost.setup import MODEL
from timing import Run, interleave, measure_time, print_header, print_row


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    encoder = load(options.model or (str(MODEL) if MODEL.is_dir() else "mini"))
    assert isinstance(encoder, HuggingFaceEncoder), "only transformers can be pruned"
    heads = encoder.layers * encoder.heads
    print(
        f"{Path(encoder.name).name}: {encoder.layers} layers x {encoder.heads} heads, {torch.get_num_threads()} "
        f"threads; heads have {_head_proportion(encoder):.0%} of the parameters outside embeddings"
    )
    pruned = {fraction: _prune_random_heads(encoder, fraction) for fraction in options.fractions}
    for fraction, (head_mask, pruned_encoder) in pruned.items():
        difference = _largest_difference(encoder, head_mask, pruned_encoder, options.length)
        sizes = _sizes_in_memory(encoder, pruned_encoder)
        print(f"{round(fraction * heads)} of {heads} heads removed: {sizes}, largest difference {difference:.1e}")
    for size in options.batch_sizes:
        batch = _batch(encoder, size, options.length)
        methods: dict[str, Run] = {}
        for fraction, (head_mask, pruned_encoder) in pruned.items():
            removed = round(fraction * heads)
            methods[f"{removed} heads ({fraction:.0%}) gated to 0"] = _forward(
                encoder.with_gates(_gates(head_mask)), batch
            )
            methods[f"{removed} heads ({fraction:.0%}) pruned"] = _forward(pruned_encoder, batch)
        limit = _forward(encoder, batch)
        measure_time(limit)  # warms up
        ratios, seconds = interleave(limit, methods, options.rounds)
        print(f"\nbatches of {size} x {options.length} tokens; the full model takes {seconds:.3f} s")
        print_header()
        for name, ratio in ratios.items():
            print_row(name, ratio)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--fractions", type=float, nargs="+", default=[0.25, 0.5, 0.75], help="fractions of heads to remove"
    )
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 16], help="inputs per batch")
    parser.add_argument("--length", type=int, default=64, help="tokens per input")
    parser.add_argument("--rounds", type=int, default=7, help="number of interleaved repetitions")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument(
        "--model", default="", help="model (default: ../shared/models/gte-small if present, otherwise a built-in one)"
    )
    return parser.parse_args()


def _prune_random_heads(encoder: HuggingFaceEncoder, fraction: float) -> tuple[HeadMask, PrunedEncoder]:
    count = encoder.layers * encoder.heads
    head_mask = np.ones(count, np.bool_)
    head_mask[np.random.default_rng(0).permutation(count)[: round(fraction * count)]] = False
    head_mask = head_mask.reshape(encoder.layers, encoder.heads)
    return head_mask, prune(encoder, head_mask)


def _batch(encoder: HuggingFaceEncoder, size: int, length: int) -> ModelInputs:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, encoder.model.config.vocab_size, (size, length), generator=generator)
    return ModelInputs(ids, torch.zeros_like(ids), torch.ones_like(ids))


def _gates(head_mask: HeadMask) -> Gates:
    return Gates(scale=torch.from_numpy(head_mask).float())


def _forward(encoder: HuggingFaceEncoder, batch: ModelInputs) -> Run:
    def forward() -> None:
        with torch.inference_mode():
            encoder.forward(batch)

    return forward


def _largest_difference(
    encoder: HuggingFaceEncoder,
    head_mask: HeadMask,
    pruned: PrunedEncoder,
    length: int,
) -> float:
    """The largest difference between the hidden states of the pruned and of the gated model."""
    batch = _batch(encoder, 2, length)
    with torch.inference_mode():
        gated_states, pruned_states = (
            variant.forward(batch, hidden=True).hidden_states[-1]
            for variant in (encoder.with_gates(_gates(head_mask)), pruned)
        )
    return float((gated_states - pruned_states).abs().max())


def _head_proportion(encoder: HuggingFaceEncoder) -> float:
    parameters = [
        (name, weights.numel()) for name, weights in encoder.model.named_parameters() if "embeddings" not in name
    ]
    heads = sum(count for name, count in parameters if "attention" in name and "LayerNorm" not in name)
    return heads / sum(count for _, count in parameters)


def _sizes_in_memory(encoder: HuggingFaceEncoder, pruned: PrunedEncoder) -> str:
    sizes = [sum(weights.nbytes for weights in variant.model.parameters()) / 1e6 for variant in (encoder, pruned)]
    return f"{sizes[1]:.1f} instead of {sizes[0]:.1f} MB of weights"


if __name__ == "__main__":
    main()
