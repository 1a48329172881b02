"""One thread for passes over single texts, so that their numbers do not depend on how many threads there are."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from bertology.lazy import torch


@contextmanager
def single_thread() -> Generator[None]:
    """Compute with one thread: several add the numbers of a short text in another order, and gain nothing."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
