"""Cost of the attention statistics relative to a plain eager forward pass, by length, and of comparing heads.

    python benchmarks/attention.py                # lengths 32, 128 and 512, about five minutes
    python benchmarks/attention.py --each         # also every statistic alone
    python benchmarks/attention.py --memory       # peak memory at two sizes of the corpus
    python benchmarks/attention.py --divergences  # Jensen-Shannon between all heads, compared with a double loop

The limit is plain transformers with eager attention on the same batches, returning nothing. Methods alternate; ratios
are medians over pairs. One thread by default, because threads that wait for each other on a busy machine use processor
time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from bertology.analyses import registry
from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.token_batch import TokenBatch
from bertology.recording.plan import RecordingConfig, make_plan
from bertology.recording.recorder import record
from bertology.recording.sites import ReducedSite, Site, resolve_sites
from bertology.statistics.words import word_attention, word_slots
from recording_cost.memory import print_memory
from recording_cost.setup import BenchmarkSetup, load_sentences, prepare_setup
from timing import NAME_WIDTH, Run, interleave, measure_time, print_header, print_row

LENGTHS = (32, 128, 512)
TOTAL_TOKENS = 4096
TARGET = 1.25
DIVERGENCE_TARGET = 20
MEMORY_SIZES = (500, 2000)


def _strongest_words(layer: LayerActivations, batch: TokenBatch, prepared: Any) -> torch.Tensor:
    """(batch, head, 1): the mean of the highest attention between words."""
    return word_attention(layer.attention, prepared).amax(-1).mean(-1, keepdim=True)


WORD_ATTENTION = ReducedSite(
    "benchmark.word_attention", ("measure",), "attention between words", _strongest_words, prepare=word_slots
)
WORDS = "word-level attention"
ALL = "all statistics in one pass"
ANALYSES = ("targets", "entropy", "distance", "confidence", "word_patterns")


def statistics_sites() -> dict[str, tuple[Site, ...]]:
    """The sites of each analysis with its default options, and of attention between words."""
    declared = {name: registry.get(f"attention/{name}") for name in ANALYSES}
    sites = {name: resolve_sites(analysis.sites(analysis.resolve_options({}))) for name, analysis in declared.items()}
    return sites | {WORDS: (WORD_ATTENTION,)}


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    if options.memory:
        print_memory(options.model, [f"attention/{name}" for name in ANALYSES], MEMORY_SIZES)
    elif options.divergences:
        _print_divergences(options.model)
    else:
        worst = [_print_length(length, options) for length in options.lengths]
        print(f"\ntarget: at most {TARGET:.2f} x the limit; highest by processor time {max(worst):.2f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="tokens per input")
    parser.add_argument("--rounds", type=int, default=7, help="number of interleaved repetitions")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument(
        "--model", default="", help="model (default: ../shared/models/gte-small if present, otherwise a built-in one)"
    )
    parser.add_argument("--each", action="store_true", help="also time every statistic alone")
    parser.add_argument("--memory", action="store_true", help="peak memory instead of time")
    parser.add_argument(
        "--divergences", action="store_true", help="time the Jensen-Shannon divergences between heads instead"
    )
    return parser.parse_args()


def _print_length(length: int, options: argparse.Namespace) -> float:
    setup = _truncated_setup(options.model, running_text(length), length)
    limit = _limit(setup)
    measure_time(limit)  # warms up
    statistics = statistics_sites()
    together = tuple(site for sites in statistics.values() for site in sites)
    methods: dict[str, Run] = {ALL: lambda: _record(setup, length, together)}
    if options.each:
        methods |= {name: _recording_run(setup, length, sites) for name, sites in statistics.items()}
    results, seconds = interleave(limit, methods, options.rounds)
    encoder = setup.encoder
    print(
        f"\n{encoder.name}: {encoder.layers} layers x {encoder.heads} heads, {torch.get_num_threads()} threads, "
        f"{len(setup.plan.inputs)} inputs of {length} tokens\n{' + '.join(statistics)}"
    )
    print_header()
    print(f"{'plain eager forward pass: the limit':<{NAME_WIDTH}}{seconds:>9.2f}     1.00     1.00")
    for name, ratio in results.items():
        print_row(name, ratio)
    return results[ALL].cpu


def _recording_run(setup: BenchmarkSetup, length: int, sites: Sequence[Site]) -> Run:
    return lambda: _record(setup, length, sites)


def _record(setup: BenchmarkSetup, length: int, sites: Sequence[Site]) -> None:
    """Record, and check that the stored arrays grow at most linearly with the length."""
    recording = record(
        setup.encoder, setup.corpus, sites, config=RecordingConfig(overflow="truncate", max_length=length)
    )
    for site in sites:
        assert max(array.size for array in recording[site]) < setup.encoder.layers * setup.encoder.heads * length


def _truncated_setup(model: str, corpus: Corpus, length: int) -> BenchmarkSetup:
    """The model, and inputs truncated to a number of tokens."""
    full = prepare_setup(model, load_sentences(1))
    plan = make_plan(full.encoder, corpus, RecordingConfig(overflow="truncate", max_length=length))
    return replace(full, corpus=corpus, plan=plan)


def running_text(length: int) -> Corpus:
    """Running text split into inputs of at least `length` words, `TOTAL_TOKENS` words in all."""
    words = [word for example in load_sentences(1000) for word in example.segments[0].words]
    texts = [words[start : start + length] for start in range(0, TOTAL_TOKENS, length)]
    return corpus_from_sentences([sentence_from_words(text) for text in texts], name="running text")


def _limit(setup: BenchmarkSetup) -> Run:
    batches = setup.batches()
    model = setup.plain_model("eager")

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                model(
                    input_ids=batch.input_ids, attention_mask=batch.attention_mask, token_type_ids=batch.token_type_ids
                )

    return run


def _print_divergences(model: str) -> None:
    """Compare all heads of the model on one input, and by a NumPy loop over pairs of heads."""
    from bertology.analyses.attention.head_clusters.jensen_shannon import jensen_shannon

    for length in (32, 128):
        setup = _truncated_setup(model, running_text(length)[:1], length)
        recording = record(
            setup.encoder,
            setup.corpus,
            ["attention"],
            config=RecordingConfig(overflow="truncate", max_length=length),
        )
        heads = np.concatenate(list(recording["attention"][0]))
        rows = torch.from_numpy(heads).transpose(0, 1).contiguous()
        results = jensen_shannon(rows).mean(0).numpy()
        start = time.process_time()
        expected = _double_loop(heads)
        loop_seconds = time.process_time() - start
        each_pair_once = loop_seconds * (len(heads) + 1) / (2 * len(heads))
        seconds = min(measure_time(lambda rows=rows: jensen_shannon(rows)).cpu for _ in range(5))
        difference = float(np.abs(results - expected).max())
        print(
            f"{len(heads)} heads, {length} tokens: {seconds:.3f} s, double loop over {len(heads)} x {len(heads)} heads "
            f"{loop_seconds:.2f} s, {loop_seconds / seconds:.0f} x faster (target {DIVERGENCE_TARGET}); "
            f"with each pair computed once {each_pair_once / seconds:.0f} x; largest difference {difference:.1e} nats",
            flush=True,
        )


def _double_loop(heads: np.ndarray[Any, np.dtype[np.float32]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(head, head) mean Jensen-Shannon divergence over rows, one pair of heads at a time."""
    count = len(heads)
    results = np.zeros((count, count))
    for first in range(count):
        for second in range(count):
            results[first, second] = _jensen_shannon(heads[first], heads[second])
    return results


def _jensen_shannon(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> float:
    mean = (first + second) / 2
    tiny = np.finfo(np.float32).tiny
    divergences = [p * (np.log(np.maximum(p, tiny)) - np.log(np.maximum(mean, tiny))) for p in (first, second)]
    return float((divergences[0].sum(-1) + divergences[1].sum(-1)).mean() / 2)


if __name__ == "__main__":
    main()
