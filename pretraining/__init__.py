"""Pre-train a small BERT on open text: corpus, vocabulary, pairs, MLM + NSP, Hugging Face directory.

Each step is a command that reads the output of the one before:

    python -m pretraining.vocabulary TEXT -o TOKENISER
    python -m pretraining.tokens TEXT TOKENISER -o TOKENS
    python -m pretraining.train TOKENS TOKENISER -o RUN --steps N
    python -m pretraining.evaluate RUN/at-100 --train TRAIN.conllu --dev DEV.conllu --blimp DIRECTORY -o SCORES.json

The package is not installed with bertology; `docs/model-card.md` gives the settings of the distributed model.
"""
