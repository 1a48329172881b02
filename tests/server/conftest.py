from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bertology.server.workbench import Workbench
from serving import served_workbench, write_sample
from warm_processes import warm_workers


@pytest.fixture(autouse=True)
def quick_workers() -> Generator[None]:
    """Jobs of a workbench in the process of the tests do not wait for imports; those of a real server do."""
    with warm_workers():
        yield


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[TestClient, Workbench]]:
    """A workbench of the model `tiny` on the first sentences of the English corpus, shared by all tests."""
    folder: Path = tmp_path_factory.mktemp("served")
    with served_workbench(folder / "store", ["tiny", "random:tiny"], [write_sample(folder, 60)]) as both:
        yield both


@pytest.fixture
def client(served: tuple[TestClient, Workbench]) -> TestClient:
    return served[0]


@pytest.fixture
def bench(served: tuple[TestClient, Workbench]) -> Workbench:
    return served[1]
