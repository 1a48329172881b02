"""Qwen2 and Qwen3: layers as in Llama."""

from __future__ import annotations

from bertology.encoder.families import ModelFamily
from bertology.encoder.families.llama import LLAMA_LAYER

FAMILY = ModelFamily(
    name="Qwen2/Qwen3",
    model_types=("qwen2", "qwen3"),
    layer_classes=("Qwen2DecoderLayer", "Qwen3DecoderLayer"),
    layer=LLAMA_LAYER,
    embeddings=("embed_tokens",),
    causal=True,
)
