"""Exports a trained policy to a file for other programs, and checks it against the training network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from rl4sys.atomic_files import replace_file
from rl4sys.config import ConfigError
from rl4sys.experience import Array
from rl4sys.experiments.policies.greedy import greedy, is_supported
from rl4sys.experiments.policies.model_parity import model_parity
from rl4sys.experiments.policies.onnx_policy import OnnxPolicy, onnx_model
from rl4sys.experiments.policies.parity import BOUND, NumpyOutputs, Parity, parity
from rl4sys.experiments.policies.trained_policy import TrainedPolicy
from rl4sys.policy import PolicySpec, PortablePolicy, cannot_travel
from rl4sys.policy.portable_policy import SUFFIX

Format: TypeAlias = Literal["rl4sys", "onnx"]
_FORMATS: dict[str, Format] = {"rl4sys": "rl4sys", "onnx": "onnx"}


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that was written and checked."""

    path: Path
    size: int
    """In bytes."""
    parity: Parity
    against: str
    """What it was compared with."""


def format_named(name: str) -> Format:
    """The format of a name, or `ConfigError` with those that there are."""
    if name not in _FORMATS:
        raise ConfigError(f"--format {name}: expected one of {', '.join(_FORMATS)}.")
    return _FORMATS[name]


def usual_name(trained: TrainedPolicy, kind: Format) -> Path:
    """The file that an export goes to where none is named, in the current directory."""
    return Path(f"{trained.name}{SUFFIX if kind == 'rl4sys' else '.onnx'}")


def export_policy(trained: TrainedPolicy, kind: Format, output: Path, bound: float = BOUND) -> Exported:
    """Write the policy, unless what would be written differs from the training network by more than the bound.

    A file of ours carries both policies, an ONNX model the one that `spec_for_onnx` chooses.
    """
    if (reason := cannot_travel(trained.policy.explore)) is not None:
        raise ConfigError(
            f"{trained.name} cannot be exported: {reason}. Train it with operations that travel; "
            f"docs/own_algorithm.md lists them."
        )
    weights, against = _trained_weights(trained)
    output.parent.mkdir(parents=True, exist_ok=True)
    if kind == "onnx":
        spec = spec_for_onnx(trained.policy)
        model = onnx_model(spec, trained.policy)
        checked = parity(spec, weights, OnnxPolicy(model).run)
        checked.require(bound)
        replace_file(output, model)
    else:
        aside = output.with_name(f".{output.name}.unchecked")
        try:
            trained.policy.write(aside)
            checked = _parity_of_file(aside, weights)
            checked.require(bound)
            aside.replace(output)
        finally:
            aside.unlink(missing_ok=True)
    return Exported(output, output.stat().st_size, checked, against)


def spec_for_onnx(policy: PortablePolicy) -> PolicySpec:
    """The policy that explores, if its best action is that of the other: its parameters are those to draw with."""
    if is_supported(policy.explore) and greedy(policy.explore) == greedy(policy.exploit):
        return policy.explore
    return policy.exploit


def _trained_weights(trained: TrainedPolicy) -> tuple[Array, str]:
    if trained.training is not None:
        return trained.training.weights(), "the training network of the checkpoint"
    return trained.policy.weights, "a training network with the weights of the file"


def _parity_of_file(path: Path, weights: Array) -> Parity:
    """The worse of the two policies in a file, as it is read back; of policies that plan, the model that they share."""
    policy = PortablePolicy.read(path)
    if policy.exploit.model is not None:
        return model_parity(policy.exploit, weights, policy.weights)
    specs = {policy.exploit.to_json(): policy.exploit, spec_for_onnx(policy).to_json(): spec_for_onnx(policy)}
    each = [parity(spec, weights, NumpyOutputs(spec, policy.weights)) for spec in specs.values()]
    return max(each, key=lambda found: (found.largest != found.largest, found.largest))
