"""Train: MLM and NSP with AdamW, checkpointed and resumable, early models kept (Devlin et al. 2019)."""

import argparse
import json
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertForPreTraining

from pretraining.batch import Batch, draw_batch, step_seed
from pretraining.checkpoint import load_checkpoint, save_checkpoint
from pretraining.export import export_model
from pretraining.model import Shape, losses, make_model
from pretraining.recipe import Recipe, learning_rate
from pretraining.stream import Stream, make_stream
from pretraining.tokens import load_tokens

EARLY = (1, 3, 10, 30, 100)
"""Percentages of the steps after which the model is kept."""


@dataclass(frozen=True)
class Run:
    """Where a run writes and how often; nothing in it changes the weights."""

    folder: Path
    tokeniser: Path
    every: int = 1_000
    report: int = 100
    stop_after: float = float("inf")
    compiled: bool = False


def make_optimiser(model: BertForPreTraining, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW; biases and layer norms are not decayed."""
    matrices = [weights for weights in model.parameters() if weights.ndim > 1]
    others = [weights for weights in model.parameters() if weights.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": recipe.decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98), eps=1e-6, fused=model.device.type == "cuda")


def step_loss(model: BertForPreTraining, batch: Batch) -> tuple[Tensor, Tensor]:
    """Mean loss in nats of a hidden piece and of a next sentence, over full and short rows together."""
    full = losses(model, batch.full, batch.full_hidden, padded=False)
    short = losses(model, batch.short, batch.short_hidden, padded=True)
    words = (full.words + short.words) / (full.word_count + short.word_count)
    sentences = (full.sentences + short.sentences) / (full.sentence_count + short.sentence_count)
    return words, sentences


def precision(device: torch.device) -> AbstractContextManager[object]:
    """bfloat16 arithmetic on a GPU, float32 on a CPU; the weights are float32 on both."""
    return torch.autocast("cuda", dtype=torch.bfloat16) if device.type == "cuda" else nullcontext()


def train(stream: Stream, recipe: Recipe, run: Run) -> BertForPreTraining:
    """Train to the last step or until `stop_after` seconds have passed, resuming what the folder holds."""
    run.folder.mkdir(parents=True, exist_ok=True)
    model = make_model(recipe.shape, seed=recipe.seed).train()
    torch.nn.Module.to(model, stream.device)
    optimiser = make_optimiser(model, recipe)
    done = load_checkpoint(run.folder, recipe, model, optimiser)
    kept = {max(1, recipe.steps * percent // 100): percent for percent in EARLY}
    loss = torch.compile(step_loss) if run.compiled else step_loss
    begin = time.monotonic()
    mark, marked = begin, done
    with (run.folder / "log.jsonl").open("a", encoding="utf-8") as log:
        for step in range(done, recipe.steps):
            batch = draw_batch(stream, recipe, step)
            torch.manual_seed(step_seed(recipe, step))
            with precision(stream.device):
                words, sentences = loss(model, batch)
            optimiser.zero_grad(set_to_none=True)
            (words + sentences).backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(recipe, step)
            optimiser.step()
            done = step + 1
            if done in kept:
                export_model(model, run.tokeniser, run.folder / f"at-{kept[done]}")
            if done % run.report == 0 or done == recipe.steps:
                values = {"step": done, "words": words.item(), "sentences": sentences.item(), "norm": norm.item()}
                now = time.monotonic()
                values["pieces_per_second"] = recipe.pieces * (done - marked) / (now - mark)
                values["seconds"] = now - begin
                mark, marked = now, done
                print(json.dumps(values), file=log, flush=True)
                if now - begin > run.stop_after:
                    break
            if done % run.every == 0:
                save_checkpoint(run.folder, recipe, done, model, optimiser)
    save_checkpoint(run.folder, recipe, done, model, optimiser)
    return model


def main() -> None:
    """Train a BERT on an archive of tokens; kept models are Hugging Face directories at-PERCENT in the output."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.train", description=main.__doc__)
    parser.add_argument("tokens", type=Path, help="what pretraining.tokens wrote")
    parser.add_argument("tokeniser", type=Path, help="what pretraining.vocabulary wrote")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="folder of the run; a stopped run there is resumed"
    )
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    shape, recipe = Shape(), Recipe(steps=1)
    for name in ("layers", "heads", "width", "inner", "positions", "vocabulary"):
        parser.add_argument(f"--{name}", type=int, default=getattr(shape, name))
    for name in ("dropout", "attention-dropout"):
        parser.add_argument(f"--{name}", type=float, default=getattr(shape, name.replace("-", "_")))
    for name in ("full-rows", "short-rows", "short-width", "warm-up"):
        parser.add_argument(f"--{name}", type=int, default=getattr(recipe, name.replace("-", "_")))
    for name in ("power", "rate", "decay", "clip"):
        parser.add_argument(f"--{name}", type=float, default=getattr(recipe, name.replace("-", "_")))
    parser.add_argument("--every", type=int, default=1_000, help="steps between checkpoints")
    parser.add_argument("--report", type=int, default=100, help="steps between lines of log.jsonl")
    parser.add_argument("--stop-after", type=float, default=float("inf"), help="seconds after which to stop, resumable")
    parser.add_argument("--no-compile", action="store_true", help="do not compile the model on a GPU")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    chosen = Recipe(
        steps=given.steps,
        seed=given.seed,
        shape=Shape(
            given.layers,
            given.heads,
            given.width,
            given.inner,
            given.positions,
            given.vocabulary,
            given.dropout,
            given.attention_dropout,
        ),
        full_rows=given.full_rows,
        short_rows=given.short_rows,
        short_width=given.short_width,
        power=given.power,
        rate=given.rate,
        warm_up=given.warm_up,
        decay=given.decay,
        clip=given.clip,
    )
    run = Run(
        folder=given.output,
        tokeniser=given.tokeniser,
        every=given.every,
        report=given.report,
        stop_after=given.stop_after,
        compiled=given.device.startswith("cuda") and not given.no_compile,
    )
    torch.set_float32_matmul_precision("high")
    stream = make_stream(
        load_tokens(given.tokens), width=chosen.shape.positions, power=chosen.power, device=given.device
    )
    train(stream, chosen, run)
    print(f"trained: {run.folder}", file=sys.stderr)


if __name__ == "__main__":
    main()
