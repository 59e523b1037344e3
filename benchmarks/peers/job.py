"""What every program does in a comparison: sizes, lengths, threads.

Standard library alone, because peers' environments import it.
"""

import dataclasses
import json
from typing import Any


@dataclasses.dataclass(frozen=True)
class Job:
    """The sizes that are the same for all programs.

    Attributes:
        vocabulary: ids of each side, special ones among them.
        attention: `bilinear` (a peer's "general"), `additive` or `dot`.
        body: `rnn`, a GRU with copying, of one layer each; or `transformer`, of `layers`, `heads`
            and `feed_forward`, without copying.
        length: tokens of each output, forced, without its end.
        longest: the most tokens of an output whose length is not forced.
        source_buckets: lengths that sources are padded to.
        updates: of one round of training.
    """

    vocabulary: int = 8000
    embedding: int = 300
    hidden: int = 512
    attention: str = "bilinear"
    body: str = "rnn"
    layers: int = 6
    heads: int = 8
    feed_forward: int = 2048
    beam: int = 5
    length: int = 20
    longest: int = 34
    batches: tuple[int, ...] = (1, 32)
    source_buckets: tuple[int, ...] = (10, 12, 16)
    training_batch: int = 64
    updates: int = 40
    learning_rate: float = 0.001
    threads: int = 2

    def to_json(self) -> str:
        """Returns the job as it travels to other processes."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """Reads what `to_json` wrote."""
        values: dict[str, Any] = json.loads(text)
        for name in ("batches", "source_buckets"):
            values[name] = tuple(values[name])
        return cls(**values)
