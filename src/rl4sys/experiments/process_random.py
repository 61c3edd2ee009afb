"""The global random states of Python, numpy and torch: RL4Sys uses none of them, but a plug-in may."""

from __future__ import annotations

import random

import numpy as np
import torch

from rl4sys.state import State


def process_random_state() -> State:
    """The global states of Python, numpy, torch and every CUDA device."""
    version, words, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    return {
        "python": {"version": version, "words": list(words), "gauss": gauss},
        "numpy": {
            "kind": str(kind),
            "keys": np.asarray(keys),
            "position": int(position),
            "has_gauss": int(has_gauss),
            "cached": float(cached),
        },
        "torch": torch.get_rng_state().numpy(),
        "cuda": {str(i): state.numpy() for i, state in enumerate(_cuda_states())},
    }


def restore_process_random(state: State) -> None:
    """Put the global states back."""
    python, numpy_state = state["python"], state["numpy"]
    random.setstate((python["version"], tuple(python["words"]), python["gauss"]))
    np.random.set_state(
        (
            numpy_state["kind"],
            numpy_state["keys"],
            numpy_state["position"],
            numpy_state["has_gauss"],
            numpy_state["cached"],
        )
    )
    torch.set_rng_state(torch.from_numpy(state["torch"]))
    if torch.cuda.is_available():
        # The machine may have fewer devices than the one that saved.
        for index, device_state in list(state["cuda"].items())[: torch.cuda.device_count()]:
            torch.cuda.set_rng_state(torch.from_numpy(device_state), int(index))


def _cuda_states() -> list[torch.Tensor]:
    return torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
