from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bertology.server.workbench import Workbench
from serving import served_workbench


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[TestClient, Workbench]]:
    """A workbench of the model `tiny` on the English corpus, shared by the tests of a module."""
    store: Path = tmp_path_factory.mktemp("store")
    with served_workbench(store, models=["tiny", "random:tiny"]) as both:
        yield both


@pytest.fixture
def client(served: tuple[TestClient, Workbench]) -> TestClient:
    return served[0]


@pytest.fixture
def bench(served: tuple[TestClient, Workbench]) -> Workbench:
    return served[1]
