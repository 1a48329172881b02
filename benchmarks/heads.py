"""Cost of scoring every head as a dependency parser, relative to a plain eager forward pass.

    python benchmarks/heads.py                # 2,000 sentences, about ten minutes
    python benchmarks/heads.py --limit 200    # a quick look

The limit is plain transformers with eager attention on the same batches, returning nothing. It is compared with all of
`heads/dependency` (tokenising, batching, recording, counting all heads in both directions by relation, selecting on
random halves, bootstrap) and with recording alone. Methods alternate; ratios are medians over pairs, on one thread by
default.
"""

from __future__ import annotations

import argparse

import torch

from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.recording.recorder import record
from bertology.recording.sites import strongest_word_site
from recording_cost.setup import BenchmarkSetup, load_sentences, prepare_setup
from timing import NAME_WIDTH, Run, interleave, measure_time, print_header, print_row

TARGET = 1.3
SENTENCES = 2000
SCORED = "heads/dependency: recording, counting, selecting"


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    setup = prepare_setup(options.model, load_sentences(options.limit))
    limit = _limit(setup)
    measure_time(limit)  # warms up
    methods: dict[str, Run] = {
        SCORED: lambda: _run_analysis(setup),
        "recording alone: the strongest word of every word": lambda: _record_site(setup),
    }
    results, seconds = interleave(limit, methods, options.rounds)
    encoder = setup.encoder
    words = sum(len(example.segments[0]) for example in setup.corpus)
    print(
        f"{encoder.name}: {encoder.layers} layers x {encoder.heads} heads, {torch.get_num_threads()} threads, "
        f"{len(setup.corpus)} sentences, {words} words"
    )
    print_header()
    print(f"{'plain eager forward pass: the limit':<{NAME_WIDTH}}{seconds:>9.2f}     1.00     1.00")
    for name, ratio in results.items():
        print_row(name, ratio)
    print(f"\ntarget: at most {TARGET:.2f} x the limit; by processor time {results[SCORED].cpu:.2f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=SENTENCES, help="number of sentences")
    parser.add_argument("--rounds", type=int, default=5, help="number of interleaved repetitions")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument(
        "--model", default="", help="model (default: ../shared/models/gte-small if present, otherwise a built-in one)"
    )
    return parser.parse_args()


def _limit(setup: BenchmarkSetup) -> Run:
    batches = setup.batches()
    model = setup.plain_model("eager")

    def forward() -> None:
        with torch.inference_mode():
            for batch in batches:
                model(
                    input_ids=batch.input_ids, attention_mask=batch.attention_mask, token_type_ids=batch.token_type_ids
                )

    return forward


def _run_analysis(setup: BenchmarkSetup) -> None:
    run_analysis(registry.get("heads/dependency"), RunInputs(setup.corpus, setup.encoder, random_baseline=False))


def _record_site(setup: BenchmarkSetup) -> None:
    """Record, and check that the stored arrays grow linearly with the length."""
    site = strongest_word_site()
    recording = record(setup.encoder, setup.corpus, [site])
    heads = setup.encoder.layers * setup.encoder.heads
    sizes = [4 * heads * recorded_input.tokens.n_words for recorded_input in recording.inputs]
    assert [array.size for array in recording[site]] == sizes


if __name__ == "__main__":
    main()
