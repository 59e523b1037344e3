"""Figures as data: what a benchmark measured, as JSON files that are committed."""
