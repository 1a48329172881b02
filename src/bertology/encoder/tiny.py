"""`tiny`: an untrained BERT made on the spot, only for trying things out; nothing it does means anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertology.encoder.huggingface import HuggingFaceEncoder

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~–—‘’“”…"
SUFFIXES = ("ed", "er", "est", "ing", "ly", "ment", "ness", "tion", "es", "al", "able", "ful", "ity", "ous", "ive")
WORDS = """
the of and to in a is that for it as was with be by on not he i this are or his from at which but have an had they you
were their one all we can her has there been if more when will would who so no she other its may these what them than
some him time into only do such my new about out also two any up first could our then most see me should after said
your very between made many over like those did now even well where must people through how same work being because
man before each much good life years three down own used way under last might while long day great make world state
still here off both against never house another place without old know since right came again take think men too part
number himself around however small found few home just upon during water left end put night every school war set
without always number body hand high side head go back get give look want tell ask seem feel try leave call need
become turn start show hear play run move live believe bring happen write sit stand lose pay meet include continue
learn change lead understand watch follow stop create speak read allow add spend grow open walk win offer remember
love consider appear buy wait serve die send expect build stay fall cut reach kill remain cat dog bird horse fish
mother father child children woman women boy girl friend family name city country river mountain road street door
window table chair book letter word page story question answer reason problem idea fact case point week month morning
evening hour minute money business company government law power system group member student teacher doctor king queen
soldier president keys key cabinet bank money mouse light dark red blue green white black big large little young early
late hard easy strong weak fast slow hot cold warm happy sad rich poor full empty true false real sure clear free
important different possible public national local social political human music art science history language sentence
"""


def untrained() -> HuggingFaceEncoder:
    """A seeded BertForPreTraining of 2 layers and 4 heads, width 32, over letters and a few hundred English words."""
    from bertology.encoder.transformer_files import untrained_bert

    return untrained_bert(tokenizer_definition(), "tiny", layers=2, heads=4, width=32, seed=2019)


def tokenizer_definition() -> str:
    """The text of a tokenizer.json: lower-cased WordPiece over the vocabulary of this file."""
    from tokenizers import Tokenizer
    from tokenizers.decoders import WordPiece as Decoder
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    vocabulary = {token: place for place, token in enumerate(_vocabulary())}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.decoder = Decoder()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return tokenizer.to_str()


def _vocabulary() -> list[str]:
    pieces = [*SPECIAL, *PUNCTUATION, *CHARACTERS]
    pieces += [f"##{end}" for end in (*CHARACTERS, *SUFFIXES)]
    return list(dict.fromkeys([*pieces, *WORDS.split()]))
