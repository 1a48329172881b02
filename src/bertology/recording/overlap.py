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


BATCHES_AHEAD, BATCHES_IN_FLIGHT = 2, 2
"""Batches that are prepared, and that are submitted, before the result of an earlier one is waited for: the device has
work while the host is late with one."""


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
    streams = torch.get_device_module(device)  # on a CPU, in tests, nothing waits
    stream = streams.Stream(torch.device(device))

    def prepare_on_stream(batch: Batch) -> tuple[Prepared, torch.Event]:
        with torch.inference_mode(), streams.stream(stream):
            prepared = prepare(batch)
            ready = streams.Event()
            ready.record(stream)
            return prepared, ready

    remaining = iter(batches)
    with _short_turns(), ThreadPoolExecutor(BATCHES_AHEAD) as preparing, ThreadPoolExecutor(1) as fetching:
        prepared_batches: deque[tuple[Batch, Future[tuple[Prepared, torch.Event]]]] = deque()
        running: deque[tuple[Batch, Future[Result]]] = deque()

        def prepare_next(n_ahead: int) -> None:
            for batch in islice(remaining, n_ahead - len(prepared_batches)):
                prepared_batches.append((batch, preparing.submit(prepare_on_stream, batch)))

        try:
            prepare_next(1)
            while prepared_batches:
                batch, future = prepared_batches.popleft()
                prepared, ready = future.result()
                streams.current_stream(torch.device(device)).wait_event(ready)
                running.append((batch, fetching.submit(run(batch, prepared))))
                del prepared
                prepare_next(BATCHES_AHEAD)
                if len(running) > BATCHES_IN_FLIGHT:
                    finished, result = running.popleft()
                    yield finished, result.result()
            for finished, result in running:
                yield finished, result.result()
        finally:
            for _, future in (*prepared_batches, *running):
                future.cancel()
