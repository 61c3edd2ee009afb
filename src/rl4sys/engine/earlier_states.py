"""Reads the states of algorithms that versions before 0.2 saved, so that their runs and learners stay usable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rl4sys.state import State


def is_earlier(state: State) -> bool:
    """Whether an algorithm of a version before 0.2 saved this state."""
    return "optimizers" not in state


def converted(state: State, names: list[str], noise: Any) -> State:
    """The state as `TrainState` saves it now, for optimizers of these names; `noise` where none was saved."""
    optimizers: dict[str, State] = {}
    targets: dict[str, Any] = {}
    for name in names:
        part = _part(state, name, names)
        adam = part["adam"]
        optimizers[name] = {"parameters": part["parameters"], **adam}
        if "targets" in part:
            targets[f"{name}.target"] = part["targets"]
    return {
        "optimizers": optimizers,
        "targets": targets,
        "generators": {"shuffle": state["shuffle"]} if "shuffle" in state else {},
        "noise": state["noise"]["generator"] if "noise" in state else noise,
    }


def _part(state: State, name: str, names: list[str]) -> Mapping[str, Any]:
    """Parameters, optimizer and target of one network."""
    if name == "log_alpha":
        return _temperature(state["temperature"])
    if isinstance(state.get(name), Mapping):
        part: Mapping[str, Any] = state[name]
        return part
    if "target" in state:
        return {"parameters": state["parameters"], "targets": state["target"], "adam": state["adam"]}
    if names == ["actor", "critic"]:
        # PPO kept both networks in one vector, the actor first, with an optimizer for each.
        size = len(state["adam"]["first_moment"])
        rows = slice(0, size) if name == "actor" else slice(size, None)
        return {
            "parameters": state["parameters"][rows],
            "adam": state["adam" if name == "actor" else "critic_adam"],
        }
    return {"parameters": state["parameters"], "adam": state["adam"]}


def _temperature(state: State) -> Mapping[str, Any]:
    """Learned as plain numbers then, as a tensor now."""
    steps, first, second = state["adam"]
    single = np.array([first], np.float32), np.array([second], np.float32)
    return {
        "parameters": np.array([state["log_alpha"]], np.float32),
        "adam": {"steps": int(steps), "first_moment": single[0], "second_moment": single[1]},
    }
