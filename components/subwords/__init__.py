"""Component that learns how to split words into smaller units."""
