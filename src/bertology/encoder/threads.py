"""Limits of threads: one for passes over single texts, and those of a worker for measurements of its speed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from bertology.lazy import torch


@contextmanager
def thread_limit(n_threads: int) -> Generator[None]:
    """Compute with at most so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(n_threads, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def single_thread() -> Generator[None]:
    """Compute with one thread, so that numbers of a text do not depend on how many there are.

    Several add the numbers of a short text in another order, and gain nothing.
    """
    with thread_limit(1):
        yield
