"""Sizes of the heads that the tests make."""

V, HIDDEN, CONTEXT, EMBEDDING, STATE = 7, 3, 4, 2, 5
END = 3
