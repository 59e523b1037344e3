"""Text-to-text models that copy: layers, bodies, decoding and losses on `keras.ops` alone."""
