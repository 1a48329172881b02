"""Hidden states of words: the mean over each word's tokens, at every layer."""

from collections.abc import Sequence

import torch
from torch import Tensor

from pretraining.evaluation.evaluated_model import EvaluatedModel, padded_batches
from pretraining.evaluation.treebank import Tree


@torch.inference_mode()
def word_states(model: EvaluatedModel, trees: Sequence[Tree]) -> list[Tensor | None]:
    """For each sentence `(layers + 1, words, width)` in float32, embeddings first; None if it is too long."""
    tokenised = {
        index: sentence for index, tree in enumerate(trees) if (sentence := model.tokenise(tree.words)) is not None
    }
    indices = list(tokenised)
    states: list[Tensor | None] = [None] * len(trees)
    for batch in padded_batches([sentence.ids for sentence in tokenised.values()], model.device):
        output = model.model.bert(batch.ids, attention_mask=batch.mask, output_hidden_states=True)
        hidden = torch.stack(output.hidden_states)
        for row, batch_index in enumerate(batch.indices):
            index = indices[batch_index]
            sentence = tokenised[index]
            averages = averaging_matrix(sentence.word_indices, model.device)
            states[index] = averages @ hidden[:, row, 1 : len(sentence.ids) - 1]
    return states


def averaging_matrix(word_indices: Sequence[int], device: torch.device) -> Tensor:
    """`(words, tokens)`: each row averages the tokens of a word and sums to 1."""
    matrix = torch.zeros(max(word_indices) + 1, len(word_indices), device=device)
    matrix[torch.tensor(word_indices), torch.arange(len(word_indices))] = 1
    return matrix / matrix.sum(dim=1, keepdim=True)
