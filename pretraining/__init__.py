"""Pre-train a small BERT on open text: corpus, vocabulary, pairs, MLM + NSP, Hugging Face directory.

The steps are command lines, each reading what the one before wrote:

    python -m pretraining.vocabulary TEXT -o TOKENISER
    python -m pretraining.tokens TEXT TOKENISER -o TOKENS
    python -m pretraining.train TOKENS TOKENISER -o RUN --steps N
    python -m pretraining.evaluate RUN/at-100 --train TRAIN.conllu --dev DEV.conllu --blimp FOLDER -o FIGURES.json

Nothing here is installed with the package; `docs/model-card.md` says what the shipped model was made with.
"""
