"""Judge claims for a model: run every analysis they need once, in as few passes as possible, and ask the judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bertology.analyses import registry
from bertology.analyses.course import Course, expected, words_of
from bertology.analyses.declaration import Analysis
from bertology.analyses.run import Announce, Subject, expected_of, run_all
from bertology.claims.claim import Claim, Run
from bertology.claims.judge import Verdict, judge
from bertology.errors import Refusal
from bertology.recording.recorder import Progress
from bertology.results.result import Result

NO_PARTNER = Refusal(
    "The finding is about a model that has learnt a task, and none was given",
    "a fine-tuned model",
    "Name it with --against",
)


@dataclass(frozen=True)
class Finding:
    """A claim, the verdict on it, and the results it rests on."""

    claim: Claim
    verdict: Verdict
    results: tuple[Result, ...] = field(repr=False)


def examine(
    claims: Sequence[Claim],
    subject: Subject,
    *,
    progress: Callable[[str], Progress] | None = None,
    notify: Announce | None = None,
    passes: list[str] | None = None,
    seconds: dict[str, float] | None = None,
) -> list[Finding]:
    """The verdict on each claim, in order; results are kept in the store.

    `passes` is told of each pass over a corpus, `seconds` how long each of them and each analysis took.
    """
    wanted = [run for claim in claims for run in claim.measured_by.values()]
    found: dict[str, Result | Refusal] = {}
    stages: list[_Stage] = []
    for of, corpus in dict.fromkeys((run.of, run.corpus) for run in wanted):
        asked = {_key(run): run for run in wanted if (run.of, run.corpus) == (of, corpus)}
        if of == "against" and subject.against is None:
            found |= dict.fromkeys(asked, NO_PARTNER)
        else:
            stages.append(_stage(asked, _on(_of(subject, of), corpus), found))
    course = Course(progress("everything") if progress else None, sum(stage.expected for stage in stages))
    for stage in stages:
        with course.stage(stage.expected):
            found |= _ran(stage, progress, notify, passes, course)
    if seconds is not None:
        seconds |= course.seconds
    return [_finding(claim, found) for claim in claims]


@dataclass(frozen=True)
class _Stage:
    """The analyses of one model and corpus, by their keys."""

    asked: Mapping[str, tuple[Analysis, dict[str, object]]]
    subject: Subject

    @property
    def expected(self) -> float:
        """How long they take, beside other stages."""
        return expected_of(list(self.asked.values()), self.subject)


def _stage(asked: Mapping[str, Run], subject: Subject, found: dict[str, Result | Refusal]) -> _Stage:
    """What is to be run, the quickest first: so more is kept where someone stops it.

    A run that names no analysis there is, is refused at once.
    """
    declared: dict[str, tuple[Analysis, dict[str, object]]] = {}
    for key, run in asked.items():
        try:
            declared[key] = registry.get(run.analysis), dict(run.options)
        except Refusal as refusal:
            found[key] = refusal
    words = words_of(subject.corpus)
    order = sorted(declared, key=lambda key: expected(declared[key][0].name, words))
    return _Stage({key: declared[key] for key in order}, subject)


def _finding(claim: Claim, found: Mapping[str, Result | Refusal]) -> Finding:
    own = {name: found[_key(run)] for name, run in claim.measured_by.items()}
    return Finding(claim, judge(claim, own), tuple(one for one in own.values() if isinstance(one, Result)))


def _ran(
    stage: _Stage,
    progress: Callable[[str], Progress] | None,
    notify: Announce | None,
    passes: list[str] | None,
    course: Course,
) -> dict[str, Result | Refusal]:
    refused: dict[int, Refusal] = {}
    results = run_all(
        list(stage.asked.values()),
        stage.subject,
        progress=progress,
        notify=notify,
        refused=refused,
        passes=passes,
        keep=True,
        course=course,
    )
    following = iter(results)
    return {key: refused[place] if place in refused else next(following) for place, key in enumerate(stage.asked)}


def _key(run: Run) -> str:
    return json.dumps([run.analysis, dict(run.options), run.corpus, run.of], sort_keys=True)


def asked_of(subject: Subject, run: Run) -> Subject:
    """The model and corpus that a run is about."""
    return _on(_of(subject, run.of), run.corpus)


def _of(subject: Subject, of: str) -> Subject:
    """What a claim is asked of: the model, or the one it is compared with."""
    if of == "model":
        return subject
    return replace(subject, encoder=subject.against, against=None, recording=None)


def _on(subject: Subject, corpus: str | None) -> Subject:
    if corpus is None:
        return subject
    from bertology.corpus.builtin import corpus_named

    return replace(subject, corpus=corpus_named(corpus), recording=None)
