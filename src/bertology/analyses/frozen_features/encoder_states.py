"""Hidden states of words from an encoder, keeping only the selected layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.frozen_features.word_features import WordFeatures
from bertology.corpus.example import TextInput
from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.encoder.tokens import TokenisedInput
from bertology.lazy import torch
from bertology.progress import ProgressCallback
from bertology.recording.overflow import slice_sentence
from bertology.recording.plan import default_tokens_per_batch, length_batches
from bertology.statistics.word_states import word_weights

if TYPE_CHECKING:
    from torch import Tensor

WORDS_WITHOUT_VECTOR, SPLIT_SENTENCES = "words without a vector", "sentences split into parts"


class _WordWindow(NamedTuple):
    """Consecutive words of one sentence, from `start` on, that fit into one input."""

    sentence: int
    start: int
    text: Sentence
    tokens: TokenisedInput


def encode_words(
    name: str,
    encoder: Encoder,
    combine_layers: Callable[[Sequence[Tensor]], Tensor],
    sentences: Sequence[Sentence],
    on_progress: ProgressCallback,
) -> WordFeatures:
    """Mean over the tokens of each word of the combined hidden states of all layers."""
    counts: Counter[str] = Counter(words=sum(map(len, sentences)))
    windows = [window for window in _split_to_fit(encoder, sentences, counts) if len(window.tokens)]
    by_sentence: dict[int, NDArray[np.float32]] = {}
    width, done = 0, 0
    lengths = [len(window.tokens) for window in windows]
    for indices in length_batches(lengths, default_tokens_per_batch(encoder.device)):
        group = [windows[index] for index in indices]
        if not group:
            continue
        inputs = [RecordedInput(w.sentence, 0, 0, TextInput((w.text,)), w.tokens) for w in group]
        with torch.inference_mode():
            batch = TokenBatch(inputs, encoder.device)
            states = combine_layers(encoder.forward(batch.model_inputs, hidden=True, logits=False).hidden_states)
            means = (word_weights(batch).to(states.dtype) @ states).float().cpu().numpy()
        width = means.shape[-1]
        for window, values in zip(group, means, strict=True):
            n_words = len(sentences[window.sentence])
            rows = by_sentence.setdefault(window.sentence, np.zeros((n_words, width), np.float32))
            rows[window.start : window.start + len(window.text)] = values[: len(window.text)]
        done += len(group)
        on_progress(done, len(windows))
    vectors = tuple(
        by_sentence.get(index, np.zeros((len(sentence), width), np.float32)) for index, sentence in enumerate(sentences)
    )
    counts[WORDS_WITHOUT_VECTOR] += sum(int((~rows.any(1)).sum()) for rows in vectors)
    return WordFeatures(name, vectors, {key: count for key, count in counts.items() if count})


def _split_to_fit(encoder: Encoder, sentences: Sequence[Sentence], counts: Counter[str]) -> list[_WordWindow]:
    """Every sentence whole, or split in halves until they fit; a single word that is too long is left out."""
    waiting: list[tuple[int, int, Sentence]] = [(index, 0, sentence) for index, sentence in enumerate(sentences)]
    halved: set[int] = set()
    windows: list[_WordWindow] = []
    while waiting:
        tokenised = encoder.tokenise([TextInput((text,)) for _, _, text in waiting])
        halves: list[tuple[int, int, Sentence]] = []
        for (index, start, text), tokens in zip(waiting, tokenised, strict=True):
            middle = len(text) // 2
            if len(tokens) <= encoder.max_length:
                windows.append(_WordWindow(index, start, text, tokens))
            elif middle:
                halved.add(index)
                halves.append((index, start, slice_sentence(text, 0, middle)))
                halves.append((index, start + middle, slice_sentence(text, middle, len(text))))
        waiting = halves
    counts[SPLIT_SENTENCES] += len(halved)
    return windows
