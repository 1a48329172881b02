"""What cutting heads out of a model saves: time of a forward pass and size on disk beside the count of heads removed.

    python benchmarks/pruning.py                        # batches of 1 and 16, about two minutes
    python benchmarks/pruning.py --shares 0.5 --sizes 1 # a quick look

The limit is the whole model as bertology runs it, nothing watched. Beside it the same model with heads gated to 0,
which answers alike and saves nothing (attention that is gated is computed by steps, which costs more), and with these
heads cut out. Heads are drawn at random, as many in any layer as it falls; ways are run in turns and told as the median
of paired ratios, on one thread unless --threads says otherwise. What heads are of a pass sets the bound: told as the
share of the parameters outside embeddings that they hold.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch

from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import ModelInputs
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.pruning import HeadMask, PrunedEncoder, prune, save_pruned
from bertology.encoder.task_heads import save_pretrained
from recording_cost.material import MODEL
from timing import Run, interleave, measure_time, print_header, print_row


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    encoder = load(options.model or (str(MODEL) if MODEL.is_dir() else "mini"))
    assert isinstance(encoder, HuggingFaceEncoder), "the benchmark is about transformers"
    heads = encoder.layers * encoder.heads
    print(
        f"{Path(encoder.name).name}: {encoder.layers} layers x {encoder.heads} heads, {torch.get_num_threads()} "
        f"threads; heads hold {_held(encoder):.0%} of the parameters outside embeddings"
    )
    pruned = {share: _pruned(encoder, share) for share in options.shares}
    for share, (kept, one) in pruned.items():
        alike = _difference(encoder, kept, one, options.length)
        print(f"{round(share * heads)} of {heads} heads removed: {_size(encoder, one)}, largest difference {alike:.1e}")
    for size in options.sizes:
        batch = _batch(encoder, size, options.length)
        ways: dict[str, Run] = {}
        for share, (kept, one) in pruned.items():
            gone = round(share * heads)
            ways[f"{gone} heads ({share:.0%}) gated to 0"] = _pass(encoder.with_gates(_gates(kept)), batch)
            ways[f"{gone} heads ({share:.0%}) cut out"] = _pass(one, batch)
        limit = _pass(encoder, batch)
        measure_time(limit)  # warms up
        found, seconds = interleave(limit, ways, options.rounds)
        print(f"\nbatches of {size} x {options.length} tokens; the whole model takes {seconds:.3f} s")
        print_header()
        for name, ratio in found.items():
            print_row(name, ratio)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.25, 0.5, 0.75], help="heads removed, 0 to 1")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 16], help="inputs in a batch")
    parser.add_argument("--length", type=int, default=64, help="tokens of an input")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of interleave measurement")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument(
        "--model", default="", help="model (default: ../shared/models/gte-small if present, otherwise built-in)"
    )
    return parser.parse_args()


def _pruned(encoder: HuggingFaceEncoder, share: float) -> tuple[HeadMask, PrunedEncoder]:
    count = encoder.layers * encoder.heads
    kept = np.ones(count, np.bool_)
    kept[np.random.default_rng(0).permutation(count)[: round(share * count)]] = False
    shaped = kept.reshape(encoder.layers, encoder.heads)
    return shaped, prune(encoder, shaped)


def _batch(encoder: HuggingFaceEncoder, size: int, length: int) -> ModelInputs:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, encoder.model.config.vocab_size, (size, length), generator=generator)
    return ModelInputs(ids, torch.zeros_like(ids), torch.ones_like(ids))


def _gates(kept: HeadMask) -> Gates:
    return Gates(scale=torch.from_numpy(kept).float())


def _pass(encoder: HuggingFaceEncoder, batch: ModelInputs) -> Run:
    def forward() -> None:
        with torch.inference_mode():
            encoder.forward(batch)

    return forward


def _difference(
    encoder: HuggingFaceEncoder,
    kept: HeadMask,
    pruned: PrunedEncoder,
    length: int,
) -> float:
    """The largest difference between the states of the cut model and of the gated one."""
    batch = _batch(encoder, 2, length)
    with torch.inference_mode():
        gated, cut = (
            one.forward(batch, hidden=True).hidden_states[-1] for one in (encoder.with_gates(_gates(kept)), pruned)
        )
    return float((gated - cut).abs().max())


def _held(encoder: HuggingFaceEncoder) -> float:
    named = [(name, weights.numel()) for name, weights in encoder.model.named_parameters() if "embeddings" not in name]
    heads = sum(count for name, count in named if "attention" in name and "LayerNorm" not in name)
    return heads / sum(count for _, count in named)


def _size(encoder: HuggingFaceEncoder, pruned: PrunedEncoder) -> str:
    with tempfile.TemporaryDirectory() as folder:
        whole, cut = Path(folder) / "whole", Path(folder) / "cut"
        save_pretrained(encoder, whole)
        save_pruned(pruned, cut)
        sizes = [sum(file.stat().st_size for file in place.glob("*.safetensors")) / 1e6 for place in (whole, cut)]
    return f"{sizes[0]:.1f} MB on disk become {sizes[1]:.1f}"


if __name__ == "__main__":
    main()
