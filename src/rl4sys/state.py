"""States of components for saving: nested names with arrays and plain values at the leaves."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

State: TypeAlias = Mapping[str, Any]
"""Leaves are arrays, strings, numbers, booleans, None, or lists of these; every other value is a `State` itself."""

_ARRAY = "$array"
"""Marks the position of an array among plain values."""


class StateMismatch(ValueError):
    """A saved state does not fit the component that should restore it."""


def require(state: State, *names: str) -> None:
    """Raise `StateMismatch`, with the names, if a saved state has missing or unknown parts."""
    missing, surplus = set(names) - state.keys(), state.keys() - set(names)
    if missing or surplus:
        raise StateMismatch(
            f"The saved state does not fit: missing {sorted(missing)}, unknown {sorted(surplus)}. "
            f"It was written by another version of this component; resume with that version."
        )


def generator_state(rng: np.random.Generator) -> State:
    """The state of a numpy generator, as names and values."""
    return dict(rng.bit_generator.state)


def restore_generator(rng: np.random.Generator, state: Any) -> None:
    """Restore a numpy generator to a state from `generator_state`."""
    rng.bit_generator.state = state


def split(state: State) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Plain values that fit JSON, and the arrays by their path; in the former each array is replaced by its path."""
    arrays: dict[str, npt.NDArray[Any]] = {}

    def plain(value: Any, path: str) -> Any:
        if isinstance(value, Mapping):
            return {_name(name, path): plain(part, f"{path}/{name}") for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [plain(part, f"{path}/{place}") for place, part in enumerate(value)]
        if isinstance(value, np.ndarray):
            # Names may contain slashes, so two paths can look alike.
            unique = path if path not in arrays else f"{path}#{len(arrays)}"
            arrays[unique] = value
            return {_ARRAY: unique}
        return value.item() if isinstance(value, np.generic) else value

    return {_name(name, ""): plain(part, name) for name, part in state.items()}, arrays


def join(tree: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> State:
    """The inverse of `split`; tuples become lists."""

    def whole(value: Any) -> Any:
        if isinstance(value, Mapping):
            if _ARRAY in value:
                return arrays[value[_ARRAY]]
            return {name: whole(part) for name, part in value.items()}
        return [whole(part) for part in value] if isinstance(value, list) else value

    return {name: whole(part) for name, part in tree.items()}


def to_text(state: State) -> str:
    """A state as one line of JSON, arrays in base64, to send it to another process."""
    tree, arrays = split(state)
    encoded = {
        path: [array.dtype.str, list(array.shape), base64.b64encode(array.tobytes()).decode()]
        for path, array in arrays.items()
    }
    return json.dumps({"tree": tree, "arrays": encoded})


def from_text(text: str) -> State:
    """The inverse of `to_text`."""
    raw = json.loads(text)
    arrays = {
        path: np.frombuffer(bytearray(base64.b64decode(data)), dtype).reshape(shape)
        for path, (dtype, shape, data) in raw["arrays"].items()
    }
    return join(raw["tree"], arrays)


def digest(state: State) -> str:
    """SHA-256 over every name, value, dtype, shape and byte of a state: equal states, equal digests."""
    tree, arrays = split(state)
    sha = hashlib.sha256(json.dumps(tree, sort_keys=True).encode())
    for path in sorted(arrays):
        array = arrays[path]
        sha.update(f"{path}:{array.dtype.str}:{array.shape}:".encode())
        sha.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return sha.hexdigest()


def _name(name: object, path: str) -> str:
    """The name itself; JSON would silently turn any other key into a string."""
    if not isinstance(name, str) or name == _ARRAY:
        raise StateMismatch(f"The state at '{path or '/'}' has the name {name!r}; use other texts as names.")
    return name
