"""The error for an update that runs out of memory."""

from __future__ import annotations


class OutOfMemory(MemoryError):
    """An update needs more memory than is available and cannot be split further."""

    def __init__(self, update: int, steps: int, cause: BaseException) -> None:
        first_line = str(cause).partition("\n")[0] or type(cause).__name__
        super().__init__(
            f"There is not enough memory for update {update} at step {steps:,}, and its batch cannot be split "
            f"further ({first_line}). Lower algorithm.batch_size or algorithm.minibatch_size, make the networks "
            f"smaller, or free some memory; earlier checkpoints are intact."
        )
