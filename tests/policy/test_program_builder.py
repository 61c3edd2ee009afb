import numpy as np
import pytest

from rl4sys.experience import ArraySpec
from rl4sys.policy import MASK, BoxAction, Head, NumpyPolicy, PolicySpec, ProgramBuilder, layout_of


def builder_of(*inputs: tuple[str, str, tuple[int, ...]]) -> ProgramBuilder:
    return ProgramBuilder(tuple(ArraySpec(*array) for array in inputs))


def run(builder: ProgramBuilder, register: str, weights: list[float], **observation: list) -> list:
    (size,) = builder.shape(register)
    program = builder.program()
    spec = PolicySpec(BoxAction((0.0,) * size, (1.0,) * size), program, Head("deterministic", (register,)))
    arrays = {array.name: np.array([observation[array.name]], array.dtype) for array in program.inputs}
    policy = NumpyPolicy(spec, np.array(weights, np.float32))
    return policy.act(arrays, np.zeros((1, 0), np.float32)).action[0].tolist()


def test_a_linear_layer_declares_its_two_tensors_and_its_shape() -> None:
    builder = builder_of(("x", "float32", (3,)))
    register = builder.linear("x", 2, "actor.0")
    assert builder.shape(register) == (2,)
    assert layout_of(builder.program()).shapes == (("actor.0.weight", (3, 2)), ("actor.0.bias", (2,)))


def test_two_ops_may_share_a_tensor() -> None:
    builder = builder_of(("x", "float32", (2,)))
    twice = builder.linear(builder.linear("x", 2, "same"), 2, "same")
    assert len(builder.program().tensors) == 2
    assert run(builder, twice, [0, 1, 2, 0, 1, 0], x=[1, 1]) == [3, 3]


def test_a_shared_tensor_has_one_shape() -> None:
    builder = builder_of(("x", "float32", (2,)))
    with pytest.raises(ValueError, match=r"'same.weight' has shape \(2, 2\); it cannot also have \(2, 3\)"):
        builder.linear(builder.linear("x", 2, "same"), 3, "same")


def test_features_join_everything_but_the_mask() -> None:
    builder = builder_of(("image", "uint8", (1, 2)), (MASK, "bool", (2,)), ("n", "int64", ()), ("x", "float32", (1,)))
    features = builder.features(standardize=False)
    assert builder.shape(features) == (4,)
    observation = {"image": [[0, 255]], MASK: [True, False], "n": 7, "x": [0.5]}
    assert run(builder, features, [], **observation) == [0, 1, 7, 0.5]


def test_features_standardize_all_but_bytes_and_clip() -> None:
    builder = builder_of(("image", "uint8", (1,)), ("x", "float32", (2,)))
    features = builder.features(standardize=True, clip=2.0)
    assert [tensor.name for tensor in builder.program().tensors] == ["x.mean", "x.scale"]
    assert run(builder, features, [1, 1, 0.5, 10], image=[255], x=[2, -9]) == [1, 0.5, -2]


def test_integer_observations_become_float_features() -> None:
    builder = builder_of(("n", "int64", (2,)))
    register = builder.linear(builder.features(standardize=False), 1, "out")
    assert run(builder, register, [1, 10, 0.5], n=[3, 4]) == [43.5]


def test_a_mask_alone_is_not_an_observation() -> None:
    with pytest.raises(ValueError, match="no observations but"):
        builder_of((MASK, "bool", (2,))).features(standardize=False)


def test_an_observation_may_have_the_name_of_a_register() -> None:
    builder = builder_of(("r0", "float32", (1,)), ("r1", "float32", (1,)))
    doubled = builder.op("add", ("r1", "r1"), (1,))
    total = builder.op("add", (doubled, "r0"), (1,))
    assert run(builder, total, [], r0=[1], r1=[10]) == [21]


def test_two_recurrent_layers_cannot_share_a_memory() -> None:
    builder = builder_of(("x", "float32", (2,)))
    with pytest.raises(ValueError, match=r"Register 'core\.hidden' exists already"):
        builder.gru(builder.gru("x", 2, "core"), 2, "core")


def test_a_layer_over_bytes_is_refused_with_what_to_do() -> None:
    builder = builder_of(("image", "uint8", (2,)))
    with pytest.raises(ValueError, match="'linear' reads 'image' of uint8; pass it through 'scale'"):
        run(builder, builder.linear("image", 1, "out"), [0, 0, 0], image=[1, 2])
