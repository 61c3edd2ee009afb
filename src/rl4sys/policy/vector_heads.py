"""Heads over vectors of real numbers: stochastic or deterministic, bounded or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from rl4sys.experience import Array, Arrays
from rl4sys.policy.action_spec import BoxAction
from rl4sys.policy.activations import softplus
from rl4sys.policy.noise import normal
from rl4sys.policy.policy_spec import Head, number

Decide = Callable[[Array], tuple[Array, Arrays]]
"""Takes noise, returns the action and what is recorded about it. Arrays may be reused by the next decision."""

_HALF_LOG_TWO_PI = np.float32(0.5 * math.log(2.0 * math.pi))
_ANGLES = slice(1, -1, 2)
"""The uniform numbers of heads that use a pair for each part of the action: the second of each pair, an angle."""


def vector_noise_size(head: Head, box: BoxAction) -> int:
    """How many uniform numbers one decision takes."""
    match head.kind:
        case "gaussian":
            return 2 * box.size
        case "tanh_gaussian":
            return 2 * box.size + len(head.tensors)
        case "perturbed":
            return 2 * box.size + 1
        case "noise_conditioned":
            return 2 * _chances(head) + (box.size + 1 if head.tensors else 0)
    return 0


def compile_vector_head(
    head: Head, box: BoxAction, registers: Mapping[str, Array], tensors: Mapping[str, Array]
) -> Decide | None:
    """The function that turns noise into decisions over these registers; None for a head over choices."""
    inputs = [registers[name] for name in head.inputs]
    parameters = [tensors[name] for name in head.tensors]
    match head.kind:
        case "deterministic":
            squash = SQUASHES.get(str(head.settings.get("squash")))
            return deterministic(inputs[0]) if squash is None else _squashed(inputs[0], box, squash)
        case "gaussian":
            return gaussian(inputs[0], parameters[0])
        case "tanh_gaussian":
            low, high = (number(head.settings, f"log_std_{end}", head.kind) for end in ("low", "high"))
            sample = _tanh_gaussian(inputs[0], inputs[1], box, (np.float32(low), np.float32(high)))
            return _sometimes_uniform(sample, box, parameters[0], _ANGLES) if parameters else sample
        case "perturbed":
            std, epsilon = parameters
            following = head.settings.get("next")
            memory = [*inputs[1:], *([registers[following]] if isinstance(following, str) else [])]
            theta = np.float32(number(head.settings, "theta", head.kind)) if memory else np.float32(1.0)
            return _sometimes_uniform(_perturbed(inputs[0], box, std, memory, theta), box, epsilon, _ANGLES)
        case "noise_conditioned":
            squashed = _squashed(inputs[0], box, np.tanh)
            apart = slice(2 * _chances(head), -1)
            return _sometimes_uniform(squashed, box, parameters[0], apart) if parameters else squashed
    return None


def _chances(head: Head) -> int:
    chance = head.chance
    return 0 if chance is None else chance.shape[0]


def gaussian(mean: Array, log_std: Array) -> Decide:
    """A diagonal Gaussian over real numbers."""

    def decide(noise: Array) -> tuple[Array, Arrays]:
        unit = normal(noise)
        log_prob = -(np.float32(0.5) * np.square(unit) + log_std + _HALF_LOG_TWO_PI).sum(axis=1)
        return mean + np.exp(log_std) * unit, {"log_prob": log_prob}

    return decide


def _tanh_gaussian(mean: Array, log_std: Array, box: BoxAction, bounds: tuple[np.float32, np.float32]) -> Decide:
    """A Gaussian squashed into the bounds, with the change of variables in its stable form."""
    scale, middle = scale_and_middle(box)
    log_scale, log_two, two = np.log(scale), np.float32(math.log(2.0)), np.float32(2.0)

    def decide(noise: Array) -> tuple[Array, Arrays]:
        unit, spread = normal(noise), np.clip(log_std, *bounds)
        raw = mean + np.exp(spread) * unit
        gaussian = np.float32(0.5) * np.square(unit) + spread + _HALF_LOG_TWO_PI
        correction = two * (log_two - raw - softplus(-two * raw)) + log_scale
        return np.tanh(raw) * scale + middle, {"log_prob": -(gaussian + correction).sum(axis=1)}

    return decide


def _perturbed(mean: Array, box: BoxAction, std: Array, memory: list[Array], theta: np.float32) -> Decide:
    """tanh(mean) plus noise, clipped to [−1, 1] and scaled to the bounds.

    Without memory the noise is std · z; with it, the noise continues from that of the last decision, pulled back to
    zero by the fraction theta (an Ornstein–Uhlenbeck process).
    """
    scale, middle = scale_and_middle(box)
    one, keep = np.float32(1.0), np.float32(1.0) - theta

    def decide(noise: Array) -> tuple[Array, Arrays]:
        shift = std * normal(noise)
        if memory:
            before, following = memory
            shift = keep * before + shift
            np.copyto(following, shift)
        return np.clip(np.tanh(mean) + shift, -one, one) * scale + middle, {}

    return decide


def _sometimes_uniform(otherwise: Decide, box: BoxAction, epsilon: Array, uniform: slice) -> Decide:
    """With probability ε a uniform action within the bounds; else the action of the other head.

    The last noise number decides which. Those of the slice make the uniform action, one each.
    """
    scale, middle = scale_and_middle(box)
    log_prob, one, two = -np.log(np.float32(2.0) * scale).sum(dtype=np.float32), np.float32(1.0), np.float32(2.0)

    def decide(noise: Array) -> tuple[Array, Arrays]:
        action, extras = otherwise(noise[:, :-1])
        exploring = noise[:, -1] < epsilon[0]
        if exploring.any():
            anything = (two * noise[:, uniform] - one) * scale + middle
            np.copyto(action, anything, where=exploring[:, None])
            for noted in extras.values():
                np.copyto(noted, log_prob, where=exploring)
        return action, extras

    return decide


def deterministic(value: Array) -> Decide:
    """The numbers themselves, without chance."""
    return lambda noise: (value.copy(), {})


def _squashed(value: Array, box: BoxAction, squash: Callable[[Array], Array]) -> Decide:
    scale, middle = scale_and_middle(box)
    return lambda noise: (squash(value) * scale + middle, {})


def _clipped(value: Array) -> Array:
    return np.clip(value, np.float32(-1.0), np.float32(1.0))


SQUASHES: Mapping[str, Callable[[Array], Array]] = {"tanh": np.tanh, "clip": _clipped}
"""How the setting `squash` brings numbers into [−1, 1], before they are scaled to the bounds."""


def scale_and_middle(box: BoxAction) -> tuple[Array, Array]:
    """Half the range and the middle of each action; refuses bounds that are infinite."""
    low, high = np.array(box.low, np.float32), np.array(box.high, np.float32)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError(
            f"A squashed policy needs finite action bounds; got {box.low} to {box.high}. "
            f"Rescale the environment's actions, or use a Gaussian policy (PPO)."
        )
    return (high - low) / np.float32(2.0), (high + low) / np.float32(2.0)
