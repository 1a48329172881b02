"""Model folders in Hugging Face format: configuration, tokeniser and weights, damaged or contradictory."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import transformers

import tiny_models
from bertology.corpus.example import TextInput
from bertology.corpus.sentence import sentence_from_text
from bertology.encoder.encoder import ModelInputs
from bertology.encoder.load import load
from fuzz.kind import Files, Kind, read_files
from fuzz.mutations import deep_json, mutate_bytes, mutate_json

KEYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size", "model_type",
        "architectures", "max_position_embeddings", "hidden_act", "pad_token_id", "type_vocab_size")  # fmt: skip


class ModelFolders(Kind):
    """A very small BERT."""

    name = "model folders"
    seconds_per_case = 20.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        tokenizer = tiny_models.hf_tokenizer("bert")
        config = transformers.BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=8,
            max_position_embeddings=16,
        )
        target = folder / "model"
        transformers.BertModel(config).save_pretrained(target)
        tokenizer.save_pretrained(target)
        self.files = read_files(target)

    def make(self, rng: Random) -> Files:
        """One file damaged, removed or with a part of its content changed."""
        files = dict(self.files)
        name = rng.choice(sorted(files))
        match rng.randrange(10):
            case 0:
                del files[name]
            case 1:
                files[rng.choice(("config.json", "tokenizer.json"))] = deep_json(rng.choice((150, 1000, 100_000)))
            case 2 | 3:
                files[name] = mutate_bytes(rng, files[name])
            case 4 | 5:
                files["model.safetensors"] = _craft_header(rng, files["model.safetensors"])
            case 6 | 7:
                config = json.loads(files["config.json"])
                key = rng.choice(KEYS)
                config[key] = mutate_json(rng, config.get(key, 1))
                files["config.json"] = json.dumps(config).encode()
            case _:
                name = rng.choice(sorted(name for name in files if name.endswith(".json")))
                files[name] = json.dumps(mutate_json(rng, json.loads(files[name]))).encode()
        return files

    def consume(self, folder: Path) -> None:
        """Load it, and run it on one sentence."""
        import torch

        encoder = load(str(folder))
        (tokens,) = encoder.tokenise([TextInput((sentence_from_text("The cat sat."),))])
        ids = torch.tensor(tokens.ids[None].astype("int64"))
        encoder.forward(ModelInputs(ids, torch.zeros_like(ids), torch.ones_like(ids)), hidden=True)


def _craft_header(rng: Random, content: bytes) -> bytes:
    """The safetensors file with parts of its header changed, and the length of the header made right again."""
    size = int.from_bytes(content[:8], "little")
    header = mutate_json(rng, json.loads(content[8 : 8 + size]))
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + size :]
