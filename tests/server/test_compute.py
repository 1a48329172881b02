"""The thread of the models takes as many requests as it may, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from bertology.server.compute import CheckFunction, ModelThread
from bertology.server.problems import ApiError


@pytest.fixture
def busy() -> Generator[tuple[ModelThread, threading.Event]]:
    """A thread with room for three requests, and the event that ends its first one."""
    thread, event = ModelThread(3), threading.Event()
    yield thread, event
    event.set()
    thread.close()


def test_as_many_requests_wait_as_may_and_one_more_is_refused(busy: tuple[ModelThread, threading.Event]) -> None:
    thread, event = busy

    def wait(check: CheckFunction) -> bool:
        return event.wait(60)

    waiting = [thread.submit(wait) for _ in range(3)]
    with pytest.raises(ApiError, match="3 requests wait for the model") as refused:
        thread.submit(wait)
    assert refused.value.status == 503
    event.set()
    assert all(future.result(60) for future in waiting)
    assert thread.submit(wait).result(60), "there is room again"
