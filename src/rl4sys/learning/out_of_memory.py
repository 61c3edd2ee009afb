"""Memory that ran out in the middle of an update, said in words that tell what to do."""

from __future__ import annotations


class OutOfMemory(MemoryError):
    """An update needs more memory than there is, and cannot be done in smaller parts."""

    def __init__(self, update: int, steps: int, cause: BaseException) -> None:
        first_line = str(cause).partition("\n")[0] or type(cause).__name__
        super().__init__(
            f"There is not enough memory for update {update} at step {steps:,}, and its batch cannot be taken in "
            f"smaller parts ({first_line}). Lower algorithm.batch_size or algorithm.minibatch_size, make the networks "
            f"smaller, or free some memory; what was saved before is intact."
        )
