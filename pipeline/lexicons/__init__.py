"""Which words translate a word: learned, listed, or both."""
