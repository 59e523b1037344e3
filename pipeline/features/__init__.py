"""Text to model inputs: the Transform graph, and the labels that it makes."""
