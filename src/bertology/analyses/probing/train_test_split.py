"""Training and test data of probes: another corpus, or a part of the recording in whole documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertology.arrays import BoolArray
from bertology.corpus.corpus import seeded_hash
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder, Randomisable
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.recording.plan import RecordingConfig, sample_inputs
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.recording.sites import Site


@dataclass(frozen=True)
class TrainTestSplit:
    """Train on `train_corpus`, or, if it is empty, on a fraction of the recording; test on the rest.

    At most `train_size` sentences (0: all) are used for training: the first of `train_corpus`, or a random sample of
    the recording's part. `half_precision` stores raw sites of `train_corpus` in float16.
    """

    train_corpus: str
    train_size: int
    train_fraction: float
    seed: int
    half_precision: bool = False

    def split(
        self,
        recording: Recording,
        encoder: Encoder | None,
        sites: Sequence[Site | str],
        *,
        analysis_name: str,
        annotations: Sequence[str] = ("governors", "relations"),
    ) -> tuple[tuple[Recording, list[int]], tuple[Recording, list[int]]]:
        """Training and test data, each as a recording and the indices of its inputs.

        `annotations` are those that `train_corpus` must have.
        """
        if not self.train_corpus:
            mask = train_mask(recording.inputs, self.train_fraction, seed=self.seed)
            train, test = (np.flatnonzero(part).tolist() for part in (mask, ~mask))
            return (recording, sample_inputs(recording, self.train_size, self.seed, train)), (recording, test)
        train_recording = self._record_train_corpus(recording, encoder, sites, analysis_name, annotations)
        return (train_recording, list(range(len(train_recording)))), (recording, list(range(len(recording))))

    def n_unused(self, recording: Recording) -> int:
        """Number of training sentences of the recording left out because of `train_size`."""
        if self.train_corpus or not self.train_size:
            return 0
        return max(0, int(train_mask(recording.inputs, self.train_fraction, seed=self.seed).sum()) - self.train_size)

    def unused_note(self, recording: Recording) -> str:
        """`n_unused` as the end of a note; empty if all sentences are used."""
        n_unused = self.n_unused(recording)
        return f"; {n_unused} further training sentences were not used" if n_unused else ""

    def _record_train_corpus(
        self,
        recording: Recording,
        encoder: Encoder | None,
        sites: Sequence[Site | str],
        analysis_name: str,
        annotations: Sequence[str],
    ) -> Recording:
        if encoder is None:
            raise Refusal(
                f"{analysis_name} --train-corpus needs the model, but only a recording was given",
                "a model to run on the training corpus",
                "Use --model and --corpus, or leave out --train-corpus to train on a part of the recording",
            )
        corpus = load_corpus(self.train_corpus, limit=self.train_size or None)
        corpus.require_annotations(*annotations, analysis_name=f"{analysis_name} --train-corpus")
        config = RecordingConfig(**recording.config)
        half_precision = config.half_precision or self.half_precision
        return record(encoder, corpus, sites, config=replace(config, half_precision=half_precision))


def randomised_encoder(encoder: Encoder | None) -> Encoder | None:
    """The untrained model with the weights that the `randomised` recordings were made with."""
    return encoder.randomised(seed=0) if isinstance(encoder, Randomisable) else None


def train_mask(inputs: Sequence[RecordedInput], train_fraction: float, *, seed: int = 0) -> BoolArray:
    """(input,) whether an input is for training: whole documents until they are at least `train_fraction` of inputs.

    The order of documents depends on their text and the seed, not on the order of the corpus. With fewer than two
    documents, equal sentences are kept together instead. At least one document or sentence is left for testing.
    """
    groups = _group_inputs(inputs, by_document=True)
    if len(groups) < 2:
        groups = _group_inputs(inputs, by_document=False)
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
