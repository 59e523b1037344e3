"""Functions that TFX calls by name, and programs that they start."""
