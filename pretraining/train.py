"""Train: MLM and NSP with AdamW, checkpointed and resumable, early models exported (Devlin et al. 2019)."""

import argparse
import json
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertForPreTraining

from pretraining.batches import PretrainingBatch, sample_batch, step_seed
from pretraining.checkpoint import load_checkpoint, save_checkpoint
from pretraining.config import PretrainingConfig, learning_rate_at
from pretraining.export import export_model
from pretraining.model import ModelSize, make_model, summed_losses
from pretraining.stream import TokenStream, make_stream
from pretraining.tokens import load_encoded_text

EXPORT_PERCENTAGES = (1, 3, 10, 30, 100)
"""Percentages of the steps after which the model is exported."""


@dataclass(frozen=True)
class RunOptions:
    """Where and how often a run writes, and how it computes: up to rounding, nothing here affects the weights."""

    directory: Path
    tokeniser: Path
    checkpoint_every: int = 1_000
    log_every: int = 100
    stop_after: float = float("inf")
    compile: bool = False
    bfloat16: bool = False


def make_optimiser(model: BertForPreTraining, config: PretrainingConfig) -> torch.optim.AdamW:
    """AdamW without weight decay of biases and layer norms."""
    matrices = [weights for weights in model.parameters() if weights.ndim > 1]
    vectors = [weights for weights in model.parameters() if weights.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    fused = model.device.type == "cuda"
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.98), eps=1e-6, fused=fused)


def step_losses(model: BertForPreTraining, batch: PretrainingBatch) -> tuple[Tensor, Tensor]:
    """Mean MLM and NSP loss in nats over full and short sequences together."""
    full = summed_losses(model, batch.full, batch.full_masked, has_padding=False)
    short = summed_losses(model, batch.short, batch.short_masked, has_padding=True)
    mlm = (full.mlm + short.mlm) / (full.mlm_count + short.mlm_count)
    nsp = (full.nsp + short.nsp) / (full.nsp_count + short.nsp_count)
    return mlm, nsp


def autocast(device: torch.device, *, bfloat16: bool) -> AbstractContextManager[object]:
    """bfloat16 arithmetic if asked for; the weights are float32 in any case."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if bfloat16 else nullcontext()


def train(stream: TokenStream, config: PretrainingConfig, run: RunOptions) -> BertForPreTraining:
    """Train to the last step or for `stop_after` seconds; an earlier run in the same directory is resumed."""
    run.directory.mkdir(parents=True, exist_ok=True)
    model = make_model(config.model, seed=config.seed).train()
    torch.nn.Module.to(model, stream.device)
    if stream.device.type == "cpu":
        # For rows of 128 tokens, the backward pass of fused attention takes several times as long on a CPU.
        model.set_attn_implementation("eager")
    optimiser = make_optimiser(model, config)
    done = load_checkpoint(run.directory, config, model, optimiser)
    export_steps = {max(1, config.steps * percent // 100): percent for percent in EXPORT_PERCENTAGES}
    compute_losses = torch.compile(step_losses) if run.compile else step_losses
    start = time.monotonic()
    last_log_time, last_log_step = start, done
    with (run.directory / "log.jsonl").open("a", encoding="utf-8") as log:
        for step in range(done, config.steps):
            batch = sample_batch(stream, config, step)
            torch.manual_seed(step_seed(config, step))
            with autocast(stream.device, bfloat16=run.bfloat16):
                mlm_loss, nsp_loss = compute_losses(model, batch)
            optimiser.zero_grad(set_to_none=True)
            (mlm_loss + nsp_loss).backward()
            grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config.max_grad_norm)
            for group in optimiser.param_groups:
                group["lr"] = learning_rate_at(config, step)
            optimiser.step()
            done = step + 1
            if done in export_steps:
                export_model(model, run.tokeniser, run.directory / f"at-{export_steps[done]}")
            if done % run.log_every == 0 or done == config.steps:
                now = time.monotonic()
                values = {
                    "step": done,
                    "mlm_loss": mlm_loss.item(),
                    "nsp_loss": nsp_loss.item(),
                    "grad_norm": grad_norm.item(),
                    "tokens_per_second": config.tokens_per_step * (done - last_log_step) / (now - last_log_time),
                    "seconds": now - start,
                }
                last_log_time, last_log_step = now, done
                print(json.dumps(values), file=log, flush=True)
                if now - start > run.stop_after:
                    break
            if done % run.checkpoint_every == 0:
                save_checkpoint(run.directory, config, done, model, optimiser)
    save_checkpoint(run.directory, config, done, model, optimiser)
    return model


HELP = {
    "layers": "number of layers",
    "heads": "attention heads per layer",
    "width": "size of the hidden states",
    "feed_forward_width": "size of the feed-forward layers",
    "max_length": "tokens of a full pair, and the number of position embeddings",
    "vocab_size": "size of the tokeniser's vocabulary",
    "dropout": "dropout of hidden states and embeddings",
    "attention_dropout": "dropout of attention weights",
    "seed": "random seed (initial weights, sampling, masking, dropout)",
    "batch_size": "full pairs per step",
    "short_batch_size": "short sequences per step: half single sentences, half pairs",
    "short_max_length": "maximum tokens of a short sequence",
    "length_exponent": "documents are sampled by their length to this power",
    "learning_rate": "peak learning rate of AdamW",
    "warmup_steps": "steps of linear warm-up",
    "weight_decay": "weight decay of matrices",
    "max_grad_norm": "gradient norm is clipped to this value",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pretraining.train",
        description=main.__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    suppress = argparse.SUPPRESS
    parser.add_argument("tokens", type=Path, help="archive from pretraining.tokens")
    parser.add_argument("tokeniser", type=Path, help="directory from pretraining.vocabulary")
    parser.add_argument("-o", "--output", type=Path, required=True, default=suppress, help="run directory")
    parser.add_argument("--steps", type=int, required=True, default=suppress, help="number of training steps")
    for defaults in (ModelSize(), PretrainingConfig(steps=1)):
        for setting in fields(defaults):
            if setting.name in HELP:
                value = getattr(defaults, setting.name)
                option = f"--{setting.name.replace('_', '-')}"
                parser.add_argument(option, type=type(value), default=value, help=HELP[setting.name])
    parser.add_argument("--checkpoint-every", type=int, default=1_000, help="steps between checkpoints")
    parser.add_argument("--log-every", type=int, default=100, help="steps between lines of log.jsonl")
    parser.add_argument(
        "--stop-after", type=float, default=float("inf"), help="stop after this many seconds; the run can be resumed"
    )
    parser.add_argument("--no-compile", action="store_true", help="do not compile the model on a GPU")
    parser.add_argument(
        "--bfloat16", action="store_true", help="bfloat16 arithmetic on a CPU that has it (a GPU always uses it)"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu or cuda")
    return parser


def main() -> None:
    """Train a BERT on encoded text and export it, in Hugging Face format, to at-PERCENT in the run directory.

    An unfinished run in the same directory is resumed.
    """
    options = _parser().parse_args()
    size = ModelSize(**{setting.name: getattr(options, setting.name) for setting in fields(ModelSize)})
    settings = {setting.name for setting in fields(PretrainingConfig)} - {"model"}
    config = PretrainingConfig(model=size, **{name: getattr(options, name) for name in settings})
    run = RunOptions(
        directory=options.output,
        tokeniser=options.tokeniser,
        checkpoint_every=options.checkpoint_every,
        log_every=options.log_every,
        stop_after=options.stop_after,
        compile=options.device.startswith("cuda") and not options.no_compile,
        bfloat16=options.bfloat16 or options.device.startswith("cuda"),
    )
    torch.set_float32_matmul_precision("high")
    stream = make_stream(
        load_encoded_text(options.tokens),
        max_length=size.max_length,
        length_exponent=config.length_exponent,
        device=options.device,
    )
    train(stream, config, run)
    print(f"trained: {run.directory}", file=sys.stderr)


if __name__ == "__main__":
    main()
