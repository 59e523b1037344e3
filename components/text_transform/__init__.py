"""TFX's Transform with the vocabulary artifact as an input."""
