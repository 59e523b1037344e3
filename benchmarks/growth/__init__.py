"""How time and memory grow, one size at a time, drawn with the exponent.

    python -m benchmarks.growth.corpus ...      # Beam components, by the number of pairs
    python -m benchmarks.growth.decoding ...    # decoding, by source length, beam, batch and
    vocabulary

`exponents` says how a measure grows, and draws it.
"""
