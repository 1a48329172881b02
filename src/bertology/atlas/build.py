"""`bertology.atlas`: judge many models on the same findings and sentences, and put them side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from bertology.analyses.run_work import measured_as_worker
from bertology.atlas.atlas_work import estimate_atlas, sort_largest_first
from bertology.atlas.content import Atlas
from bertology.atlas.earlier_atlas import add_models
from bertology.atlas.judged_model import JudgedModel, NotJudged
from bertology.atlas.judging import JudgingTask, judge_model, stored_model
from bertology.atlas.model_names import short_names
from bertology.atlas.page import atlas_page
from bertology.atlas.workers import judge_in_workers
from bertology.atomic_files import check_writable, write_atomically
from bertology.claims.run import DEFAULT_CORPUS, MAX_UNKNOWN
from bertology.corpus.read import as_corpus
from bertology.encoder.load import as_encoder
from bertology.engines.engine import Engine, open_engine
from bertology.errors import ExplainedError, MachineError, Refusal, count_noun
from bertology.number_ranges import COUNT, COUNT_OR_ZERO, HOURS, PROPORTION
from bertology.progress import MessageCallback, ProgressFactory, no_progress
from bertology.recording.overflow import Overflow
from bertology.store_paths import StorePath, store_path
from bertology.work_estimate import MAX_HOURS, check_work

AtlasFormat = Literal["html", "json"]
SUFFIXES: dict[str, AtlasFormat] = {".html": "html", ".json": "json"}


def atlas(
    models: list[Any],
    corpus: Any = None,
    *,
    add: Sequence[str | Path] | str | Path = (),
    output: str | Path | None = None,
    papers: Sequence[str] | str = (),
    claims: str | Path | None = None,
    without: Sequence[str] | str = (),
    full: bool = False,
    train_size: Annotated[int | None, COUNT_OR_ZERO] = None,
    limit: Annotated[int | None, COUNT] = None,
    fill: bool = True,
    max_unknown: Annotated[float, PROPORTION] = MAX_UNKNOWN,
    overflow: Overflow | None = None,
    device: str = "cpu",
    dtype: str = "float32",
    allow_pickle: bool = False,
    store: str | StorePath | None = None,
    engine: Engine | str | None = None,
    max_hours: Annotated[float | None, HOURS] = MAX_HOURS,
    progress: ProgressFactory | None = None,
    notify: MessageCallback | None = None,
) -> Atlas:
    """Judge the findings for each model on the same sentences, and compare the models.

    `models` are names, paths or models in memory, as `bertology.load` takes them. Each name is judged in a process of
    its own, one at a time or as many as the `engine` has workers (`local:4`, `ray`, `ray:ADDRESS`), and kept in the
    `store` (a directory); one that cannot be judged is named with the reason, and the others go on. `add` are earlier
    atlases (.json) whose models stand beside these without being loaded or judged again. With `output`, a
    page that opens offline (.html), or all numbers (.json), is written. `device`, `dtype` and `allow_pickle` say how
    named models are loaded. An atlas that is estimated to take longer than `max_hours` is refused before it starts
    (None: no bound). The other arguments are those of `bertology.claims`.
    """
    file = None if output is None else Path(output)
    if file is not None and file.suffix not in SUFFIXES:
        raise Refusal(f"The suffix of {file.name} says no format", f"one of: {', '.join(SUFFIXES)}", "Change it")
    if file is not None:
        check_writable(file)
    texts = as_corpus(DEFAULT_CORPUS if corpus is None else corpus)
    arguments: dict[str, Any] = {
        "papers": [papers] if isinstance(papers, str) else list(papers),
        "claims": None if claims is None else str(claims),
        "without": [without] if isinstance(without, str) else list(without),
        "full": full,
        "train_size": train_size,
        "fill": fill,
        "max_unknown": max_unknown,
        "overflow": overflow,
    }
    task = JudgingTask(
        texts if limit is None else texts[:limit],
        # The corpus that fills in for what the given one lacks has the same limit.
        arguments | {"limit": limit},
        {"device": device, "dtype": dtype, "allow_pickle": allow_pickle},
        None if store is None else store_path(store),
    )
    if not task.claims:
        raise Refusal(
            "No finding was chosen", "at least one", "Name another paper or file of claims, or leave out fewer"
        )
    files = [add] if isinstance(add, str | Path) else list(add)
    read_added = partial(add_models, files, corpus=task.corpus, claims=task.claims, options=task.arguments)
    read_added(())  # what cannot be added is refused before hours of judging
    distinct, messages = _without_repeats(models, may_be_empty=bool(files))
    with open_engine(engine) as opened:
        if max_hours is not None:
            with measured_as_worker(opened):
                work = estimate_atlas(distinct, task, 1 if opened is None else opened.n_workers)
            title = f"An atlas of {count_noun(len(distinct), 'models')}"
            check_work(title, work, max_hours, folder=task.store, notify=notify)
        outcomes = _judge_all(distinct, task, opened, progress)
    judged = [outcome for outcome in outcomes if isinstance(outcome, JudgedModel)]
    failed = [outcome for outcome in outcomes if isinstance(outcome, NotJudged)]
    added = read_added(judged)
    if not judged and not added.models:
        reasons = " ".join(f"{each.name}: {each.reason}" for each in failed)
        kind = MachineError if any(each.is_failure for each in failed) else Refusal
        raise kind(f"No model could be judged. {reasons}", "at least one model that can be", "Check the names")
    names = short_names([model.source for model in judged])
    named = [model.model_copy(update={"name": name}) for model, name in zip(judged, names, strict=True)]
    named = _with_added(named, added.models)
    content = Atlas(
        models=tuple(named),
        claims=task.claims,
        corpus=task.corpus.summary(),
        not_judged=tuple(failed),
        messages=(*messages, *added.messages, *_same_weights(named)),
        options=arguments | {"limit": limit},
    )
    if file is not None:
        is_page = SUFFIXES[file.suffix] == "html"
        text = atlas_page(content, _reports_nearby(content, file.parent)) if is_page else content.json_text()
        write_atomically(file, text.encode())
    return content


def _reports_nearby(content: Atlas, folder: Path) -> dict[str, str]:
    """The reports in the folder of the page, by model: `report-mini.html` is that of mini."""
    files = {model.name: f"report-{re.sub(r'[^A-Za-z0-9.]+', '-', model.name)}.html" for model in content.models}
    return {name: file for name, file in files.items() if (folder / file).is_file()}


def _without_repeats(models: Sequence[Any], *, may_be_empty: bool) -> tuple[list[Any], list[str]]:
    """The models without names that were given before, and a message for each of those."""
    distinct: list[Any] = []
    messages: list[str] = []
    for model in models:
        if isinstance(model, str | Path) and str(model) in distinct:
            messages.append(f"{model} was given more than once; it is judged once.")
            continue
        distinct.append(str(model) if isinstance(model, Path) else model)
    if not distinct and not may_be_empty:
        raise Refusal("The list of models is empty", "at least one model", "Name models, such as mini and random:mini")
    return distinct, messages


def _with_added(judged: Sequence[JudgedModel], added: Sequence[JudgedModel]) -> list[JudgedModel]:
    """All models; an added one keeps its name, with the name of its file where another model has the same."""
    models = list(judged)
    for model in added:
        names = [model.name, f"{model.name} ({model.added_from})", f"{model.source} ({model.added_from})"]
        taken = {other.name for other in models}
        free = next((name for name in names if name not in taken), f"{names[-1]} {len(models)}")
        models.append(model.model_copy(update={"name": free}))
    return models


def _same_weights(models: Sequence[JudgedModel]) -> list[str]:
    """A message for each model that has the weights of an earlier one under another name."""
    first: dict[str, str] = {}
    messages: list[str] = []
    for model in models:
        if model.fingerprint in first:
            messages.append(f"{model.name} has the same weights as {first[model.fingerprint]}.")
        first.setdefault(model.fingerprint, model.name)
    return messages


def _judge_all(
    models: Sequence[Any], task: JudgingTask, engine: Engine | None, progress: ProgressFactory | None
) -> list[JudgedModel | NotJudged]:
    """Judge the models, those that are stored without loading them; models in memory are judged in this process."""
    outcomes: dict[int, JudgedModel | NotJudged] = {}
    waiting: dict[str, int] = {}
    for index, model in enumerate(models):
        if not isinstance(model, str):
            outcomes[index] = _judge_here(model, task, progress)
        elif (stored := stored_model(model, task)) is not None:
            outcomes[index] = stored
        else:
            waiting[model] = index
    if waiting:
        is_shared = engine is not None and engine.n_workers > 1
        order = sort_largest_first(list(waiting)) if is_shared else list(waiting)
        judged = judge_in_workers(order, task, engine, progress)
        outcomes |= {waiting[source]: outcome for source, outcome in judged.items()}
    return [outcomes[index] for index in range(len(models))]


def _judge_here(model: Any, task: JudgingTask, progress: ProgressFactory | None) -> JudgedModel | NotJudged:
    try:
        encoder = as_encoder(model)
        callback = progress(encoder.name) if progress is not None else no_progress
        return judge_model(encoder, encoder.name, task, callback)
    except ExplainedError as error:
        name = getattr(model, "name", type(model).__name__)
        return NotJudged(name=name, reason=str(error), is_failure=isinstance(error, MachineError))
