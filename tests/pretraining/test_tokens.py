from __future__ import annotations

from pathlib import Path

import numpy as np
import small_pretraining
from pretraining.pairs import CLS, MASK, PAD, SEP, UNK
from pretraining.tokens import load_encoded_text
from transformers import BertTokenizer


def test_the_saved_tokeniser_lower_cases_and_marks_segments(tmp_path: Path) -> None:
    small_pretraining.tokeniser(tmp_path)
    loaded = BertTokenizer.from_pretrained(tmp_path)
    ids = loaded.get_vocab()
    assert [ids[token] for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")] == [PAD, UNK, CLS, SEP, MASK]
    assert loaded.encode("THE FOX") == loaded.encode("the fox")
    pair = loaded("the fox", "the hen")
    assert pair["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1]
    lines = (tmp_path / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert [ids[token] for token in lines] == list(range(len(lines)))


def test_encoded_text_has_every_sentence_and_can_be_saved(tmp_path: Path) -> None:
    tokenizer = small_pretraining.tokeniser(tmp_path)
    text = small_pretraining.encoded_text(tmp_path)
    sentences = [sentence for document in small_pretraining.documents() for sentence in document]
    for index, sentence in enumerate(sentences):
        start, end = text.sentences[index : index + 2]
        assert text.ids[start:end].tolist() == tokenizer.encode(sentence, add_special_tokens=False).ids
    assert text.sentences[-1] == len(text.ids)
    assert np.diff(text.documents).tolist() == [12] * 40
    text.save(tmp_path / "t.npz")
    np.testing.assert_array_equal(load_encoded_text(tmp_path / "t.npz").ids, text.ids)
