"""The thread that runs models for live requests, one at a time; a newer request of a client replaces an older one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from bertology.errors import Refusal
from bertology.server.limits import LIMITS
from bertology.server.problems import ApiError

T = TypeVar("T")
MAX_CLIENTS = 1000
CheckFunction = Callable[[], None]
"""Called now and then during a computation; raises if a newer request has come."""


class ModelThread:
    """Runs functions in the order of their requests.

    A client numbers its requests. One that waits, or is being computed, ends as soon as a higher number of the same
    client arrives.
    """

    def __init__(self, max_waiting: int = LIMITS.waiting_requests) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="bertology-model")
        self._lock = threading.Lock()
        self._newest: OrderedDict[str, int] = OrderedDict()
        self._n_waiting = 0
        self._max_waiting = max_waiting

    def submit(self, function: Callable[[CheckFunction], T], client: str = "", sequence: int = 0) -> Future[T]:
        """Queue a function; refused if too many wait."""
        with self._lock:
            if self._n_waiting >= self._max_waiting:
                raise ApiError(
                    503,
                    Refusal(
                        f"{self._n_waiting} requests wait for the model",
                        f"at most {self._max_waiting}",
                        "Try again in a moment",
                    ),
                )
            self._n_waiting += 1
            if client:
                self._newest[client] = max(sequence, self._newest.pop(client, 0))
                if len(self._newest) > MAX_CLIENTS:
                    self._newest.popitem(last=False)

        def check() -> None:
            if client and self._newest.get(client, 0) > sequence:
                raise ApiError(
                    409,
                    Refusal("A newer request of this page has come", "the newest request", "Nothing is to be done"),
                )

        def run() -> T:
            try:
                check()
                return function(check)
            finally:
                with self._lock:
                    self._n_waiting -= 1

        return self._executor.submit(run)

    def close(self) -> None:
        """Drop what waits; what is being computed ends by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)
