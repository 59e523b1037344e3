"""Corpus metrics of generated text, one file a family.

Each is a `base.Metric`: a sum of statistics over segments, and one value computed from the sum.
`registry` knows them by name. Nothing here imports TensorFlow or TFX.
"""
