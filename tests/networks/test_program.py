import numpy as np
import pytest
import torch

from rl4sys.experience import ArraySpec, StreamKey
from rl4sys.networks import MlpConfig, TorchProgram, categorical, from_spec, orthogonal
from rl4sys.policy import (
    Head,
    KeyedNoise,
    NumpyPolicy,
    Op,
    PolicySpec,
    Program,
    ProgramBuilder,
    UnknownOp,
)

from .specs import mlp, recurrent

SPECS = [mlp(), mlp(layer_norm=True), recurrent()]


@pytest.mark.parametrize("spec", SPECS, ids=["mlp", "layer norm", "recurrent"])
def test_numpy_acts_as_the_module_that_was_trained(spec: PolicySpec) -> None:
    module, parameters = from_spec(spec)
    orthogonal(parameters, {}, torch.Generator().manual_seed(0))
    policy = NumpyPolicy(spec, parameters.flat.numpy())
    state = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    noise = KeyedNoise(0, [StreamKey("c", lane=lane) for lane in range(50)], policy.noise_size)
    decision = policy.act({"state": state}, noise.at(0))
    logits = module({"state": torch.from_numpy(state)})[spec.head.inputs[0]]
    evaluation = categorical(logits, torch.from_numpy(decision.action), None)
    np.testing.assert_allclose(decision.extras["log_prob"], evaluation.log_prob.detach(), atol=1e-6)


def test_memory_goes_through_torch_as_through_numpy() -> None:
    spec = recurrent()
    module, parameters = from_spec(spec)
    orthogonal(parameters, {}, torch.Generator().manual_seed(0))
    policy, noise = NumpyPolicy(spec, parameters.flat.numpy()), np.zeros((2, 1), np.float32)
    state = np.random.default_rng(0).standard_normal((4, 2, 3)).astype(np.float32)
    carry, memory = policy.initial_carry(2), None
    for row in state:
        carry = policy.act({"state": row}, noise, carry).carry
        registers = module({"state": torch.from_numpy(row)}, memory)
        memory = {m.name: registers[m.next] for m in spec.program.carry}
    for name, array in carry.items():
        np.testing.assert_allclose(array, memory[name].detach(), atol=1e-6)


def test_gradients_flow_through_a_recurrent_program() -> None:
    module, parameters = from_spec(recurrent())
    orthogonal(parameters, {}, torch.Generator().manual_seed(0))
    carry = {"first.hidden": torch.ones(2, 4), "second.hidden": torch.ones(2, 5), "second.cell": torch.ones(2, 5)}
    module({"state": torch.ones(2, 3)}, carry)[recurrent().head.inputs[0]].square().sum().backward()
    assert all(view.grad.abs().sum() > 0 for view in parameters.views.values())


def test_an_unknown_op_is_refused_by_name() -> None:
    program = Program((ArraySpec("x", "float32", (1,)),), (Op("dream", ("r0",), ("x",)),), ())
    _, parameters = from_spec(mlp())
    with pytest.raises(UnknownOp, match=r"Torch lacks the ops \['dream'\]"):
        TorchProgram(program, parameters)


def test_a_network_config_writes_its_layers_under_its_name() -> None:
    builder = ProgramBuilder((ArraySpec("x", "float32", (3,)),))
    config = MlpConfig(hidden_dims=(7, 5), activation="relu", layer_norm=True)
    register = config.body(builder, "x", "critic")
    program = builder.program()
    assert builder.shape(register) == (5,)
    assert [op.kind for op in program.ops] == ["linear", "layer_norm", "relu"] * 2
    assert [t.name for t in program.tensors][:4] == [
        "critic.0.weight", "critic.0.bias", "critic.0.norm.gain", "critic.0.norm.bias",
    ]  # fmt: skip


def test_every_activation_of_a_network_config_runs_in_numpy_and_torch() -> None:
    for activation in MlpConfig.model_fields["activation"].annotation.__args__:
        builder = ProgramBuilder((ArraySpec("state", "float32", (3,)),))
        register = MlpConfig(hidden_dims=(4,), activation=activation).body(builder, "state", "actor")
        logits = builder.linear(register, 4, "actor.action")
        spec = PolicySpec(mlp().action, builder.program(), Head("categorical", (logits,)))
        module, parameters = from_spec(spec)
        assert module({"state": torch.ones(1, 3)})[logits].shape == (1, 4)
        NumpyPolicy(spec, parameters.flat.numpy())
