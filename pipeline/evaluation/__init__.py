"""What the Evaluator measures, and what it demands before a model is pushed."""
