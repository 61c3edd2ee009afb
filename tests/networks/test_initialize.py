import math

import pytest
import torch

from rl4sys.experience import ArraySpec
from rl4sys.networks import Parameters, from_spec, orthogonal, uniform_fan_in
from rl4sys.policy import ProgramBuilder, Tensor

from .specs import mlp, recurrent


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def layers(*shapes: tuple[int, ...]) -> Parameters:
    tensors = [Tensor(f"{i}.{part}", s) for i, shape in enumerate(shapes)
               for part, s in (("weight", shape), ("bias", shape[-1:]))]  # fmt: skip
    return Parameters(tensors, torch.device("cpu"))


@pytest.mark.parametrize("shape", [(6, 6), (3, 8), (8, 3)])
def test_orthogonal_matrices_have_equal_singular_values_of_the_layers_gain(shape: tuple[int, int]) -> None:
    made = layers(shape, shape)
    orthogonal(made, {"1": 0.01}, generator())
    for layer, gain in (("0", math.sqrt(2.0)), ("1", 0.01)):
        values = torch.linalg.svdvals(made.views[f"{layer}.weight"].detach())
        torch.testing.assert_close(values, torch.full((min(shape),), gain), rtol=1e-5, atol=1e-7)
        assert made.views[f"{layer}.bias"].abs().max() == 0


def test_the_filters_of_orthogonal_kernels_are_orthogonal() -> None:
    made = layers((6, 2, 3, 3))
    orthogonal(made, {}, generator())
    filters = made.views["0.weight"].detach().flatten(1)
    torch.testing.assert_close(filters @ filters.T, 2.0 * torch.eye(6), rtol=1e-5, atol=1e-6)


def test_kernels_over_sequences_are_drawn_as_one_matrix() -> None:
    tensors = [Tensor("c.kernel", (6, 2, 3)), Tensor("c.bias", (6,))]
    made = Parameters(tensors, torch.device("cpu"))
    orthogonal(made, {}, generator())
    filters = made.views["c.kernel"].detach().flatten(1)
    torch.testing.assert_close(filters @ filters.T, 2.0 * torch.eye(6), rtol=1e-5, atol=1e-6)
    uniform_fan_in(made, generator())
    assert 0.0 < made.views["c.kernel"].abs().max() <= 1 / math.sqrt(6)
    assert 0.0 < made.views["c.bias"].abs().max() <= 1 / math.sqrt(6)


def test_norms_and_statistics_start_as_the_identity() -> None:
    for initialize in (lambda p: orthogonal(p, {}, generator()), lambda p: uniform_fan_in(p, generator())):
        _, made = from_spec(mlp(layer_norm=True))
        initialize(made)
        assert made.views["actor.0.norm.gain"].tolist() == [1.0] * 5
        assert made.views["actor.0.norm.bias"].tolist() == [0.0] * 5
        assert made.views["state.scale"].tolist() == [1.0] * 3
        assert made.views["state.mean"].tolist() == [0.0] * 3


def test_recurrent_layers_do_not_start_at_zero() -> None:
    for initialize in (lambda p: orthogonal(p, {}, generator()), lambda p: uniform_fan_in(p, generator())):
        _, made = from_spec(recurrent())
        initialize(made)
        weights = [view.detach() for name, view in made.views.items() if name.endswith("weight")]
        assert min(float(view.abs().sum()) for view in weights) > 0


def test_uniform_layers_fill_their_bounds_and_stay_within() -> None:
    made = layers((100, 300))
    uniform_fan_in(made, generator())
    for part in ("weight", "bias"):
        values = made.views[f"0.{part}"].detach()
        assert 0.098 < values.abs().max() <= 0.1
        assert values.std() == pytest.approx(0.1 / math.sqrt(3.0), rel=0.1)


def test_a_kernel_counts_all_inputs_of_one_filter() -> None:
    made = layers((64, 4, 5, 5))
    uniform_fan_in(made, generator())
    assert 0.098 < made.views["0.weight"].detach().abs().max() <= 0.1


def test_the_generator_decides_the_values() -> None:
    made = [layers((4, 4)) for _ in range(3)]
    for parameters, seed in zip(made, (1, 1, 2), strict=True):
        orthogonal(parameters, {}, generator(seed))
    assert torch.equal(made[0].flat, made[1].flat)
    assert not torch.equal(made[0].flat, made[2].flat)


def test_values_are_those_that_torch_draws_on_the_cpu() -> None:
    drawn = layers((4, 6), (6, 2))
    orthogonal(drawn, {"1": 0.5}, generator(3))
    expected = generator(3)
    for layer, shape, gain in (("0", (4, 6), math.sqrt(2.0)), ("1", (6, 2), 0.5)):
        values = torch.nn.init.orthogonal_(torch.empty(shape), gain, generator=expected)
        assert torch.equal(drawn.views[f"{layer}.weight"], values)
    uniform_fan_in(drawn, generator(3))
    assert torch.equal(drawn.views["0.weight"], torch.empty(4, 6).uniform_(-0.5, 0.5, generator=generator(3)))


def test_parameters_of_another_device_take_from_a_generator_of_the_cpu_what_those_of_the_cpu_take() -> None:
    shape = Tensor("0.weight", (4, 6))
    for initialize in (lambda p, g: orthogonal(p, {}, g), uniform_fan_in):
        used = [generator(), generator()]
        for device, source in zip(("cpu", "meta"), used, strict=True):
            initialize(Parameters([shape], torch.device(device)), source)
        assert torch.equal(used[0].get_state(), used[1].get_state())


@pytest.mark.parametrize(("kind", "gates"), [("lstm", 4), ("gru", 3)])
def test_recurrent_layers_start_with_gates_that_keep_most_of_the_memory(kind: str, gates: int) -> None:
    builder = ProgramBuilder((ArraySpec("seen", "float32", (3,)),))
    getattr(builder, kind)("seen", 5, "memory")
    parameters = Parameters(builder.program().tensors, torch.device("cpu"))
    orthogonal(parameters, {}, torch.Generator().manual_seed(0))
    bias = parameters.views["memory.input_bias"].detach().reshape(gates, 5)
    assert bias.sum(1).tolist() == [0.0, 5.0, *[0.0] * (gates - 2)]
