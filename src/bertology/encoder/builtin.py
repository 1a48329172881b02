"""Built-in models, by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bertology.errors import Refusal
from bertology.lazy import torch

if TYPE_CHECKING:
    from bertology.encoder.huggingface import HuggingFaceEncoder

MODELS = Path(__file__).parent / "models"

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~–—‘’“”…"
SUFFIXES = ("ed", "er", "est", "ing", "ly", "ment", "ness", "tion", "es", "al", "able", "ful", "ity", "ous", "ive")
TINY_WORDS = """
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
"""Vocabulary of `tiny`."""


@dataclass(frozen=True)
class BuiltInModel:
    """A model stored in the package, and a one-line description.

    `full`: in Hugging Face format. `int8`: as 8-bit integers, with the tokeniser of `base`. `delta`: as its difference
    from `base`. `untrained`: `tiny`, which is not stored.
    """

    name: str
    description: str
    storage: Literal["full", "int8", "delta", "untrained"] = "full"
    base: str = "mini"

    @property
    def is_installed(self) -> bool:
        """Whether its files are here: the wheel leaves out a model whose training data has no known licence."""
        return self.storage == "untrained" or (MODELS / self.name).is_dir()

    def load(self, device: str, dtype: str) -> HuggingFaceEncoder:
        """Load the model on a device, in a type of number."""
        if not self.is_installed:
            raise Refusal(
                f"{self.name} is not part of this installation",
                f"one of {', '.join(installed_models())}",
                "Install from a clone of the repository, or fine-tune one: `bertology finetune mini DATA`",
            )
        folder, base = MODELS / self.name, MODELS / self.base
        match self.storage:
            case "full":
                from bertology.encoder.huggingface_loading import load_directory

                return load_directory(folder, name=self.name, device=device, dtype=dtype)
            case "int8":
                from bertology.encoder.int8_checkpoint import load_int8

                return load_int8(folder, tokeniser=base, name=self.name, device=device, dtype=dtype)
            case "delta":
                from bertology.encoder.delta_checkpoint import load_delta

                return load_delta(base, folder, name=self.name, device=device, dtype=dtype)
            case "untrained":
                from bertology.encoder.huggingface import wrap

                encoder = tiny_encoder()
                model = encoder.model.to(device=device, dtype=getattr(torch, dtype))
                return wrap(model, encoder.hf_tokenizer, encoder.name)


def tiny_encoder() -> HuggingFaceEncoder:
    """An untrained BertForPreTraining of 2 layers and 4 heads, width 32, over characters and a few hundred words."""
    from bertology.encoder.huggingface_loading import untrained_bert

    return untrained_bert(tokenizer_definition(), "tiny", layers=2, heads=4, width=32, seed=2019)


def tokenizer_definition() -> str:
    """The content of a tokenizer.json: lower-casing WordPiece over the vocabulary of `tiny`."""
    from tokenizers import Tokenizer
    from tokenizers.decoders import WordPiece as Decoder
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    tokens = [*SPECIAL_TOKENS, *PUNCTUATION, *CHARACTERS, *(f"##{end}" for end in (*CHARACTERS, *SUFFIXES))]
    vocabulary = {token: index for index, token in enumerate(dict.fromkeys([*tokens, *TINY_WORDS.split()]))}
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


BUILT_IN_MODELS: dict[str, BuiltInModel] = {
    model.name: model
    for model in (
        BuiltInModel("mini", "small English BERT trained for this project: 8 layers, 8 heads; MLM and NSP task heads"),
        BuiltInModel("mini@10%", "mini after 10 % of pretraining, stored in 8 bits", "int8"),
        BuiltInModel("mini-sentiment", "mini fine-tuned for sentiment classification (film reviews)", "delta"),
        BuiltInModel("mini-ner", "mini fine-tuned for named-entity recognition (PER, LOC, ORG, MISC)", "delta"),
        BuiltInModel("mini-pairs", "mini fine-tuned for natural language inference", "delta"),
        BuiltInModel("tiny", "untrained model, 2 layers, 4 heads; for tests", "untrained"),
    )
}


def installed_models() -> dict[str, BuiltInModel]:
    """The built-in models whose files are here, by name."""
    return {name: model for name, model in BUILT_IN_MODELS.items() if model.is_installed}
