"""Recipes, the settings of a run, and the TOML files that come with Verbatim."""
