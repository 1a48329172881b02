"""A parser on top of an encoder: for each word which word is its head, and by which relation (dozat2017)."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

FILE = "parser.safetensors"
ARC, RELATION = 256, 64
DROPOUT = 0.33


class Parser(nn.Module):
    """Two biaffine forms over the states of words: of an arc, and of its relation given the arc."""

    def __init__(self, width: int, relations: int) -> None:
        super().__init__()
        self.arc_word, self.arc_head = _projection(width, ARC), _projection(width, ARC)
        self.relation_word, self.relation_head = _projection(width, RELATION), _projection(width, RELATION)
        self.arc = nn.Parameter(torch.zeros(ARC + 1, ARC))
        self.relation = nn.Parameter(torch.zeros(RELATION + 1, relations, RELATION + 1))
        nn.init.normal_(self.arc, std=ARC**-0.5)
        nn.init.normal_(self.relation, std=1 / RELATION)

    def arcs(self, states: Tensor, allowed: Tensor) -> Tensor:
        """(sentence, piece, piece) the score of each piece as the head of each; -inf where it is not `allowed`."""
        words, heads = _with_one(self.arc_word(states)), self.arc_head(states)
        scores = (words @ self.arc @ heads.transpose(1, 2)).float()
        itself = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
        return scores.masked_fill(~allowed[:, None, :] | itself, float("-inf"))

    def relations(self, states: Tensor, heads: Tensor) -> Tensor:
        """(sentence, piece, relation) the score of each relation of each piece to the piece that is its head."""
        words, above = _with_one(self.relation_word(states)), _with_one(self.relation_head(states))
        chosen = above.gather(1, heads[..., None].expand(-1, -1, above.shape[-1]))
        return torch.einsum("bna,arc,bnc->bnr", words, self.relation.to(words.dtype), chosen.to(words.dtype)).float()

    def save(self, folder: Path) -> None:
        """Write the weights beside those of the encoder."""
        save_file({name: weights.detach().cpu().contiguous() for name, weights in self.state_dict().items()},
                  folder / FILE)  # fmt: skip

    @classmethod
    def load(cls, folder: Path) -> Parser:
        """The parser that was saved beside an encoder."""
        weights = load_file(folder / FILE)
        made = cls(weights["arc_word.0.weight"].shape[1], weights["relation"].shape[1])
        made.load_state_dict(weights)
        return made.eval()


def _projection(width: int, size: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, size), nn.GELU(), nn.Dropout(DROPOUT))


def _with_one(states: Tensor) -> Tensor:
    return torch.cat([states, torch.ones_like(states[..., :1])], -1)
