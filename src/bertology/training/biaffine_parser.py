"""A biaffine dependency parser on top of an encoder (Dozat and Manning 2017)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import load_file, save_file

from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor, nn

FILE = "parser.safetensors"
ARC_SIZE, RELATION_SIZE = 256, 64
DROPOUT = 0.33


class BiaffineParser(torch.nn.Module):
    """Biaffine scores of arcs, and of relations given the arcs, over the states of words.

    `..._word` projects dependents and `..._head` governors: the names of stored weights.
    """

    def __init__(self, width: int, n_relations: int) -> None:
        super().__init__()
        self.arc_word, self.arc_head = _projection(width, ARC_SIZE), _projection(width, ARC_SIZE)
        self.relation_word, self.relation_head = _projection(width, RELATION_SIZE), _projection(width, RELATION_SIZE)
        self.arc = torch.nn.Parameter(torch.zeros(ARC_SIZE + 1, ARC_SIZE))
        self.relation = torch.nn.Parameter(torch.zeros(RELATION_SIZE + 1, n_relations, RELATION_SIZE + 1))
        torch.nn.init.normal_(self.arc, std=ARC_SIZE**-0.5)
        torch.nn.init.normal_(self.relation, std=1 / RELATION_SIZE)

    def score_arcs(self, states: Tensor, is_candidate: Tensor) -> Tensor:
        """(sentence, token, token) score of each token as the governor of each; -inf if it is not a candidate."""
        dependents, governors = _append_ones(self.arc_word(states)), self.arc_head(states)
        scores = (dependents @ self.arc @ governors.transpose(1, 2)).float()
        is_self = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
        return scores.masked_fill(~is_candidate[:, None, :] | is_self, float("-inf"))

    def score_relations(self, states: Tensor, governors: Tensor) -> Tensor:
        """(sentence, token, relation) score of each relation between a token and its governor."""
        dependents, candidates = _append_ones(self.relation_word(states)), _append_ones(self.relation_head(states))
        chosen = candidates.gather(1, governors[..., None].expand(-1, -1, candidates.shape[-1])).to(dependents.dtype)
        relation = self.relation.to(dependents.dtype)
        return torch.einsum("bna,arc,bnc->bnr", dependents, relation, chosen).float()

    def save(self, folder: Path) -> None:
        """Write the weights into the folder of the encoder."""
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        save_file(weights, folder / FILE)

    @classmethod
    def load(cls, folder: Path) -> BiaffineParser:
        """Read the parser in the folder of an encoder."""
        weights = load_file(folder / FILE)
        parser = cls(weights["arc_word.0.weight"].shape[1], weights["relation"].shape[1])
        parser.load_state_dict(weights)
        return parser.eval()


def _projection(width: int, size: int) -> nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(width, size), torch.nn.GELU(), torch.nn.Dropout(DROPOUT))


def _append_ones(states: Tensor) -> Tensor:
    return torch.cat([states, torch.ones_like(states[..., :1])], -1)
