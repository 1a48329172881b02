"""Does attention tell which input pieces matter, as gradients and blanking them out do (abnar2020)?"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Annotated, Literal, cast

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import Encoder, Randomisable
from bertology.errors import Refusal
from bertology.maths.rollout import Fusion
from bertology.measures.attention.token_relevance import BY_LAYER, How, Relevance, Target, relevances, settled
from bertology.measures.passes import drawn
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences
from bertology.results.shapes import Example, Examples, LayerCurve, Table

Floats = NDArray[np.float64]
Show = Literal["methods", "layers", "examples"]

REFERENCES = ("blank-out", "gradient", "gradient x input")
CONTROLS = ("nearness", "rarity")
"""What needs no model."""
METHODS = (*BY_LAYER, "gradient", "gradient x input", *CONTROLS)
UNIT = "rank correlation, -1 to 1"
SHOWN_WORDS = 3
SHUFFLES = 20


@analysis(
    question="Does attention tell which input pieces matter, as gradients and blanking them out do?",
    special="special tokens pass attention on; relevance is compared over ordinary pieces that are not masked",
    cites=("abnar2020",),
    version=2,
)
def relevance(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder,
    *,
    show: Annotated[
        Show,
        "`methods`: all of them, attention followed from the last layer (Table); `layers`: from every layer "
        "(LayerCurve); `examples`: sentences with their most relevant words (Examples)",
    ] = "methods",
    target: Annotated[
        Target,
        "what pieces are relevant to: the top `class`; a `masked` piece; the vector of the first piece (`cls`) or the "
        "`mean` vector; `auto` for the first of class, masked and mean that the model has",
    ] = "auto",
    residual: Annotated[float, "how much of a state stays in place in each layer, 0 to 1"] = 0.5,
    fusion: Annotated[Fusion, "what the heads of a layer are put together by"] = "mean",
    sentences: Annotated[int, "how many inputs are drawn, each costing many passes; 0 for all"] = 60,
    longest: Annotated[int, "longer inputs are left out: blanking out takes a pass for each piece"] = 128,
    directions: Annotated[int, "random directions that the gradients of a vector are taken in"] = 16,
    count: Annotated[int, "how many sentences are shown as examples"] = 5,
    seed: Annotated[int, "seed of the draw, the bootstrap, the masked pieces, the shuffles and the directions"] = 0,
) -> Table | LayerCurve | Examples:
    """Spearman's correlation over a sentence's pieces between two kinds of relevance: 1 the same order, 0 none.

    The kinds: attention to a piece by the state that is read (`raw attention`), `rollout`, `flow` (see those analyses);
    `gradient`, ‖∂s/∂x‖ at a piece's state x before the first layer, and |x ∂s/∂x|; `blank-out`, |Δs| with the piece
    replaced by the mask token. Two need no model: `nearness` to the piece that is read, and `rarity`, the number of a
    piece in the vocabulary, most of which are in the order of frequency: where attention and gradients both follow
    rarity they agree for that alone. s is the log-probability of the predicted class, or of one masked piece (drawn at
    random, the state read is its own), or a vector: then Δs is ‖Δv‖, and gradients are those of the whole Jacobian, by
    random directions. Correlations are means over sentences; sentences with fewer than three pieces to compare, or all
    alike, do not count. `shuffled` has one side's pieces shuffled within each sentence, 20 times; a single random model
    has words it likes, which put its correlations off 0 by 0.2 or so to either side, alike in all sentences. Abnar &
    Zuidema blank out with [UNK] and take a probability, whose order is the same; their released code for SST-2 takes
    the largest weight from any position, not that of [CLS].
    """
    chosen = settled(target, encoder)
    depths = tuple(range(1, encoder.layers + 1)) if show == "layers" else (encoder.layers,)
    how = How(chosen, residual, fusion, depths, directions, sentences, longest, seed)
    found = list(_in_order(recording, encoder, how))
    if not any(len(one.pieces) for one in found):
        raise Refusal(
            f"No input has ordinary pieces, and at most {longest} pieces in all",
            "inputs that are short enough to blank out piece by piece",
            "Raise --longest, or give other texts",
        )
    if show == "examples":
        return Examples(examples=tuple(one for some in found[:count] for one in _examples(recording, some)))
    fresh: list[Relevance] | None = None
    if randomised is not None:
        fresh = list(_in_order(randomised, cast("Randomisable", encoder).randomised(seed=0), how))
    unit = f"{UNIT} ({_sizes(recording, how)})"
    return _curve(found, fresh, unit, seed) if show == "layers" else _table(found, fresh, unit, seed)


def _in_order(recording: Recording, encoder: Encoder, how: How) -> list[Relevance]:
    return sorted(relevances(recording, encoder, how), key=lambda one: one.entry)


def _sizes(recording: Recording, how: How) -> str:
    """How many inputs were drawn and left out."""
    chosen = drawn(recording, how.sentences, how.seed)
    long = sum(len(recording.entries[place].pieces) > how.longest for place in chosen)
    told = f"{len(chosen)} of {len(recording)} inputs drawn"
    return f"{told}, {long} of more than {how.longest} pieces left out" if long else told


def _table(found: list[Relevance], fresh: list[Relevance] | None, unit: str, seed: int) -> Table:
    rows = tuple(name for name in METHODS if name in BY_LAYER or any(name in one.others for one in found))

    def correlated(some: list[Relevance], shuffled: bool) -> dict[str, Estimates]:
        values = np.stack([_correlations(one, rows, -1, seed if shuffled else None) for one in some])
        return _named([f"with {name}" for name in REFERENCES], mean_over_sentences(values, seed=seed))

    measures, baselines = _with_baselines(correlated, found, fresh)
    return Table(measures=measures, baselines=baselines, units=dict.fromkeys(measures, unit), rows_named=rows)


def _curve(found: list[Relevance], fresh: list[Relevance] | None, unit: str, seed: int) -> LayerCurve:
    depths = len(found[0].by_layer["rollout"])
    names = [f"{method} with {reference}" for method in BY_LAYER for reference in REFERENCES]

    def correlated(some: list[Relevance], shuffled: bool) -> dict[str, Estimates]:
        control = seed if shuffled else None
        values = [[_correlations(one, BY_LAYER, depth, control).ravel() for depth in range(depths)] for one in some]
        return _named(names, mean_over_sentences(np.array(values), seed=seed))

    measures, baselines = _with_baselines(correlated, found, fresh)
    return LayerCurve(measures=measures, baselines=baselines, units=dict.fromkeys(measures, unit), first=1)


def _with_baselines(
    correlated: Callable[[list[Relevance], bool], dict[str, Estimates]],
    found: list[Relevance],
    fresh: list[Relevance] | None,
) -> tuple[dict[str, Estimates], dict[str, dict[str, Estimates]]]:
    baselines = {"shuffled": correlated(found, True)}
    if fresh is not None:
        baselines["random weights"] = correlated(fresh, False)
    return correlated(found, False), baselines


def _named(names: list[str], estimates: Estimates) -> dict[str, Estimates]:
    return {name: estimates[..., place] for place, name in enumerate(names)}


def _correlations(one: Relevance, methods: tuple[str, ...], depth: int, shuffled: int | None) -> Floats:
    """(method, reference) rank correlations; NaN where they are undefined, and of a method with itself.

    With a seed to shuffle by, the mean over shuffles of the references' pieces.
    """
    import torch

    from bertology.maths.rank_correlation import spearman

    size = len(one.pieces)
    unknown = np.full(size, np.nan)
    rows = [one.by_layer[name][depth] if name in BY_LAYER else one.others.get(name, unknown) for name in methods]
    orders = np.arange(size)[None]
    if shuffled is not None:
        key = hashlib.sha256(b"shuffled" + one.ids.tobytes() + shuffled.to_bytes(8, "little")).digest()
        orders = np.random.default_rng(list(key)).permuted(np.tile(orders, (SHUFFLES, 1)), axis=1)
    references = np.stack([one.others[name] for name in REFERENCES])[:, orders].swapaxes(0, 1)
    first, second = torch.broadcast_tensors(
        torch.from_numpy(np.stack(rows))[:, None], torch.from_numpy(references)[:, None]
    )
    found = spearman(first, second, torch.isfinite(first)).mean(0).double().numpy()
    own = np.array([[method == reference for reference in REFERENCES] for method in methods])
    return np.where(own, np.nan, found)


def _examples(recording: Recording, one: Relevance) -> list[Example]:
    """One example a method: its most relevant words, and how its order of pieces agrees with blanking out."""
    entry = recording.entries[one.entry]
    methods = tuple(name for name in METHODS if name not in CONTROLS)
    agreement = _correlations(one, methods, -1, None)[:, 0].tolist()
    shown = zip(("blank-out", *methods), (float("nan"), *agreement), strict=True)
    return [_example(entry, one, name, number) for name, number in shown]


def _example(entry: Entry, one: Relevance, method: str, agreement: float) -> Example:
    values = one.by_layer[method][-1] if method in BY_LAYER else one.others[method]
    best = np.argsort(-values, kind="stable")[:SHOWN_WORDS]
    whole = values.sum() or 1.0
    shares = ", ".join(f"{entry.pieces.tokens[one.pieces[place]]} {values[place] / whole:.2f}" for place in best)
    words = {int(word) for word in entry.pieces.word[one.pieces[best]] if word >= 0}
    asked = {int(entry.pieces.word[one.masked])} - {-1} if one.masked >= 0 else set[int]()
    about = f" of masked {entry.pieces.tokens[one.masked]!r}" if one.masked >= 0 else ""
    return Example(
        words=entry.input.words,
        marked={"most relevant": tuple(sorted(words)), "masked": tuple(asked)},
        score=round(agreement, 4) if np.isfinite(agreement) else None,
        caption=f"{method}{about}: {shares}",
    )
