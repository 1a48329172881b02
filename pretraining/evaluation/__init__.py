"""What does a pre-trained model show? One measurement a file; `pretraining.evaluate` runs them all."""
