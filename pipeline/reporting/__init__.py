"""A run to facts, page and model card."""
