"""Resolver: which model was blessed last."""
