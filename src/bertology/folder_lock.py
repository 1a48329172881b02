"""A lock on a folder, so that two processes do not write different content into it at the same time."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from bertology.atomic_files import write_error
from bertology.store_paths import RemotePath, StorePath

if sys.platform != "win32":
    import fcntl

POLL_SECONDS = 0.05
WITHOUT_LOCKS = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
"""Errors of file systems that cannot lock a folder, such as some network file systems."""


@contextmanager
def folder_lock(folder: StorePath, *, on_wait: Callable[[], None] | None = None) -> Generator[None]:
    """Hold the lock of a folder, which is created if it is missing; wait while another process holds it.

    The system gives the lock back when the process ends, however it ends, and no file is left behind. `on_wait` is
    called again and again while this process waits, and may refuse to. On a file system without locks, and in
    an object store, nobody waits.
    """
    if sys.platform == "win32" or isinstance(folder, RemotePath):
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise write_error(folder, error) from error
    try:
        while not _acquire(descriptor):
            if on_wait is not None:
                on_wait()
            time.sleep(POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in WITHOUT_LOCKS:
            raise
    return True
