"""Statistics of large maps on a processor, where numba is there to compile them: one go each, and no map beside.

A step at a time over whole maps reads and writes them again with every step. The extra `fast` brings numba.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from bertology.recording.frame import Frame
    from bertology.recording.word_level import Words

WORTH = 2**20
"""From how many cells on: to get hold of what numba compiles takes half a second."""


def worth_compiling(maps: Tensor) -> bool:
    """Whether maps are large, on a processor, in single precision, and numba is there."""
    plain = maps.device.type == "cpu" and maps.dtype == torch.float32 and not maps.requires_grad
    return plain and maps.numel() >= WORTH and _loops() is not None


@cache
def _loops() -> Any:
    """What numba compiles; None where it is not there, or does not work with the versions beside it."""
    try:
        return import_module("bertology.recording.loops")
    except (ImportError, RuntimeError):
        return None


def peaks(maps: Tensor, frame: Frame) -> Tensor:
    """(3, batch, head, from): the share of ordinary targets, the highest weight, and that of an ordinary target."""
    found = maps.new_empty(3, *maps.shape[:3])
    _run("peaks", maps, _flags(frame.ordinary), found=found.flatten(1, 2).numpy())
    return found


def information(maps: Tensor, frame: Frame) -> Tensor:
    """(2, batch, head, from): the sum of -a ln a over all targets, and over ordinary ones."""
    found = maps.new_empty(2, *maps.shape[:3])
    _run("information", maps, _flags(frame.ordinary), found=found.flatten(1, 2).numpy())
    return found.mul_(math.log(2))


def received(maps: Tensor, frame: Frame) -> Tensor:
    """(batch, head, to): what each piece gets from all real pieces together."""
    found = maps.new_empty(*maps.shape[:2], maps.shape[3])
    _run("received", maps, frame.real.numpy(), found=found.flatten(0, 1).numpy())
    return found


def distances(maps: Tensor, frame: Frame) -> Tensor:
    """(batch, head, 4): see `Rows.distances`."""
    found = maps.new_empty(4, *maps.shape[:3])
    _run("distances", maps, _flags(frame.ordinary), _flags(frame.word_place), found=found.flatten(1, 2).numpy())
    share, inner = frame.word_share, frame.word_share * frame.ordinary
    counted = torch.stack([frame.real.float(), frame.ordinary.float(), share, inner])
    return torch.einsum("kbhp,kbp->bhk", found, counted)


def word_maps(maps: Tensor, words: Words, size: int) -> Tensor:
    """(batch, head, place, place): see `to_words`."""
    # As large as a map: NumPy asks the system for large pages, which are faster to fill for the first time.
    found = torch.from_numpy(np.empty((*maps.shape[:2], size, size), np.float32))
    known = (each.numpy() for each in (words.order, words.starts, words.size))
    _run("word_maps", maps, *known, found=found.flatten(0, 1).numpy())
    return found


def _run(name: str, maps: Tensor, *known: Any, found: Any) -> None:
    """Run one of the loops, on as many threads as torch would, each of which takes some maps."""
    loop, array = getattr(_loops(), name), maps.flatten(0, 1).numpy()
    threads = min(torch.get_num_threads(), len(array))
    if threads == 1:
        loop(array, *known, found, (0, len(array)))
        return
    ends = [round(len(array) * part / threads) for part in range(threads + 1)]
    parts = [_threads(threads).submit(loop, array, *known, found, part) for part in pairwise(ends)]
    for part in parts:
        part.result()


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "bertology")


def _flags(known: Tensor) -> Any:
    return known.float().numpy()
