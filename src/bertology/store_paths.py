"""Where a store or a recording lives: a local folder, or the address of an object store (s3://, gs://, memory://).

A local path is a `pathlib.Path`. A `RemotePath` has the methods of it that stores use, over fsspec. An object appears
when its upload has ended, whole or not at all. Credentials come from the environment of the library that reaches the
store; an address with a password in it is refused, and no message repeats the text of such a library.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from bertology.errors import ExplainedError, Refusal
from bertology.machine_errors import DISK_FULL, StorageError

LIBRARIES = {"gs": "gcsfs", "memory": "fsspec", "s3": "s3fs"}
"""Protocols of stores and the packages that they need. An upload to any of them appears whole or not at all."""
PROTOCOLS = ("file", *LIBRARIES)
MAX_ADDRESS_BYTES = 900
"""Object stores allow keys of 1024 bytes; files of a recording add at most 80 to the address of their folder."""
_COLLAPSED = re.compile(rf"({'|'.join(PROTOCOLS)}):/")
_CREDENTIALS_REMEDY = (
    "Set the credentials in the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or "
    "GOOGLE_APPLICATION_CREDENTIALS), and check what they may do with the bucket"
)


class StoreError(StorageError):
    """A store behind an address that cannot be used: no permission, no bucket, no connection.

    It ends the command, like every failure of the machine, but with status 2: what was given is to be corrected.
    """

    status = 2


def home_folder() -> Path:
    """`$BERTOLOGY_HOME`, or `bertology` in the user's cache folder."""
    home, cache = os.environ.get("BERTOLOGY_HOME"), os.environ.get("XDG_CACHE_HOME")
    return Path(home) if home else (Path(cache) if cache else Path.home() / ".cache") / "bertology"


def download_folder() -> Path:
    """The folder of local copies of remote files, and of files that are about to be uploaded."""
    return home_folder() / "downloads"


@dataclass(frozen=True, order=True)
class RemotePath:
    """A folder or file in an object store, with the methods of `pathlib.Path` that stores use."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.url.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The suffix of the name, with its point."""
        return Path(self.name).suffix

    @property
    def parent(self) -> RemotePath:
        """The folder that this is in."""
        return RemotePath(self.url.rpartition("/")[0])

    def with_suffix(self, suffix: str) -> RemotePath:
        """The same address with another suffix."""
        return self.parent / Path(self.name).with_suffix(suffix).name

    def is_file(self) -> bool:
        """Whether there is an object of this address."""
        with self._explained("read"):
            return bool(self._filesystem().isfile(self.url))

    def is_dir(self) -> bool:
        """Whether there is an object whose address begins with this folder's."""
        with self._explained("read"):
            return bool(self._filesystem().isdir(self.url))

    def iterdir(self) -> Iterator[RemotePath]:
        """The files and folders in this folder."""
        with self._explained("read"):
            listed: list[dict[str, Any]] = self._filesystem().ls(self.url, detail=True)
        names = {entry["name"].rstrip("/").rpartition("/")[2] for entry in listed if not entry["name"].endswith("/")}
        return iter([self / name for name in sorted(names)])

    def read_bytes(self) -> bytes:
        """The content of the object."""
        with self._explained("read"):
            content: bytes = self._filesystem().cat_file(self.url)
            return content

    def read_text(self, encoding: str) -> str:
        """The content of the object as text."""
        return self.read_bytes().decode(encoding)

    def create_bytes(self, content: bytes) -> None:
        """Write the object unless it exists, which raises `FileExistsError` where the store can tell."""
        with self._explained("write"):
            filesystem = self._filesystem()
            try:
                filesystem.pipe_file(self.url, content, mode="create")
            except NotImplementedError:  # a store without conditional writes: the digest decides whose content it is
                if not filesystem.isfile(self.url):
                    filesystem.pipe_file(self.url, content)

    def upload(self, file: Path) -> None:
        """Write the object from a local file; it appears when all of it has arrived."""
        with self._explained("write"):
            self._filesystem().put_file(str(file), self.url)

    def download(self, file: Path) -> None:
        """Write the content of the object to a local file."""
        with self._explained("read"):
            self._filesystem().get_file(self.url, str(file))

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete the object."""
        with self._explained("delete"):
            try:
                self._filesystem().rm_file(self.url)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    def _filesystem(self) -> Any:
        """The file system of fsspec, which keeps one for each process and thread."""
        protocol = self.url.partition("://")[0]
        try:
            import fsspec

            library: Any = fsspec
            return library.filesystem(protocol, use_listings_cache=False)
        except ImportError as error:
            raise Refusal(
                f"{self.url} needs the package {LIBRARIES[protocol]}, which is not installed",
                "the optional packages for stores behind addresses",
                f"Install them with: pip install 'bertology[remote]'{' gcsfs' if protocol == 'gs' else ''}",
            ) from error

    @contextmanager
    def _explained(self, action: str) -> Generator[None]:
        """Failures of the store in one paragraph; a missing object stays a `FileNotFoundError` where one is read."""
        try:
            yield
        except (ExplainedError, FileExistsError):
            raise
        except Exception as error:  # the libraries of object stores raise many kinds of errors
            if isinstance(error, FileNotFoundError) and action != "write" and _code(error) != "NoSuchBucket":
                raise
            if isinstance(error, OSError) and error.errno in DISK_FULL:
                raise
            raise _store_error(self.url, action, error) from error


StorePath = Path | RemotePath
"""A folder or file of a store."""


def store_path(value: str | StorePath) -> StorePath:
    """The folder that a path or an address names; an address that cannot be one is refused."""
    if isinstance(value, RemotePath):
        return value
    if isinstance(value, Path):
        refuse_address(value)
        return value
    if "://" not in value:
        refuse_address(Path(value))
        return Path(value)
    parts = _split(value)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    url = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
    if not parts.netloc or "//" in parts.path.rstrip("/") or len(url.encode()) > MAX_ADDRESS_BYTES:
        raise Refusal(
            f"The address {_shorten(url)} has no bucket, an empty part, or more than {MAX_ADDRESS_BYTES} bytes",
            "an address such as s3://bucket/folder",
            "Correct it",
        )
    return RemotePath(url)


def make_folder(path: StorePath) -> None:
    """Create a local folder with those above it; object stores have no folders."""
    if isinstance(path, Path):
        path.mkdir(parents=True, exist_ok=True)


def local_folder(path: StorePath, purpose: str) -> Path:
    """The path, if it is local; `purpose` needs a folder of this machine."""
    if isinstance(path, RemotePath):
        raise Refusal(
            f"{path} is an address, and {purpose} needs a folder of this machine",
            "a local folder",
            "Name one; the page on scale of the documentation says what works with addresses",
        )
    return path


def refuse_address(path: Path) -> None:
    """Refuse a path that was made from an address, which loses a slash: a local folder called `s3:` would be made."""
    address = _COLLAPSED.match(path.as_posix())
    if address is not None:  # not repeated whole: it may hold a password
        raise Refusal(
            f"{address[1]}://... is an address, and a path of this machine is expected here",
            "a local path; addresses are taken by --store of most commands, by --recording, by -o of `record`, and in "
            "Python as strings",
            "Name a local file or folder, or give the address as a string",
        )


def _split(address: str) -> Any:
    """The parts of an address; refused, without repeating it, if it may hold a password."""
    protocol, _, rest = address.partition("://")
    if "@" in rest.partition("/")[0] or "?" in rest or "#" in rest:
        raise Refusal(
            f"An address of a store ({protocol[:20]}://...) has a name, a password or a query in it",
            "an address without credentials, which would be printed and stored",
            "Remove what stands before @ or after ?, and set credentials in the environment",
        )
    if protocol not in PROTOCOLS or not rest.isprintable():
        raise Refusal(
            f"{_shorten(address)} is no address of a store",
            f"one that begins with {', '.join(f'{name}://' for name in PROTOCOLS)}",
            "Choose a supported store, or a local folder",
        )
    return urlsplit(address)


def _store_error(url: str, action: str, error: Exception) -> StoreError:
    """What keeps a store from being used, told by the error's code or kind and never by its text."""
    code = _code(error)
    kind = f"{type(error).__name__}{f', {code}' if code else ''}"
    bucket = "/".join(url.split("/", 3)[:3])
    if code == "NoSuchBucket" or isinstance(error, FileNotFoundError):
        return StoreError(f"There is no bucket {bucket}", "an existing bucket", "Create it, or correct the address")
    if isinstance(error, PermissionError) or "Credential" in type(error).__name__:
        return StoreError(
            f"No permission to {action} {_shorten(url)} ({kind})", "a bucket that you may use", _CREDENTIALS_REMEDY
        )
    return StoreError(
        f"Cannot {action} {_shorten(url)} ({kind})",
        "a store that can be reached",
        "Check the address, the network and AWS_ENDPOINT_URL, and run the same command again: finished parts are kept",
    )


def _code(error: BaseException | None) -> str:
    """The code in the answer of the store that caused an error; empty if there was no answer."""
    while error is not None:
        response: Any = getattr(error, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
        error = error.__cause__ or error.__context__
    return ""


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]} ..."
