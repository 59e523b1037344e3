"""A trained network to a SavedModel, and a SavedModel in this process."""
