"""The lexicon of translations."""
