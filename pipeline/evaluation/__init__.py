"""The Evaluator's metrics, and its conditions for a push."""
