"""Importance of each head by gradient, confidence, relevance propagation and ablation (michel2019, voita2019)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import analysis
from bertology.analyses.evaluation.options import EvaluationOptions, LegacyOption, NormaliseOption, RandomBaselineOption
from bertology.analyses.evaluation.score_change import SIGNIFICANCE, SIGNIFICANCE_LEVEL, ZERO, loss_p_values
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.estimates.estimate import Estimates
from bertology.results.measured_shape import CostMeasures, RemovalCosts
from bertology.results.shapes import HeadGrid

GRADIENT, CONFIDENCE = "gradient importance", "confidence"
RELEVANCE, ABLATION = "relevance (LRP)", "loss increase when ablated"
P_VALUE = "p of loss increase (Holm)"


@analysis(
    question="How important is each head for the task, by gradient, confidence, relevance propagation and ablation?",
    special_tokens="Special tokens: included. Confidence excludes them as targets.",
    citations=("michel2019", "voita2019", "bach2015"),
    version=2,
)
def head_importance(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    normalise: NormaliseOption = "layer",
    legacy: LegacyOption = False,
    random_baseline: RandomBaselineOption = True,
    options: EvaluationOptions = EvaluationOptions(sample_size=64),
) -> HeadGrid:
    """Importance of each head by four measures, 0 for a head without effect; ablation is below 0 for a harmful head.

    - `gradient importance` (michel2019): |∂L/∂ξ| of an example's loss by the head's gate ξ at 1, averaged over
      examples: the change in loss, to first order, when the head is removed. The paper takes absolute values per
      example, its released code per token (`--legacy`; the code also divides the last layer by examples instead of
      tokens, which normalising undoes). Layers normalised to unit norm cannot be compared with each other;
      `--normalise none` gives nats.
    - `confidence` (voita2019): the mean of each token's highest weight on a non-special token; see
      attention/confidence.
    - `relevance (LRP)` (voita2019): layer-wise relevance propagation from the logits of the prediction to the heads'
      outputs, by the epsilon rule (1e-5). Biases keep their part of the relevance, attention weights and the standard
      deviation of a LayerNorm count as weights, non-linearities pass relevance on, and the factors of a product
      (ModernBERT's gated feed-forward block) receive half each. The value is the head's share
      of its layer's absolute relevance: 1 / heads if all heads are equal. The paper's repository uses the alpha-beta
      rule instead.
    - `loss increase when ablated`: the increase of the loss, in nats, when only this head is removed (output set to
      zero), which the other measures predict; interventions/importance_vs_ablation tests how well. Its p value is that
      of a two-sided paired test with Holm's correction for all heads.

    The loss is the cross-entropy of the gold label, or of the masked tokens.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.evaluation import head_ranking
    from bertology.analyses.evaluation.gradient_importance import head_gradients
    from bertology.analyses.probing.train_test_split import randomised_encoder

    model, evaluation = head_ranking.prepare_ranking(encoder, corpus, options)
    shape = (model.layers, model.heads)
    is_normalised = normalise == "layer"

    def predicted_importance(variant: Encoder) -> dict[str, Estimates]:
        variant_model, variant_evaluation = head_ranking.prepare_ranking(
            variant, corpus, replace(options, task=evaluation.task)
        )
        gradients = head_gradients(variant_model, variant_evaluation)
        importance = {
            GRADIENT: head_ranking.gradient_importance(gradients, legacy=legacy, normalise=is_normalised),
            CONFIDENCE: head_ranking.confidence_importance(gradients),
            RELEVANCE: head_ranking.relevance_importance(variant_model, variant_evaluation),
        }
        return {name: values.estimates(options.seed) for name, values in importance.items()}

    no_heads = np.zeros(shape, np.bool_)
    ablation = head_ranking.ablation_importance(model, evaluation, cache, removed_heads=no_heads)
    equal = {RELEVANCE: Estimates.exact(np.full(shape, 1 / model.heads))}
    if is_normalised:
        equal[GRADIENT] = Estimates.exact(np.full(shape, model.heads**-0.5))
    baselines = {
        "equal importance": equal,
        ZERO: {ABLATION: Estimates.exact(np.zeros(shape))},
        SIGNIFICANCE: {P_VALUE: Estimates.exact(np.full(shape, SIGNIFICANCE_LEVEL))},
    }
    randomised = randomised_encoder(model) if random_baseline else None
    if randomised is not None:
        baselines["untrained model"] = predicted_importance(randomised)
    return HeadGrid(
        measures={
            **predicted_importance(model),
            ABLATION: ablation.estimates(options.seed),
            P_VALUE: loss_p_values(ablation.values),
        },
        baselines=baselines,
        units={
            GRADIENT: "relative to the layer's norm, 0 to 1" if is_normalised else "nats per unit of the gate",
            CONFIDENCE: "attention weight, 0 to 1",
            RELEVANCE: "share of the layer's relevance, 0 to 1",
            ABLATION: "nats per example",
            P_VALUE: "probability, 0 to 1",
        },
        sample=evaluation.sample(),
        reference=evaluation.reference(evaluation.scores(model.forward), seed=options.seed),
        costs=RemovalCosts(
            part="head",
            metric=evaluation.metric,
            significance_level=SIGNIFICANCE_LEVEL,
            operations={"": CostMeasures(loss=ABLATION, p_value=P_VALUE)},
        ),
        lowest=(P_VALUE,),
    )
