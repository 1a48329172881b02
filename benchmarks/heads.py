"""What scoring every head as a dependency parser costs over the bare eager forward pass.

    python benchmarks/heads.py                # 2,000 sentences, about ten minutes
    python benchmarks/heads.py --limit 200    # a quick look

The limit is plain transformers with eager attention on the batches that bertology makes, nothing returned. Beside it
the whole of `heads/dependency`, tokenising and batching included: recording, counting all heads in both directions by
relation, choosing on one half, bootstrap and all; and recording alone. Ways are run in turns and told as the median of
paired ratios, on one thread unless --threads says otherwise.
"""

from __future__ import annotations

import argparse

import torch

from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.recording.recorder import record
from bertology.recording.word_sites import strongest_word
from recording_cost.material import Setting, corpus_of, setting
from timing import NAME_WIDTH, Run, interleaved, measured, print_header, print_row

MARK = 1.3
SENTENCES = 2000
SCORED = "heads/dependency: recorded, counted, chosen"


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    ours = setting(options.model, corpus_of(options.limit))
    limit = _limit(ours)
    measured(limit)  # warms up
    ways: dict[str, Run] = {
        SCORED: lambda: _scored(ours),
        "its site alone: the strongest word of every word": lambda: _recorded(ours),
    }
    found, seconds = interleaved(limit, ways, options.rounds)
    encoder = ours.encoder
    words = sum(len(item.parts[0]) for item in ours.corpus)
    print(
        f"{encoder.name}: {encoder.layers} layers x {encoder.heads} heads, {torch.get_num_threads()} threads, "
        f"{len(ours.corpus)} sentences, {words} words"
    )
    print_header()
    print(f"{'bare eager forward, nothing returned: the limit':<{NAME_WIDTH}}{seconds:>9.2f}     1.00     1.00")
    for name, ratio in found.items():
        print_row(name, ratio)
    print(f"\nmark: at most {MARK:.2f} x the limit; by processor time {found[SCORED].cpu:.2f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=SENTENCES, help="sentences of the treebank")
    parser.add_argument("--rounds", type=int, default=5, help="times each way is run beside the limit")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--model", default="", help="a model; the real encoder beside the checkout, or a built-in one")
    return parser.parse_args()


def _limit(ours: Setting) -> Run:
    batches = ours.batches()
    model = ours.plain_model("eager")

    def forward() -> None:
        with torch.inference_mode():
            for batch in batches:
                model(input_ids=batch.ids, attention_mask=batch.mask, token_type_ids=batch.types)

    return forward


def _scored(ours: Setting) -> None:
    run(registry.get("heads/dependency"), Subject(ours.corpus, ours.encoder, randomise=False))


def _recorded(ours: Setting) -> None:
    """Record, and see that nothing was kept that grows with the square of the length."""
    site = strongest_word()
    recording = record(ours.encoder, ours.corpus, [site])
    heads = ours.encoder.layers * ours.encoder.heads
    sizes = [2 * heads * entry.pieces.words for entry in recording.entries]
    assert [array.size for array in recording[site]] == sizes


if __name__ == "__main__":
    main()
