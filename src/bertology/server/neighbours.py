"""Nearest contextual neighbours of a token of the typed text, among the words of the corpus."""

from __future__ import annotations

from pydantic import BaseModel, Field

from bertology.analyses.contextual_neighbours import NeighbourIndex
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.server.texts import TextRequest


class NeighbourRequest(TextRequest):
    """A token of the text by position, and a layer; layer 0 are the embeddings. The state is that of its word."""

    position: int = Field(ge=0)
    layer: int = Field(ge=0, le=1000)
    count: int = Field(default=10, ge=1, le=50)


class NeighbourWord(BaseModel):
    """A word of the corpus in its text, and the cosine of its state with that of the token."""

    example: int
    words: list[str]
    word: int
    cosine: float


class NeighbourAnswer(BaseModel):
    """The nearest of `n` words; `chance` is the mean cosine of random pairs of words at this layer."""

    word: str
    layer: int
    n: int
    chance: float | None
    neighbours: list[NeighbourWord]


def find_neighbours(
    encoder: TaskEncoder, recorded: RecordedInput, index: NeighbourIndex, request: NeighbourRequest
) -> NeighbourAnswer:
    """The words of the corpus with the most similar states at the layer."""
    tokens = recorded.tokens
    if request.layer > encoder.layers:
        raise Refusal(f"There is no layer {request.layer}", f"0 to {encoder.layers}", "Choose a layer of the model")
    if request.position >= len(tokens) or tokens.word_ids[request.position] < 0:
        raise Refusal(
            f"There is no word at position {request.position}", "a token that belongs to a word", "Choose another token"
        )
    word = int(tokens.word_ids[request.position])
    positions = [index for index, owner in enumerate(tokens.word_ids.tolist()) if owner == word]
    with torch.inference_mode():
        batch = TokenBatch([recorded], encoder.device)
        # Explicit attention, as in the recording, so that the same text has the same states.
        output = encoder.forward(batch.model_inputs, on_layer=lambda _: None, hidden=True, logits=False)
        state = output.hidden_states[request.layer][0, positions].float().mean(0).cpu().numpy()
    nearest = index.nearest(state, request.layer, request.count)
    inputs = index.recording.inputs
    return NeighbourAnswer(
        word=recorded.text.words[word],
        layer=request.layer,
        n=nearest.n,
        chance=nearest.chance,
        neighbours=[
            NeighbourWord(
                example=inputs[neighbour.input_index].example_index,
                words=list(inputs[neighbour.input_index].text.words),
                word=neighbour.word_index,
                cosine=neighbour.cosine,
            )
            for neighbour in nearest.neighbours
        ],
    )
