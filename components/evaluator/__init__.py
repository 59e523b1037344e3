"""TFX's Evaluator, where there may be no model to compare with yet."""
