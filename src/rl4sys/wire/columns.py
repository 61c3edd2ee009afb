"""One array of a message: the bytes of a row, the type in which they are sent, and the values that are allowed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rl4sys.experience import Array, ArraySpec
from rl4sys.wire.errors import ContractViolation, RefusalReason


class Unusable(ValueError):
    """A part of a message is not what was agreed on. The caller adds to the text who sent it."""

    def __init__(self, reason: RefusalReason, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Column:
    """How one array is sent: little-endian, in C order, row after row."""

    label: str
    """What it is, for errors."""
    spec: ArraySpec
    choices: tuple[int, ...] = ()
    """How many values each part of a row can have, counted from 0; empty where any value is possible.

    For floats they are about the first parts alone, which are then whole numbers."""
    _dtype: np.dtype[np.generic] = field(init=False, repr=False, compare=False)
    _sent_as: np.dtype[np.generic] = field(init=False, repr=False, compare=False)
    _row_bytes: int = field(init=False, repr=False, compare=False)
    _bound: npt.NDArray[np.uint64] | None = field(init=False, repr=False, compare=False)
    """Exclusive, shaped as a row."""

    def __post_init__(self) -> None:
        dtype = np.dtype(self.spec.dtype).newbyteorder("<")
        sent_as, bound = dtype, None
        if self.choices and dtype.kind == "f":
            # A float32 holds whole numbers up to 2^24 exactly.
            parts = math.prod(self.spec.shape)
            if len(self.choices) >= parts or not 1 <= min(self.choices) <= max(self.choices) <= 1 << 24:
                raise self._unfit("fewer counts than parts, each from 1 to 2^24")
        elif self.choices:
            if dtype.kind not in "iu" or len(self.choices) != math.prod(self.spec.shape):
                raise self._unfit("whole numbers, and one count for each part")
            if not 1 <= min(self.choices) <= max(self.choices) <= int(np.iinfo(self.spec.dtype).max) + 1:
                raise self._unfit("counts from 1 to the largest number of the type")
            sent_as = np.min_scalar_type(max(self.choices) - 1).newbyteorder("<")
            bound = np.array(self.choices, np.uint64).reshape(self.spec.shape)
        object.__setattr__(self, "_dtype", dtype)
        object.__setattr__(self, "_sent_as", sent_as)
        object.__setattr__(self, "_row_bytes", sent_as.itemsize * math.prod(self.spec.shape))
        object.__setattr__(self, "_bound", bound)

    def _unfit(self, expected: str) -> ContractViolation:
        return ContractViolation(
            f"The {self.label} is {self.spec} with choices {self.choices[:8]}; expected {expected}."
        )

    def encode(self, array: Array, rows: int) -> bytes:
        """The bytes of an array of `rows` rows, or `Unusable`."""
        spec = self.spec
        if array.shape != (rows, *spec.shape) or array.dtype != self._dtype:
            raise Unusable(
                RefusalReason.MALFORMED,
                f"the {self.label} is {array.dtype}{list(array.shape)}; expected {spec.dtype}{[rows, *spec.shape]}",
            )
        if self._bound is None:
            self._require_leading_choices(array)
            return array.tobytes()
        # Read as unsigned, a negative number is larger than every bound.
        self._require_choices(array.view(f"u{array.itemsize}"))
        return array.astype(self._sent_as).tobytes()

    def decode(self, data: bytes, rows: int) -> Array:
        """A read-only array over the bytes themselves (a copy only where actions are widened), or `Unusable`.

        Whether floats are finite is left to the caller, who may have a schema that checks them.
        """
        array = self._sent(data, rows)
        if self._bound is not None:
            self._require_choices(array)
        elif self.choices:
            self._require_leading_choices(array)
        elif self.spec.dtype == "bool" and data.translate(None, b"\0\1"):
            raise Unusable(RefusalReason.OUT_OF_RANGE, f"the {self.label} has bytes that are neither 0 nor 1")
        return self._widened(array)

    def decode_checked(self, data: bytes, rows: int) -> Array:
        """As `decode`, for bytes whose values were checked before; only their number is compared."""
        return self._widened(self._sent(data, rows))

    def _sent(self, data: bytes, rows: int) -> Array:
        if len(data) != rows * self._row_bytes:
            raise Unusable(
                RefusalReason.MALFORMED,
                f"the {self.label} has {len(data)} bytes; expected {rows * self._row_bytes}, "
                f"{rows} rows of {self.spec.dtype}{list(self.spec.shape)} sent as {self._sent_as}",
            )
        array: Array = np.frombuffer(data, self._sent_as)
        return array.reshape(rows, *self.spec.shape) if self.spec.shape else array

    def _widened(self, array: Array) -> Array:
        if self._bound is not None:
            array = array.astype(self._dtype)
            array.flags.writeable = False
        return array

    def _require_leading_choices(self, array: Array) -> None:
        if not self.choices:
            return
        chosen = array[:, : len(self.choices)]
        if not ((chosen >= 0) & (chosen < np.array(self.choices)) & (chosen == np.floor(chosen))).all():
            raise Unusable(
                RefusalReason.OUT_OF_RANGE,
                f"the {self.label} begins with {chosen[:1].tolist()}; there are {self.choices[:8]} choices, counted "
                f"from 0",
            )

    def _require_choices(self, array: Array) -> None:
        # Finding the largest value is faster than comparing each.
        only_choice = len(self.choices) == 1
        if array.size and (array.max() >= self.choices[0] if only_choice else (array >= self._bound).any()):
            raise Unusable(
                RefusalReason.OUT_OF_RANGE,
                f"the {self.label} contains {array.max()}; there are {self.choices[:8]} choices, counted from 0",
            )
