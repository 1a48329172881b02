"""Prediction of the number of a masked verb by the masked language model and by probes (jawahar2019, goldberg2019)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.probes.subject_verb_agreement.verbs import (
    NEGATION,
    NUMBERS,
    PLURAL,
    SINGULAR,
    AgreementVerb,
    agreement_verbs,
)
from bertology.analyses.probing.pseudo_likelihood import MaskedCopy, run_masked_copies
from bertology.analyses.probing.train_test_split import randomised_encoder, train_mask
from bertology.arrays import Array, FloatArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder, ModelOutput
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean, exact_where_unanimous
from bertology.lazy import torch
from bertology.number_ranges import FRACTION, PENALTY
from bertology.numerics.batched_classifier import ClassifierConfig, fit_classifiers
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Table

if TYPE_CHECKING:
    from torch import Tensor

MASKED_LM = "masked LM"


@dataclass(frozen=True)
class _MaskedVerb:
    """A verb whose forms differ in one token: its input, the position of that token, and its id in both forms."""

    verb: AgreementVerb
    recorded_input: RecordedInput
    position: int
    correct_id: int
    incorrect_id: int


@analysis(
    question="Does the model predict the number of a masked verb when nouns of the other number intervene?",
    special_tokens="Special tokens: in the model's input, not analysed; only the masked verb is.",
    citations=("jawahar2019", "goldberg2019", "linzen2016", "warstadt2020"),
    version=4,
    cost=Cost(seconds_per_word=0.0005),
    test_corpus="generated:minimal_pairs",
    answers=True,
)
def subject_verb_agreement(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder,
    *,
    train_fraction: Annotated[float, FRACTION, "Fraction of sentences used for training, in whole documents."] = 0.5,
    train_without_attractors: Annotated[bool, "Train the probes only on verbs without attractors."] = False,
    l2_penalty: Annotated[
        float,
        PENALTY,
        "L2 penalty on the weights of the classifier: half of it times the squared norm of both classes' weights is "
        "added to the mean loss of n examples (scikit-learn: C = 2 / (penalty n)).",
    ] = 0.01,
    legacy: Annotated[bool, "Reproduce the released code: probe the position left of the mask."] = False,
    seed: Annotated[int, "Random seed (split, bootstrap)."] = 0,
) -> Table:
    """Proportion of masked verbs whose number is predicted, by number of attractors, 0 to 1; chance is about 0.5.

    The verb is masked; each verb and its other form must be a single token; of a contraction (haven't, hasn't) the
    first token is masked if only that one differs. `masked LM` (if the model has that task
    head): the right form is more probable than the wrong one. `layer n`: a linear probe on the hidden state of the mask
    predicts singular or plural, trained on some sentences and tested on the others; layer 0, the embeddings, has only
    the mask and its position. The paper's probe has 50 hidden units and is trained on a tenth of the data. Its released
    code probes the token whose position is the index of the verb's word, ignoring [CLS] and split words: `legacy`.
    `nearest noun` agrees with the noun right before the verb; `majority class` is the more frequent number. Intervals
    are over verbs.
    """
    verbs, skipped = _masked_verbs(recording, encoder)
    verbs.sort(key=lambda verb: (verb.recorded_input.tokens.ids.tobytes(), verb.position))
    is_train = train_mask([verb.recorded_input for verb in verbs], train_fraction, seed=seed)
    has_attractors = np.array([verb.verb.n_attractors > 0 for verb in verbs])
    is_fitted = is_train & ~(train_without_attractors & has_attractors)
    labels = np.array([verb.verb.number for verb in verbs])
    if len(set(labels[is_fitted].tolist())) < 2 or is_train.all():
        raise Refusal(
            f"{recording.corpus.name} has too few verbs: {is_fitted.sum()} for training and {(~is_train).sum()} for "
            "testing",
            "training verbs of both numbers, and test verbs",
            "Use a larger treebank, or generated:minimal_pairs",
        )

    def correctness(model: Encoder) -> FloatArray:
        """(row, verb) 1 if the number is predicted, 0 if not, NaN if the probe was trained on the sentence."""
        prefers_correct, states = _run_masked(model, verbs, legacy)
        correct = np.full((len(states), len(verbs)), np.nan)
        config = ClassifierConfig(l2_penalties=(l2_penalty,), max_iterations=300, tolerance=1e-5)
        probes = fit_classifiers(states[:, is_fitted], labels[None, is_fitted], 2, config)
        correct[:, ~is_train] = probes.predict(states[:, ~is_train])[:, 0] == labels[~is_train]
        return correct if prefers_correct is None else np.concatenate([prefers_correct[None], correct])

    correct = correctness(encoder)
    n_rows, n_layers = len(correct), encoder.layers + 1
    has_mlm = n_rows > n_layers
    majority = labels == (SINGULAR if 2 * (labels == SINGULAR).sum() >= len(labels) else PLURAL)
    nearest = np.array([verb.verb.nearest_noun_number for verb in verbs]) == labels
    baselines = {
        "majority class": np.tile(majority.astype(np.float64), (n_rows, 1)),
        "nearest noun": np.tile(nearest.astype(np.float64), (n_rows, 1)),
    }
    if randomised is not None and (untrained := randomised_encoder(encoder)) is not None:
        baselines["untrained model"] = correctness(untrained)
    measure_names = np.array([verb.verb.measure for verb in verbs])

    def estimate(values: FloatArray) -> dict[str, Estimates]:
        return {
            name: exact_where_unanimous(bootstrap_mean(values[:, measure_names == name].T, seed=seed))
            for name in sorted(set(measure_names.tolist()))
        }

    measures = estimate(correct)
    row_names = (*((MASKED_LM,) if has_mlm else ()), *(f"layer {layer}" for layer in range(n_layers)))
    table = Table(
        measures=measures,
        baselines={name: estimate(values) for name, values in baselines.items()},
        units=dict.fromkeys(measures, "proportion of verbs, 0 to 1"),
        sample={
            "verbs": len(verbs),
            "training verbs": int(is_fitted.sum()),
            "test verbs": int((~is_train).sum()),
            **{f"skipped ({reason})": count for reason, count in sorted(skipped.items())},
        },
        row_names=row_names,
        attributes={"layer": (*((None,) if has_mlm else ()), *range(n_layers))},
    )
    by_series = {MODEL_SERIES: correct, **baselines}
    return table.with_answers(lambda: _answers(recording.corpus, verbs, row_names, by_series))


def _answers(
    corpus: Corpus, verbs: Sequence[_MaskedVerb], row_names: Sequence[str], correct: Mapping[str, FloatArray]
) -> Iterator[Answer]:
    """The number predicted for each test verb, by series and row."""
    names = {number: name for name, number in list(NUMBERS.items())[2:]}
    for index, masked in enumerate(verbs):
        verb, text = masked.verb, masked.recorded_input.text
        item = {
            "item": f"{corpus[verb.example_index].id or verb.example_index + 1}:{verb.word_index + 1}",
            "text": text.segments[0].text,
            "word": text.words[verb.word_index],
            "attractors": verb.n_attractors,
            "gold": names[verb.number],
        }
        for series, values in correct.items():
            for row, is_correct in zip(row_names, values[:, index].tolist(), strict=True):
                if not np.isnan(is_correct):
                    prediction = names[verb.number if is_correct else 1 - verb.number]
                    yield item | {"series": series, "row": row, "prediction": prediction, "correct": is_correct}


def _masked_verbs(recording: Recording, encoder: Encoder) -> tuple[list[_MaskedVerb], Counter[str]]:
    """The verbs whose forms differ in one token, and how many were skipped, by reason."""
    if encoder.mask_token_id is None:
        raise Refusal(
            f"probes/subject_verb_agreement masks verbs, and {encoder.name} has no mask token",
            "a model with a mask token",
            "Choose one with --model, for example the built-in mini",
        )
    verbs, skipped = agreement_verbs(recording.corpus)
    inputs = {
        recorded_input.example_index: recorded_input
        for recorded_input in recording.inputs
        if not recorded_input.input_index and not recorded_input.window_index
    }
    verbs = [verb for verb in verbs if verb.example_index in inputs]
    masked: list[_MaskedVerb] = []
    for verb, other in zip(verbs, encoder.tokenise([verb.ungrammatical_input for verb in verbs]), strict=True):
        recorded_input = inputs[verb.example_index]
        ids = recorded_input.tokens.ids
        positions = recorded_input.tokens.positions_by_word().get(verb.word_index, [])
        other_positions = np.flatnonzero(other.word_ids == verb.word_index).tolist()
        word = recorded_input.text.words[verb.word_index]
        if _differ_in_one_token(ids[positions].tolist(), other.ids[other_positions].tolist(), word):
            correct_id, incorrect_id = int(ids[positions[0]]), int(other.ids[other_positions[0]])
            masked.append(_MaskedVerb(verb, recorded_input, positions[0], correct_id, incorrect_id))
        else:
            skipped["forms of several tokens"] += 1
    if not masked:
        reasons = "".join(f"; skipped ({reason}): {count}" for reason, count in sorted(skipped.items()))
        raise Refusal(
            f"{recording.corpus.name} has no verb that agrees with a noun before it{reasons}",
            "a treebank with lemmas and morphology, or minimal pairs of agreement",
            "Use a CoNLL-U treebank, BLiMP's files of subject-verb agreement, or "
            "--corpus generated:minimal_pairs --format-option paradigm=agreement",
        )
    return masked, skipped


def _differ_in_one_token(ids: Sequence[int], other_ids: Sequence[int], word: str) -> bool:
    """Whether two forms are one token each, or contractions that differ in their first token only."""
    if len(ids) != len(other_ids) or not ids or ids[0] == other_ids[0]:
        return False
    return len(ids) == 1 or (NEGATION.search(word) is not None and ids[1:] == other_ids[1:])


def _run_masked(encoder: Encoder, verbs: Sequence[_MaskedVerb], legacy: bool) -> tuple[FloatArray | None, Array]:
    """(verb,) whether the right form is more probable, None without an MLM task head; (layer, verb, width) states."""
    prefers_correct = np.full(len(verbs), np.nan)
    states = np.zeros((encoder.layers + 1, len(verbs), encoder.width), np.float32)
    probed_positions = np.array([verb.verb.word_index if legacy else verb.position for verb in verbs])

    def collect(indices: Sequence[int], positions: Tensor, output: ModelOutput) -> None:
        rows = torch.arange(len(indices), device=positions.device)
        probed = torch.from_numpy(probed_positions[list(indices)]).to(positions.device)
        for layer, hidden in enumerate(output.hidden_states):
            states[layer, list(indices)] = hidden[rows, probed].float().cpu().numpy()
        if "mlm" in output.logits:
            scores = output.logits["mlm"][rows, positions].float()
            forms = [(verbs[index].correct_id, verbs[index].incorrect_id) for index in indices]
            right, wrong = scores.gather(1, torch.tensor(forms, device=positions.device)).unbind(1)
            prefers_correct[list(indices)] = (right > wrong).cpu().numpy()

    copies = [MaskedCopy(verb.recorded_input.tokens, (verb.position,), verb.position) for verb in verbs]
    run_masked_copies(encoder, copies, collect, hidden=True)
    return (prefers_correct if "mlm" in encoder.task_heads else None), states
