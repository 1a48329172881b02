"""What recording costs over the bare forward pass, beside what people do today.

    python benchmarks/record.py                  # 1,000 sentences, everything, about ten minutes on two cores
    python benchmarks/record.py --limit 200      # a quick look
    python benchmarks/record.py --memory         # peak memory at 1,000, 4,000 and 12,000 sentences

Every way is measured beside the limit (plain transformers, SDPA, the same batches, nothing returned) in turns, and
told as the median of the ratios of such pairs, so that a busy machine disturbs both alike. One thread by default:
where others work on the machine, threads wait for each other, and their waiting counts as processor time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bertology.analyses.attention.entropy import ENTROPY
from bertology.analyses.attention.targets import TARGETS
from bertology.recording.recorder import Policy, record
from recording_cost.material import Setting, corpus_of, setting
from recording_cost.memory import print_memory
from recording_cost.peers import PEERS, NotInstalled, Run

MARK = 1.10
PEER_PAIRS = 2


@dataclass(frozen=True)
class Time:
    """What one run took: seconds by the clock, and seconds of processor of all threads."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Ratio:
    """Median of paired ratios to the limit, by the clock and by the processor, and the lowest and highest."""

    wall: float
    cpu: float
    low: float
    high: float
    pairs: int
    seconds: float


def main() -> None:
    options = _options()
    if options.memory:
        print_memory(options.model)
        return
    torch.set_num_threads(options.threads)
    ours = setting(options.model, corpus_of(options.limit), Policy())
    pieces = sum(len(entry.pieces) for entry in ours.plan.entries)
    batches = sum(len(shard) for shard in ours.plan.shards)
    encoder = ours.encoder
    print(
        f"{encoder.name}: {encoder.layers} layers x {encoder.heads} heads x {encoder.width}, float32, "
        f"{torch.get_num_threads()} threads\n{len(ours.corpus)} sentences of {ours.corpus.name}, {pieces} pieces in "
        f"{batches} batches ({ours.padding:.0%} padding)\n"
    )
    limit = _limit(ours)
    _measured(limit)  # warms up
    core: dict[str, Run] = {
        "bertology: all attention and hidden states": lambda: record(
            ours.encoder, ours.corpus, ["attention", "hidden"]
        ),
        "bertology: 15 statistics of every head": lambda: record(ours.encoder, ours.corpus, [TARGETS, ENTROPY]),
    }
    found, seconds = _interleaved(limit, core, options.rounds)
    _print_header()
    print(f"{'bare SDPA forward, nothing returned: the limit':<52}{seconds:>9.2f}     1.00     1.00")
    for name, ratio in found.items():
        _print_row(name, ratio)
    if not options.core:
        for name, make in PEERS.items():
            try:
                _print_row(name, _paired(limit, make(ours), PEER_PAIRS))
            except NotInstalled as absent:
                print(f"{name:<52}{absent}")
    worst = max(ratio.cpu for ratio in found.values())
    print(f"\nmark: at most {MARK:.2f} x the limit; highest of bertology by processor time {worst:.2f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=1000, help="sentences")
    parser.add_argument("--rounds", type=int, default=5, help="times each way of ours is run beside the limit")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--model", default="", help="a model; the real encoder beside the checkout, or a built-in one")
    parser.add_argument("--core", action="store_true", help="leave out what people do today")
    parser.add_argument("--memory", action="store_true", help="peak memory with reduced sites instead of time")
    return parser.parse_args()


def _limit(ours: Setting) -> Run:
    """Plain transformers with SDPA on the batches that bertology makes; nothing is asked for and nothing kept."""
    batches = ours.batches()
    model = ours.plain_model("sdpa")

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                model(input_ids=batch.ids, attention_mask=batch.mask, token_type_ids=batch.types)

    return run


def _measured(run: Run) -> Time:
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    taken = Time(time.perf_counter() - wall, time.process_time() - cpu)
    del result
    return taken


def _interleaved(limit: Run, ways: dict[str, Run], rounds: int) -> tuple[dict[str, Ratio], float]:
    """Each way's ratio, and the seconds of the limit; a round runs all of them, the next in the other direction."""
    order: list[tuple[str, Run]] = [("", limit), *ways.items()]
    times: dict[str, list[Time]] = {name: [] for name, _ in order}
    for number in range(rounds):
        for name, way in order if number % 2 == 0 else reversed(order):
            times[name].append(_measured(way))
    seconds = statistics.median(taken.wall for taken in times[""])
    return {name: _ratio(times[name], times[""]) for name in ways}, seconds


def _paired(limit: Run, way: Run, pairs: int) -> Ratio:
    taken = [(_measured(limit), _measured(way)) for _ in range(pairs)]
    return _ratio([own for _, own in taken], [bare for bare, _ in taken])


def _ratio(own: Sequence[Time], bare: Sequence[Time]) -> Ratio:
    pairs = list(zip(own, bare, strict=True))
    cpu = [a.cpu / b.cpu for a, b in pairs]
    return Ratio(
        statistics.median(a.wall / b.wall for a, b in pairs),
        statistics.median(cpu),
        min(cpu),
        max(cpu),
        len(pairs),
        statistics.median(a.wall for a in own),
    )


def _print_header() -> None:
    print(f"{'':<52}{'seconds':>9}{'x limit':>9}{'x limit':>9}  lowest to highest")
    print(f"{'':<52}{'':>9}{'(clock)':>9}{'(cpu)':>9}  of the pairs (cpu)")


def _print_row(name: str, ratio: Ratio) -> None:
    spread = f"{ratio.low:.2f} to {ratio.high:.2f} of {ratio.pairs}"
    print(f"{name:<52}{ratio.seconds:>9.2f}{ratio.wall:>9.2f}{ratio.cpu:>9.2f}  {spread}", flush=True)


if __name__ == "__main__":
    main()
