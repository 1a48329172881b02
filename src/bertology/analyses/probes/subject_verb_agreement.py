"""Prediction of the number of a masked verb by the masked language model and by probes (jawahar2019, goldberg2019).

Verbs come from minimal pairs that mark them, from the pairs of BLiMP that differ in the verb (warstadt2020: two of its
paradigms have an attractor), or from a treebank (linzen2016): a finite present verb (the governor of a
nominal subject, its auxiliary or its copula) after its subject, a noun of the same number. The other form of a verb is
the most frequent one of its lemma in the corpus; with Penn Treebank tags, and thus English text, the plural is the
lemma. Attractors are nouns of the other number between subject and verb; verbs with attractors and other nouns in
between are skipped, as in the published evaluation.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.probing.pseudo_likelihood import MaskedCopy, run_masked_copies
from bertology.analyses.probing.train_test_split import randomised_encoder, train_mask
from bertology.arrays import Array, FloatArray
from bertology.corpus.corpus import Corpus, Example, TextInput
from bertology.corpus.sentence import Sentence
from bertology.corpus.tagsets import universal_tag
from bertology.corpus.tasks.morphology import word_morphology
from bertology.encoder.encoder import Encoder, ModelOutput
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean, exact_where_unanimous
from bertology.lazy import torch
from bertology.numerics.batched_classifier import ClassifierConfig, fit_classifiers
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.shapes import MODEL_SERIES, Table

if TYPE_CHECKING:
    from torch import Tensor

SINGULAR, PLURAL = 0, 1
NUMBERS = {"Sing": SINGULAR, "Plur": PLURAL, "singular": SINGULAR, "plural": PLURAL}
_PENN_NUMBERS = {"VBZ": SINGULAR, "VBP": PLURAL, "NN": SINGULAR, "NNP": SINGULAR, "NNS": PLURAL, "NNPS": PLURAL}

MAX_ATTRACTORS = 4
"""Verbs with this many attractors or more are reported together."""
MASKED_LM = "masked LM"
BLIMP_PHENOMENON, BLIMP_ATTRACTORS = "subject_verb_agreement", "/distractor_agreement"
BLIMP_PARADIGMS = ("agreement_1", "agreement_relational_noun", "agreement_relative_clause")
"""Ends of the names of the paradigms whose pairs differ in the verb; the others differ in the subject."""
_NEGATION = re.compile("n['’]t$")

VerbForms = Mapping[str, Mapping[int, str]]
"""Lemma -> number -> present form."""


@dataclass(frozen=True)
class AgreementVerb:
    """A verb by example and word index, with the same input in which the verb has the wrong number."""

    example_index: int
    word_index: int
    ungrammatical_input: TextInput
    number: int
    nearest_noun_number: int
    n_attractors: int

    @property
    def measure(self) -> str:
        """The name of the accuracy the verb counts in."""
        count = min(self.n_attractors, MAX_ATTRACTORS)
        return f"accuracy ({count}{' or more' * (count == MAX_ATTRACTORS)} attractor{'s' * (count != 1)})"


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
    train_fraction: Annotated[float, "Fraction of sentences used for training, in whole documents."] = 0.5,
    train_without_attractors: Annotated[bool, "Train the probes only on verbs without attractors."] = False,
    l2_penalty: Annotated[
        float, "L2 penalty on the weights of the classifier: half of it times the squared norm is added to the loss."
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
    return len(ids) == 1 or (_NEGATION.search(word) is not None and ids[1:] == other_ids[1:])


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


def agreement_verbs(corpus: Corpus) -> tuple[list[AgreementVerb], Counter[str]]:
    """The verbs of a corpus in order, and how many were skipped, by reason."""
    skipped: Counter[str] = Counter()
    forms = _verb_forms(corpus)
    verbs: list[AgreementVerb] = []
    for index, example in enumerate(corpus):
        if example.kind == "minimal_pair" and _phenomenon(example) == BLIMP_PHENOMENON:
            verbs.extend(_verbs_from_blimp(index, example, skipped))
        elif example.kind == "minimal_pair":
            verbs.extend(_verbs_from_pair(index, example))
        elif example.kind == "sentence" and example.segments[0].governors is not None:
            verbs.extend(_verbs_from_treebank(index, example.segments[0], forms, skipped))
    return verbs, skipped


def _verbs_from_pair(example_index: int, example: Example) -> Iterator[AgreementVerb]:
    """The verb of a pair whose factors give its number and the number of attractors."""
    factors = example.factors
    acceptable, unacceptable = example.segments
    targets = acceptable.marked_words.get("target", ())
    if factors.get("paradigm", "").startswith("agreement") and len(targets) == 1 and factors.get("number") in NUMBERS:
        number, n_attractors = NUMBERS[factors["number"]], int(factors.get("attractors", "0"))
        nearest = 1 - number if n_attractors else number
        yield AgreementVerb(example_index, targets[0], TextInput((unacceptable,)), number, nearest, n_attractors)


def _phenomenon(example: Example) -> str:
    """The phenomenon of a BLiMP pair, from its source `field/phenomenon/paradigm`."""
    return (example.source.split("/") + ["", ""])[1]


def _verbs_from_blimp(example_index: int, example: Example, skipped: Counter[str]) -> Iterator[AgreementVerb]:
    """The verb in which the sentences of a BLiMP pair differ; in half of the paradigms they differ in the subject."""
    acceptable, unacceptable = example.segments
    pairs = zip(acceptable.words, unacceptable.words, strict=False)
    differing = [word for word, (form, other_form) in enumerate(pairs) if form != other_form]
    if len(acceptable) != len(unacceptable) or len(differing) != 1:
        skipped["pairs that differ in more than one word"] += 1
        return
    number = _number_of_form(acceptable.words[differing[0]], unacceptable.words[differing[0]])
    if number is None or not example.source.endswith(BLIMP_PARADIGMS):
        skipped["pairs that differ in the subject"] += 1
        return
    n_attractors = int(BLIMP_ATTRACTORS in example.source)
    nearest = 1 - number if n_attractors else number
    yield AgreementVerb(example_index, differing[0], TextInput((unacceptable,)), number, nearest, n_attractors)


def _number_of_form(form: str, other_form: str) -> int | None:
    """The number of the first of two English verb forms: the singular ends in s, and is the longer if both do."""
    stem, other_stem = (_NEGATION.sub("", word.lower()) for word in (form, other_form))
    ends_in_s, other_ends_in_s = stem.endswith("s"), other_stem.endswith("s")
    if ends_in_s != other_ends_in_s:
        return SINGULAR if ends_in_s else PLURAL
    return None if not ends_in_s else SINGULAR if len(stem) > len(other_stem) else PLURAL


def _verbs_from_treebank(
    example_index: int, sentence: Sentence, forms: VerbForms, skipped: Counter[str]
) -> Iterator[AgreementVerb]:
    relations, governors = sentence.relations or (), sentence.governors or ()
    for subject, relation in enumerate(relations):
        if relation.split(":")[0] not in ("nsubj", "nsubjpass") or not _is_noun(sentence, subject):
            continue
        verb = _finite_verb(sentence, governors[subject])
        number = None if verb is None else _number(sentence, verb)
        if verb is None or number is None or verb < subject:
            continue
        between = [_number(sentence, word) for word in range(subject + 1, verb) if _is_noun(sentence, word)]
        n_attractors = between.count(1 - number)
        lemma_forms = forms.get(_lemma(sentence, verb), {})
        other_form = lemma_forms.get(1 - number)
        if _number(sentence, subject) != number:
            skipped["subject of another number"] += 1
        elif 0 < n_attractors < len(between) or (between and not n_attractors):
            skipped["intervening nouns that are not attractors"] += 1
        elif sentence.words[verb] != lemma_forms.get(number) or other_form in (None, lemma_forms.get(number)):
            skipped["no other form in the corpus"] += 1
        else:
            nearest = 1 - number if n_attractors else number
            ungrammatical = TextInput((replace_word(sentence, verb, lemma_forms[1 - number]),))
            yield AgreementVerb(example_index, verb, ungrammatical, number, nearest, n_attractors)


def _verb_forms(corpus: Corpus) -> VerbForms:
    """The most frequent third-person present form of each lemma and number."""
    counts: dict[str, dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for sentence in corpus.sentences:
        for word in range(len(sentence) if sentence.lemmas and (sentence.morphology or sentence.xpos) else 0):
            number = _number(sentence, word) if _is_present(sentence, word) else None
            if number is not None and sentence.words[word].isalpha():
                lemma = _lemma(sentence, word)
                counts[lemma][number][sentence.words[word].lower()] += 1
                if sentence.xpos and sentence.xpos[word] == "VBZ":
                    counts[lemma][PLURAL]["are" if lemma == "be" else lemma] += 0
    # Ties go to the first form in the alphabet, so that the order of the corpus does not matter.
    return {
        lemma: {number: min(forms, key=lambda form: (-forms[form], form)) for number, forms in by_number.items()}
        for lemma, by_number in counts.items()
    }


def _finite_verb(sentence: Sentence, governor: int) -> int | None:
    """The finite present verb of a clause: an auxiliary or copula of its governor, or the governor."""
    if governor < 0:
        return None
    relations, governors = sentence.relations or (), sentence.governors or ()
    auxiliaries = [
        word
        for word, word_governor in enumerate(governors)
        if word_governor == governor and relations[word].split(":")[0] in ("aux", "auxpass", "cop")
    ]
    return next((word for word in [*auxiliaries, governor] if _is_present(sentence, word)), None)


def _is_present(sentence: Sentence, word: int) -> bool:
    features = word_morphology(sentence, word)
    if "Tense" in features:
        is_finite_present = features["Tense"] == "Pres" and features.get("VerbForm") == "Fin"
        return is_finite_present and features.get("Person", "3") == "3"
    return bool(sentence.xpos) and sentence.xpos[word] in ("VBZ", "VBP") and sentence.words[word].lower() != "am"


def _number(sentence: Sentence, word: int) -> int | None:
    number = NUMBERS.get(word_morphology(sentence, word).get("Number", ""))
    return number if number is not None else _PENN_NUMBERS.get(sentence.xpos[word] if sentence.xpos else "")


def _lemma(sentence: Sentence, word: int) -> str:
    return (sentence.lemmas or sentence.words)[word].lower()


def _is_noun(sentence: Sentence, word: int) -> bool:
    tag = sentence.pos[word] if sentence.pos else universal_tag(sentence.xpos[word]) if sentence.xpos else None
    return tag in ("NOUN", "PROPN")


def replace_word(sentence: Sentence, word: int, form: str) -> Sentence:
    """The sentence with another form of one word, without annotations."""
    start, end = sentence.offsets[word]
    shift = len(form) - (end - start)
    offsets = [(a + shift * (a >= end), b + shift * (b >= end)) for a, b in sentence.offsets]
    words = (*sentence.words[:word], form, *sentence.words[word + 1 :])
    return Sentence(words, sentence.text[:start] + form + sentence.text[end:], tuple(offsets))
