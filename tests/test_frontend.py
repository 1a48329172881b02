"""The front-end's packages are pinned by version and digest, without addresses; another digest fails the build."""

from __future__ import annotations

import copy
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

FRONTEND = Path(__file__).parents[1] / "frontend"
PINS: dict[str, Any] = json.loads((FRONTEND / "integrity.json").read_text("utf-8"))
INSTALLED = FRONTEND / "node_modules" / ".package-lock.json"


def load_build() -> Any:
    specification = importlib.util.spec_from_file_location("frontend_build", FRONTEND / "build.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_package_has_a_digest_and_no_address() -> None:
    packages = {name: package for name, package in PINS["packages"].items() if name}
    assert len(packages) > 10
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert "://" not in (FRONTEND / "integrity.json").read_text("utf-8")
    assert not any("resolved" in package for package in packages.values())


def test_the_pins_are_those_of_package_json() -> None:
    package = json.loads((FRONTEND / "package.json").read_text("utf-8"))
    for kind in ("dependencies", "devDependencies"):
        assert PINS["packages"][""][kind] == package[kind]
        for name, version in package[kind].items():
            assert PINS["packages"][f"node_modules/{name}"]["version"] == version


@pytest.mark.parametrize("field", ["integrity", "version"])
def test_another_digest_or_version_fails_the_build(field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole build fails, before Vite is run."""
    build = load_build()
    names = [name for name in PINS["packages"] if name][:3]
    (tmp_path / "node_modules").mkdir()
    installed = {"packages": {name: PINS["packages"][name] for name in names}}
    (tmp_path / "node_modules" / ".package-lock.json").write_text(json.dumps(installed))
    changed = copy.deepcopy(PINS)
    changed["packages"][names[1]][field] = "0.0.0" if field == "version" else "sha512-AAAA"
    (tmp_path / "integrity.json").write_text(json.dumps(changed))
    for name in ("package.json", "tsconfig.json", "vite.config.ts", "build.py"):
        (tmp_path / name).write_bytes((FRONTEND / name).read_bytes())
    stamp = (tmp_path / "package.json").read_text("utf-8") + (tmp_path / "integrity.json").read_text("utf-8")
    (tmp_path / "node_modules" / ".installed.json").write_text(stamp, "utf-8")
    monkeypatch.setattr(build, "FRONTEND", tmp_path)
    monkeypatch.setattr(build, "ASSETS", tmp_path / "assets")

    def fail(*_: object) -> None:
        pytest.fail("code of the packages was run")

    monkeypatch.setattr(build, "_run", fail)
    with pytest.raises(RuntimeError, match=f"{names[1]} is installed with {field}"):
        build.build()


def test_a_package_that_is_not_pinned_fails_the_build() -> None:
    package = {"version": "1.0.0", "integrity": "sha512-AAAA"}
    with pytest.raises(RuntimeError, match="node_modules/unknown is installed with version"):
        load_build().refuse_other_packages(PINS, {"node_modules/unknown": package})
    with pytest.raises(RuntimeError, match="no package"):
        load_build().refuse_other_packages(PINS, {})


@pytest.mark.skipif(not INSTALLED.is_file(), reason="the front-end has not been built")
def test_what_is_installed_is_what_is_pinned() -> None:
    load_build().refuse_other_packages(PINS, json.loads(INSTALLED.read_text("utf-8"))["packages"])
