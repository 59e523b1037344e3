"""Ours beside other programs, measured in turn in one go.

    python -m benchmarks.peers.environments     # once: the peers, in environments of their own
    python -m benchmarks.peers.decoding --data PATH --output DIR
    python -m benchmarks.peers.training --data PATH --output DIR
    python -m benchmarks.peers.floors           # what this machine allows

`job` has the sizes and `corpus` the text that all programs share; `processes` and `rounds` let them
take turns; `ours`, `opennmt_py` and the other peers each answer in a process and an environment of
their own; `floors` and `rates` are the machine's limits; `machine` and `picture` go into the
report.
"""
