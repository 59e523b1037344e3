"""The sizes of the measurements on an accelerator."""

import dataclasses
from collections.abc import Mapping

from benchmarks.peers.job import Job


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What is measured, in its full size."""

    matrix: int = 8192
    megabytes: int = 4000
    jobs: tuple[Job, ...] = (
        Job(batches=(1, 32, 256)),
        Job(body="transformer", embedding=Job.hidden, batches=(1, 32, 256)),
    )
    # Batches that run without compilation, too, which is slow: thousands of operations a token.
    eager_batches: tuple[int, ...] = (1, 32)
    # The paper's medium model, on WikiText-2's vocabulary.
    language_model: Mapping[str, int] = dataclasses.field(
        default_factory=lambda: dict(
            vocabulary_size=33286, window=100, embedding_size=650, hidden_size=650
        )
    )
    rows: int = 32
    updates: int = 100
    training_batch: int = 256
    training_length: int = 32
    epochs: int = 3


SMALL = Sizes(
    matrix=64,
    megabytes=1,
    jobs=(
        Job(vocabulary=50, embedding=16, hidden=16, beam=2, length=3, batches=(2,)),
        Job(
            vocabulary=50,
            embedding=16,
            hidden=16,
            body="transformer",
            layers=1,
            heads=2,
            feed_forward=32,
            beam=2,
            length=3,
            batches=(2,),
        ),
    ),
    eager_batches=(2,),
    language_model=dict(vocabulary_size=50, window=5, embedding_size=8, hidden_size=8),
    rows=2,
    updates=2,
    training_batch=2,
    training_length=4,
    epochs=2,
)
