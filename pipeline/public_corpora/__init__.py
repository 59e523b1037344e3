"""Public corpora that recipes are for: where each file comes from, and its digest."""
