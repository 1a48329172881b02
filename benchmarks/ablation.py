"""What disabling every head and every layer costs, over one full pass for each.

    python benchmarks/ablation.py                # 500 sentences, about ten minutes of one thread
    python benchmarks/ablation.py --limit 32     # a quick look
    python benchmarks/ablation.py --device cuda

A 12 x 12 encoder with a classifier on top, all 144 heads and all 12 layers disabled in turn (their output 0), the loss
and the answer of every sentence taken each time. Beside it what one full pass for each of the 156 costs, in plain
transformers with SDPA, the heads silenced by a hook before the output projection: the naive way, sentences in file
order, 32 at once, padded to the longest of them; and over the same sheets, sorted by length, that bertology has. Both
are run for some of the changes, all of which cost the same, and told for all. The losses of all ways are compared.

The mark is 0.3 of the naive way. Over the same sheets arithmetic alone leaves 0.44: what lies below a change is run
once, of the changed layer what comes after its heads is run (9 of 12 parts), of the last one what [CLS] reads, which is
next to nothing, and every layer between is run whole. Last, how much faster the model is once heads are cut out of it
for good.
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

from bertology.corpus.corpus import Corpus, Item
from bertology.encoder.blocks import LAYERS
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.pruning import prune
from bertology.encoder.task_heads import with_head
from bertology.encoder.tiny import tokenizer_definition
from bertology.encoder.transformer_files import untrained_bert
from bertology.encoder.variant import Variant, blocks_of
from bertology.measures.causes.ablation import Ablation, HeadChange
from bertology.measures.causes.examination import Examination, Marks, examine
from bertology.measures.work import Work
from recording_cost.material import MODEL, corpus_of
from timing import NAME_WIDTH, Time, measured

MARK = 0.3
SENTENCES, AT_ONCE = 500, 32
ROUNDS = 2
"""Before bertology's way and after it, each with changes of its own."""
LABELS = ("no", "yes")
SHARES_CUT = (0.25, 0.5, 0.75)

Losses = NDArray[np.float64]


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    encoder, corpus = _encoder(options), _labelled(corpus_of(options.limit))
    examination, changes = examine(encoder, corpus), _changes(encoder)
    ours = Ablation(encoder, "zero")
    ours.judge(replace(examination, sheets=examination.sheets[:1]), changes[:1], Work())  # warms up
    plain = _plain(encoder)
    batches = {"naive": _in_file_order(encoder, corpus), "sorted": _in_sheets(examination)}
    # One head early and late, one layer early and late: all cost the same.
    sample = [changes[place] for place in (5, -1, len(changes) // 2, -encoder.layers)]
    times: dict[str, list[Time]] = {way: [] for way in batches}
    expected: dict[str, list[Losses]] = {way: [] for way in batches}
    for change in sample[:ROUNDS]:
        _run_fully(plain, encoder, batches, change, times, expected)
    found: list[Marks] = []
    cost = measured(lambda: found.extend(ours.judge(examination, changes, Work())))
    for change in sample[ROUNDS:]:
        _run_fully(plain, encoder, batches, change, times, expected)
    print(
        f"{encoder.name}: {encoder.layers} layers x {encoder.heads} heads, {encoder.device}, "
        f"{torch.get_num_threads()} threads, {len(examination.items)} sentences, {len(changes)} changes"
    )
    _print_costs({way: _for_all(some, len(changes)) for way, some in times.items()}, cost, batches)
    print(f"arithmetic alone, over the same sheets: {_arithmetic(encoder):.2f}")
    own = [found[1 + changes.index(change)].losses for change in sample]
    for way, losses in expected.items():
        difference = max(float(np.abs(a - b).max()) for a, b in zip(losses, own, strict=True))
        print(f"largest difference of a loss from the {way} way: {difference:.1e}")
    _print_pruned(encoder, examination)


@dataclass(frozen=True)
class Rows:
    """A padded batch for a plain model, the gold classes of its rows and their places in the corpus."""

    given: dict[str, Tensor]
    gold: Tensor
    places: list[int]


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
        places = list(range(start, min(start + AT_ONCE, len(corpus))))
        texts = [corpus.items[place].parts[0].text for place in places]
        given = encoder.tokenizer(texts, padding=True, return_tensors="pt")
        batches.append(_rows(encoder.device, dict(given), [corpus.items[place] for place in places], places))
    return batches


def _in_sheets(examination: Examination) -> list[Rows]:
    """The sentences sorted by length, in the same batches that bertology runs."""
    return [
        _rows(
            str(sheet.shown.ids.device),
            {
                "input_ids": sheet.shown.ids,
                "token_type_ids": sheet.shown.types,
                "attention_mask": sheet.shown.mask,
            },
            [examination.items[place] for place in sheet.items],
            sheet.items,
        )
        for sheet in examination.sheets
    ]


def _rows(device: str, given: dict[str, Tensor], items: list[Item], places: list[int]) -> Rows:
    gold = torch.tensor([LABELS.index(str(item.label)) for item in items], device=device)
    return Rows({name: tensor.to(device) for name, tensor in given.items()}, gold, places)


def _run_fully(
    plain: Any,
    encoder: HuggingFaceEncoder,
    batches: dict[str, list[Rows]],
    change: HeadChange,
    times: dict[str, list[Time]],
    expected: dict[str, list[Losses]],
) -> None:
    """One full pass of a plain model for one change, in either way; what it took and the losses are noted."""
    hooks = _silencing(plain, encoder, change)
    for way, some in batches.items():
        losses = np.zeros(sum(len(rows.places) for rows in some))

        def run(some: list[Rows] = some, losses: Losses = losses) -> None:
            for rows in some:
                logits = plain(**rows.given).logits
                losses[rows.places] = nn.functional.cross_entropy(logits, rows.gold, reduction="none").cpu().numpy()
                logits.argmax(-1).cpu()

        with torch.no_grad():
            times[way].append(measured(run))
        expected[way].append(losses)
    for hook in hooks:
        hook.remove()


def _silencing(plain: Any, encoder: HuggingFaceEncoder, change: HeadChange) -> list[Any]:
    """The outputs of the heads of a change set to 0 before the output projection of their layer."""
    hooks: list[Any] = []
    for layer in np.flatnonzero(change.heads.any(1)):
        kept = torch.from_numpy(~change.heads[layer]).float().repeat_interleave(encoder.width // encoder.heads)
        block = blocks_of(plain)[int(layer)]
        projection = block.get_submodule(LAYERS[type(block).__name__].projection)

        def silence(_: nn.Module, given: tuple[Tensor], kept: Tensor = kept.to(encoder.device)) -> tuple[Tensor]:
            return (given[0] * kept,)

        hooks.append(projection.register_forward_pre_hook(silence))
    return hooks


def _for_all(some: list[Time], changes: int) -> Time:
    return Time(*(changes * statistics.mean(getattr(taken, kind) for taken in some) for kind in ("wall", "cpu")))


def _print_costs(full: dict[str, Time], ours: Time, batches: dict[str, list[Rows]]) -> None:
    naive, by_length = full["naive"], full["sorted"]
    pieces = {way: sum(rows.gold.numel() * rows.given["input_ids"].shape[1] for rows in batches[way]) for way in full}
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
    print(f"\nmark: at most {MARK:.2f} x naive; by processor time {ours.cpu / naive.cpu:.2f}")
    print(f"pieces a pass, padding among them: {pieces['naive']} naive, {pieces['sorted']} sorted by length")


def _arithmetic(encoder: HuggingFaceEncoder) -> float:
    """Products of the weights that are left, as a share of those of full passes; scores and softmax left out."""
    layers, wide = encoder.layers, encoder.model.config.intermediate_size / encoder.width
    after_heads = (1 + 2 * wide) / (4 + 2 * wide)  # the output projection and the feed-forward network
    return sum(after_heads + layers - 2 - layer for layer in range(layers - 1)) / layers**2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=SENTENCES, help="sentences of the treebank")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
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
    return with_head(bare, "label", LABELS, variant=Variant(), seed=0)


def _labelled(corpus: Corpus) -> Corpus:
    """With classes that mean nothing: what is timed is asking."""
    return replace(corpus, items=tuple(replace(item, label=LABELS[k % 2]) for k, item in enumerate(corpus)))


def _changes(encoder: HuggingFaceEncoder) -> list[HeadChange]:
    layers, heads = encoder.layers, encoder.heads
    single = np.eye(layers * heads, dtype=np.bool_).reshape(-1, layers, heads)
    whole = np.broadcast_to(np.eye(layers, dtype=np.bool_)[:, :, None], (layers, layers, heads))
    return [HeadChange(mask) for mask in (*single, *whole)]


def _print_pruned(encoder: HuggingFaceEncoder, examination: Examination) -> None:
    """The first heads, a share of every layer: which ones are gone does not change the time."""
    print(f"\n{'heads cut out for good':<{NAME_WIDTH}}{'seconds':>9}{'speed-up':>9}{'speed-up':>9}")
    print(f"{'':<{NAME_WIDTH}}{'':>9}{'(clock)':>9}{'(cpu)':>9}")
    whole = _quickest(encoder, examination)
    print(f"{'none':<{NAME_WIDTH}}{whole.wall:>9.2f}{1.0:>9.2f}{1.0:>9.2f}")
    for share in SHARES_CUT:
        kept = np.ones((encoder.layers, encoder.heads), np.bool_)
        kept[:, : round(share * encoder.heads)] = False
        taken = _quickest(prune(encoder, kept), examination)
        told = f"{int((~kept).sum())} of {kept.size}"
        speed_ups = f"{whole.wall / taken.wall:>9.2f}{whole.cpu / taken.cpu:>9.2f}"
        print(f"{told:<{NAME_WIDTH}}{taken.wall:>9.2f}{speed_ups}", flush=True)


def _quickest(encoder: HuggingFaceEncoder, examination: Examination) -> Time:
    """The quicker of two runs over all sentences, by the processor."""
    return min((measured(lambda: examination.marks(encoder.run)) for _ in range(2)), key=lambda taken: taken.cpu)


if __name__ == "__main__":
    main()
