"""Text-to-text models that copy: layers, bodies, decoding and losses, with `keras.ops` only."""
