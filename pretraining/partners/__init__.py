"""Fine-tune the partners of a pre-trained model and store what each changed, small.

    python -m pretraining.partners train BASE DATA TASK --runs RUNS --seed 0
    python -m pretraining.partners store BASE DATA TASK --runs RUNS --partner PARTNER
    python -m pretraining.partners report BASE DATA TASK --runs RUNS --partner PARTNER -o FIGURES.json

BASE is a BertForPreTraining directory, TASK one of sentiment, ner, pairs. Nothing here is installed with the package;
`docs/model-card.md` gives the figures of what ships.
"""
