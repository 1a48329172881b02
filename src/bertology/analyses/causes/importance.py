"""How important is each head, by measures that are cheap, and by its removal (michel2019, voita2019)?"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.measures.causes.options import Legacy, Scale, TagLayer, Task
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.shapes import HeadGrid


@analysis(
    question="How important is each head to what the model is asked?",
    special="special tokens are sources of attention, and targets for everything but confidence",
    cites=("michel2019", "voita2019", "bach2015"),
)
def importance(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    task: Task = "auto",
    layer: TagLayer = "",
    items: Annotated[int, "use so many items, 0 for all"] = 64,
    scale: Scale = "layer",
    legacy: Legacy = False,
    seed: Annotated[int, "seed of the hidden pieces and of the bootstrap over items"] = 0,
) -> HeadGrid:
    """Importance of each head, by four measures, from 0 (it does not matter) up; `ablation` can be below 0 (it hurts).

    - gradient (michel2019): |∂L/∂ξ| of an item's loss by the gate ξ of the head at 1, the mean over items: what
      removing the head would change, to first order. The paper takes the size for each example, its code for each
      token (`legacy`, and divides the last layer by examples, not tokens, which the scaling undoes). Scaled to a length
      of 1 in each layer, heads of different layers are hard to compare; `scale none` leaves nats.
    - confidence (voita2019): the highest weight of each row on a piece that is not special; see attention/confidence.
    - relevance (voita2019): layer-wise relevance propagation from the scores of what is predicted to the heads'
      outputs, by the epsilon rule (1e-5); a bias keeps its own share, attention maps and the deviation in a LayerNorm
      count as weights, and non-linearities hand on what they get. The share of a head in its layer, of sizes without
      signs: 1 over the number of heads if all are alike. The paper's repository has the alpha-beta rule instead.
    - ablation: how much the loss grows, in nats, when the head alone is removed (its output 0): what the others are to
      foretell; `causes/importance_against_ablation` says how well they do.

    The loss is the cross-entropy of the right answer, or of the hidden pieces.
    """
    # Naming an analysis must not import torch.
    from bertology.measures.causes import head_orders as orders
    from bertology.measures.causes.importance import sums
    from bertology.measures.division import random_form

    model, asked = orders.examined(encoder, corpus, task=task, layer=layer, items=items, seed=seed)
    none = np.zeros((model.layers, model.heads), np.bool_)
    scaled = scale == "layer"

    def cheap(of: Encoder) -> dict[str, Estimates]:
        same, examination = orders.examined(of, corpus, task=asked.task, layer=layer, items=items, seed=seed)
        found = sums(same, examination)
        measured = {
            orders.GRADIENT: orders.gradient(found, legacy=legacy, scaled=scaled),
            orders.CONFIDENCE: orders.confidence(found),
            orders.RELEVANCE: orders.relevance(same, examination),
        }
        return {name: one.estimates(seed) for name, one in measured.items()}

    removal = orders.removal(model, asked, work, without=none).estimates(seed)
    fresh = random_form(model)
    alike = {orders.RELEVANCE: Estimates.exact(np.full(none.shape, 1 / model.heads))}
    if scaled:
        alike[orders.GRADIENT] = Estimates.exact(np.full(none.shape, model.heads**-0.5))
    baselines = {
        "all heads alike": alike,
        "no effect": {orders.ABLATION: Estimates.exact(np.zeros(none.shape))},
    }
    if fresh is not None:
        baselines["random weights"] = cheap(fresh)
    return HeadGrid(
        measures={**cheap(model), orders.ABLATION: removal},
        baselines=baselines,
        units={
            orders.GRADIENT: "share of the length of its layer's, 0 to 1" if scaled else "nats a unit of the gate",
            orders.CONFIDENCE: "weight, 0 to 1",
            orders.RELEVANCE: "share of its layer's, 0 to 1",
            orders.ABLATION: "nats of loss that its removal adds, below 0 where it hurts",
        },
    )
