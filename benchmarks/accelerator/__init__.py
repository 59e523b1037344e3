"""How fast the bodies and heads are on an accelerator, by JAX, which needs neither TensorFlow nor
data there.
"""
