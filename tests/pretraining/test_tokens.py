from __future__ import annotations

from pathlib import Path

import numpy as np
import small
from pretraining.pairs import CLS, MASK, PAD, SEP, UNK
from pretraining.tokens import load_tokens
from transformers import BertTokenizer


def test_the_tokeniser_loads_fast_lower_cases_and_has_true_segments(tmp_path: Path) -> None:
    small.tokeniser(tmp_path)
    loaded = BertTokenizer.from_pretrained(tmp_path)
    ids = loaded.get_vocab()
    assert [ids[piece] for piece in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")] == [PAD, UNK, CLS, SEP, MASK]
    assert loaded.encode("THE FOX") == loaded.encode("the fox")
    pair = loaded("the fox", "the hen")
    assert pair["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1]
    lines = (tmp_path / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert [ids[piece] for piece in lines] == list(range(len(lines)))


def test_tokens_give_back_every_sentence_and_round_trip(tmp_path: Path) -> None:
    tokenizer = small.tokeniser(tmp_path)
    found = small.tokens(tmp_path)
    flat = [text for document in small.documents() for text in document]
    for number, text in enumerate(flat):
        begin, end = found.sentences[number : number + 2]
        assert found.ids[begin:end].tolist() == tokenizer.encode(text, add_special_tokens=False).ids
    assert found.sentences[-1] == len(found.ids)
    assert np.diff(found.documents).tolist() == [12] * 40
    found.save(tmp_path / "t.npz")
    np.testing.assert_array_equal(load_tokens(tmp_path / "t.npz").ids, found.ids)
