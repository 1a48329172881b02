"""Names of files that are recognised as each format, and the files that belong to them."""

from __future__ import annotations

NAMES = {
    "conllu": "sample.conllu",
    "universal_propositions": "sample.conllu",
    "conll": "sample.conll",
    "conll2012": "sample.conll",
    "labelled": "sample.tsv",
    "words": "sample.tsv",
    "pairs": "sample.tsv",
    "gap": "sample.tsv",
    "glue_diagnostic": "sample.tsv",
    "squad": "sample.json",
    "multiple_choice": "sample.json",
    "blimp": "sample.jsonl",
    "open_sesame": "agr.5",
    "wsd_framework": "sample.data.xml",
    "coarsewsd": "train.data.txt",
    "wic": "train.data.txt",
}
FURTHER_FILES = {
    "wsd_framework": {"sample.gold.key.txt": "d000.s000.t000 dog%1:05:00::\n"},
    "coarsewsd": {"train.gold.txt": "0\n", "classes_map.txt": '{"0": "apple_fruit", "1": "apple_inc"}'},
    "wic": {"train.gold.txt": "F\n"},
}
