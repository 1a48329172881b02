"""Batches of a pass on a GPU, overlapped: one is prepared and one is fetched while another one runs.

The host works ahead of the device: it prepares the next batch in a thread, on a stream of its own, and fetches the
results of the last one in another thread. NumPy, the tokeniser and torch release Python's lock for most of this work.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from bertology.lazy import torch

Batch = TypeVar("Batch")
Prepared = TypeVar("Prepared")
Result = TypeVar("Result")


SWITCH_INTERVAL = 5e-4
"""Seconds after which a thread yields Python's lock: the thread that submits work must not wait for the others."""


@contextmanager
def _short_turns() -> Generator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def overlap_batches(
    batches: Iterable[Batch],
    prepare: Callable[[Batch], Prepared],
    run: Callable[[Batch, Prepared], Callable[[], Result]],
    device: str,
) -> Iterator[tuple[Batch, Result]]:
    """Each batch with its result, in order.

    `prepare` makes tensors on the GPU; `run` submits work that reads them, and returns a function that waits for the
    results. This function must hold what was prepared: its memory is reused for the next batches.
    """
    stream = torch.cuda.Stream(torch.device(device))

    def prepare_on_stream(batch: Batch) -> tuple[Prepared, torch.cuda.Event]:
        with torch.inference_mode(), torch.cuda.stream(stream):
            prepared = prepare(batch)
            ready = torch.cuda.Event()
            ready.record(stream)
            return prepared, ready

    remaining = iter(batches)
    with _short_turns(), ThreadPoolExecutor(1) as preparing, ThreadPoolExecutor(1) as fetching:
        next_batches = deque((batch, preparing.submit(prepare_on_stream, batch)) for batch in islice(remaining, 1))
        running: deque[tuple[Batch, Future[Result]]] = deque()
        try:
            while next_batches:
                batch, future = next_batches.popleft()
                prepared, ready = future.result()
                next_batches.extend((b, preparing.submit(prepare_on_stream, b)) for b in islice(remaining, 1))
                torch.cuda.current_stream(torch.device(device)).wait_event(ready)
                running.append((batch, fetching.submit(run(batch, prepared))))
                del prepared
                if len(running) > 1:
                    finished, result = running.popleft()
                    yield finished, result.result()
            for finished, result in running:
                yield finished, result.result()
        finally:
            for _, future in (*next_batches, *running):
                future.cancel()
