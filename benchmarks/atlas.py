"""Cost of an atlas: processor time of judging each model, part by part, relative to its bare forward passes.

    python benchmarks/atlas.py MODEL MODEL ...               # 500 sentences of EWT, an empty store
    python benchmarks/atlas.py mini --limit 50               # a quick look
    python benchmarks/atlas.py MODEL ... --store DIRECTORY   # stores finished analyses: run it again to resume

Models are judged one after the other in this process with one thread, so that processor time is work and not waiting.
The limit is plain transformers with SDPA on the same batches, returning nothing: one pass over the sentences, and one
over all that is read (the sentences and the stimuli of claims, by the model and by its untrained twin).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import bertology
from bertology.analyses import progress_estimate
from bertology.claims.run import claims, select_claims
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from recording_cost.setup import DEV, prepare_setup

TARGET_MINUTES = 80.0
"""Eight encoders of 6 to 12 layers on 500 sentences: 40 minutes of two cores."""


@dataclass(frozen=True)
class ModelCost:
    """Processor seconds of judging one model, by part, and of its bare passes."""

    name: str
    parts: dict[str, float]
    judging: float
    one_pass: float
    all_passes: float


def main() -> None:
    """Judge the models, print what it costs, and open the atlas again from the store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["mini"], metavar="MODEL")
    parser.add_argument("--corpus", default=str(DEV) if DEV.is_file() else "english")
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--without", nargs="*", default=(), metavar="ANALYSIS", help="leave out what these test")
    parser.add_argument("--store", type=Path, help="keeps finished analyses; they are then not timed again")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    progress_estimate.perf_counter = time.process_time  # parts in processor time
    corpus = load_corpus(given.corpus)[: given.limit]
    with tempfile.TemporaryDirectory() as temporary:
        store = given.store or Path(temporary)
        arguments = {"limit": given.limit, "without": tuple(given.without), "store": store}
        costs = [measure_cost(model, corpus, arguments) for model in given.models]
        print_costs(costs, len(corpus), corpus.name)
        print_opening(given.models, corpus, arguments)


def measure_cost(model: str, corpus: Corpus, arguments: Mapping[str, Any]) -> ModelCost:
    """Judge the findings of an atlas for a model; stored analyses are read."""
    encoder = bertology.load(model)
    start = time.process_time()
    results = claims(encoder, corpus, **arguments)
    judging = time.process_time() - start
    findings = select_claims((), without=arguments["without"])
    stimuli = {run.corpus for claim in findings for run in claim.all_runs.values() if run.corpus is not None}
    one_pass = bare_pass(model, corpus)
    seconds = {loaded.name: bare_pass(model, loaded) for loaded in map(load_corpus, stimuli)} | {corpus.name: one_pass}
    all_passes = sum(seconds.get(each.corpus, 0.0) for each in results.passes)
    parts = dict(sorted(results.elapsed.items(), key=lambda part: -part[1]))
    cost = ModelCost(model, parts, judging, one_pass, all_passes)
    print(f"\n{model}: {judging:.0f} s of processor time", flush=True)
    for name, elapsed in parts.items():
        print(f"  {elapsed:8.1f}  {name}")
    print(f"  {judging - sum(parts.values()):8.1f}  reading, judging, storing", flush=True)
    return cost


def bare_pass(model: str, corpus: Corpus) -> float:
    """Processor seconds of plain transformers with SDPA on the batches of a recording."""
    setup = prepare_setup(model, corpus, bertology.RecordingConfig(overflow="skip"))
    batches, plain = setup.batches(), setup.plain_model("sdpa")
    start = time.process_time()
    with torch.inference_mode():
        for batch in batches:
            plain(input_ids=batch.input_ids, attention_mask=batch.attention_mask)
    return time.process_time() - start


def print_costs(costs: Sequence[ModelCost], n_sentences: int, corpus: str) -> None:
    """One row a model: minutes, and ratios to the bare passes."""
    print(f"\n{n_sentences} sentences of {corpus}; processor time, {torch.get_num_threads()} thread(s)")
    print(f"{'':<42}{'minutes':>9}{'x one pass':>12}{'x all passes':>14}")
    for cost in costs:
        ratios = f"{cost.judging / cost.one_pass:>12.0f}{cost.judging / max(cost.all_passes, 1e-9):>14.1f}"
        print(f"{Path(cost.name).name:<42}{cost.judging / 60:>9.1f}{ratios}")
    total = sum(cost.judging for cost in costs) / 60
    print(f"{'all':<42}{total:>9.1f}   (mark for eight encoders of 6 to 12 layers: {TARGET_MINUTES:.0f})")


def print_opening(models: Sequence[str], corpus: Corpus, arguments: Mapping[str, Any]) -> None:
    """The time of an atlas whose analyses are stored, and of opening it again."""
    for what in ("atlas from stored analyses", "the same again"):
        start = time.perf_counter()
        bertology.atlas(list(models), corpus, **arguments, output=arguments["store"] / "atlas.html")
        print(f"{what}: {time.perf_counter() - start:.1f} s (clock)", flush=True)


if __name__ == "__main__":
    main()
