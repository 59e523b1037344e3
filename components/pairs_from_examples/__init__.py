"""Component that makes parallel text of the examples of any other component."""
