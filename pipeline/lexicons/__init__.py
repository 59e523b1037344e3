"""Lexicons of translations: learned, listed by hand, or both."""
