"""Compares the model of an exported policy that plans with the trained one."""

from __future__ import annotations

import numpy as np
import torch

from rl4sys.experience import Array
from rl4sys.experiments.policies.parity import Parity, largest_difference
from rl4sys.networks import Parameters, TorchProgram
from rl4sys.policy import PolicySpec, layout_of
from rl4sys.policy.model_runtime import ModelRuntime

_ROWS, _STEPS = 256, 4


def model_parity(spec: PolicySpec, trained: Array, exported: Array, seed: int = 0) -> Parity:
    """Predict from random states and actions, in torch with the trained weights and in numpy with the exported ones.

    Plans follow from predictions, and two equal models plan alike.
    """
    model, reward = spec.model, str(spec.head.settings["reward"])
    if model is None:
        raise ValueError(f"A head of kind '{spec.head.kind}' has no model to compare.")
    parameters = Parameters(spec.program.tensors, torch.device("cpu"))
    with torch.no_grad():
        parameters.flat.copy_(torch.from_numpy(np.array(trained, np.float32)))
    network = TorchProgram(model, parameters)
    views = layout_of(spec.program).views(np.array(exported, np.float32))
    runtime, rng = ModelRuntime(model, reward, views, _ROWS), np.random.default_rng(seed)
    runtime.start([rng.standard_normal((_ROWS, *memory.shape), np.float32) for memory in model.carry])
    worst, where = 0.0, reward
    for step in range(_STEPS):
        runtime.action[...] = rng.uniform(-1.0, 1.0, runtime.action.shape)
        carry = {m.name: torch.from_numpy(s.copy()) for m, s in zip(model.carry, runtime.state, strict=True)}
        drawn, inputs = np.random.default_rng([seed, step]), {model.inputs[0].name: runtime.action.copy()}
        inputs |= {chance.name: _draw(chance.distribution, chance.size, drawn) for chance in model.chance}
        with torch.no_grad():
            registers = network({name: torch.from_numpy(array) for name, array in inputs.items()}, carry)
        runtime.step(np.random.default_rng([seed, step]))
        found = {reward: runtime.reward[:, None]} | dict(
            zip((memory.next for memory in model.carry), runtime.state, strict=True)
        )
        for name, values in found.items():
            apart = largest_difference(registers[name].numpy(), values)
            if not apart <= worst:
                worst, where = apart, name
    return Parity(worst, where, _ROWS * _STEPS)


def _draw(distribution: str, size: int, generator: np.random.Generator) -> Array:
    """The numbers that the runtime draws from an equal generator."""
    if distribution == "normal":
        return generator.standard_normal((_ROWS, size), np.float32)
    return generator.random((_ROWS, size), np.float32)
