"""Networks by name: encoders, memory behind them, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl4sys.config import ConfigError
from rl4sys.experience import ArraySpec
from rl4sys.networks import (
    NETWORKS,
    CnnConfig,
    GruConfig,
    LstmConfig,
    MixedConfig,
    MlpConfig,
    NetworkConfig,
    TransformerConfig,
    UnsuitableNetwork,
    from_spec,
    orthogonal,
)
from rl4sys.policy import BoxAction, Head, NumpyPolicy, PolicySpec, Program, ProgramBuilder

PIXELS, STATE = ArraySpec("pixels", "uint8", (9, 9, 2)), ArraySpec("state", "float32", (4,))
TINY = CnnConfig(filters=(3,), kernels=(3,), strides=(2,), hidden_dims=(6,))
NETWORKS_OVER_BOTH = {
    "mixed": MixedConfig(encoders={"pixels": TINY, "state": MlpConfig(hidden_dims=(5,))}),
    "mixed with memory": MixedConfig(encoders={"pixels": TINY, "state": GruConfig(units=5)}),
    "lstm after a cnn": LstmConfig(encoder=TINY, units=5),
    "gru after a mixed one": GruConfig(encoder=MixedConfig(encoders={"pixels": TINY}), units=5, layers=2),
    "transformer after a cnn": TransformerConfig(encoder=TINY, units=8, heads=2, window=2),
    "impala": CnnConfig.model_validate({"preset": "impala", "filters": (2, 3, 3), "hidden_dims": (6,)}),
}


def policy_of(config: NetworkConfig) -> PolicySpec:
    builder = ProgramBuilder((PIXELS, STATE))
    body = config.body(builder, config.features(builder, "actor", standardize=True), "actor")
    mean = builder.linear(body, 2, "actor.action")
    return PolicySpec(BoxAction((-9.0,) * 2, (9.0,) * 2), builder.program(), Head("deterministic", (mean,)))


def kinds(program: Program) -> list[str]:
    return [op.kind for op in program.ops]


@pytest.mark.parametrize("config", NETWORKS_OVER_BOTH.values(), ids=NETWORKS_OVER_BOTH)
def test_numpy_and_torch_agree_over_several_steps(config: NetworkConfig) -> None:
    spec, rng = policy_of(config), np.random.default_rng(0)
    module, parameters = from_spec(spec)
    orthogonal(parameters, {}, torch.Generator().manual_seed(0))
    policy = NumpyPolicy(spec, parameters.flat.numpy())
    carry, seen = policy.initial_carry(3), {}
    for _ in range(3):
        seen["pixels"] = rng.integers(0, 256, (3, *PIXELS.shape), np.uint8)
        seen["state"] = rng.normal(size=(3, 4)).astype(np.float32)
        tensors, memory = ({n: torch.from_numpy(a) for n, a in each.items()} for each in (seen, carry))
        with torch.no_grad():
            expected = module(tensors, memory)
        decision = policy.act(seen, np.zeros((3, 0), np.float32), carry)
        np.testing.assert_allclose(decision.action, expected[spec.head.inputs[0]], rtol=1e-4, atol=1e-5)
        carry = {name: array.copy() for name, array in decision.carry.items()}


@pytest.mark.parametrize("config", NETWORKS_OVER_BOTH.values(), ids=NETWORKS_OVER_BOTH)
def test_a_network_says_truly_whether_it_has_memory(config: NetworkConfig) -> None:
    assert config.has_memory == bool(policy_of(config).program.carry)


@pytest.mark.parametrize("config", NETWORKS_OVER_BOTH.values(), ids=NETWORKS_OVER_BOTH)
def test_a_network_is_written_to_a_file_and_read_back(config: NetworkConfig) -> None:
    assert NETWORKS.parse(NETWORKS.dump(config)) == config


def test_an_encoder_of_an_array_that_is_not_observed_is_refused() -> None:
    config = MixedConfig(encoders={"camera": TINY})
    with pytest.raises(UnsuitableNetwork, match="names camera, and the observation has pixels, state"):
        policy_of(config)


def test_the_residual_network_has_two_blocks_after_each_convolution() -> None:
    config = CnnConfig.model_validate({"preset": "impala"})
    assert (config.filters, config.residual_blocks, config.hidden_dims) == ((16, 32, 32), 2, (256,))
    program = policy_of(config).program
    assert kinds(program).count("conv2d") == 3 * (1 + 2 * 2)
    assert kinds(program).count("add") == 3 * 2


def test_memories_follow_layers_in_the_order_of_the_settings() -> None:
    builder = ProgramBuilder((STATE,))
    LstmConfig(hidden_dims=(8,), units=6, layers=2).body(builder, "state", "actor")
    assert kinds(builder.program()) == ["linear", "tanh", "lstm", "lstm"]
    assert [memory.shape for memory in builder.program().carry] == [(6,)] * 4


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"units": 6, "heads": 4}, "4 do not divide 6 units equally"),
        ({"window": 1_025, "units": 64, "layers": 2}, "make a carry of 1.0 MB.*at most 1 MB is allowed. Lower window"),
    ],
)
def test_a_transformer_whose_memory_does_not_fit_is_refused(settings: dict[str, int], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        NETWORKS.parse({"type": "transformer", **settings})
