"""Plain text into TFX:
`component.TextExampleGen` is its interface, `executor.Executor` its Beam work.
"""
