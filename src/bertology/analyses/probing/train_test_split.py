"""Training and test data of probes: another corpus, or a part of the recording in whole documents."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np

from bertology.analyses.probing.options import NSeedsOption, SeedOption
from bertology.arrays import BoolArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.hashing import seeded_hash
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder, Randomisable
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.number_ranges import FRACTION
from bertology.recording.plan import RecordingConfig, sample_inputs
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.recording.sites import Site

T = TypeVar("T")

TrainFormatOption = Annotated[str, "Format of --train-corpus; empty: recognised by its name and content."]
TrainFormatOptionsOption = Annotated[
    str, "Options of the format of --train-corpus, as in --format-option: NAME=VALUE, several separated by commas."
]


class DataPart(NamedTuple):
    """Some inputs of a recording."""

    recording: Recording
    indices: list[int]


@dataclass(frozen=True)
class TrainTestData:
    """Training and test data, and the number of training sentences that were left out, by reason."""

    train: DataPart
    test: DataPart
    left_out: Mapping[str, int]

    @property
    def sample(self) -> dict[str, int]:
        """What was left out, for the sample of a result."""
        return {f"unused training sentences ({reason})": count for reason, count in self.left_out.items()}


BEYOND_TRAIN_SIZE, IN_TEST_CORPUS = "beyond --train-size", "also in the test corpus"


@dataclass(frozen=True)
class TrainTestSplit:
    """Options of the training and test data: `train_corpus`, or, if it is empty, a fraction of the recording.

    At most `train_size` sentences (0: all) are used for training: the first of `train_corpus`, or a random sample of
    the recording's part. Sentences of `train_corpus` that are also in the test corpus are left out.
    """

    train_corpus: Annotated[str, "Corpus to train on, by name or path; empty: a part of --corpus."] = ""
    train_size: Annotated[
        int, "Maximum number of training sentences: the first of --train-corpus, else a random sample (0: all)."
    ] = 0
    train_fraction: Annotated[
        float, FRACTION, "Fraction of sentences used for training, in whole documents, if there is no --train-corpus."
    ] = 0.7
    train_format: TrainFormatOption = ""
    train_format_option: TrainFormatOptionsOption = ""
    n_seeds: NSeedsOption = 3
    seed: SeedOption = 0

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of each repetition."""
        return tuple(range(self.seed, self.seed + self.n_seeds))

    @property
    def sample_size(self) -> int:
        """Maximum number of training sentences of the recording (0: all)."""
        return self.train_size

    def split(
        self,
        recording: Recording,
        encoder: Encoder | None,
        sites: Sequence[Site | str],
        *,
        analysis_name: str,
        annotations: Sequence[str] = ("governors", "relations"),
        half_precision: bool = False,
    ) -> TrainTestData:
        """Training and test data.

        `annotations` are those that `train_corpus` must have; `half_precision` stores its raw sites in float16.
        """
        if not self.train_corpus:
            mask = train_mask(recording.inputs, self.train_fraction, seed=self.seed)
            train, test = (np.flatnonzero(part).tolist() for part in (mask, ~mask))
            sample = sample_inputs(recording, self.sample_size, self.seed, train)
            n_unused = len(train) - len(sample)
            left_out = {BEYOND_TRAIN_SIZE: n_unused} if n_unused else {}
            return TrainTestData(DataPart(recording, sample), DataPart(recording, test), left_out)
        if encoder is None:
            raise Refusal(
                f"{analysis_name} --train-corpus needs the model, but only a recording was given",
                "a model to run on the training corpus",
                "Use --model and --corpus, or leave out --train-corpus to train on a part of the recording",
            )
        corpus = load_train_corpus(self.train_corpus, self.train_size, self.train_format, self.train_format_option)
        corpus, n_shared = without_shared_examples(corpus, recording.corpus)
        corpus.require_annotations(*annotations, analysis_name=f"{analysis_name} --train-corpus")
        config = RecordingConfig(**recording.config)
        config = replace(config, half_precision=config.half_precision or half_precision)
        train_recording = record(encoder, corpus, sites, config=config, store=recording.store, max_hours=None)
        return TrainTestData(
            DataPart(train_recording, list(range(len(train_recording)))),
            DataPart(recording, list(range(len(recording)))),
            {IN_TEST_CORPUS: n_shared} if n_shared else {},
        )


@dataclass(frozen=True)
class CorpusSplit(TrainTestSplit):
    """A split in which `train_size` limits `train_corpus` only; a training part of the recording is used as a whole."""

    train_size: Annotated[int, "Maximum number of training sentences: the first of --train-corpus (0: all)."] = 0

    @property
    def sample_size(self) -> int:
        """0: all training sentences of the recording are used."""
        return 0


def load_train_corpus(name: str, size: int, format: str, format_options: str) -> Corpus:
    """The first `size` examples (0: all) of --train-corpus, read with its format and format options."""
    options: dict[str, Any] = {}
    for option in filter(None, (part.strip() for part in format_options.split(","))):
        option_name, separator, value = option.partition("=")
        if not separator or not option_name:
            raise Refusal(
                f"--train-format-option was given {option!r}",
                "NAME=VALUE, several separated by commas",
                "Write for example --train-format-option column=3",
            )
        options[option_name.strip().replace("-", "_")] = value.strip()
    return load_corpus(name, format or None, limit=size or None, **options)


def without_shared_examples(train: Corpus, test: Corpus) -> tuple[Corpus, int]:
    """The training examples whose text is not in the test corpus, and the number of the others.

    Texts are equal if they differ only in spaces, case or the Unicode form of characters.
    """
    test_texts = {_normalised_text(example) for example in test}
    kept = tuple(example for example in train if _normalised_text(example) not in test_texts)
    if not kept:
        raise Refusal(
            f"All {len(train)} examples of --train-corpus {train.name} are also in the test corpus {test.name}",
            "training examples that are not tested on",
            "Name another --train-corpus, or leave it out to train on a part of the corpus and test on the rest",
        )
    return replace(train, examples=kept), len(train) - len(kept)


def _normalised_text(example: Example) -> str:
    texts = ("".join(segment.text.split()) for segment in example.segments)
    return unicodedata.normalize("NFKC", "\n".join(texts)).casefold()


def randomised_encoder(encoder: Encoder | None) -> Encoder | None:
    """The untrained model with the weights that the `randomised` recordings were made with."""
    return encoder.randomised(seed=0) if isinstance(encoder, Randomisable) else None


def for_both_models(
    build: Callable[[Recording, Encoder | None], T],
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
) -> tuple[T, T | None]:
    """`build(recording, encoder)` of the model, and of the untrained model if that was recorded."""
    built = build(recording, encoder)
    return built, None if randomised is None else build(randomised, randomised_encoder(encoder))


def train_mask(inputs: Sequence[RecordedInput], train_fraction: float, *, seed: int = 0) -> BoolArray:
    """(input,) whether an input is for training: whole documents until they are at least `train_fraction` of inputs.

    The order of documents depends on their text and the seed, not on the order of the corpus. With fewer than two
    documents, equal sentences are kept together instead. At least one document or sentence is left for testing.
    """
    groups = group_inputs(inputs)
    texts = {
        name: "\n".join(sorted(" ".join(inputs[index].text.words) for index in indices))
        for name, indices in groups.items()
    }
    order = sorted(groups, key=lambda name: seeded_hash(texts[name], seed))
    mask = np.zeros(len(inputs), np.bool_)
    for name in order[:-1]:
        if mask.sum() >= train_fraction * len(inputs):
            break
        mask[groups[name]] = True
    return mask


def group_inputs(inputs: Sequence[RecordedInput]) -> dict[str, list[int]]:
    """Indices of inputs that are trained or tested on together: of a document, or of equal sentences if not two."""
    groups = _group_inputs(inputs, by_document=True)
    return groups if len(groups) > 1 else _group_inputs(inputs, by_document=False)


def _group_inputs(inputs: Sequence[RecordedInput], *, by_document: bool) -> dict[str, list[int]]:
    """Indices of inputs by document or by text; empty if no input has a document."""
    if by_document and not any(recorded_input.text.segments[0].document for recorded_input in inputs):
        return {}
    groups: dict[str, list[int]] = defaultdict(list)
    for index, recorded_input in enumerate(inputs):
        document = recorded_input.text.segments[0].document if by_document else ""
        # A sentence without a document is a group of its own.
        groups[document or f"\n{' '.join(recorded_input.text.words)}"].append(index)
    return groups
