"""The limits of one request."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits of one request.

    Attributes:
        max_batch_size: the most texts in a request.
        max_text_bytes: the most UTF-8 bytes in a text.
        max_file_bytes: the most bytes of a file that the web page sends.
    """

    max_batch_size: int = 128
    max_text_bytes: int = 16384
    max_file_bytes: int = 4 << 20

    def request_bytes(self, spelling: int = 1) -> int:
        """Returns the size of the largest request: a full batch on both inputs of `score`.

        Args:
            spelling: the most bytes that encode a byte of a text.
        """
        return 2 * self.max_batch_size * (spelling * self.max_text_bytes + 64)
