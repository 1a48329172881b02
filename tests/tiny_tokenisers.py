"""Small tokenisers of the kinds that the supported families use: WordPiece, byte-level BPE, unigram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

TEXTS = (
    "The keys to the cabinet are on the table.",
    "A dog!",
    "She didn't believe that unbelievable story, did she?",
    "We walked along the river and then, at last, we saw the lights of the small town.",
    "Naïve café owners don't re-open on 24.12.2025.",
    "It rains.",
)


@dataclass(frozen=True)
class Specials:
    """The special tokens of a family, in the order of their ids."""

    tokens: tuple[str, ...]
    cls: str | None
    sep: str | None
    pad: str | None
    unk: str
    mask: str | None

    def id(self, token: str | None) -> int | None:
        return None if token is None else self.tokens.index(token)


BERT_SPECIAL = Specials(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), "[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
ROBERTA_SPECIAL = Specials(("<s>", "<pad>", "</s>", "<unk>", "<mask>"), "<s>", "</s>", "<pad>", "<unk>", "<mask>")
MPNET_SPECIAL = Specials(("<s>", "<pad>", "</s>", "[UNK]", "<mask>"), "<s>", "</s>", "<pad>", "[UNK]", "<mask>")
ALBERT_SPECIAL = Specials(("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"), "[CLS]", "[SEP]", "<pad>", "<unk>", "[MASK]")
DEBERTA_SPECIAL = Specials(("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"), "[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
# GPT-2 has no padding token; fine-tuning chooses one, here another id than the one that pads batches.
GPT2_SPECIAL = Specials(("<|endoftext|>", "<|pad|>"), None, None, "<|pad|>", "<|endoftext|>", None)


def wordpiece(special: Specials) -> Tokenizer:
    """Lower-casing WordPiece, as in BERT.

    Not trained: the trainers of WordPiece and unigram models break ties differently every time.
    """
    words = _short_words()
    letters = sorted({letter for text in TEXTS for letter in text.lower() if not letter.isspace()})
    tokens = [*special.tokens, *letters, *(f"##{letter}" for letter in letters), "##ing", "##ed", *words]
    vocabulary = {token: index for index, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=special.unk))
    _set_parts(tokenizer, normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer())
    return tokenizer


def byte_level(special: Specials, normalizer: Any = None) -> Tokenizer:
    """Byte-level BPE, as in GPT-2: no unknown tokens, and a character may have several tokens."""
    tokenizer = Tokenizer(models.BPE())
    _set_parts(tokenizer, normalizer, pre_tokenizers.ByteLevel(add_prefix_space=False))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=list(special.tokens), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def unigram(special: Specials, *normalizer: Any) -> Tokenizer:
    """A unigram model with spaces as underlines, as in SentencePiece."""
    letters = sorted({letter for text in TEXTS for letter in text + text.lower() if not letter.isspace()})
    scored = [(token, 0.0) for token in special.tokens] + [("\u2581", -3.0)] + [(letter, -4.0) for letter in letters]
    scored += [(f"\u2581{word}", -5.0) for word in _short_words()] + [("ing", -4.5), ("ed", -4.5)]
    tokenizer = Tokenizer(models.Unigram(scored, special.id(special.unk)))
    _set_parts(tokenizer, normalizers.Sequence(list(normalizer)), pre_tokenizers.Metaspace(prepend_scheme="always"))
    return tokenizer


def _short_words() -> list[str]:
    words = {word for text in TEXTS for word in text.lower().split()}
    return sorted(word for word in words if word.isalpha() and 1 < len(word) < 6)


def _set_parts(tokenizer: Any, normalizer: Any, pre_tokenizer: Any) -> None:
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer


def add_cls_and_sep(tokenizer: Any, special: Specials, *, types: bool = True) -> Any:
    """Add [CLS] at the start and [SEP] after each segment."""
    second = 1 if types else 0
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{special.cls} $A {special.sep}",
        pair=f"{special.cls} $A {special.sep} $B:{second} {special.sep}:{second}",
        special_tokens=[(token, special.id(token)) for token in (special.cls, special.sep)],
    )
    return tokenizer


def add_roberta_tokens(tokenizer: Any) -> Any:
    """Add <s> at the start, </s> at the end, and </s></s> between two segments."""
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
    )
    return tokenizer


def keep_space_in_offsets(tokenizer: Any) -> Any:
    """Add no special tokens; offsets include the space before a word."""
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer
