"""Shards per second of the engines, and claims in one process and in two, as ratios to one process.

    python benchmarks/engine.py                       # mini on 356 sentences, two workers
    python benchmarks/engine.py --limit 60 --no-ray   # a quick look

Workers are started, and have loaded the model, before the clock starts: a start costs seconds and is the same for a
minute's work and for a day's. The methods alternate, so that other load affects all of them equally.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bertology.claims import run as claims_module
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.engines.engine import Engine, parse_engine
from bertology.recording import plan
from bertology.recording.recorder import record
from timing import interleave

SITES = ["attention", "hidden"]
SHARD_BYTES = 512 * 1024
N_WORKERS = 2
PAPERS = ["clark2019", "kovaleva2019"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mini")
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--no-ray", action="store_true")
    given = parser.parse_args()
    plan.SHARD_BYTES = SHARD_BYTES
    encoder, corpus = load(given.model), load_corpus("english", limit=given.limit)
    names = ["local", f"local:{N_WORKERS}", *([] if given.no_ray else ["ray"])]
    with ExitStack() as stack, tempfile.TemporaryDirectory() as root:
        engines = {name: parse_engine(name) for name in names}
        for engine in engines.values():
            if engine is not None:
                stack.enter_context(engine)

        def run_record(engine: Engine | None) -> int:
            with tempfile.TemporaryDirectory(dir=root) as folder:
                record(encoder, corpus, SITES, folder=folder, engine=engine)
                return len(list(Path(folder, SITES[0]).iterdir()))

        def run_claims(engine: Engine | None) -> object:
            with tempfile.TemporaryDirectory(dir=root) as store:
                return claims_module.claims(encoder, corpus, papers=PAPERS, store=store, engine=engine)

        n_shards = max(run_record(engine) for engine in engines.values())
        others = {name: partial(run_record, engine) for name, engine in engines.items() if engine is not None}
        ratios, seconds = interleave(partial(run_record, None), others, given.rounds)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; one process: {n_shards / seconds:.2f} shards/s")
        for name, ratio in ratios.items():
            print(f"record, {name}: {ratio.wall:.2f} x the time of one process ({ratio.pairs} pairs)")
        two = f"local:{N_WORKERS}"
        methods = {two: partial(run_claims, engines[two])}
        ratios, seconds = interleave(partial(run_claims, None), methods, max(1, given.rounds // 2))
        print(
            f"claims of {', '.join(PAPERS)}: {seconds:.0f} s in one process, {ratios[two].wall:.2f} x that with {two}"
        )


if __name__ == "__main__":
    main()
