"""The papers behind the analyses: one key, one reference; as text or BibTeX."""

from __future__ import annotations

import re

CITATIONS: dict[str, str] = {
    "clark2019": (
        "Clark, Khandelwal, Levy & Manning (2019). What Does BERT Look At? An Analysis of BERT's Attention. "
        "BlackboxNLP."
    ),
    "ethayarajh2019": "Ethayarajh (2019). How Contextual are Contextualized Word Representations? EMNLP.",
    "kovaleva2019": "Kovaleva, Romanov, Rogers & Rumshisky (2019). Revealing the Dark Secrets of BERT. EMNLP.",
    "vig2019structure": (
        "Vig & Belinkov (2019). Analyzing the Structure of Attention in a Transformer Language Model. BlackboxNLP."
    ),
    "voita2019": (
        "Voita, Talbot, Moiseev, Sennrich & Titov (2019). Analyzing Multi-Head Self-Attention: "
        "Specialized Heads Do the Heavy Lifting, the Rest Can Be Pruned. ACL."
    ),
    "abnar2020": "Abnar & Zuidema (2020). Quantifying Attention Flow in Transformers. ACL.",
    "brunner2020": (
        "Brunner, Liu, Pascual, Richter, Ciaramita & Wattenhofer (2020). On Identifiability in Transformers. ICLR."
    ),
    "gu2025": (
        "Gu, Pang, Du, Liu, Zhang, Du, Wang & Lin (2025). When Attention Sink Emerges in Language Models: "
        "An Empirical View. ICLR."
    ),
    "hao2021": (
        "Hao, Dong, Wei & Xu (2021). Self-Attention Attribution: Interpreting Information Interactions Inside "
        "Transformer. AAAI."
    ),
    "kobayashi2020": (
        "Kobayashi, Kuribayashi, Yokoi & Inui (2020). Attention is Not Only a Weight: Analyzing Transformers with "
        "Vector Norms. EMNLP."
    ),
    "kobayashi2021": (
        "Kobayashi, Kuribayashi, Yokoi & Inui (2021). Incorporating Residual and Normalization Layers into Analysis of "
        "Masked Language Models. EMNLP."
    ),
    "sun2021": "Sun & Marasović (2021). Effective Attention Sheds Light On Interpretability. Findings of ACL.",
    "sundararajan2017": "Sundararajan, Taly & Yan (2017). Axiomatic Attribution for Deep Networks. ICML.",
    "vedaldi2012": (
        "Vedaldi & Zisserman (2012). Efficient Additive Kernels via Explicit Feature Maps. IEEE TPAMI 34(3)."
    ),
    "vig2019deconstructing": (
        "Vig (2018). Deconstructing BERT: Distilling 6 Patterns from 100 Million Parameters. Towards Data Science."
    ),
    "jain2019": "Jain & Wallace (2019). Attention is not Explanation. NAACL.",
    "wiegreffe2019": "Wiegreffe & Pinter (2019). Attention is not not Explanation. EMNLP.",
    "lin2019": "Lin, Tan & Frank (2019). Open Sesame: Getting Inside BERT's Linguistic Knowledge. BlackboxNLP.",
    "htut2019": (
        "Htut, Phang, Bordia & Bowman (2019). Do Attention Heads in BERT Track Syntactic Dependencies? "
        "arXiv:1911.12246."
    ),
    "reif2019": (
        "Reif, Yuan, Wattenberg, Viegas, Coenen, Pearce & Kim (2019). Visualizing and Measuring the Geometry of BERT. "
        "NeurIPS."
    ),
    "zhao2018": (
        "Zhao, Wang, Yatskar, Ordonez & Chang (2018). Gender Bias in Coreference Resolution: Evaluation and Debiasing "
        "Methods. NAACL."
    ),
    "webster2018": (
        "Webster, Recasens, Axelrod & Baldridge (2018). Mind the GAP: A Balanced Corpus of Gendered Ambiguous "
        "Pronouns. TACL."
    ),
    "warstadt2020": (
        "Warstadt, Parrish, Liu, Mohananey, Peng, Wang & Bowman (2020). BLiMP: The Benchmark of Linguistic Minimal "
        "Pairs for English. TACL."
    ),
    "salazar2020": "Salazar, Liang, Nguyen & Kirchhoff (2020). Masked Language Model Scoring. ACL.",
    "kauf2023": "Kauf & Ivanova (2023). A Better Way to Do Masked Language Model Scoring. ACL.",
    "jawahar2019": "Jawahar, Sagot & Seddah (2019). What Does BERT Learn about the Structure of Language? ACL.",
    "goldberg2019": "Goldberg (2019). Assessing BERT's Syntactic Abilities. arXiv:1901.05287.",
    "linzen2016": (
        "Linzen, Dupoux & Goldberg (2016). Assessing the Ability of LSTMs to Learn Syntax-Sensitive Dependencies. TACL."
    ),
    "mccoy2019": (
        "McCoy, Linzen, Dunbar & Smolensky (2019). RNNs Implicitly Implement Tensor-Product Representations. ICLR."
    ),
    "conneau2018": (
        "Conneau, Kruszewski, Lample, Barrault & Baroni (2018). What You Can Cram into a Single $&!#* Vector: Probing "
        "Sentence Embeddings for Linguistic Properties. ACL."
    ),
    "hewitt2019structural": (
        "Hewitt & Manning (2019). A Structural Probe for Finding Syntax in Word Representations. NAACL."
    ),
    "liu2019": (
        "Liu, Gardner, Belinkov, Peters & Smith (2019). Linguistic Knowledge and Transferability of Contextual "
        "Representations. NAACL."
    ),
    "hewitt2019control": "Hewitt & Liang (2019). Designing and Interpreting Probes with Control Tasks. EMNLP.",
    "voita2020": "Voita & Titov (2020). Information-Theoretic Probing with Minimum Description Length. EMNLP.",
    "tenney2019edge": (
        "Tenney, Xia, Chen, Wang, Poliak, McCoy, Kim, Van Durme, Bowman, Das & Pavlick (2019). What do you learn from "
        "context? Probing for sentence structure in contextualized word representations. ICLR."
    ),
    "tenney2019": "Tenney, Das & Pavlick (2019). BERT Rediscovers the Classical NLP Pipeline. ACL.",
    "louizos2017": "Louizos, Ullrich & Welling (2017). Bayesian Compression for Deep Learning. NeurIPS.",
    "dozat2017": "Dozat & Manning (2017). Deep Biaffine Attention for Neural Dependency Parsing. ICLR.",
    "zhang2021": "Zhang, Wu, Katiyar, Weinberger & Artzi (2021). Revisiting Few-sample BERT Fine-tuning. ICLR.",
    "merchant2020": (
        "Merchant, Rahimtoroghi, Pavlick & Tenney (2020). What Happens To BERT Embeddings During Fine-tuning? "
        "BlackboxNLP."
    ),
    "kriegeskorte2008": (
        "Kriegeskorte, Mur & Bandettini (2008). Representational Similarity Analysis: Connecting the Branches of "
        "Systems Neuroscience. Frontiers in Systems Neuroscience 2."
    ),
    "kornblith2019": (
        "Kornblith, Norouzi, Lee & Hinton (2019). Similarity of Neural Network Representations Revisited. ICML."
    ),
    "raghu2017": (
        "Raghu, Gilmer, Yosinski & Sohl-Dickstein (2017). SVCCA: Singular Vector Canonical Correlation Analysis for "
        "Deep Learning Dynamics and Interpretability. NIPS."
    ),
    "morcos2018": (
        "Morcos, Raghu & Bengio (2018). Insights on Representational Similarity in Neural Networks with Canonical "
        "Correlation. NeurIPS."
    ),
    "song2012": (
        "Song, Smola, Gretton, Bedo & Borgwardt (2012). Feature Selection via Dependence Maximization. JMLR 13."
    ),
    "schonemann1966": (
        "Schönemann (1966). A Generalized Solution of the Orthogonal Procrustes Problem. Psychometrika 31(1)."
    ),
    "tukey1958": "Tukey (1958). Bias and Confidence in Not-quite Large Samples. Annals of Mathematical Statistics 29.",
    "efron1981": (
        "Efron (1981). Nonparametric Estimates of Standard Error: The Jackknife, the Bootstrap and Other Methods. "
        "Biometrika 68(3)."
    ),
    "vanaken2019": (
        "van Aken, Winter, Löser & Gers (2019). How Does BERT Answer Questions? A Layer-Wise Analysis of Transformer "
        "Representations. CIKM."
    ),
    "vanaken2020": (
        "van Aken, Winter, Löser & Gers (2020). VisBERT: Hidden-State Visualizations for Transformers. WWW Companion."
    ),
    "wiedemann2019": (
        "Wiedemann, Remus, Chawla & Biemann (2019). Does BERT Make Any Sense? Interpretable Word Sense Disambiguation "
        "with Contextualized Embeddings. KONVENS."
    ),
    "pilehvar2019": (
        "Pilehvar & Camacho-Collados (2019). WiC: the Word-in-Context Dataset for Evaluating Context-Sensitive Meaning "
        "Representations. NAACL."
    ),
    "si2019": (
        "Si, Wang, Kan & Jiang (2019). What does BERT Learn from Multiple-Choice Reading Comprehension Datasets? "
        "arXiv:1910.12391."
    ),
    "gururangan2018": (
        "Gururangan, Swayamdipta, Levy, Schwartz, Bowman & Smith (2018). Annotation Artifacts in Natural Language "
        "Inference Data. NAACL."
    ),
    "jin2020": (
        "Jin, Jin, Zhou & Szolovits (2020). Is BERT Really Robust? A Strong Baseline for Natural Language Attack on "
        "Text Classification and Entailment. AAAI."
    ),
    "arora2020": "Arora, May, Zhang & Ré (2020). Contextual Embeddings: When Are They Worth It? ACL.",
    "wang2019": (
        "Wang, Singh, Michael, Hill, Levy & Bowman (2019). GLUE: A Multi-Task Benchmark and Analysis Platform for "
        "Natural Language Understanding. ICLR."
    ),
    "michel2019": "Michel, Levy & Neubig (2019). Are Sixteen Heads Really Better than One? NeurIPS.",
    "bach2015": (
        "Bach, Binder, Montavon, Klauschen, Müller & Samek (2015). On Pixel-Wise Explanations for Non-Linear "
        "Classifier Decisions by Layer-Wise Relevance Propagation. PLoS ONE 10(7)."
    ),
    "louizos2018": (
        "Louizos, Welling & Kingma (2018). Learning Sparse Neural Networks through L0 Regularization. arXiv:1712.01312."
    ),
}


def full_citation(key: str) -> str:
    """The reference of a key; a plug-in's paper without a key is given by its reference itself."""
    return CITATIONS.get(key, key)


def short_citation(key: str) -> str:
    """Authors and year, as a sentence names a paper: "Vig & Belinkov 2019", "Clark et al. 2019"."""
    authors, _, rest = full_citation(key).partition(" (")
    several = authors.split(", ")
    return f"{authors if len(several) == 1 else f'{several[0]} et al.'} {rest.split(')')[0]}".strip()


_REFERENCE = re.compile(r"(?P<authors>.+?) \((?P<year>\d{4})\)\. (?P<title>.+?[.?!]) (?P<venue>arXiv:[\d.]+|[^.?!]+)\.")
_JOURNALS = ("TACL", "JMLR", "IEEE TPAMI", "Frontiers in", "Psychometrika", "Annals of", "Biometrika", "PLoS ONE")
_LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_"}


def bibtex_entry(key: str) -> str:
    """The reference as a BibTeX entry; authors have their last names only."""
    reference = _REFERENCE.fullmatch(CITATIONS[key])
    assert reference is not None, f"{key} is not `Authors (year). Title. Venue.`"
    authors = re.split(r", | & ", reference["authors"])
    kind, venue = _bibtex_venue(reference["venue"])
    fields = {
        "author": " and ".join(f"{{{name}}}" if " " in name else name for name in authors),
        "title": f"{{{reference['title'].removesuffix('.')}}}",  # in braces, so that styles keep its capitals
        **venue,
        "year": reference["year"],
    }
    escaped = {name: "".join(_LATEX.get(letter, letter) for letter in value) for name, value in fields.items()}
    return "\n".join([f"@{kind}{{{key},", *(f"  {name} = {{{value}}}," for name, value in escaped.items()), "}"])


def _bibtex_venue(venue: str) -> tuple[str, dict[str, str]]:
    """The kind of entry, and the fields that say where the paper appeared."""
    if venue.startswith("arXiv:"):
        return "misc", {"eprint": venue.removeprefix("arXiv:"), "archiveprefix": "arXiv"}
    if venue.startswith(_JOURNALS):
        name, volume, number = re.fullmatch(r"(.+?)(?: (\d+)(?:\((\d+)\))?)?", venue).groups()  # type: ignore[union-attr]
        return "article", {"journal": name} | {k: v for k, v in (("volume", volume), ("number", number)) if v}
    if venue == "Towards Data Science":
        return "misc", {"howpublished": venue}
    return "inproceedings", {"booktitle": venue}
