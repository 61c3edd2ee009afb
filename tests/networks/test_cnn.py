from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from rl4sys.experience import ArraySpec
from rl4sys.networks import (
    CnnConfig,
    EnsembleProgram,
    Parameters,
    TorchProgram,
    UnsuitableNetwork,
    from_spec,
    orthogonal,
)
from rl4sys.policy import BoxAction, DiscreteAction, Head, NumpyPolicy, PolicySpec, Program, ProgramBuilder

PIXELS, STATE = ArraySpec("pixels", "uint8", (84, 84, 12)), ArraySpec("state", "float32", (4,))
TINY = CnnConfig(filters=(3, 5), kernels=(3, 2), strides=(2, 1), hidden_dims=(6,))


def written(config: CnnConfig, *seen: ArraySpec, standardize: bool = False) -> tuple[ProgramBuilder, str]:
    builder = ProgramBuilder(seen)
    features = config.features(builder, "actor", standardize=standardize)
    return builder, config.body(builder, features, "actor")


def kinds(program: Program) -> list[str]:
    return [op.kind for op in program.ops]


def test_the_default_is_the_encoder_of_deep_q_learning_on_atari() -> None:
    builder, register = written(CnnConfig(), PIXELS)
    program = builder.program()
    assert builder.shape(register) == (512,)
    convolutions = ["conv2d", "relu"] * 3
    assert kinds(program) == ["scale", "channels_first", *convolutions, "flatten", "linear", "relu"]
    assert [tensor.shape for tensor in program.tensors if tensor.name.endswith("weight")] == [
        (32, 12, 8, 8),
        (64, 32, 4, 4),
        (64, 64, 3, 3),
        (3136, 512),
    ]


def test_every_image_has_its_own_kernels_and_vectors_are_concatenated_after_them() -> None:
    left, right = (ArraySpec(side, "uint8", (8, 10, 1)) for side in ("left", "right"))
    builder, _ = written(TINY, left, STATE, right, standardize=True)
    program = builder.program()
    assert [tensor.name for tensor in program.tensors if tensor.name.endswith(("weight", "mean"))] == [
        *("actor.left.0.weight", "actor.left.1.weight", "state.mean"),
        *("actor.right.0.weight", "actor.right.1.weight", "actor.0.weight"),
    ]
    (concat,) = (op for op in program.ops if op.kind == "concat")
    assert builder.shape(concat.outputs[0]) == (2 * (5 * 2 * 3) + 4,)


def test_numpy_and_torch_give_equal_outputs_for_images_and_vectors() -> None:
    picture = ArraySpec("picture", "float32", (8, 9, 2))
    builder, body = written(TINY, ArraySpec("pixels", "uint8", (9, 8, 3)), STATE, picture, standardize=True)
    mean = builder.linear(body, 2, "actor.action")
    spec = PolicySpec(BoxAction((-9.0,) * 2, (9.0,) * 2), builder.program(), Head("deterministic", (mean,)))
    module, parameters = from_spec(spec)
    orthogonal(parameters, {}, torch.Generator().manual_seed(0))
    rng = np.random.default_rng(0)
    shown = {spec.name: rng.normal(size=(7, *spec.shape)).astype(np.float32) for spec in (STATE, picture)}
    shown["pixels"] = rng.integers(0, 256, (7, 9, 8, 3), np.uint8)
    with torch.no_grad():
        expected = module({name: torch.from_numpy(array) for name, array in shown.items()})[mean]
    for rows in (slice(7), slice(3, 4)):
        seen = {name: array[rows] for name, array in shown.items()}
        policy = NumpyPolicy(spec, parameters.flat.numpy())
        action = policy.act(seen, np.zeros((len(seen["state"]), 0), np.float32)).action
        np.testing.assert_allclose(action, expected[rows], rtol=1e-5, atol=1e-5)


def test_images_can_have_their_channels_first() -> None:
    builder, _ = written(CnnConfig(channels="first"), ArraySpec("pixels", "uint8", (4, 84, 84)))
    assert "channels_first" not in kinds(builder.program())
    assert builder.program().tensors[0].shape == (32, 4, 8, 8)


@pytest.mark.parametrize(("config", "least"), [(CnnConfig(), 36), (CnnConfig(padding=1), 10), (TINY, 5)])
def test_images_smaller_than_the_convolutions_allow_are_refused(config: CnnConfig, least: int) -> None:
    written(config, ArraySpec("pixels", "uint8", (least, least, 3)))
    reason = rf"'pixels' is {least - 1} pixels high and {least} wide; .* network\.actor need at least {least} × {least}"
    with pytest.raises(UnsuitableNetwork, match=reason):
        written(config, ArraySpec("pixels", "uint8", (least - 1, least, 3)))


def test_a_cnn_without_an_image_is_refused_with_a_hint_at_mlp() -> None:
    with pytest.raises(UnsuitableNetwork, match=r"none of state: float32\[4\] is an image.*Use type: mlp"):
        written(CnnConfig(), STATE)


def test_an_algorithm_that_flattens_images_is_refused_with_the_function_to_call() -> None:
    builder = ProgramBuilder((PIXELS,))
    with pytest.raises(UnsuitableNetwork, match=r"network\.features\(builder, 'actor', standardize=…\)"):
        CnnConfig().body(builder, builder.features(standardize=False), "actor")


def test_every_convolution_has_filters_a_kernel_and_a_stride() -> None:
    with pytest.raises(ValidationError, match="have 3 entries, 2 and 3; give each one for every convolution"):
        CnnConfig(kernels=(8, 4))


def test_the_spec_of_an_image_policy_survives_a_round_trip_through_text() -> None:
    builder, body = written(TINY, PIXELS)
    spec = PolicySpec(DiscreteAction(3), builder.program(), Head("categorical", (builder.linear(body, 3, "last"),)))
    assert PolicySpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize("channels", ["last", "first"])
def test_convolutions_run_with_the_channels_of_a_pixel_side_by_side(channels: Literal["last", "first"]) -> None:
    shape = (9, 8, 3) if channels == "last" else (3, 9, 8)
    builder, _ = written(TINY.model_copy(update={"channels": channels}), ArraySpec("pixels", "uint8", shape))
    program = builder.program()
    parameters = Parameters(program.tensors, torch.device("cpu"))
    orthogonal(parameters, {}, torch.Generator().manual_seed(0))
    images = torch.randint(0, 256, (5, *shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    registers = TorchProgram(program, parameters)({"pixels": images})
    planes = images.float().permute(0, 3, 1, 2) if channels == "last" else images.float()
    kernel, bias = (parameters.views[f"actor.pixels.0.{name}"] for name in ("weight", "bias"))
    expected = torch.nn.functional.conv2d(planes.contiguous() / 255.0, kernel, bias, 2)
    convolved = next(registers[op.outputs[0]] for op in program.ops if op.kind == "conv2d")
    assert convolved.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(convolved, expected, rtol=1e-5, atol=1e-6)


def test_activations_in_place_change_neither_results_nor_gradients() -> None:
    builder, output = written(TINY, ArraySpec("pixels", "uint8", (9, 8, 3)))
    program, found = builder.program(), []
    images = torch.randint(0, 256, (5, 9, 8, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    for is_plain in (True, False):
        parameters = Parameters(program.tensors, torch.device("cpu"))
        orthogonal(parameters, {}, torch.Generator().manual_seed(0))
        in_place = EnsembleProgram(program, parameters.views, fused=False, keep=[output])
        result = (TorchProgram(program, parameters) if is_plain else in_place)({"pixels": images})[output]
        result.square().sum().backward()
        found.append((result, parameters.gradient))
    for plain, other in zip(*found, strict=True):
        torch.testing.assert_close(other, plain, rtol=0.0, atol=0.0)
