"""Corpus metrics of generated text, one file per family.

Each is a `base.Metric`: a sum of statistics over segments, and one value computed from the sum.
`registry` maps names to them. Nothing here imports TensorFlow or TFX.
"""
