"""How time and memory grow, one size at a time, drawn with the exponent.

    python -m benchmarks.growth.corpus ...      # components, by the number of pairs
    python -m benchmarks.growth.decoding ...    # decoding, by source, beam, batch, vocabulary

`exponents` finds how a measure grows, and draws it.
"""
