"""How many blocks must learn, and how many are needed at all (merchant2020)?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, reaching_unseen
from bertology.results.shapes import Curve

if TYPE_CHECKING:
    from bertology.finetuning.metrics import Counts

FROZEN, TRUNCATED = "frozen", "truncated"
CHANGE, NO_CHANGE = ", change", "no change"


@analysis(
    question="How many blocks must learn a task, and how many are needed for it at all?",
    special="as the model has them; a class is read at the first piece, a tag at the first piece of its word",
    cites=("merchant2020",),
    version=2,
)
def freezing(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    task: Annotated[
        Literal["auto", "sentence", "pair", "token", "dependency", "qa", "choice"],
        "what is learnt; auto: what the corpus has labels for, of a treebank its parts of speech",
    ] = "auto",
    layer: Annotated[str, "for the task token: the layer of tags; left out, the first that is there"] = "",
    items: Annotated[int, "use so many items, a quarter of them to judge by"] = 400,
    every: Annotated[int, "only every so many blocks"] = 1,
    seeds: Annotated[int, "so many runs of each, each with a head, an order and dropout of its own"] = 2,
    epochs: Annotated[int, "passes over the items"] = 3,
    rate: Annotated[float, "the highest learning rate; 0: by the width of the model, 5e-5 for 768"] = 0.0,
    size: Annotated[int, "examples in a batch"] = 16,
    seed: Annotated[int, "seed of the division, of the first run and of the bootstrap"] = 0,
) -> Curve:
    """Score on held-out items, 0 to 1, of a model fine-tuned with its first k blocks frozen, or with these alone.

    `frozen` at k: the embeddings and the first k blocks stay as they were and the rest learns with the head; at the
    last k only the head (with its pooler) learns. `truncated` at k: the blocks above the first k are dropped and all
    that is left learns; at 0 the head reads the embeddings. The score is accuracy, of names span F1, of trees LAS, of
    answers F1. All epochs are run and the last counts, so that the items judged by decide nothing; whole documents, or
    texts, are held out. Mean over seeds; intervals resample items and seeds together. All that learns does so at one
    rate and for as many steps, as in the paper: the last point of `frozen` is what a head reaches on its own in that
    time, which may be little, and not what the states hold (probes tell that, and more `epochs`).

    `change` is a score less that of the model all of whose blocks learn, on the same items and by the same seeds: its
    interval resamples the pairs. Where none of n items was answered otherwise another still may be, and it reaches 3/n
    to either side. Near 0 up to k it says that the first k blocks had no need to change: merchant2020 found this up to
    8 of 12 for MNLI and SQuAD.
    """
    # Naming an analysis must not import torch.
    from bertology.encoder.variant import Variant
    from bertology.finetuning.loop import Recipe
    from bertology.measures.variant_sweep import Sweep, over_seeds

    recipe = Recipe(seed=seed, epochs=epochs, size=size, rate=rate or None, patience=None)
    sweep = Sweep(encoder, corpus, work, task, layer, items, recipe, seeds)
    points = sorted({*range(0, encoder.layers + 1, every), encoder.layers})
    whole, fresh = Variant(), Variant(random=True)
    variants = {
        FROZEN: [Variant(freeze=k) for k in points],
        TRUNCATED: [whole if k == encoder.layers else Variant(truncate=k) for k in points],
    }
    found = sweep.run(list(dict.fromkeys([whole, fresh, *variants[FROZEN], *variants[TRUNCATED]])))
    beside = {"all blocks learn": over_seeds(found[whole], seed), "majority": sweep.guess()}
    beside["random weights"] = over_seeds(found[fresh], seed)
    measures = {name: joined([over_seeds(found[one], seed) for one in some]) for name, some in variants.items()}
    changes = {
        f"{name}{CHANGE}": changed([found[one] for one in some], found[whole], seed) for name, some in variants.items()
    }
    measure, shape = sweep.lesson.task.measure, (len(points),)
    return Curve(
        along="blocks",
        points=np.array(points, np.float64),
        measures=measures | changes,
        baselines={
            **{name: dict.fromkeys(measures, one.everywhere(shape)) for name, one in beside.items()},
            NO_CHANGE: dict.fromkeys(changes, Estimates.exact(np.zeros(shape))),
        },
        units={
            FROZEN: f"{measure}, 0 to 1, with the first k blocks frozen",
            TRUNCATED: f"{measure}, 0 to 1, with the first k blocks alone",
            **dict.fromkeys(changes, f"{measure}, -1 to 1, less that of all blocks learning, of the same items"),
        },
    )


def changed(these: Sequence[Sequence[Counts]], whole: Sequence[Counts], seed: int) -> Estimates:
    """(point,) how far the runs of each point lie above those of the whole model, which is no other than itself."""
    from bertology.measures.variant_sweep import change_over_seeds

    unturned = np.array([some is not whole and _alike(some, whole) for some in these])
    return reaching_unseen(joined([change_over_seeds(some, whole, seed) for some in these]), unturned)


def _alike(these: Sequence[Counts], others: Sequence[Counts]) -> bool:
    """Whether no item was answered better or worse in any run."""
    pairs = zip(these, others, strict=True)
    return all(np.array_equal(one.right, other.right) and np.array_equal(one.of, other.of) for one, other in pairs)
