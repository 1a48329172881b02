"""`bertology.probe` and `bertology.states`: probe the layers of a model for a label, in scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from bertology.analyses import registry
from bertology.analyses.probes.sentence import SentencePooling, sentence_dataset, sentence_examples
from bertology.analyses.probing.dataset import (
    WORD_SITE,
    ProbeCase,
    ProbeDataset,
    ProbeExamples,
    ProbeTask,
    span_examples,
    task_dataset,
    validation_mask,
)
from bertology.analyses.probing.estimator import LayerProbe
from bertology.analyses.probing.fitting import VALIDATION_FRACTION
from bertology.analyses.probing.train_test_split import CorpusSplit, TrainTestSplit, group_inputs
from bertology.analyses.probing.word_labels import WORD_LABELS, annotated_labels, word_task
from bertology.analyses.run import RunInputs, run_analysis
from bertology.arrays import Array
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import as_corpus
from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder, Randomisable
from bertology.encoder.load import as_encoder
from bertology.errors import Refusal, unknown_name
from bertology.number_ranges import LAYER
from bertology.progress import ProgressFactory
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.store_paths import StorePath, store_path

Unit = Literal["word", "sentence"]


class ProbeStates(NamedTuple):
    """Hidden states as input of a classifier, in the order of the corpus.

    `X` is (example, layer, width), the embeddings first; `y` are the labels (None if no label was named). Examples
    with equal `groups` belong together: they are of the same document or, without documents, of equal sentences. Give
    the groups to scikit-learn's splitters (`GroupKFold`), or a probe is tested on sentences that it was trained on.
    """

    X: Array
    y: Array | None
    groups: Array


def states(
    encoder: Any,
    corpus: Any,
    label: str | None = None,
    *,
    unit: Unit | None = None,
    pooling: SentencePooling = "mean",
    config: RecordingConfig | None = None,
    store: str | StorePath | None = None,
    progress: ProgressFactory | None = None,
) -> ProbeStates:
    """The hidden states of words or sentences at every layer, with a label of the corpus and groups for splitting.

    `label` is the name of a word, span or sentence label of the corpus, or of an annotation (pos, relation, entity
    ...); see `bertology run probes/word --help`. A label of spans is that of the shortest span around each word, O
    outside. `unit` decides where a name is both, and is needed without a label. A word is the mean of its tokens; a
    sentence the mean of its tokens or, with `pooling="cls"`, its first. Words without tokens or label are left out.
    """
    model, texts = as_encoder(encoder), as_corpus(corpus)
    unit = label_unit(texts, label, unit)
    recording = _record(model, texts, unit, config, store, progress)
    indices = list(range(len(recording)))
    if unit == "word":
        task = ProbeTask((), "all words", _unlabelled_words) if label is None else word_task(label, texts)
        examples = span_examples(recording, indices, task.cases)
    else:
        if label is None:
            texts = replace(texts, examples=tuple(replace(example, label="") for example in texts))
            recording = replace(recording, corpus=texts)
        examples = sentence_examples(recording, indices, pooling, label or "")
    return _in_corpus_order(examples, is_labelled=label is not None)


def probe(
    encoder: Any,
    corpus: Any,
    label: str,
    *,
    unit: Unit | None = None,
    layer: Annotated[int | Literal["best"], LAYER] = "best",
    random_baseline: bool = True,
    config: RecordingConfig | None = None,
    store: str | StorePath | None = None,
    progress: ProgressFactory | None = None,
    **options: Any,
) -> LayerProbe:
    """A probe for a label of the corpus, trained on a part of it, with the scores of every layer on the rest.

    `label` and `unit` are as in `bertology.states`. The probe is a scikit-learn classifier of states; with `best` it
    uses the layer with the highest accuracy on held-out documents of the training part. `probe.result_` is the result
    of the analysis probes/word or probes/sentence with these `options`: accuracy, selectivity and compression of every
    layer on the test part with intervals, beside the majority class, the control task and the untrained model.
    """
    model, texts = as_encoder(encoder), as_corpus(corpus)
    unit = label_unit(texts, label, unit)
    declared = registry.get(f"probes/{unit}")
    values = declared.resolve_options({**options, "label": label})
    if declared.check_corpus is not None:
        declared.check_corpus(texts, values)
    recording = _record(model, texts, unit, config, store, progress)
    untrained = model.randomised(seed=0) if random_baseline and isinstance(model, Randomisable) else None
    inputs = RunInputs(
        corpus=texts,
        encoder=model,
        recording=recording,
        untrained_recording=None if untrained is None else _record(untrained, texts, unit, config, store, progress),
        config=config or RecordingConfig(),
        store=None if store is None else store_path(store),
        random_baseline=random_baseline,
    )
    dataset = _dataset(recording, model, unit, values)
    fitted = LayerProbe(layer, probe=values["probe"], random_state=values["seed"])
    fitted.fit_dataset(dataset, validation_mask(dataset.train, VALIDATION_FRACTION, values["seed"]))
    fitted.result_ = run_analysis(declared, inputs, values, progress=progress)
    return fitted


def label_unit(corpus: Corpus, label: str | None, unit: Unit | None) -> Unit:
    """Whether a label is one of words (or spans) or of sentences; a name that is neither, or both, is refused."""
    if unit is not None:
        if unit not in ("word", "sentence"):
            raise unknown_name("unit", str(unit), ("word", "sentence"))
        return unit
    if label is None:
        raise Refusal("Neither a label nor a unit was named", "one of them", 'Add unit="word" or unit="sentence"')
    names = corpus.label_names
    of_words = {*names.words, *names.spans, *annotated_labels(corpus, WORD_LABELS)}
    of_examples = set(names.examples) | ({"label"} if any(example.label is not None for example in corpus) else set())
    if label in of_words and label in of_examples:
        raise Refusal(
            f"{label!r} is a label of words and of sentences in {corpus.name}",
            "one of them",
            'Add unit="word" or unit="sentence"',
        )
    if not of_words | of_examples:
        raise Refusal(
            f"There is no label called {label!r}: {corpus.name} has no labels",
            "a corpus with labels of words or of sentences",
            "Give them to bertology.corpus, as label=... or word_labels=..., or read a file with a column of labels",
        )
    if label not in of_words | of_examples:
        raise unknown_name(f"label of {corpus.name}", label, of_words | of_examples)
    return "word" if label in of_words else "sentence"


def _record(
    encoder: Encoder,
    corpus: Corpus,
    unit: Unit,
    config: RecordingConfig | None,
    store: str | StorePath | None,
    progress: ProgressFactory | None,
) -> Recording:
    return record(
        encoder,
        corpus,
        (WORD_SITE if unit == "word" else "hidden",),
        config=config or RecordingConfig(),
        store=None if store is None else store_path(store),
        progress=None if progress is None else progress(f"recording {encoder.name}"),
    )


def _dataset(recording: Recording, encoder: Encoder, unit: Unit, values: dict[str, Any]) -> ProbeDataset:
    """The training and test examples of the analysis with these options."""
    split_type = TrainTestSplit if unit == "word" else CorpusSplit
    split = split_type(**{field.name: values[field.name] for field in fields(split_type)})
    if unit == "word":
        task = word_task(values["label"], recording.corpus)
        return task_dataset(recording, encoder, task, split, values["min_examples"], analysis_name="probes/word")
    return sentence_dataset(
        recording,
        encoder,
        label=values["label"],
        pooling=values["pooling"],
        split=split,
        min_examples=values["min_examples"],
    )


def _unlabelled_words(sentence: Sentence) -> Iterator[ProbeCase]:
    for word in range(len(sentence)):
        yield ProbeCase("", sentence.words[word].lower(), ((word, word + 1),))


def _in_corpus_order(examples: ProbeExamples, *, is_labelled: bool) -> ProbeStates:
    keys = [examples.inputs[index].key for index in examples.input_index.tolist()]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    group_of_input = np.zeros(len(examples.inputs), np.int64)
    for group, members in enumerate(group_inputs(examples.inputs).values()):
        group_of_input[members] = group
    groups = group_of_input[examples.input_index][order]
    labels = np.array(examples.labels[order].tolist(), np.str_) if is_labelled else None
    return ProbeStates(examples.features.transpose(1, 0, 2)[order], labels, groups)
