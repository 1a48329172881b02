from __future__ import annotations

import pytest

from bertology.server.keep import live_commands
from bertology.server.live import LiveRequest


@pytest.mark.parametrize(("layers", "argument"), [(None, ""), ([3], ", layer=3"), ([1, 3], ""), ([], "")])
def test_the_code_shows_the_layer_that_is_looked_at_if_it_is_one(layers: list[int] | None, argument: str) -> None:
    commands = live_commands(LiveRequest(text="A cat .", layers=layers), "tiny", "A cat .", None)
    assert commands.python.splitlines()[-1] == f"bertology.view(encoder, 'A cat .'{argument}).save(\"view.html\")"
