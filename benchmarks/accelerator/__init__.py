"""The speed of bodies and heads on an accelerator, by JAX, without TensorFlow and without data."""
