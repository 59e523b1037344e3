"""Finds the model that was pushed last."""
