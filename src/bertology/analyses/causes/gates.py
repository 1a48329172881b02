"""Which heads stay when every open head has a price (voita2019, section 6)?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.causes.options import TagLayer, Task
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.shapes import Curve
from bertology.results.spread import FROM_LOWEST

if TYPE_CHECKING:
    from bertology.encoder.huggingface import HuggingFaceEncoder
    from bertology.encoder.pruning import Heads
    from bertology.measures.causes.examination import Examination, Marks
    from bertology.measures.causes.gate_learning import Lesson

SCORE, KEPT = "score", "heads kept"
DRAWS = 3
"""Random sets of as many heads, for each set that was kept."""
Run = tuple["Heads", "Marks"]


@analysis(
    question="Which heads stay when every open head has a price, and how well do they do alone?",
    special="as the model has them: a closed head's output is 0 at every piece",
    cites=("voita2019", "louizos2018"),
    version=2,
)
def gates(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    task: Task = "auto",
    layer: TagLayer = "",
    items: Annotated[int, "use so many items, 0 for all: half to learn by, half to report on"] = 80,
    penalties: Annotated[str, "prices of an open head in nats, with commas between"] = "0.01,0.05,0.2",
    weights: Annotated[Literal["frozen", "learning"], "whether the model learns beside its gates"] = "frozen",
    steps: Annotated[int, "steps of learning"] = 60,
    size: Annotated[int, "items of a step"] = 8,
    start: Annotated[float, "where gates begin, as log alpha: at 2 they are open 19 times in 20"] = 2.0,
    rate: Annotated[float, "the highest learning rate of the gates"] = 0.2,
    typed_on: Annotated[
        str,
        "an annotated corpus that tells what heads are for; empty: this one, or `english` if it has no trees; "
        "`none`: leave functions out",
    ] = "",
    seeds: Annotated[int, "so many runs of each price, each with noise and an order of its own"] = 2,
    seed: Annotated[int, "seed of the halves, hidden pieces, learning, random heads and bootstrap"] = 0,
) -> Curve:
    """Score, 0 to 1, of a model with the heads that were worth their price, and how many they are, by the price.

    Every head's output is multiplied by a gate from the Hard Concrete distribution, beta 0.33, stretched from gamma
    -0.1 to zeta 1.1, drawn anew at each step and alike for all items of it. What is made small is the mean loss of an
    item and the price times the expected number of gates that are not 0. The paper adds that number up over all heads,
    as here; its code takes the mean over layers. After learning a head is kept where its gate is likelier to be 1 than
    0, and is then whole. Gates begin open, which is gentler than the paper's code, where they begin about half open.
    Each price is a run of its own from the model as it is, and rises from 0 over the first two thirds of the steps: at
    once it would close all heads before the loss could tell them apart. So few steps end before gates have come to
    rest, and at a high price more of them find smaller and better sets. The score is that of the other half of the
    items. Beside it the score with as many heads drawn at random (from the model as it was, if it has learnt).

    `positional`, `syntactic` and `rare word` are the shares kept of the heads that have such a function (see
    heads/functions), beside the share kept of all heads: what is kept longer survives. The interval of the latter has
    95 % of the shares that as many heads drawn at random would keep: few heads may all be kept by luck. Intervals of
    scores resample items and runs; of the others they are from the lowest to the highest run.
    """
    # Naming an analysis must not import torch.
    from bertology.measures.causes import head_orders as orders
    from bertology.measures.causes.gate_learning import Lesson, drawn_alike
    from bertology.measures.causes.pruning_curves import estimated
    from bertology.measures.heads.typed_heads import typed_heads
    from bertology.results.sampling import over_seeds

    prices = _prices(penalties)
    model, asked = orders.examined(encoder, corpus, task=task, layer=layer, items=items, seed=seed)
    choosing, reporting = orders.halves(model, asked, seed=seed)
    functions = {} if typed_on == "none" else typed_heads(model, corpus, typed_on, seed=seed)
    lessons = [
        Lesson(price, steps, size, start, rate, weights == "learning", seed + number)
        for number in range(seeds)
        for price in prices
    ]
    runs = _learnt(model, choosing, reporting, lessons, work)
    alike = drawn_alike([kept for kept, _ in runs], DRAWS, seed)
    whole, *others = orders.judged(model, reporting, [~kept for kept in alike], work)
    kept = np.stack([kept for kept, _ in runs]).reshape(-1, len(prices), model.layers, model.heads)
    marks = [[runs[run * len(prices) + place][1] for place in range(len(prices))] for run in range(len(kept))]
    chance = [[others[(run * len(prices) + place) * DRAWS + draw] for place in range(len(prices))]
              for run in range(len(kept)) for draw in range(DRAWS)]  # fmt: skip
    measures = {SCORE: estimated(marks, loss=False, seed=seed), KEPT: over_seeds(kept.sum((2, 3)).astype(np.float64))}
    for name, heads in functions.items():
        measures[name] = over_seeds(kept[:, :, heads].mean(-1))
    whole_score = estimated([[whole]], loss=False, seed=seed)[0].everywhere((len(prices),))
    return Curve(
        along="price of a head",
        points=np.array(prices),
        measures=measures,
        baselines={
            "as many random heads": {SCORE: estimated(chance, loss=False, seed=seed)},
            "whole model": {SCORE: whole_score, KEPT: Estimates.exact(np.full(len(prices), kept[0, 0].size))},
            **({"share kept of all heads": {n: _by_luck(kept, f) for n, f in functions.items()}} if functions else {}),
            **_guess(reporting, len(prices)),
        },
        units={
            SCORE: f"{asked.measure}, 0 to 1, on the half that did not choose",
            KEPT: f"heads, 0 to {kept[0, 0].size}; {FROM_LOWEST} run to the highest",
            **{
                name: f"share kept of {int(heads.sum())} such heads, 0 to 1; {FROM_LOWEST} run to the highest"
                for name, heads in functions.items()
            },
        },
    )


def _by_luck(kept: NDArray[np.bool_], heads: NDArray[np.bool_]) -> Estimates:
    """(price,) the share kept of all heads, with 95 % of what as many heads drawn at random would keep of themselves.

    `kept` is (run, price, layer, head). The interval is that of the run with the most kept, and of that with the least.
    """
    from scipy.stats import hypergeom

    count, all_heads, alive = int(heads.sum()), kept[0, 0].size, kept.sum((2, 3))
    low, high = (hypergeom.ppf(at, all_heads, alive, count) / max(1, count) for at in (0.025, 0.975))
    return Estimates(
        value=(alive / all_heads).mean(0), low=low.min(0), high=high.max(0), n=np.full(alive.shape[1], count)
    )


def _prices(penalties: str) -> list[float]:
    try:
        found = sorted({float(price) for price in penalties.split(",") if price.strip()})
    except ValueError:
        found = []
    if not found or found[0] < 0 or not np.isfinite(found).all():
        raise Refusal(f"--penalties was given {penalties!r}", "prices, none below 0", "Write for example 0.01,0.1")
    return found


def _guess(reporting: Examination, points: int) -> Mapping[str, Mapping[str, Estimates]]:
    from bertology.finetuning.metrics import estimate

    return {} if reporting.guess is None else {"majority": {SCORE: estimate(reporting.guess).everywhere((points,))}}


def _learnt(
    model: HuggingFaceEncoder,
    choosing: Examination,
    reporting: Examination,
    lessons: Sequence[Lesson],
    work: Work,
) -> list[Run]:
    """The heads that each lesson keeps, and the marks of the model with these; each is kept when it is finished."""
    from dataclasses import asdict

    from bertology.finetuning.division import digest
    from bertology.finetuning.metrics import Counts
    from bertology.measures.causes.examination import Marks
    from bertology.measures.causes.gate_learning import DISTRIBUTION, learn_gates

    meter = work.meter(f"learning gates {len(lessons)} times")
    found: list[Run] = []
    for number, lesson in enumerate(lessons):

        def tell(done: int, total: int, before: int = number) -> None:
            meter(before * total + done, len(lessons) * total)

        def learn(lesson: Lesson = lesson, tell: Any = tell) -> list[list[float]]:
            learnt = learn_gates(model, choosing, lesson, tell)
            marks = reporting.marks(learnt.encoder.run)
            kept = learnt.kept.ravel().astype(float).tolist()
            return [kept, marks.losses.tolist(), marks.counts.right.tolist(), marks.counts.of.tolist()]

        about = {"analysis": "causes/gates", "format": 1, "model": model.fingerprint, "task": choosing.task}
        about |= {"choosing": digest(choosing.items), "reporting": digest(reporting.items)}
        about |= {"lesson": asdict(lesson), "gates": asdict(DISTRIBUTION)}
        kept, losses, right, of = (np.array(some) for some in work.kept(about, learn))
        heads: NDArray[np.bool_] = kept.reshape(model.layers, model.heads) > 0
        found.append((heads, Marks(losses, Counts(right, of))))
    return found
