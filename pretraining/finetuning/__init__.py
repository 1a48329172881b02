"""Fine-tune a pre-trained model with low-rank factors and store the difference from its base.

    python -m pretraining.finetuning prepare BASE DATA TASK DATASET
    python -m pretraining.finetuning train BASE DATASET --runs RUNS --seed 0 --device cuda
    python -m pretraining.finetuning store BASE DATASET --runs RUNS --model MODEL
    python -m pretraining.finetuning report BASE DATASET --runs RUNS --model MODEL -o SCORES.json

BASE is a BertForPreTraining directory, TASK one of sentiment, ner, pairs. Only `prepare` needs the data and
scikit-learn. The package is not installed with bertology; `docs/model-card-finetuned.md` gives the results.
"""
