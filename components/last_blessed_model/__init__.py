"""Resolver of the model that was blessed last."""
