"""Attribution agreement: does attention rank input tokens as gradients and input ablation do (Abnar & Zuidema 2020)?"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal, cast

import numpy as np
from annotated_types import Ge

from bertology.analyses.attention.attribution_agreement.token_relevance import (
    GRADIENT,
    GRADIENT_X_INPUT,
    INPUT_ABLATION,
    LAYER_METHODS,
    PROXIMITY,
    TOKEN_RARITY,
    RelevanceConfig,
    RelevanceTarget,
    TokenRelevance,
    resolve_target,
    token_relevances,
)
from bertology.analyses.attention.rollout import HeadFusionOption, ResidualWeightOption
from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.head_grids import UNTRAINED_MODEL
from bertology.arrays import FloatArray
from bertology.encoder.encoder import Encoder, Randomisable
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean
from bertology.lazy import torch
from bertology.number_ranges import REPETITIONS
from bertology.numerics.rank_correlation import spearman
from bertology.recording.plan import MAX_SAMPLE_SIZE, affordable_sample_size, sample_inputs
from bertology.recording.recording import Recording
from bertology.results.illustrations import Examples, HighlightedSentence
from bertology.results.shapes import LayerCurve, Table

AttributionAgreementView = Literal["methods", "layers", "examples"]

REFERENCES = (INPUT_ABLATION, GRADIENT, GRADIENT_X_INPUT)
CONTROLS = (PROXIMITY, TOKEN_RARITY)
"""Methods that need no model."""
METHODS = (*LAYER_METHODS, GRADIENT, GRADIENT_X_INPUT, *CONTROLS)
UNIT = "Spearman correlation, -1 to 1"
N_HIGHLIGHTED_WORDS = 3
N_SHUFFLES = 20

MAX_SECONDS = 120.0
"""What all passes of a sample may take one core, for one model."""


@analysis(
    question="Do attention, rollout and flow rank input tokens as gradients and input ablation do?",
    special_tokens="Special tokens: excluded from the comparison, as are masked tokens; attention flows through them.",
    citations=("abnar2020",),
    version=3,
    cost=Cost(60.0),
)
def attribution_agreement(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder,
    *,
    show: Annotated[
        AttributionAgreementView,
        "`methods` (attention from the last layer), `layers` (from every layer) or `examples` (sentences with their "
        "most relevant tokens).",
    ] = "methods",
    attribution_target: Annotated[
        RelevanceTarget,
        "Output that tokens are attributed to: the top `class`, a `masked` token, or the `cls` or `mean` vector; "
        "`auto`: the first available of class, masked, mean.",
    ] = "auto",
    residual_weight: ResidualWeightOption = 0.5,
    head_fusion: HeadFusionOption = "mean",
    sample_size: Annotated[
        int | Literal["auto"],
        Ge(0),
        "Analyse a random sample of this many inputs, each of which needs many passes (0: all); `auto`: at most 60, "
        "fewer of a large model.",
    ] = "auto",
    skip_longer_than: Annotated[
        int, "Skip inputs with more tokens than this; input ablation needs one forward pass per token."
    ] = 128,
    n_directions: Annotated[
        int, REPETITIONS, "Number of random directions used to estimate the norm of the Jacobian."
    ] = 16,
    n_examples: Annotated[int, "Number of example sentences with --show examples."] = 5,
    seed: Annotated[int, "Random seed (sample, masked tokens, directions, shuffled tokens, bootstrap)."] = 0,
) -> Table | LayerCurve | Examples:
    """Spearman correlation over the tokens of a sentence between two relevance methods: 1 same order, 0 none.

    The methods: attention to a token from the state that is read (`raw attention`), `rollout`, `flow` (see those
    analyses); `gradient`, ‖∂s/∂x‖ at a token's state x before the first layer, and `gradient x input`, |x ∂s/∂x|;
    `input ablation`, |Δs| with the token replaced by the mask token. Two need no model: `proximity` to the token that
    is read, and `token rarity`, the index of a token in the vocabulary, which is mostly ordered by frequency: if
    attention and gradients both follow rarity, they agree for that reason alone. s is the log-probability of the
    predicted class, or of one random masked token (whose state is read), or a vector: then Δs is ‖Δv‖, and gradients
    are those of the Jacobian, estimated with random directions. Correlations are averaged over sentences; sentences
    with fewer than three tokens to compare, or with equal values, are skipped. `shuffled tokens` shuffles the tokens of
    one side within each sentence, 20 times; a single untrained model prefers some words, which shifts its correlations
    by about 0.2 in either direction, equally in all sentences. An input needs a pass for each token: with the default
    sample size the passes of a model take less than two minutes of one core, and the result says how many inputs that
    are (60 for 8 layers of width 256, 14 sentences of 30 tokens for 12 layers of width 768; measured for a sentence of
    25 tokens: 0.2 s and 1.7 s). Abnar & Zuidema ablate with [UNK] and use a probability, which has the same order;
    their released code for SST-2 uses the highest weight from any position, not that of [CLS].
    """
    target = resolve_target(attribution_target, encoder)
    layers = tuple(range(1, encoder.layers + 1)) if show == "layers" else (encoder.layers,)
    config = RelevanceConfig(
        target, residual_weight, head_fusion, layers, n_directions, MAX_SAMPLE_SIZE, skip_longer_than, seed
    )
    affordable = _affordable_sample_size(recording, encoder, config) if sample_size == "auto" else sample_size
    config = replace(config, sample_size=affordable)
    sentences = _sorted_relevances(recording, encoder, config)
    if not any(len(sentence.positions) for sentence in sentences):
        raise Refusal(
            f"No input has non-special tokens and at most {skip_longer_than} tokens",
            "inputs short enough for input ablation",
            "Raise --skip-longer-than, or use other texts",
        )
    if show == "examples":
        examples = [_build_examples(recording, sentence) for sentence in sentences[:n_examples]]
        return Examples(examples=tuple(example for group in examples for example in group))
    untrained: list[TokenRelevance] | None = None
    if randomised is not None:
        untrained = _sorted_relevances(randomised, cast("Randomisable", encoder).randomised(seed=0), config)
    build = _build_curve if show == "layers" else _build_table
    return build(sentences, untrained, seed).model_copy(update={"sample": _sample(recording, config)})


def _affordable_sample_size(recording: Recording, encoder: Encoder, config: RelevanceConfig) -> int:
    """The number of inputs whose passes stay within the budget."""
    indices = sample_inputs(recording, config.sample_size, config.seed)
    lengths = np.array([len(recording.inputs[index].tokens) for index in indices], np.float64)
    lengths = lengths[lengths <= config.max_length]
    n_backward = config.n_directions if config.target in {"cls", "mean"} else 1
    # One pass for each ablated token, one for attention and one for gradients; a backward pass costs two.
    return affordable_sample_size(encoder, lengths, lengths + 2 + 2 * n_backward, seconds=MAX_SECONDS)


def _sorted_relevances(recording: Recording, encoder: Encoder, config: RelevanceConfig) -> list[TokenRelevance]:
    return sorted(token_relevances(recording, encoder, config), key=lambda sentence: sentence.input_index)


def _sample(recording: Recording, config: RelevanceConfig) -> dict[str, int]:
    indices = sample_inputs(recording, config.sample_size, config.seed)
    n_long = sum(len(recording.inputs[index].tokens) > config.max_length for index in indices)
    return {"inputs": len(recording), "sampled inputs": len(indices), "inputs skipped (too long)": n_long}


def _build_table(sentences: list[TokenRelevance], untrained: list[TokenRelevance] | None, seed: int) -> Table:
    rows = tuple(m for m in METHODS if m in LAYER_METHODS or any(m in sentence.by_method for sentence in sentences))

    def correlate(group: list[TokenRelevance], shuffle: bool) -> dict[str, Estimates]:
        values = np.stack([_correlations(sentence, rows, -1, seed if shuffle else None) for sentence in group])
        return bootstrap_mean(values, seed=seed).by_name([f"correlation with {name}" for name in REFERENCES])

    measures, baselines = _with_baselines(correlate, sentences, untrained)
    return Table(measures=measures, baselines=baselines, units=dict.fromkeys(measures, UNIT), row_names=rows)


def _build_curve(sentences: list[TokenRelevance], untrained: list[TokenRelevance] | None, seed: int) -> LayerCurve:
    n_layers = len(sentences[0].by_layer["rollout"])
    names = [f"correlation of {method} with {reference}" for method in LAYER_METHODS for reference in REFERENCES]

    def correlate(group: list[TokenRelevance], shuffle: bool) -> dict[str, Estimates]:
        shuffle_seed = seed if shuffle else None
        values = [
            [_correlations(sentence, LAYER_METHODS, layer, shuffle_seed).ravel() for layer in range(n_layers)]
            for sentence in group
        ]
        return bootstrap_mean(np.array(values), seed=seed).by_name(names)

    measures, baselines = _with_baselines(correlate, sentences, untrained)
    return LayerCurve(measures=measures, baselines=baselines, units=dict.fromkeys(measures, UNIT), first_layer=1)


def _with_baselines(
    correlate: Callable[[list[TokenRelevance], bool], dict[str, Estimates]],
    sentences: list[TokenRelevance],
    untrained: list[TokenRelevance] | None,
) -> tuple[dict[str, Estimates], dict[str, dict[str, Estimates]]]:
    baselines = {"shuffled tokens": correlate(sentences, True)}
    if untrained is not None:
        baselines[UNTRAINED_MODEL] = correlate(untrained, False)
    return correlate(sentences, False), baselines


def _correlations(
    sentence: TokenRelevance, methods: tuple[str, ...], layer: int, shuffle_seed: int | None
) -> FloatArray:
    """(method, reference) rank correlations; NaN if undefined, and for a method with itself.

    With a `shuffle_seed`, the mean over shuffles of the tokens of the references.
    """
    size = len(sentence.positions)
    missing = np.full(size, np.nan)
    rows = [
        sentence.by_layer[name][layer] if name in LAYER_METHODS else sentence.by_method.get(name, missing)
        for name in methods
    ]
    orders = np.arange(size)[None]
    if shuffle_seed is not None:
        key = hashlib.sha256(b"shuffled" + sentence.ids.tobytes() + shuffle_seed.to_bytes(8, "little")).digest()
        orders = np.random.default_rng(list(key)).permuted(np.tile(orders, (N_SHUFFLES, 1)), axis=1)
    references = np.stack([sentence.by_method[name] for name in REFERENCES])[:, orders].swapaxes(0, 1)
    first, second = torch.broadcast_tensors(
        torch.from_numpy(np.stack(rows))[:, None], torch.from_numpy(references)[:, None]
    )
    correlations = spearman(first, second, torch.isfinite(first)).mean(0).double().numpy()
    is_same = np.array([[method == reference for reference in REFERENCES] for method in methods])
    return np.where(is_same, np.nan, correlations)


def _build_examples(recording: Recording, sentence: TokenRelevance) -> list[HighlightedSentence]:
    """One example per method: its most relevant words, and its correlation with input ablation."""
    recorded_input = recording.inputs[sentence.input_index]
    methods = tuple(name for name in METHODS if name not in CONTROLS)
    agreement = _correlations(sentence, methods, -1, None)[:, 0].tolist()
    shown = zip((INPUT_ABLATION, *methods), (float("nan"), *agreement), strict=True)
    return [_build_example(recorded_input, sentence, method, score) for method, score in shown]


def _build_example(
    recorded_input: RecordedInput, sentence: TokenRelevance, method: str, agreement: float
) -> HighlightedSentence:
    tokens, masked = recorded_input.tokens, sentence.masked_position
    values = sentence.by_layer[method][-1] if method in LAYER_METHODS else sentence.by_method[method]
    top = np.argsort(-values, kind="stable")[:N_HIGHLIGHTED_WORDS]
    total = values.sum() or 1.0
    shares = ", ".join(f"{tokens.tokens[sentence.positions[i]]} {values[i] / total:.2f}" for i in top)
    words = {int(word) for word in tokens.word_ids[sentence.positions[top]] if word >= 0}
    masked_words = {int(tokens.word_ids[masked])} - {-1} if masked >= 0 else set[int]()
    description = f" of masked {tokens.tokens[masked]!r}" if masked >= 0 else ""
    return HighlightedSentence(
        words=recorded_input.text.words,
        highlights={"most relevant": tuple(sorted(words)), "masked": tuple(masked_words)},
        score=round(agreement, 4),
        caption=f"{method}{description}: {shares}",
    )
