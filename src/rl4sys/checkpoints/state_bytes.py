"""A state in one piece of bytes, to be sent or logged: a line of JSON, then safetensors. Nothing in it is executed."""

from __future__ import annotations

import json

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from rl4sys.state import State, StateMismatch, join, split


def encode_state(state: State) -> bytes:
    """The state as bytes."""
    tree, arrays = split(state)
    tensors: bytes = save_tensors({name: np.asarray(array, order="C") for name, array in arrays.items()})
    return json.dumps(tree).encode() + b"\n" + tensors


def decode_state(data: bytes) -> State:
    """The state that `encode_state` wrote, or `StateMismatch`."""
    line, _, tensors = data.partition(b"\n")
    try:
        state = join(json.loads(line), load_tensors(tensors))
    except (ValueError, KeyError, TypeError, SafetensorError, RecursionError) as error:
        raise StateMismatch(f"{len(data)} bytes are not a saved state: {type(error).__name__}: {error}.") from error
    if not isinstance(state, dict):
        raise StateMismatch(f"{len(data)} bytes are a {type(state).__name__}, not a saved state.")
    return state
