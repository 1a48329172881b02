"""Where a store lives: local paths stay paths, addresses are checked, and no password is repeated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bertology.errors import Refusal
from bertology.store_paths import RemotePath, local_folder, refuse_address, store_path
from object_stores import memory_address

__all__ = ["memory_address"]


def test_local_paths_and_file_addresses_are_paths(tmp_path: Path) -> None:
    assert store_path("a/b") == Path("a/b")
    assert store_path(tmp_path) is tmp_path
    assert store_path(f"file://{tmp_path}/a%20b") == tmp_path / "a b"


def test_an_address_loses_its_last_slash_only() -> None:
    assert store_path("s3://bucket/folder/") == RemotePath("s3://bucket/folder")
    assert str(store_path("gs://bucket")) == "gs://bucket"
    assert store_path(RemotePath("memory://x")) == RemotePath("memory://x")


@pytest.mark.parametrize(
    "address",
    [
        "s3://user:hunter2@bucket/x",
        "s3://hunter2@bucket",
        "s3://bucket/x?token=hunter2",
        "s3://bucket/x#hunter2",
        "file://user:hunter2@host/x",
    ],
)
def test_an_address_with_a_password_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(Refusal, match="in the environment") as error:
        store_path(address)
    assert "hunter2" not in str(error.value)


def test_a_path_made_from_an_address_is_refused_without_repeating_it() -> None:
    for value in (Path("s3://user:hunter2@bucket/x"), "memory:/x"):
        with pytest.raises(Refusal, match="is an address") as error:
            store_path(value)
        assert "hunter2" not in str(error.value)
    refuse_address(Path("c:/folder"))
    refuse_address(Path("folder/s3:/x"))


@pytest.mark.parametrize(
    "address", ["sftp://host/x", "http://host/x", "s3://", "s3:///x", "s3://b//x", "://x", "s3://b/\n"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(Refusal, match="address"):
        store_path(address)
    with pytest.raises(Refusal, match="more than 900 bytes"):
        store_path("s3://bucket/" + "x" * 900)


def test_what_needs_a_local_folder_says_so() -> None:
    assert local_folder(Path("x"), "it") == Path("x")
    with pytest.raises(Refusal, match="needs a folder of this machine"):
        local_folder(RemotePath("s3://b/x"), "it")


def test_a_remote_path_has_the_methods_of_a_path(memory_address: str, tmp_path: Path) -> None:
    folder = RemotePath(memory_address)
    file = folder / "a.json"
    assert (file.name, file.suffix, file.parent) == ("a.json", ".json", folder)
    assert file.with_suffix(".npz") == folder / "a.npz"
    assert not file.is_file()
    assert not folder.is_dir()
    with pytest.raises(FileNotFoundError):
        file.read_bytes()
    file.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        file.unlink()
    (tmp_path / "local").write_bytes(b"content")
    file.upload(tmp_path / "local")
    (folder / "sub" / "b").create_bytes(b"")
    assert folder.is_dir()
    assert file.is_file()
    assert list(folder.iterdir()) == [file, folder / "sub"]
    assert file.read_text("utf-8") == "content"
    file.download(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"content"
    file.unlink()
    assert list(folder.iterdir()) == [folder / "sub"]


def test_without_the_package_the_extra_is_named() -> None:
    with pytest.raises(Refusal, match=r"bertology\[remote\]' gcsfs"):
        RemotePath("gs://bucket/x").is_file()


def test_local_stores_do_not_import_the_libraries() -> None:
    program = "import sys, bertology.recording.manifest; print(sorted({'fsspec', 's3fs', 'botocore'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "s3fs" not in done.stdout
    assert "botocore" not in done.stdout
