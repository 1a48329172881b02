"""How fast probes are fitted: all layers and seeds together, beside one at a time.

    python benchmarks/probes.py                       # 200 sentences, a few minutes
    python benchmarks/probes.py --full                # all sentences of the training file
    python benchmarks/probes.py --part structural     # one part only
    python benchmarks/probes.py --part sentence --tasks tense,length --limit 600

`structural`: distance and depth probes of all layers x 3 seeds, against the same probes fitted one layer, one seed and
one sentence at a time. The loop makes the same updates from the same batches with PyTorch's own gradients and Adam, so
it ends at the same loss; once with a backward pass a sentence, once with one a batch over the sum of its losses. A last
loop updates after every sentence at the paper's rate. Of the loops a few layers and one seed are run, and the time they
take for an epoch is told for as many epochs as the published schedule gives all probes together.

`sentence`: classifiers of ten sentence tasks x all layers x 5 seeds, against scikit-learn's logistic regression in a
loop over them; `--limit` takes the first sentences of each task, `--full` all.

One thread; recording the states is in neither.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bertology.analyses.structural_probing.dataset import SITE, TreeBatches, TreeDataset, tree_dataset
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
from recording_cost.material import MODEL, TRAIN

SENTENCES = 200
LIMIT = 600
SEEDS = 3
RANK = 64
BATCH = 20
STRUCTURAL_TARGET = 10
KINDS: tuple[StructuralKind, ...] = ("distance", "depth")
PAPER_RATE = 0.001


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    for name in options.part or PARTS:
        PARTS[name](options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="a part only; may be given again")
    parser.add_argument("--sentences", type=int, default=SENTENCES, help="training sentences")
    parser.add_argument("--full", action="store_true", help="all sentences of the training file")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument(
        "--model", default="", help="model (default: ../shared/models/gte-small if present, otherwise built-in)"
    )
    parser.add_argument("--rank", type=int, default=RANK, help="structural: dimensions of the probes")
    parser.add_argument("--timed", type=int, default=2, help="structural: layers that the loops are run on")
    parser.add_argument("--tasks", default="", help="sentence: tasks, with commas between; all where it is left out")
    parser.add_argument("--limit", type=int, default=LIMIT, help="sentence: sentences of each task")
    return parser.parse_args()


def structural(options: argparse.Namespace) -> None:
    """Distance and depth probes of all layers and seeds, beside loops over them."""
    learned, held_out = _lessons(options).train_validation_split(0)
    layers = len(learned.states[0])
    members = probe_specs(KINDS, [options.rank], range(SEEDS))
    start = time.process_time()
    probes = fit_structural_probes(
        TreeBatches(learned, BATCH, "cpu"),
        TreeBatches(held_out, BATCH, "cpu"),
        members,
        FitSchedule(learning_rate=0.01),
    )
    ours = time.process_time() - start
    ours_loss = probes.losses.unflatten(1, (len(KINDS), SEEDS))
    print(
        f"\nstructural: {len(KINDS)} kinds x {layers} layers x {SEEDS} seeds of rank {options.rank}, "
        f"{len(learned.inputs)} sentences with {sum(learned.lengths)} words, {torch.get_num_threads()} threads"
    )
    print(f"{'':<44}{'cpu seconds':>12}{'x ours':>8}  held-out loss (distance, depth)")
    print(f"{'together':<44}{ours:>12.1f}{1:>8.1f}  {_told(ours_loss.mean((0, 2)))} over all", flush=True)
    chosen = [round(step * (layers - 1) / max(1, options.timed - 1)) for step in range(options.timed)]
    chosen = sorted(set(chosen)) if options.timed > 1 else [layers // 2]
    # The loops go on until the best epoch is more than four epochs old; so many epochs are counted for all probes.
    epochs = float((probes.epochs + PATIENCE + 1).clamp(max=FitSchedule().epochs).sum())
    ratios: dict[str, float] = {}
    for name, way in LOOPS.items():
        start = time.process_time()
        found = [[_looped(learned, held_out, layer, kind, options.rank, way) for kind in KINDS] for layer in chosen]
        taken = sum(epochs for row in found for _, epochs in row)
        seconds = (time.process_time() - start) / taken * epochs
        ratios[name] = seconds / ours
        own = _told(ours_loss[chosen, :, 0].mean(0))
        there = _told(torch.tensor([[loss for loss, _ in row] for row in found]).mean(0))
        losses = f"{there} in layers {chosen}, seed 0; together there {own}"
        print(f"{name:<44}{seconds:>12.1f}{ratios[name]:>8.1f}  {losses}", flush=True)
    least, most = min(ratios.values()), max(ratios.values())
    print(f"target: at least {STRUCTURAL_TARGET} x less than the loop; here {least:.1f} x to {most:.1f} x, by the loop")


def _told(losses: Tensor) -> str:
    return ", ".join(f"{loss:.3f}" for loss in losses.tolist())


def _encoder(options: argparse.Namespace) -> Encoder:
    return load(options.model or (str(MODEL) if MODEL.is_dir() else "tiny"))


def _lessons(options: argparse.Namespace) -> TreeDataset:
    corpus = load_corpus(
        str(TRAIN) if TRAIN.is_file() else "english", limit=None if options.full else options.sentences
    )
    recording = record(_encoder(options), corpus, [SITE], config=RecordingConfig(half_precision=options.full))
    return tree_dataset(recording, range(len(recording)))


@dataclass(frozen=True)
class _Way:
    """How a loop updates: after so many sentences, at what rate, and with how many backward passes."""

    size: int
    rate: float
    at_once: bool = False


LOOPS = {
    "loop, one sentence at a time, same updates": _Way(BATCH, 0.01),
    "loop, same updates, one backward a batch": _Way(BATCH, 0.01, at_once=True),
    "loop, an update after every sentence": _Way(1, PAPER_RATE),
}


@dataclass
class _Loop:
    """One probe of one layer, as one would write it down."""

    weights: Tensor
    kind: StructuralKind

    def loss(self, sentence: TreeSentence) -> Tensor:
        """Of one sentence."""
        moved = sentence.states @ self.weights
        if self.kind == "depth":
            return (moved.square().sum(-1) - sentence.depths).abs().sum() / len(moved)
        apart = (moved[:, None] - moved[None]).square().sum(-1)
        return (apart - sentence.distances).abs().sum() / len(moved) ** 2

    def slopes(self, batch: Sequence[TreeSentence], *, at_once: bool) -> None:
        """Gradients of the mean loss."""
        if at_once:
            (torch.stack([self.loss(sentence) for sentence in batch]).sum() / len(batch)).backward()
            return
        for sentence in batch:
            (self.loss(sentence) / len(batch)).backward()

    def held_out(self, batches: Sequence[Sequence[TreeSentence]]) -> float:
        """Mean loss over sentences."""
        with torch.no_grad():
            found = [float(self.loss(sentence)) for batch in batches for sentence in batch]
        return sum(found) / len(found)


def _looped(
    learned: TreeDataset, held_out: TreeDataset, layer: int, kind: StructuralKind, rank: int, way: _Way
) -> tuple[float, int]:
    """Fit one probe a sentence at a time by the schedule of `fit`; its lowest held-out loss, and how many epochs."""
    batches, judged = (_sentences(part, layer, way.size) for part in (learned, held_out))
    member = probe_specs([kind], [rank], [0])
    loop = _Loop(initial_weights(member, 1, batches[0][0].states.shape[-1])[0].requires_grad_(), kind)
    rate, lowest, best, epoch = way.rate, float("inf"), 0, 0
    adam = torch.optim.Adam([loop.weights], lr=rate)
    generator = torch.Generator().manual_seed(0)
    for epoch in range(FitSchedule().epochs):
        for place in torch.randperm(len(batches), generator=generator).tolist():
            adam.zero_grad()
            loop.slopes(batches[place], at_once=way.at_once)
            adam.step()
        found = loop.held_out(judged)
        if found >= lowest:
            rate *= LEARNING_RATE_FACTOR
            adam = torch.optim.Adam([loop.weights], lr=rate)
        if found < lowest - MIN_IMPROVEMENT:
            lowest, best = found, epoch
        if epoch - best > PATIENCE:
            break
    return lowest, epoch + 1


def _sentences(part: TreeDataset, layer: int, size: int) -> list[list[TreeSentence]]:
    """The sentences of each batch, with (word, width) states of one layer."""
    one = replace(part, states=part.states.select_layers([layer]))
    return [
        [sentence._replace(states=sentence.states[0].contiguous()) for sentence in batch.sentences()]
        for batch in TreeBatches(one, size, "cpu")
    ]


def sentence(options: argparse.Namespace) -> None:
    """Classifiers of the sentence tasks, beside scikit-learn's."""
    corpus = str(TRAIN) if TRAIN.is_file() else "english"
    chosen = [name for name in options.tasks.split(",") if name]
    compare(_encoder(options), corpus, chosen, 0 if options.full else options.limit, options.threads)


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {"structural": structural, "sentence": sentence}
"""What can be measured; each part is a function of the options that prints its own table."""


if __name__ == "__main__":
    main()
