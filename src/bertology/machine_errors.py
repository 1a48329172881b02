"""Recognise failures of the machine behind the exceptions of libraries: no space on the disk, no memory."""

from __future__ import annotations

import errno

from bertology.errors import MachineError

DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DISK_FULL_TEXTS = ("No space left on device", "Disk quota exceeded", "os error 28", "os error 122", "os error 27")
_MEMORY_TEXTS = ("not enough memory", "can't allocate memory", "out of memory", "Cannot allocate memory")
"""What the errors of torch and safetensors say, which have no number."""


class StorageError(MachineError):
    """Files cannot be read or written where they belong: no space, no permission, no connection."""


class DiskFullError(StorageError):
    """A disk without space, or a quota or limit of files that is reached."""


def is_storage_error(error: BaseException) -> bool:
    """Whether an exception, or one that caused it, tells of a disk or a store that cannot be used."""
    return isinstance(find_machine_error(error), StorageError)


def find_machine_error(error: BaseException) -> MachineError | None:
    """The failure of the machine that an exception, or one that caused it, tells of; None if it is another mistake."""
    chain: BaseException | None = error
    while chain is not None:
        failure = chain if isinstance(chain, MachineError) else _recognise(chain)
        if failure is not None:
            return failure
        chain = chain.__cause__ or chain.__context__
    return None


def raise_machine_error(error: BaseException) -> None:
    """Raise the failure of the machine that an exception tells of, if it does: it is no fault of the input."""
    failure = find_machine_error(error)
    if failure is not None:
        raise failure from error


def _recognise(error: BaseException) -> MachineError | None:
    text = " ".join(str(error).split())
    number = error.errno if isinstance(error, OSError) else None
    if number in DISK_FULL or any(part in text for part in _DISK_FULL_TEXTS):
        place = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
        return disk_full(f"There is no space left on the disk{place}")
    is_memory = isinstance(error, MemoryError) or number == errno.ENOMEM or type(error).__name__ == "OutOfMemoryError"
    if is_memory or (isinstance(error, RuntimeError) and any(part in text for part in _MEMORY_TEXTS)):
        return MachineError(
            f"The memory is not enough{f' ({text[:200]})' if text else ''}",
            "more free memory",
            "Use fewer or shorter inputs (--limit, --max-length), a smaller batch (--batch-size), a smaller model or a "
            "machine with more memory; finished parts are kept",
        )
    return None


def disk_full(problem: str) -> DiskFullError:
    """The error of a full disk, and what to do."""
    return DiskFullError(
        problem,
        "more free space, and no quota or limit (of files, or of the size of a file: `ulimit -f`) that is reached",
        "Free some space and run the same command again: finished work is kept and not repeated",
    )
