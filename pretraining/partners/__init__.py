"""Fine-tune the partners of a pre-trained model, as low-rank factors from the first step, and store what was learnt.

    python -m pretraining.partners prepare BASE DATA TASK PACK
    python -m pretraining.partners train BASE PACK --runs RUNS --seed 0 --device cuda
    python -m pretraining.partners store BASE PACK --runs RUNS --partner PARTNER
    python -m pretraining.partners report BASE PACK --runs RUNS --partner PARTNER -o FIGURES.json

BASE is a BertForPreTraining directory, TASK one of sentiment, ner, pairs. Only `prepare` needs the data and
scikit-learn. Nothing here is installed with the package; `docs/model-card-partners.md` gives the figures.
"""
