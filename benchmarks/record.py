"""What recording costs over the bare forward pass, beside what people do today.

    python benchmarks/record.py                  # 1,000 sentences, everything, about ten minutes on two quiet cores
    python benchmarks/record.py --limit 250      # a quick look
    python benchmarks/record.py --memory         # peak memory at 1,000, 4,000 and 12,000 sentences

The sentences are taken 250 at a time. Every way is measured on them right beside the limit (plain transformers, SDPA,
the same batches, nothing returned) and told as the median of the ratios of such pairs, so that a busy machine disturbs
both alike. One thread by default: where others work on the machine, threads wait for each other, and their waiting
counts as processor time.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence

import torch

from bertology.analyses.attention.entropy import entropy_site
from bertology.analyses.attention.targets.analysis import targets_site
from bertology.recording.recorder import record
from recording_cost.material import Setting, load_sentences, padding, setting
from recording_cost.memory import print_memory
from recording_cost.peers import PEERS, Make, NotInstalled
from timing import NAME_WIDTH, Run, Time, measure_time

TARGET = 1.10
AT_ONCE = 250
LIMIT = "bare SDPA forward, nothing returned: the limit"


Pair = tuple[Time, Time]
"""A way, and the limit beside it."""


def main() -> None:
    options = _options()
    if options.memory:
        print_memory(options.model, keep_kernels=options.keep_kernels)
        return
    torch.set_num_threads(options.threads)
    whole = setting(options.model, load_sentences(options.limit))
    parts = [whole.part(whole.corpus[start : start + AT_ONCE]) for start in range(0, len(whole.corpus), AT_ONCE)]
    _print_setting(whole, parts)
    measure_time(_bare(parts[0]))  # warms up
    pairs = _in_turns(parts, OURS, options.rounds)
    seconds = len(parts) * statistics.median(bare.wall for _, bare in next(iter(pairs.values())))
    print(f"{'':<{NAME_WIDTH}}{'seconds':>9}{'x limit':>9}{'x limit':>9}  middle half")
    print(f"{'':<{NAME_WIDTH}}{'':>9}{'(clock)':>9}{'(cpu)':>9}  of the pairs (cpu)")
    print(f"{LIMIT:<{NAME_WIDTH}}{seconds:>9.1f}{1:>9.2f}{1:>9.2f}")
    worst = max(_print_row(name, found, len(parts)) for name, found in pairs.items())
    for name, make in {} if options.core else PEERS.items():
        try:
            _print_row(name, _in_turns(parts, {name: make}, 1)[name], len(parts))
        except NotInstalled:
            print(f"{name:<{NAME_WIDTH}}not installed")
    print(f"\ntarget: at most {TARGET:.2f} x the limit; the higher of bertology's by processor time is {worst:.2f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=1000, help="sentences")
    parser.add_argument("--rounds", type=int, default=3, help="times each way of ours is run on all sentences")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument(
        "--model", default="", help="model (default: ../shared/models/gte-small if present, otherwise built-in)"
    )
    parser.add_argument("--core", action="store_true", help="leave out what people do today")
    parser.add_argument("--memory", action="store_true", help="peak memory with reduced sites instead of time")
    parser.add_argument(
        "--keep-kernels", action="store_true", help="with --memory, let torch keep every kernel it made"
    )
    return parser.parse_args()


def _bare(ours: Setting) -> Run:
    """Plain transformers with SDPA on the batches that bertology makes; nothing is asked for and nothing kept."""
    batches = ours.batches()
    model = ours.plain_model("sdpa")

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                model(
                    input_ids=batch.input_ids, attention_mask=batch.attention_mask, token_type_ids=batch.token_type_ids
                )

    return run


def _everything(ours: Setting) -> Run:
    return lambda: record(ours.encoder, ours.corpus, ["attention", "hidden"])


def _shares(ours: Setting) -> Run:
    return lambda: record(ours.encoder, ours.corpus, [targets_site])


def _statistics(ours: Setting) -> Run:
    return lambda: record(ours.encoder, ours.corpus, [targets_site, entropy_site])


OURS: dict[str, Make] = {
    "bertology: all attention and hidden states": _everything,
    "bertology: 12 statistics of every head": _shares,
    "bertology: the same and 3 entropies": _statistics,
}


def _in_turns(parts: Sequence[Setting], ways: dict[str, Make], rounds: int) -> dict[str, list[Pair]]:
    """For each part of the sentences the limit and every way, then the next part in the other direction."""
    pairs: dict[str, list[Pair]] = {name: [] for name in ways}
    for number, part in enumerate(part for _ in range(rounds) for part in parts):
        order: list[tuple[str, Run]] = [("", _bare(part)), *((name, make(part)) for name, make in ways.items())]
        taken = {name: measure_time(run) for name, run in (reversed(order) if number % 2 else order)}
        for name in ways:
            pairs[name].append((taken[name], taken[""]))
    return pairs


def _print_setting(whole: Setting, parts: Sequence[Setting]) -> None:
    encoder = whole.encoder
    tokens = sum(len(entry.tokens) for entry in whole.plan.inputs)
    batches = sum(len(shard) for part in parts for shard in part.plan.shards)
    waste = statistics.mean(padding(part.plan) for part in parts)
    print(
        f"{encoder.name}: {encoder.layers} layers x {encoder.heads} heads x {encoder.width}, float32, "
        f"{torch.get_num_threads()} threads\n{len(whole.corpus)} sentences of {whole.corpus.name}, {tokens} tokens, "
        f"{len(parts)} times {batches / len(parts):.0f} batches with {waste:.0%} padding\n"
    )


def _print_row(name: str, pairs: Sequence[Pair], parts: int) -> float:
    wall = statistics.median(own.wall / bare.wall for own, bare in pairs)
    ratios = [own.cpu / bare.cpu for own, bare in pairs]
    cpu = statistics.median(ratios)
    seconds = parts * statistics.median(own.wall for own, _ in pairs)
    low, high = _middle_half(ratios)
    print(
        f"{name:<{NAME_WIDTH}}{seconds:>9.1f}{wall:>9.2f}{cpu:>9.2f}  {low:.2f} to {high:.2f} of {len(pairs)}",
        flush=True,
    )
    return cpu


def _middle_half(values: Sequence[float]) -> Iterator[float]:
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return iter((quartiles[0], quartiles[2]))


if __name__ == "__main__":
    main()
