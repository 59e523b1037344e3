"""Parallel text into TFX:
`component.ParallelTextExampleGen` is its interface, `executor.Executor` its Beam work.
"""
