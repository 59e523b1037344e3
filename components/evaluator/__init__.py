"""TFX's Evaluator, which also works without a model to compare with."""
