"""What disabling every head and every layer costs, over one full pass for each.

    python benchmarks/ablation.py                # 500 sentences, about half an hour on one thread
    python benchmarks/ablation.py --limit 32     # a quick look
    python benchmarks/ablation.py --device cuda

A 12 x 12 encoder with a classifier on top, all 144 heads and all 12 layers disabled in turn by uniform attention, the
loss and the answer of every sentence taken each time. The limit is one full pass for each of the 156 over the same
sheets, sorted by length; it is run for some of them, all of which cost the same, and told for all. Beside it what is
common: sentences in file order, 32 at once, padded to the longest. The losses of both ways are compared.

What lies below a change is run once: of 12 layers 6.5 are left on average, and so at least 0.54 of the limit where
arithmetic is what costs, as on one thread of a processor; where starting a pass costs, many changes in one pass save
that as well. Last, how much faster the model is once heads are cut out of it for good.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import torch

from bertology.corpus.corpus import Corpus
from bertology.encoder.huggingface import HuggingFaceEncoder, untrained_bert
from bertology.encoder.load import load
from bertology.encoder.pruning import prune
from bertology.encoder.task_heads import with_head
from bertology.encoder.tiny import tokenizer_definition
from bertology.encoder.variant import Variant
from bertology.finetuning.examples import classified, pad
from bertology.finetuning.learner import in_rows
from bertology.measures.causes.ablation import Ablation, HeadChange
from bertology.measures.causes.examination import Examination, Marks, examine
from bertology.measures.work import Work
from recording_cost.material import MODEL, corpus_of
from timing import NAME_WIDTH, Time, measured

MARK = 0.3
SENTENCES, SAMPLED, AT_ONCE = 500, 6, 32
LABELS = ("no", "yes")
SHARES_CUT = (0.25, 0.5, 0.75)


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    encoder, corpus = _encoder(options), _labelled(corpus_of(options.limit))
    examination = examine(encoder, corpus)
    changes = _changes(encoder)
    sample = [changes[place] for place in np.linspace(0, len(changes) - 1, SAMPLED).astype(int)]
    ours, full = Ablation(encoder), Ablation(encoder, whole_passes=True)
    ours.judge(_first_sheet(examination), sample, Work())  # warms up
    limit, expected = _timed(full, examination, sample)
    cost, found = _timed(ours, examination, changes)
    again, _ = _timed(full, examination, sample)
    times = len(changes) / (len(sample) + 1)  # the whole model is run besides
    whole = Time(times * (limit.wall + again.wall) / 2, times * (limit.cpu + again.cpu) / 2)
    common = measured(lambda: _in_file_order(encoder, corpus, full, sample))
    print(
        f"{encoder.name}: {encoder.layers} layers x {encoder.heads} heads, {encoder.device}, "
        f"{torch.get_num_threads()} threads, {len(examination.items)} sentences, {len(changes)} changes"
    )
    print(f"{'':<{NAME_WIDTH}}{'seconds':>9}{'x limit':>9}{'x limit':>9}")
    print(f"{'':<{NAME_WIDTH}}{'':>9}{'(clock)':>9}{'(cpu)':>9}")
    rows = {
        "one full pass a change: the limit": whole,
        "bertology: from the changed layer on": cost,
        "one full pass a change, sentences in file order": Time(times * common.wall, times * common.cpu),
    }
    for name, taken in rows.items():
        print(f"{name:<{NAME_WIDTH}}{taken.wall:>9.1f}{taken.wall / whole.wall:>9.2f}{taken.cpu / whole.cpu:>9.2f}")
    print(f"\nlargest difference of a loss: {_difference(expected, found, changes, sample):.1e}")
    print(f"mark: at most {MARK:.2f} x the limit; by the clock {cost.wall / whole.wall:.2f}")
    _print_pruned(encoder, examination)


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


def _first_sheet(examination: Examination) -> Examination:
    return replace(examination, sheets=examination.sheets[:1])


def _timed(way: Ablation, examination: Examination, changes: list[HeadChange]) -> tuple[Time, list[Marks]]:
    found: list[Marks] = []
    return measured(lambda: found.extend(way.judge(examination, changes, Work()))), found


def _in_file_order(encoder: HuggingFaceEncoder, corpus: Corpus, way: Ablation, changes: list[HeadChange]) -> None:
    examples = classified(list(corpus), encoder.tokenise, LABELS, longest=encoder.max_pieces).examples
    places = [list(range(start, min(start + AT_ONCE, len(examples)))) for start in range(0, len(examples), AT_ONCE)]
    batches = [in_rows(pad(examples, some).shown, encoder.device) for some in places]
    with torch.no_grad():
        for run in (encoder.run, *(encoder.gated(way.gates(change)).run for change in changes)):
            for batch in batches:
                run(batch).logits["label"].cpu()


def _difference(
    expected: list[Marks], found: list[Marks], changes: list[HeadChange], sample: list[HeadChange]
) -> float:
    own = [found[0], *(found[1 + changes.index(change)] for change in sample)]
    return max(float(np.abs(a.losses - b.losses).max()) for a, b in zip(expected, own, strict=True))


def _print_pruned(encoder: HuggingFaceEncoder, examination: Examination) -> None:
    """Random heads, a share of every layer: which ones are gone does not change the time."""
    print(f"\n{'heads cut out for good':<{NAME_WIDTH}}{'seconds':>9}{'speed-up':>9}")
    whole = min(measured(lambda: examination.marks(encoder.run)).wall for _ in range(2))
    print(f"{'none':<{NAME_WIDTH}}{whole:>9.2f}{1.0:>9.2f}")
    for share in SHARES_CUT:
        kept = np.ones((encoder.layers, encoder.heads), np.bool_)
        kept[:, : round(share * encoder.heads)] = False
        pruned = prune(encoder, kept)
        taken = min(measured(lambda pruned=pruned: examination.marks(pruned.run)).wall for _ in range(2))
        told = f"{int((~kept).sum())} of {kept.size}"
        print(f"{told:<{NAME_WIDTH}}{taken:>9.2f}{whole / taken:>9.2f}", flush=True)


if __name__ == "__main__":
    main()
