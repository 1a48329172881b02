"""Evaluation of a pre-trained model, one measure per module; `pretraining.evaluate` runs them all."""
