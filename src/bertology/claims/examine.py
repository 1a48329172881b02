"""Judge claims for a model: run every analysis they need once, in as few passes as possible, and ask the judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.run import Announce, Subject, run_all
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
) -> list[Finding]:
    """The verdict on each claim, in order; results are kept in the store, and `passes` is told of each pass."""
    wanted = [run for claim in claims for run in claim.measured_by.values()]
    found: dict[str, Result | Refusal] = {}
    for of, corpus in dict.fromkeys((run.of, run.corpus) for run in wanted):
        asked = [run for run in wanted if (run.of, run.corpus) == (of, corpus)]
        if of == "against" and subject.against is None:
            found |= {_key(run): NO_PARTNER for run in asked}
        else:
            found |= _ran(asked, _on(_of(subject, of), corpus), progress, notify, passes)
    return [_finding(claim, found) for claim in claims]


def _finding(claim: Claim, found: Mapping[str, Result | Refusal]) -> Finding:
    own = {name: found[_key(run)] for name, run in claim.measured_by.items()}
    return Finding(claim, judge(claim, own), tuple(one for one in own.values() if isinstance(one, Result)))


def _ran(
    asked: Sequence[Run],
    subject: Subject,
    progress: Callable[[str], Progress] | None,
    notify: Announce | None,
    passes: list[str] | None,
) -> dict[str, Result | Refusal]:
    distinct = {_key(run): run for run in asked}
    declared: dict[str, tuple[Analysis, dict[str, object]]] = {}
    found: dict[str, Result | Refusal] = {}
    for key, run in distinct.items():
        try:
            declared[key] = registry.get(run.analysis), dict(run.options)
        except Refusal as refusal:
            found[key] = refusal
    refused: dict[str, Refusal] = {}
    results = run_all(
        list(declared.values()), subject, progress=progress, notify=notify, refused=refused, passes=passes, keep=True
    )
    for key, (analysis, options) in declared.items():
        settled = analysis.settled(options)
        same = (one for one in results if one.analysis == analysis.name and one.options == settled)
        found[key] = next(same, None) or refused[analysis.name]
    return found


def _key(run: Run) -> str:
    return json.dumps([run.analysis, dict(run.options), run.corpus, run.of], sort_keys=True)


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
