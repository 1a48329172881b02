"""Options that count something refuse what cannot be counted, before anything is run."""

from __future__ import annotations

import pytest

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis, Option
from bertology.errors import Refusal

ALL = list(registry.load_all())


@pytest.mark.parametrize("analysis", ALL, ids=lambda one: one.name)
def test_no_count_may_be_negative(analysis: Analysis) -> None:
    assert analysis.settled({})
    for name, option in analysis.options.items():
        if option.least is not None:
            with pytest.raises(Refusal, match=f"--{option.flag} was given {option.least - 1}"):
                analysis.settled({name: option.least - 1})
            assert analysis.settled({name: option.least})[name] == option.least


def test_what_there_must_be_one_of_may_not_be_none() -> None:
    assert Option("seeds", int, 3, "how many").least == 1
    assert Option("items", int, 3, "how many").least == 0
    assert Option("layer", int, -1, "which; -1 the last").least is None
    assert Option("rate", float, 0.1, "how fast").least is None
    assert Option("again", bool, False, "whether").least is None
    with pytest.raises(Refusal, match=r"a number from 1 up.*how many"):
        Option("seeds", int, 3, "how many").checked(0)
