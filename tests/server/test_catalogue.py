"""What a job may name: models and corpora of the server, never a file or a Python function."""

from __future__ import annotations

import math

import pytest

from bertology.errors import Refusal
from bertology.server.catalogue import all_analyses, check_job
from bertology.server.jobs import JobRequest
from bertology.server.model_session import Sources

SOURCES = Sources.from_names(["tiny"], ["english"])


@pytest.mark.parametrize("value", ["call:os:system", "model,call:os:system", "flair:x", "glove:x", "model,/etc/passwd"])
def test_a_job_cannot_name_a_function_or_a_file(value: str) -> None:
    request = JobRequest(kind="analysis", analysis="features/comparison", options={"features": value})
    with pytest.raises(Refusal, match="may name a file or a model of the server"):
        check_job(request, SOURCES)


def test_a_job_may_name_sizes_and_is_refused_numbers_out_of_range() -> None:
    request = JobRequest(kind="analysis", analysis="probes/word", options={"probe": "mlp:5:5"})
    assert check_job(request, SOURCES).model == "tiny"
    for seed in (-1, 10**30, math.nan):
        with pytest.raises(Refusal, match="--seed was given"):
            check_job(request.model_copy(update={"options": {"seed": seed}}), SOURCES)


def test_options_say_their_range() -> None:
    options = {option.name: option for a in all_analyses() if a.name == "attention/rollout" for option in a.options}
    assert (options["residual_weight"].minimum, options["residual_weight"].maximum) == (0, 1)
