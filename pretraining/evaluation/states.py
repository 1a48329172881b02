"""What do the layers hold for each word? Hidden states by word, the mean over its pieces."""

from collections.abc import Sequence

import torch
from torch import Tensor

from pretraining.evaluation.subject import Subject, padded_batches
from pretraining.evaluation.treebank import Tree


@torch.inference_mode()
def word_states(subject: Subject, trees: Sequence[Tree]) -> list[Tensor | None]:
    """For each sentence `(layers + 1, words, width)` float32, embeddings first; None where it does not fit."""
    pieces = [subject.pieces(tree.words) for tree in trees]
    kept = [number for number, one in enumerate(pieces) if one is not None]
    sequences = [one.ids for one in pieces if one is not None]
    states: list[Tensor | None] = [None] * len(trees)
    for batch in padded_batches(sequences, subject.device):
        out = subject.model.bert(batch.ids, attention_mask=batch.mask, output_hidden_states=True)
        stack = torch.stack(out.hidden_states)
        for row, index in enumerate(batch.indices):
            one = pieces[kept[index]]
            assert one is not None
            average = averaging(one.words, subject.device)
            states[kept[index]] = average @ stack[:, row, 1 : len(one.ids) - 1]
    return states


def averaging(belongs: Sequence[int], device: torch.device) -> Tensor:
    """`(words, pieces)`: rows that average a word's pieces; each row sums to 1."""
    matrix = torch.zeros(max(belongs) + 1, len(belongs), device=device)
    matrix[torch.tensor(belongs), torch.arange(len(belongs))] = 1
    return matrix / matrix.sum(dim=1, keepdim=True)
