"""Code that every package uses."""
