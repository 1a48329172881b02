"""The papers behind the analyses: one key, one reference."""

from __future__ import annotations

CITATIONS: dict[str, str] = {
    "clark2019": "Clark, Khandelwal, Levy & Manning (2019). What Does BERT Look At? BlackboxNLP.",
    "ethayarajh2019": "Ethayarajh (2019). How Contextual are Contextualized Word Representations? EMNLP.",
    "kovaleva2019": "Kovaleva, Romanov, Rogers & Rumshisky (2019). Revealing the Dark Secrets of BERT. EMNLP.",
    "vig2019structure": (
        "Vig & Belinkov (2019). Analyzing the Structure of Attention in a Transformer Language Model. BlackboxNLP."
    ),
    "voita2019": (
        "Voita, Talbot, Moiseev, Sennrich & Titov (2019). Analyzing Multi-Head Self-Attention: "
        "Specialized Heads Do the Heavy Lifting, the Rest Can Be Pruned. ACL."
    ),
}
