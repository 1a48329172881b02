from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from bertology.corpus.registration import check_options, function_options
from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.corpus.example import Example


def read_lines(path: Path, *, split: Literal["all", "train"] = "all", column: str = "1") -> Iterator[str]:
    yield from path.read_text().splitlines()


def read_examples(path: Path, *, split: Literal["all", "train"] = "all") -> Iterator[Example]:
    yield from ()


def test_options_are_the_keyword_only_parameters() -> None:
    assert list(function_options(read_lines)) == ["split", "column"]


def test_unknown_options_and_other_values_than_the_choices_are_refused() -> None:
    check_options(read_lines, {"split": "train", "column": "anything"}, "format lines")
    with pytest.raises(Refusal, match=r"no option of the format lines called 'part'.*column, split"):
        check_options(read_lines, {"part": "train"}, "format lines")
    with pytest.raises(Refusal, match=r"no value of the option split called 'tain'.*Did you mean 'train'"):
        check_options(read_lines, {"split": "tain"}, "format lines")


def test_types_that_exist_for_the_type_checker_only_are_not_checked() -> None:
    check_options(read_examples, {"split": "other"}, "format examples")
    with pytest.raises(Refusal, match="no option"):
        check_options(read_examples, {"part": "train"}, "format examples")
