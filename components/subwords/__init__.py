"""Component that learns how words are cut into smaller units."""
