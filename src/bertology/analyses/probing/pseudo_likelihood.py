"""Predictions of a masked language model for masked tokens: pseudo-log-likelihoods (salazar2020).

Each copy of an input masks some of its tokens and scores one of them. The copies of all inputs run through the model
together, in batches of similar length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from bertology.arrays import FloatArray
from bertology.encoder.encoder import Encoder, ModelInputs, ModelOutput, TaskEncoder
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import Int32Array, SpecialToken, TokenisedInput
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.recording.plan import default_tokens_per_batch, length_batches

if TYPE_CHECKING:
    from torch import Tensor

Masking = Literal["token", "word-l2r", "word"]


@dataclass(frozen=True)
class MaskedCopy:
    """A copy of an input: the positions that are masked, and the one that is scored."""

    tokens: TokenisedInput
    masked_positions: tuple[int, ...]
    scored_position: int


def require_mlm(encoder: Encoder, *, analysis_name: str) -> None:
    """Refuse a model that cannot predict masked tokens."""
    if "mlm" not in encoder.task_heads or encoder.mask_token_id is None:
        task_heads = ", ".join(sorted(encoder.task_heads)) or "none"
        raise Refusal(
            f"{analysis_name} needs a masked language model; {encoder.name} has no MLM head (it has: {task_heads})",
            "a model saved with a masked-language-model head",
            "Choose one with --model, for example the built-in mini",
        )


def tokeniser_words(encoder: Encoder, inputs: Sequence[RecordedInput]) -> list[Int32Array]:
    """The word of each token by the tokeniser's own splitting, as in minicons; by the corpus' where it has none.

    A tokeniser has none for an input that was cut within a word.
    """
    if not isinstance(encoder, TaskEncoder):
        return [recorded_input.tokens.word_ids for recorded_input in inputs]
    by_input = encoder.tokeniser.pretoken_ids([recorded_input.text for recorded_input in inputs])
    return [
        word_ids if len(word_ids) == len(recorded_input.tokens) else recorded_input.tokens.word_ids
        for word_ids, recorded_input in zip(by_input, inputs, strict=True)
    ]


def masked_copies(tokens: TokenisedInput, masking: Masking, words: Int32Array) -> Iterator[MaskedCopy]:
    """One copy per non-special token, which is masked alone, with the rest of its word, or with the whole word.

    `words` is the word of each token, such as `tokeniser_words` gives, and -1 for tokens outside words.
    """
    word_ids = words.tolist()
    for position in np.flatnonzero(tokens.special_kinds == SpecialToken.NONE).tolist():
        word = word_ids[position]
        masked = [other for other, other_word in enumerate(word_ids) if other_word == word and word >= 0]
        if masking == "word-l2r":
            masked = [other for other in masked if other >= position]
        yield MaskedCopy(tokens, (position,) if masking == "token" or not masked else tuple(masked), position)


def masked_log_probs(encoder: Encoder, copies: Sequence[MaskedCopy]) -> FloatArray:
    """(copy,) log-probability of the original token at the scored position, in nats."""
    log_probs = np.zeros(len(copies))

    def store_log_probs(indices: Sequence[int], positions: Tensor, output: ModelOutput) -> None:
        rows = torch.arange(len(indices), device=positions.device)
        predictions = output.logits["mlm"][rows, positions].float().log_softmax(-1)
        gold = [int(copies[index].tokens.ids[copies[index].scored_position]) for index in indices]
        log_probs[list(indices)] = predictions[rows, torch.tensor(gold, device=positions.device)].cpu().numpy()

    run_masked_copies(encoder, copies, store_log_probs)
    return log_probs


def run_masked_copies(
    encoder: Encoder,
    copies: Sequence[MaskedCopy],
    on_batch: Callable[[Sequence[int], Tensor, ModelOutput], None],
    *,
    hidden: bool = False,
) -> None:
    """Run all copies; `on_batch` receives the indices of a batch's copies, their scored positions and the output."""
    if not copies:
        return
    mask_token_id = encoder.mask_token_id or 0
    lengths = [len(copy.tokens) for copy in copies]
    with torch.inference_mode():
        for indices in length_batches(lengths, default_tokens_per_batch(encoder.device)):
            batch = [copies[index] for index in indices]
            positions = torch.tensor([copy.scored_position for copy in batch], device=encoder.device)
            inputs = _model_inputs(batch, mask_token_id, encoder.device)
            on_batch(indices, positions, encoder.forward(inputs, hidden=hidden))


def _model_inputs(copies: Sequence[MaskedCopy], mask_token_id: int, device: str) -> ModelInputs:
    width = max(len(copy.tokens) for copy in copies)
    ids, type_ids, mask = (np.zeros((len(copies), width), np.int64) for _ in range(3))
    for row, copy in enumerate(copies):
        length = len(copy.tokens)
        ids[row, :length], type_ids[row, :length], mask[row, :length] = copy.tokens.ids, copy.tokens.type_ids, 1
        ids[row, list(copy.masked_positions)] = mask_token_id
    return ModelInputs(*(torch.from_numpy(array).to(device) for array in (ids, type_ids, mask)))
