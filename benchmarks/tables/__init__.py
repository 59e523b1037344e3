"""Tables and pictures of pages, made of the result files in `benchmarks/results`."""
