"""Text to model inputs: the Transform graph, and its labels."""
