"""What a run is told: recipes, and the TOML files that come with Verbatim."""
