"""What the attention statistics cost over the bare eager forward pass, by length; and how fast heads are compared.

    python benchmarks/attention.py                # lengths 32, 128 and 512, about five minutes
    python benchmarks/attention.py --each         # every statistic alone as well
    python benchmarks/attention.py --memory       # peak memory at two sizes of the corpus
    python benchmarks/attention.py --divergences  # Jensen-Shannon between all heads, beside a double loop

The limit is plain transformers with eager attention on the batches that bertology makes, nothing returned. Ways are
run in turns and told as the median of paired ratios. One thread unless --threads says otherwise: on a machine that
others use, threads wait for each other, and their waiting counts as processor time. What numba compiles is used where
it is installed, as the extra `fast` does.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from bertology.analyses import registry
from bertology.corpus.corpus import Corpus, of_sentences
from bertology.corpus.sentence import sentence
from bertology.encoder.attend import LayerActivations
from bertology.recording import compiled
from bertology.recording.frame import Frame
from bertology.recording.plan import make_plan
from bertology.recording.policy import Policy
from bertology.recording.recorder import record
from bertology.recording.sites import ReducedSite, Site, resolve
from bertology.recording.word_level import to_words, words_of
from recording_cost.material import Setting, corpus_of, setting
from recording_cost.memory import print_memory
from timing import NAME_WIDTH, Run, interleaved, measured, print_header, print_row

LENGTHS = (32, 128, 512)
PIECES = 4096
MARK = 1.25
DIVERGENCE_MARK = 20
MEMORY_SIZES = (500, 2000)


def _strongest_words(layer: LayerActivations, frame: Frame, prepared: Any) -> torch.Tensor:
    """(batch, head, 1): maps between words are made, and a little is taken from them: what the strongest word gets."""
    return to_words(layer.attention, prepared).amax(-1).mean(-1, keepdim=True)


WORD_MAPS = ReducedSite("benchmark.word_maps", ("measure",), "maps between words", _strongest_words, prepare=words_of)
WORDS = "word-level maps"
ALL = "all of them in one pass"
ANALYSES = ("targets", "entropy", "distance", "confidence", "patterns")


def battery() -> dict[str, tuple[Site, ...]]:
    """The sites of each analysis with its own options, and of maps between words."""
    declared = {name: registry.get(f"attention/{name}") for name in ANALYSES}
    sites = {name: resolve(analysis.sites(analysis.settled({}))) for name, analysis in declared.items()}
    return sites | {WORDS: (WORD_MAPS,)}


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    if options.memory:
        print_memory(options.model, [f"attention/{name}" for name in ANALYSES], MEMORY_SIZES)
    elif options.divergences:
        _print_divergences(options.model)
    else:
        worst = [_print_length(length, options) for length in options.lengths]
        print(f"\nmark: at most {MARK:.2f} x the limit; highest by processor time {max(worst):.2f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="pieces of each input")
    parser.add_argument("--rounds", type=int, default=7, help="times each way is run beside the limit")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--model", default="", help="a model; the real encoder beside the checkout, or a built-in one")
    parser.add_argument("--each", action="store_true", help="every statistic alone as well")
    parser.add_argument("--memory", action="store_true", help="peak memory instead of time")
    parser.add_argument("--divergences", action="store_true", help="divergences between heads instead")
    return parser.parse_args()


def _print_length(length: int, options: argparse.Namespace) -> float:
    ours = _cut(options.model, inputs_of(length), length)
    limit = _limit(ours)
    measured(limit)  # warms up
    asked = battery()
    together = tuple(site for sites in asked.values() for site in sites)
    ways: dict[str, Run] = {
        ALL: lambda: _recorded(ours, length, together),
        "the same, nothing compiled by numba": lambda: _uncompiled(ours, length, together),
    }
    if options.each:
        ways |= {name: _alone(ours, length, sites) for name, sites in asked.items()}
    found, seconds = interleaved(limit, ways, options.rounds)
    encoder = ours.encoder
    print(
        f"\n{encoder.name}: {encoder.layers} layers x {encoder.heads} heads, {torch.get_num_threads()} threads, "
        f"{len(ours.plan.entries)} inputs of {length} pieces\n{' + '.join(asked)}"
    )
    print_header()
    print(f"{'bare eager forward, nothing returned: the limit':<{NAME_WIDTH}}{seconds:>9.2f}     1.00     1.00")
    for name, ratio in found.items():
        print_row(name, ratio)
    return found[ALL].cpu


def _alone(ours: Setting, length: int, sites: Sequence[Site]) -> Run:
    return lambda: _recorded(ours, length, sites)


def _uncompiled(ours: Setting, length: int, sites: Sequence[Site]) -> None:
    """Record as where numba is not installed."""
    worth, compiled.WORTH = compiled.WORTH, sys.maxsize
    try:
        _recorded(ours, length, sites)
    finally:
        compiled.WORTH = worth


def _recorded(ours: Setting, length: int, sites: Sequence[Site]) -> None:
    """Record, and see that nothing was kept that grows with the square of the length."""
    recording = record(ours.encoder, ours.corpus, sites, policy=Policy(long="truncate", max_pieces=length))
    for site in sites:
        assert max(array.size for array in recording[site]) < ours.encoder.layers * ours.encoder.heads * length


def _cut(model: str, corpus: Corpus, length: int) -> Setting:
    """The model and the inputs cut to so many pieces."""
    whole = setting(model, corpus_of(1))
    plan = make_plan(whole.encoder, corpus, Policy(long="truncate", max_pieces=length))
    return replace(whole, corpus=corpus, plan=plan)


def inputs_of(length: int) -> Corpus:
    """Inputs that are cut to so many pieces: running text, as many of them as make `PIECES`."""
    words = [word for item in corpus_of(1000) for word in item.parts[0].words]
    texts = [words[start : start + length] for start in range(0, PIECES, length)]
    return of_sentences([sentence(text) for text in texts], name="running text")


def _limit(ours: Setting) -> Run:
    batches = ours.batches()
    model = ours.plain_model("eager")

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                model(input_ids=batch.ids, attention_mask=batch.mask, token_type_ids=batch.types)

    return run


def _print_divergences(model: str) -> None:
    """All heads of the model against each other on one input, beside a loop over pairs of heads in NumPy."""
    from bertology.maths.divergence import jensen_shannon

    for length in (32, 128):
        ours = _cut(model, inputs_of(length)[:1], length)
        maps = record(ours.encoder, ours.corpus, ["attention"], policy=Policy(long="truncate", max_pieces=length))
        heads = np.concatenate(list(maps["attention"][0]))
        rows = torch.from_numpy(heads).transpose(0, 1).contiguous()
        found = jensen_shannon(rows).mean(0).numpy()
        start = time.process_time()
        expected = _double_loop(heads)
        slow = time.process_time() - start
        halved = slow * (len(heads) + 1) / (2 * len(heads))
        fast = min(measured(lambda rows=rows: jensen_shannon(rows)).cpu for _ in range(5))
        apart = float(np.abs(found - expected).max())
        print(
            f"{len(heads)} heads, {length} pieces: {fast:.3f} s, double loop over {len(heads)} x {len(heads)} heads "
            f"{slow:.2f} s, {slow / fast:.0f} x faster (mark {DIVERGENCE_MARK}), were each pair taken once "
            f"{halved / fast:.0f} x; largest difference {apart:.1e} nats",
            flush=True,
        )


def _double_loop(heads: np.ndarray[Any, np.dtype[np.float32]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(head, head) mean Jensen-Shannon divergence over rows, a pair of heads at a time."""
    count = len(heads)
    found = np.zeros((count, count))
    for one in range(count):
        for other in range(count):
            found[one, other] = _jensen_shannon(heads[one], heads[other])
    return found


def _jensen_shannon(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    middle = (one + other) / 2
    tiny = np.finfo(np.float32).tiny
    parts = [given * (np.log(np.maximum(given, tiny)) - np.log(np.maximum(middle, tiny))) for given in (one, other)]
    return float((parts[0].sum(-1) + parts[1].sum(-1)).mean() / 2)


if __name__ == "__main__":
    main()
