"""Spares the garbage collector what is imported before this module."""

import gc

gc.freeze()
