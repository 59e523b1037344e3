"""The lexicon: which target words a source word is translated by."""
