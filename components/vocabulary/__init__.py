"""Component that counts the training words and writes the two vocabularies."""
