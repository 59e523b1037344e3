"""How much one request may ask for."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Limits:
    """How much one request may ask for.

    Attributes:
        max_batch_size: the most texts in a request.
        max_text_bytes: the most UTF-8 bytes in a text.
    """

    max_batch_size: int = 128
    max_text_bytes: int = 16384

    def request_bytes(self, spelling: int = 1) -> int:
        """Returns the size of the largest request: a full batch on both inputs of `score`.

        Args:
            spelling: how many bytes spell a byte of a text.
        """
        return 2 * self.max_batch_size * (spelling * self.max_text_bytes + 64)
