"""Features to a trained network."""
