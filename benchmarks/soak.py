"""What one process keeps after hundreds of analyses, and the server after thousands of requests.

    python benchmarks/soak.py                                   # 500 analyses, 10,000 requests
    python benchmarks/soak.py --analyses 100 --requests 1000    # a quick look

Memory, open files and temporary files are read a dozen times; what matters is the growth over the last three quarters,
when everything that is loaded once is loaded. Analyses run on `tiny` and the first sentences of the built-in English
treebank, each time in another order, which is another corpus to the store; one after the other in one process, without
and with a store. Those that need other inputs, or take more than a few seconds, are named and left out.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from serve import Client, request_text, resident_megabytes, start_server

N_READINGS = 12
MAX_SECONDS = 3.0
"""On the processor, once."""
SENTENCES = 12
MEMORY_MARK = 5.0
"""Largest growth of memory over the last three quarters, in percent; no file may be added."""


@dataclass
class Readings:
    """Memory, open files and temporary files of one process over time."""

    process_id: int
    temporary: Path
    unit: str
    readings: list[tuple[float, int, int]] = field(default_factory=list[tuple[float, int, int]])

    def take(self, count: int) -> None:
        """Read and print."""
        gc.collect()
        handles = len(list(Path(f"/proc/{self.process_id}/fd").iterdir()))
        files = sum(len(names) for _, _, names in os.walk(self.temporary))
        self.readings.append((resident_megabytes(self.process_id), handles, files))
        memory, *_ = self.readings[-1]
        print(f"  {count:6d} {self.unit}  {memory:7.1f} MB  {handles:4d} open files  {files:4d} temporary files")

    def judge(self) -> bool:
        """Print the growth over the last three quarters beside its mark; whether it is kept."""
        first, last = self.readings[len(self.readings) // 4], self.readings[-1]
        percent = 100 * (last[0] - first[0]) / first[0]
        is_kept = percent <= MEMORY_MARK and last[1] <= first[1] and last[2] <= first[2]
        print(
            f"  growth over the last three quarters: {last[0] - first[0]:+.1f} MB ({percent:+.1f} %), "
            f"{last[1] - first[1]:+d} open files, {last[2] - first[2]:+d} temporary files "
            f"(marks {MEMORY_MARK:.0f} %, 0, 0: {'kept' if is_kept else 'missed'})"
        )
        return is_kept


def repeat(work: Callable[[int], object], count: int, readings: Readings) -> bool:
    """Do something `count` times and judge what it leaves."""
    for number in range(count):
        if number % max(1, count // N_READINGS) == 0:
            readings.take(number)
        work(number)
    readings.take(count)
    return readings.judge()


class TooLongError(BaseException):
    """An analysis used more of the processor than it may here; nothing of the package catches it."""


def _raise_too_long(_number: int, _frame: object) -> None:
    raise TooLongError


def quick_analyses() -> list[str]:
    """The analyses that run on `tiny` and a dozen sentences within a few seconds; the others are named."""
    import bertology
    from bertology.analyses import registry
    from bertology.errors import Refusal

    corpus, names, refused, slow = bertology.corpus("english", limit=SENTENCES), [], [], []
    encoder = bertology.load("tiny")
    signal.signal(signal.SIGPROF, _raise_too_long)
    for name in registry.names():
        try:
            signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
            bertology.run(name, encoder, corpus)
            names.append(name)
        except Refusal:
            refused.append(name)
        except TooLongError:
            slow.append(name)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    print(f"{len(names)} analyses. Left out: need other inputs: {', '.join(refused)}; take long: {', '.join(slow)}.")
    return names


def soak_analyses(names: Sequence[str], count: int, temporary: Path, *, has_store: bool) -> bool:
    """Run analyses in this process, each time on the sentences in another order."""
    import bertology

    corpus, encoder = bertology.corpus("english", limit=SENTENCES), bertology.load("tiny")
    print(f"\n{count} analyses in one process, {'with' if has_store else 'without'} a store")

    def work(number: int) -> None:
        shuffled = replace(corpus, examples=tuple(random.Random(number).sample(corpus.examples, len(corpus))))
        # The store is outside the counted folder: it is meant to grow.
        store = home / "store" if has_store else None
        bertology.run(names[number % len(names)], encoder, shuffled, store=store)

    with tempfile.TemporaryDirectory(dir=Path(tempfile.gettempdir()).parent) as folder:
        home = Path(folder)
        return repeat(work, count, Readings(os.getpid(), temporary, "analyses"))


def soak_server(count: int, temporary: Path) -> bool:
    """Send live requests to a server."""
    with tempfile.TemporaryDirectory(dir=temporary.parent) as home:
        process, address = start_server("mini", home)
        try:
            client = Client(address)
            print(f"\n{count} requests to the server")

            def work(number: int) -> None:
                status, _, _ = client.live(**request_text(number))
                assert status == 200

            return repeat(work, count, Readings(process.pid, temporary, "requests"))
        finally:
            process.terminate()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()


def main() -> None:
    """Run all three, and end with status 1 if a mark is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--analyses", type=int, default=500)
    parser.add_argument("--requests", type=int, default=10_000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as outer:
        temporary = Path(outer) / "temporary"
        temporary.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
        names = quick_analyses()
        kept = [
            soak_analyses(names, arguments.analyses, temporary, has_store=False),
            soak_analyses(names, arguments.analyses, temporary, has_store=True),
            soak_server(arguments.requests, temporary),
        ]
    sys.exit(not all(kept))


if __name__ == "__main__":
    main()
