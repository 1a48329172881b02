"""Cost of recording relative to a plain forward pass, compared with other libraries.

    python benchmarks/record.py                  # 1,000 sentences, everything, about ten minutes on two quiet cores
    python benchmarks/record.py --limit 250      # a quick look
    python benchmarks/record.py --memory         # peak memory at 1,000, 4,000 and 12,000 sentences

Each method alternates with the limit (plain transformers with SDPA on the same batches, returning nothing) on 250
sentences at a time, so that other load affects both equally; ratios are medians over these pairs. One thread by
default, because threads that wait for each other on a busy machine use processor time.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

import torch

from bertology.analyses.attention.entropy import entropy_site
from bertology.analyses.attention.targets.analysis import targets_site
from bertology.recording.recorder import record
from recording_cost.memory import print_memory
from recording_cost.peers import PEERS, MakeRun, NotInstalled
from recording_cost.setup import BenchmarkSetup, load_sentences, padding_ratio, prepare_setup
from timing import NAME_WIDTH, Run, Time, measure_time

TARGET = 1.10
CHUNK_SENTENCES = 250
LIMIT = "plain SDPA forward pass: the limit"


Pair = tuple[Time, Time]
"""The time of a method and that of the limit."""


def main() -> None:
    options = _options()
    if options.memory:
        print_memory(options.model, keep_kernels=options.keep_kernels)
        return
    torch.set_num_threads(options.threads)
    full = prepare_setup(options.model, load_sentences(options.limit))
    chunks = [
        full.with_corpus(full.corpus[start : start + CHUNK_SENTENCES])
        for start in range(0, len(full.corpus), CHUNK_SENTENCES)
    ]
    _print_setup(full, chunks)
    measure_time(_limit(chunks[0]))  # warms up
    pairs = _alternate(chunks, BERTOLOGY_METHODS, options.rounds)
    seconds = len(chunks) * statistics.median(limit.wall for _, limit in next(iter(pairs.values())))
    print(f"{'':<{NAME_WIDTH}}{'seconds':>9}{'x limit':>9}{'x limit':>9}  interquartile")
    print(f"{'':<{NAME_WIDTH}}{'':>9}{'(clock)':>9}{'(cpu)':>9}  range (cpu)")
    print(f"{LIMIT:<{NAME_WIDTH}}{seconds:>9.1f}{1:>9.2f}{1:>9.2f}")
    worst = max(_print_row(name, method_pairs, len(chunks)) for name, method_pairs in pairs.items())
    for name, make_run in {} if options.no_peers else PEERS.items():
        try:
            _print_row(name, _alternate(chunks, {name: make_run}, 1)[name], len(chunks))
        except NotInstalled:
            print(f"{name:<{NAME_WIDTH}}not installed")
    print(f"\ntarget: at most {TARGET:.2f} x the limit; highest of bertology by processor time {worst:.2f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=1000, help="number of sentences")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of bertology's methods on all sentences")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument(
        "--model", default="", help="model (default: ../shared/models/gte-small if present, otherwise a built-in one)"
    )
    parser.add_argument("--no-peers", action="store_true", help="skip the comparison with other libraries")
    parser.add_argument("--memory", action="store_true", help="peak memory of reduced sites instead of time")
    parser.add_argument("--keep-kernels", action="store_true", help="with --memory, let oneDNN cache kernels")
    return parser.parse_args()


def _limit(setup: BenchmarkSetup) -> Run:
    """Plain transformers with SDPA on bertology's batches, returning nothing."""
    batches = setup.batches()
    model = setup.plain_model("sdpa")

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                model(
                    input_ids=batch.input_ids, attention_mask=batch.attention_mask, token_type_ids=batch.token_type_ids
                )

    return run


def _attention_and_hidden(setup: BenchmarkSetup) -> Run:
    return lambda: record(setup.encoder, setup.corpus, ["attention", "hidden"])


def _targets(setup: BenchmarkSetup) -> Run:
    return lambda: record(setup.encoder, setup.corpus, [targets_site])


def _targets_and_entropy(setup: BenchmarkSetup) -> Run:
    return lambda: record(setup.encoder, setup.corpus, [targets_site, entropy_site])


BERTOLOGY_METHODS: dict[str, MakeRun] = {
    "bertology: all attention and hidden states": _attention_and_hidden,
    "bertology: 12 statistics of every head": _targets,
    "bertology: these and 3 entropies": _targets_and_entropy,
}


def _alternate(chunks: Sequence[BenchmarkSetup], methods: dict[str, MakeRun], rounds: int) -> dict[str, list[Pair]]:
    """Time the limit and every method on each chunk of sentences; every second chunk runs in reverse order."""
    pairs: dict[str, list[Pair]] = {name: [] for name in methods}
    for number, chunk in enumerate(chunk for _ in range(rounds) for chunk in chunks):
        order: list[tuple[str, Run]] = [
            ("", _limit(chunk)),
            *((name, make_run(chunk)) for name, make_run in methods.items()),
        ]
        times = {name: measure_time(run) for name, run in (reversed(order) if number % 2 else order)}
        for name in methods:
            pairs[name].append((times[name], times[""]))
    return pairs


def _print_setup(full: BenchmarkSetup, chunks: Sequence[BenchmarkSetup]) -> None:
    encoder = full.encoder
    tokens = sum(len(planned.tokens) for planned in full.plan.inputs)
    batches = sum(len(shard) for chunk in chunks for shard in chunk.plan.shards)
    padding = statistics.mean(padding_ratio(chunk.plan) for chunk in chunks)
    print(
        f"{encoder.name}: {encoder.layers} layers x {encoder.heads} heads x {encoder.width}, float32, "
        f"{torch.get_num_threads()} threads\n{len(full.corpus)} sentences of {full.corpus.name}, {tokens} tokens, "
        f"{len(chunks)} times {batches / len(chunks):.0f} batches with {padding:.0%} padding\n"
    )


def _print_row(name: str, pairs: Sequence[Pair], chunks: int) -> float:
    wall = statistics.median(method.wall / limit.wall for method, limit in pairs)
    ratios = [method.cpu / limit.cpu for method, limit in pairs]
    cpu = statistics.median(ratios)
    seconds = chunks * statistics.median(method.wall for method, _ in pairs)
    low, high = _quartiles(ratios)
    print(
        f"{name:<{NAME_WIDTH}}{seconds:>9.1f}{wall:>9.2f}{cpu:>9.2f}  {low:.2f} to {high:.2f} of {len(pairs)}",
        flush=True,
    )
    return cpu


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return quartiles[0], quartiles[2]


if __name__ == "__main__":
    main()
