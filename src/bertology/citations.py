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
    "brunner2020": (
        "Brunner, Liu, Pascual, Richter, Ciaramita & Wattenhofer (2020). On Identifiability in Transformers. ICLR."
    ),
    "gu2025": "Gu, Pang, Du, Liu, Zhang, Du, Wang & Lin (2025). When Attention Sink Emerges in Language Models. ICLR.",
    "hao2021": "Hao, Dong, Wei & Xu (2021). Self-Attention Attribution: Interpreting Information Interactions. AAAI.",
    "kobayashi2020": "Kobayashi, Kuribayashi, Yokoi & Inui (2020). Attention is Not Only a Weight. EMNLP.",
    "kobayashi2021": (
        "Kobayashi, Kuribayashi, Yokoi & Inui (2021). Incorporating Residual and Normalization Layers into Analysis of "
        "Masked Language Models. EMNLP."
    ),
    "sun2021": "Sun & Marasović (2021). Effective Attention Sheds Light On Interpretability. Findings of ACL.",
    "sundararajan2017": "Sundararajan, Taly & Yan (2017). Axiomatic Attribution for Deep Networks. ICML.",
    "vedaldi2012": (
        "Vedaldi & Zisserman (2012). Efficient Additive Kernels via Explicit Feature Maps. IEEE TPAMI 34(3)."
    ),
    "vig2019deconstructing": "Vig (2019). Deconstructing BERT: Distilling 6 Patterns from 100 Million Parameters.",
}
