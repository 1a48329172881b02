"""Cost of scoring every head as a dependency parser, relative to a plain eager forward pass.

    python benchmarks/heads.py                # 2,000 sentences, about ten minutes
    python benchmarks/heads.py --limit 200    # a quick look

The limit is plain transformers with eager attention on the batches that bertology makes, nothing returned. Beside it
the whole of `heads/dependency`, tokenising and batching included: recording, counting all heads in both directions by
relation, choosing on one half, bootstrap and all; and recording alone. Methods are run in turns; ratios are medians
over pairs, on one thread unless --threads says otherwise.
"""

from __future__ import annotations

import argparse

import torch

from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.recording.recorder import record
from bertology.recording.sites import strongest_word_site
from recording_cost.material import Setting, load_sentences, setting
from timing import NAME_WIDTH, Run, interleave, measure_time, print_header, print_row

TARGET = 1.3
SENTENCES = 2000
SCORED = "heads/dependency: recorded, counted, chosen"


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    subject = setting(options.model, load_sentences(options.limit))
    limit = _limit(subject)
    measure_time(limit)  # warms up
    methods: dict[str, Run] = {
        SCORED: lambda: _scored(subject),
        "its site alone: the strongest word of every word": lambda: _recorded(subject),
    }
    results, seconds = interleave(limit, methods, options.rounds)
    encoder = subject.encoder
    words = sum(len(example.segments[0]) for example in subject.corpus)
    print(
        f"{encoder.name}: {encoder.layers} layers x {encoder.heads} heads, {torch.get_num_threads()} threads, "
        f"{len(subject.corpus)} sentences, {words} words"
    )
    print_header()
    print(f"{'bare eager forward, nothing returned: the limit':<{NAME_WIDTH}}{seconds:>9.2f}     1.00     1.00")
    for name, ratio in results.items():
        print_row(name, ratio)
    print(f"\ntarget: at most {TARGET:.2f} x the limit; by processor time {results[SCORED].cpu:.2f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=SENTENCES, help="sentences of the treebank")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of interleave measurement")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument(
        "--model", default="", help="model (default: ../shared/models/gte-small if present, otherwise built-in)"
    )
    return parser.parse_args()


def _limit(subject: Setting) -> Run:
    batches = subject.batches()
    model = subject.plain_model("eager")

    def forward() -> None:
        with torch.inference_mode():
            for batch in batches:
                model(
                    input_ids=batch.input_ids, attention_mask=batch.attention_mask, token_type_ids=batch.token_type_ids
                )

    return forward


def _scored(subject: Setting) -> None:
    run_analysis(registry.get("heads/dependency"), RunInputs(subject.corpus, subject.encoder, random_baseline=False))


def _recorded(subject: Setting) -> None:
    """Record, and check that nothing stored grows with the square of the length."""
    site = strongest_word_site()
    recording = record(subject.encoder, subject.corpus, [site])
    heads = subject.encoder.layers * subject.encoder.heads
    sizes = [2 * heads * recorded_input.tokens.n_words for recorded_input in recording.inputs]
    assert [array.size for array in recording[site]] == sizes


if __name__ == "__main__":
    main()
