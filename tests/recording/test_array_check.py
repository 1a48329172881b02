"""Arrays that do not have the axes of their site are refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.recording.material import mixed, tiny

from bertology.errors import Refusal
from bertology.recording.array_check import array_check
from bertology.recording.recorder import record


@pytest.mark.parametrize(
    ("site", "shape", "fits"),
    [
        ("attention", ("layers", "heads", "tokens", "tokens"), True),
        ("attention", ("heads", "layers", "tokens", "tokens"), False),
        ("attention", (1, "layers", "heads", "tokens", "tokens"), False),
        ("logits.nsp", (2,), True),
        ("logits.nsp", (5, 2), True),  # a further axis may come first
        ("logits.nsp", (1, 5, 2), False),
        ("logits.token", ("tokens", 7), True),
        ("logits.token", (3, "tokens", 7), True),
        ("logits.token", ("more", 7), False),
        ("an unknown site", (1, 2, 3), True),
    ],
)
def test_arrays_have_the_axes_of_their_site(site: str, shape: tuple[int | str, ...], fits: bool) -> None:
    recording = record(tiny(), mixed(1), ["attention"])
    n_tokens = len(recording.inputs[0].tokens)
    sizes = {"layers": 2, "heads": 4, "tokens": n_tokens, "more": n_tokens + 1}
    array = np.zeros([sizes[size] if isinstance(size, str) else size for size in shape])
    check = array_check(site, recording.encoder, recording.inputs)
    if fits:
        check(0, array)
    else:
        with pytest.raises(Refusal, match=f"array of {site} of shape .* for input 1"):
            check(0, array)


def test_sizes_that_nothing_determines_are_those_of_the_first_array() -> None:
    recording = record(tiny(), mixed(2), ["attention"])
    check = array_check("logits.nsp", recording.encoder, recording.inputs)
    check(0, np.zeros(2))
    check(1, np.zeros(2))
    with pytest.raises(Refusal, match="for input 2"):
        check(1, np.zeros(3))
