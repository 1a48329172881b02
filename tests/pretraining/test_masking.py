from __future__ import annotations

import torch
from pretraining.masking import mask_pieces
from pretraining.pairs import CLS, MASK, PAD, SEP

VOCABULARY = 1_000


def rows() -> torch.Tensor:
    """4,000 rows of 38 ordinary pieces, the ids never below 100."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(100, VOCABULARY, (4_000, 48), generator=generator)
    ids[:, 0], ids[:, 20], ids[:, 40], ids[:, 41:] = CLS, SEP, SEP, PAD
    return ids


def test_fifteen_percent_are_hidden_eighty_ten_ten() -> None:
    ids = rows()
    hidden = mask_pieces(ids, VOCABULARY, torch.Generator().manual_seed(1))
    truths = hidden.truths[hidden.used]
    shown = hidden.ids.gather(1, hidden.places)[hidden.used]
    assert abs(hidden.used.sum() / (4_000 * 38) - 0.15) < 0.003
    masked, kept = shown == MASK, shown == truths
    assert abs(masked.float().mean() - 0.8) < 0.01
    assert abs(kept.float().mean() - 0.1) < 0.01
    assert abs((~masked & ~kept).float().mean() - 0.1) < 0.01
    assert (shown > PAD).all()


def test_only_used_places_change_and_special_pieces_never_do() -> None:
    ids = rows()
    hidden = mask_pieces(ids, VOCABULARY, torch.Generator().manual_seed(1))
    touched = torch.zeros_like(ids, dtype=torch.bool).scatter(1, hidden.places, hidden.used)
    assert torch.equal(hidden.ids[~touched], ids[~touched])
    assert torch.equal(ids.gather(1, hidden.places), hidden.truths)
    for special in (CLS, SEP, PAD):
        assert torch.equal(hidden.ids == special, ids == special)


def test_a_row_of_one_piece_has_one_guess() -> None:
    ids = torch.tensor([[CLS, 500, SEP, PAD, PAD, PAD, PAD, PAD]])
    hidden = mask_pieces(ids, VOCABULARY, torch.Generator().manual_seed(1))
    assert hidden.used.sum() == 1
    assert hidden.places[hidden.used].tolist() == [1]
