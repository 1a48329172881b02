"""Speed of fitting probes: all layers and seeds together, compared with one at a time.

    python benchmarks/probes.py                       # 200 sentences, a few minutes
    python benchmarks/probes.py --full                # all sentences of the training file
    python benchmarks/probes.py --part structural     # one part only
    python benchmarks/probes.py --part sentence --tasks tense,length --limit 600

`structural`: distance and depth probes of all layers x 3 seeds, compared with loops over layers, seeds and sentences.
Two loops make the same updates on the same batches with PyTorch's autograd and Adam, and so reach the same loss: one
with a backward pass per sentence, one with a backward pass per batch. A third one updates after every sentence at the
paper's learning rate. The loops are run on a few layers and one seed; their time per epoch is extrapolated to the
number of epochs that the published schedule gives all probes together.

`sentence`: classifiers of ten sentence tasks x all layers x 5 seeds, compared with a loop over scikit-learn's logistic
regression, on the first `--limit` sentences of each task or on all of them (`--full`).

One thread by default; recording is not timed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.structural_probing.dataset import TreeBatches, TreeDataset, tree_dataset
from bertology.analyses.structural_probing.fitting import (
    LEARNING_RATE_FACTOR,
    MIN_IMPROVEMENT,
    PATIENCE,
    FitSchedule,
    fit_structural_probes,
)
from bertology.analyses.structural_probing.probe import StructuralKind, initial_weights, probe_specs
from bertology.analyses.structural_probing.tree_batch import TreeSentence
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from probe_cost.sentence_tasks import compare
from recording_cost.setup import MODEL, TRAIN

SENTENCES = 200
SENTENCES_PER_TASK = 600
SEEDS = 3
RANK = 64
BATCH_SIZE = 20
STRUCTURAL_TARGET = 10
KINDS: tuple[StructuralKind, ...] = ("distance", "depth")
PAPER_LEARNING_RATE = 0.001


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    for name in options.part or PARTS:
        PARTS[name](options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="run only this part; may be repeated")
    parser.add_argument("--sentences", type=int, default=SENTENCES, help="structural: number of training sentences")
    parser.add_argument("--full", action="store_true", help="all sentences of the training file")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument(
        "--model", default="", help="model (default: ../shared/models/gte-small if present, otherwise a built-in one)"
    )
    parser.add_argument("--rank", type=int, default=RANK, help="structural: rank of the probes")
    parser.add_argument(
        "--n-layers", type=int, default=2, help="structural: number of layers on which the loops are run"
    )
    parser.add_argument("--tasks", default="", help="sentence: comma-separated tasks (default: all)")
    parser.add_argument("--limit", type=int, default=SENTENCES_PER_TASK, help="sentence: number of sentences per task")
    return parser.parse_args()


def structural(options: argparse.Namespace) -> None:
    """Distance and depth probes of all layers and seeds, compared with loops over them."""
    train, validation = _dataset(options).train_validation_split(0)
    layers = len(train.states[0])
    specs = probe_specs(KINDS, [options.rank], range(SEEDS))
    start = time.process_time()
    probes = fit_structural_probes(
        TreeBatches(train, BATCH_SIZE, "cpu"),
        TreeBatches(validation, BATCH_SIZE, "cpu"),
        specs,
        FitSchedule(learning_rate=0.01),
    )
    batched_seconds = time.process_time() - start
    batched_losses = probes.losses.unflatten(1, (len(KINDS), SEEDS))
    print(
        f"\nstructural: {len(KINDS)} kinds x {layers} layers x {SEEDS} seeds of rank {options.rank}, "
        f"{len(train.inputs)} sentences with {sum(train.lengths)} words, {torch.get_num_threads()} threads"
    )
    print(f"{'':<50}{'cpu seconds':>12}{'ratio':>8}  held-out loss (distance, depth)")
    all_layers = f"{_format_losses(batched_losses.mean((0, 2)))} over all layers"
    print(f"{'all together':<50}{batched_seconds:>12.1f}{1:>8.1f}  {all_layers}", flush=True)
    layer_indices = [round(step * (layers - 1) / max(1, options.n_layers - 1)) for step in range(options.n_layers)]
    layer_indices = sorted(set(layer_indices)) if options.n_layers > 1 else [layers // 2]
    # The loops stop PATIENCE + 1 epochs after the best one.
    epochs = float((probes.epochs + PATIENCE + 1).clamp(max=FitSchedule().epochs).sum())
    ratios: dict[str, float] = {}
    for name, loop in LOOPS.items():
        start = time.process_time()
        fits = [
            [_fit_in_loop(train, validation, layer, kind, options.rank, loop) for kind in KINDS]
            for layer in layer_indices
        ]
        loop_epochs = sum(epochs for row in fits for _, epochs in row)
        seconds = (time.process_time() - start) / loop_epochs * epochs
        ratios[name] = seconds / batched_seconds
        batched_loss = _format_losses(batched_losses[layer_indices, :, 0].mean(0))
        loop_loss = _format_losses(torch.tensor([[loss for loss, _ in row] for row in fits]).mean(0))
        losses = f"{loop_loss} in layers {layer_indices}, seed 0; all together {batched_loss}"
        print(f"{name:<50}{seconds:>12.1f}{ratios[name]:>8.1f}  {losses}", flush=True)
    lowest, highest = min(ratios.values()), max(ratios.values())
    print(f"target: at least {STRUCTURAL_TARGET} x less than a loop; measured {lowest:.1f} x to {highest:.1f} x")


def _format_losses(losses: Tensor) -> str:
    return ", ".join(f"{loss:.3f}" for loss in losses.tolist())


def _encoder(options: argparse.Namespace) -> Encoder:
    return load(options.model or (str(MODEL) if MODEL.is_dir() else "tiny"))


def _dataset(options: argparse.Namespace) -> TreeDataset:
    corpus = load_corpus(
        str(TRAIN) if TRAIN.is_file() else "english", limit=None if options.full else options.sentences
    )
    recording = record(_encoder(options), corpus, [WORD_SITE], config=RecordingConfig(half_precision=options.full))
    return tree_dataset(recording, range(len(recording)))


@dataclass(frozen=True)
class LoopConfig:
    """Sentences per update, learning rate, and whether there is one backward pass per batch or per sentence."""

    batch_size: int
    learning_rate: float
    backward_per_batch: bool = False


LOOPS = {
    "loop, same updates, a backward pass per sentence": LoopConfig(BATCH_SIZE, 0.01),
    "loop, same updates, a backward pass per batch": LoopConfig(BATCH_SIZE, 0.01, backward_per_batch=True),
    "loop, an update after every sentence": LoopConfig(1, PAPER_LEARNING_RATE),
}


@dataclass
class PlainProbe:
    """One probe of one layer in plain PyTorch."""

    weights: Tensor
    kind: StructuralKind

    def loss(self, sentence: TreeSentence) -> Tensor:
        """The loss of one sentence."""
        projected = sentence.states @ self.weights
        if self.kind == "depth":
            return (projected.square().sum(-1) - sentence.depths).abs().sum() / len(projected)
        distances = (projected[:, None] - projected[None]).square().sum(-1)
        return (distances - sentence.distances).abs().sum() / len(projected) ** 2

    def backward(self, batch: Sequence[TreeSentence], *, per_batch: bool) -> None:
        """Compute the gradients of the mean loss."""
        if per_batch:
            (torch.stack([self.loss(sentence) for sentence in batch]).sum() / len(batch)).backward()
            return
        for sentence in batch:
            (self.loss(sentence) / len(batch)).backward()

    def mean_loss(self, batches: Sequence[Sequence[TreeSentence]]) -> float:
        """Mean loss over sentences."""
        with torch.no_grad():
            losses = [float(self.loss(sentence)) for batch in batches for sentence in batch]
        return sum(losses) / len(losses)


def _fit_in_loop(
    train: TreeDataset, validation: TreeDataset, layer: int, kind: StructuralKind, rank: int, config: LoopConfig
) -> tuple[float, int]:
    """Fit one probe by the schedule of `fit_structural_probes`; its lowest validation loss and number of epochs."""
    train_batches, validation_batches = (
        _sentence_batches(part, layer, config.batch_size) for part in (train, validation)
    )
    spec = probe_specs([kind], [rank], [0])
    probe = PlainProbe(initial_weights(spec, 1, train_batches[0][0].states.shape[-1])[0].requires_grad_(), kind)
    learning_rate, lowest_loss, best_epoch, epoch = config.learning_rate, float("inf"), 0, 0
    adam = torch.optim.Adam([probe.weights], lr=learning_rate)
    generator = torch.Generator().manual_seed(0)
    for epoch in range(FitSchedule().epochs):
        for index in torch.randperm(len(train_batches), generator=generator).tolist():
            adam.zero_grad()
            probe.backward(train_batches[index], per_batch=config.backward_per_batch)
            adam.step()
        loss = probe.mean_loss(validation_batches)
        if loss >= lowest_loss:
            learning_rate *= LEARNING_RATE_FACTOR
            adam = torch.optim.Adam([probe.weights], lr=learning_rate)
        if loss < lowest_loss - MIN_IMPROVEMENT:
            lowest_loss, best_epoch = loss, epoch
        if epoch - best_epoch > PATIENCE:
            break
    return lowest_loss, epoch + 1


def _sentence_batches(dataset: TreeDataset, layer: int, batch_size: int) -> list[list[TreeSentence]]:
    """The sentences of each batch, with (word, width) states of one layer."""
    layer_dataset = replace(dataset, states=dataset.states.select_layers([layer]))
    return [
        [sentence._replace(states=sentence.states[0].contiguous()) for sentence in batch.sentences()]
        for batch in TreeBatches(layer_dataset, batch_size, "cpu")
    ]


def sentence(options: argparse.Namespace) -> None:
    """Classifiers of the sentence tasks, compared with scikit-learn's."""
    corpus = str(TRAIN) if TRAIN.is_file() else "english"
    tasks = [name for name in options.tasks.split(",") if name]
    compare(_encoder(options), corpus, tasks, 0 if options.full else options.limit, options.threads)


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {"structural": structural, "sentence": sentence}
"""Each part is a function of the options that prints a table."""


if __name__ == "__main__":
    main()
