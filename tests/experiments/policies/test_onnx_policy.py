from __future__ import annotations

import importlib

import numpy as np
import pytest

from conformance.golden import EPISODES, HEADS, OPS, Golden
from networks.test_candidates import observed, policy, weights
from policy.specs import mlp, recurrent, weights_for
from rl4sys.experience import Array, ArraySpec
from rl4sys.experiments.policies.greedy import UnsupportedHead, greedy, parameters
from rl4sys.experiments.policies.onnx_graph import OnnxUnavailable
from rl4sys.experiments.policies.onnx_ops import EMITTERS
from rl4sys.experiments.policies.onnx_policy import OnnxPolicy, onnx_model
from rl4sys.experiments.policies.parity import NumpyOutputs, parity
from rl4sys.policy import (
    COMPILERS,
    DiscreteAction,
    Head,
    NumpyPolicy,
    PolicySpec,
    PortablePolicy,
    Program,
    ProgramBuilder,
    UnknownOp,
)
from rl4sys.policy.policy_spec import HeadKind

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def portable(spec: PolicySpec, weights: Array) -> PortablePolicy:
    return PortablePolicy(spec, spec, weights, version=3, steps=100)


def model_of(case: Golden) -> OnnxPolicy:
    return OnnxPolicy(onnx_model(case.spec, portable(case.spec, case.arrays["weights"])))


def test_every_op_of_the_runtime_has_an_onnx_form() -> None:
    assert EMITTERS.keys() == COMPILERS.keys()


@pytest.mark.parametrize("name", OPS)
def test_every_op_gives_its_golden_result(name: str) -> None:
    case = OPS[name]
    outputs = model_of(case).run(case.registers(), case.group("carry"))
    np.testing.assert_allclose(outputs["action"], case.arrays["action"], rtol=1e-5, atol=1e-5)
    for memory, expected in case.group("next_carry").items():
        np.testing.assert_allclose(outputs[f"next.{memory}"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name, case in HEADS.items() if case.spec.head.kind == "deterministic"])
def test_heads_without_chance_give_their_golden_actions(name: str) -> None:
    case = HEADS[name]
    action = model_of(case).run(case.group("observation"), case.group("carry"))["action"]
    np.testing.assert_allclose(action, case.arrays["action"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", HEADS)
def test_every_head_gives_the_best_action_and_its_parameters(name: str) -> None:
    case = HEADS[name]
    found = parity(case.spec, case.arrays["weights"], model_of(case).run)
    assert found.largest < 1e-6


@pytest.mark.parametrize("name", HEADS)
def test_the_best_action_is_what_the_numpy_runtime_decides(name: str) -> None:
    spec, arrays = greedy(HEADS[name].spec), HEADS[name].arrays
    rows = 64
    rng = np.random.default_rng(0)
    observation = {n: a[:rows] for n, a in HEADS[name].group("observation").items()}
    for array in spec.observation:
        observation.setdefault(array.name, rng.standard_normal((rows, *array.shape)).astype(np.float32))
    expected = NumpyPolicy(spec, arrays["weights"]).act(observation, np.zeros((rows, 0), np.float32)).action
    carry = {memory.name: np.zeros((rows, *memory.shape), np.float32) for memory in spec.program.carry}
    np.testing.assert_allclose(model_of(HEADS[name]).run(observation, carry)["action"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["categorical", "deterministic", "epsilon_greedy"])
def test_a_policy_over_candidates_chooses_as_the_numpy_runtime_and_never_an_absent_one(kind: HeadKind) -> None:
    spec = policy(kind)
    held = weights(spec)
    counts = [1, 2, 6, 3] * 8
    # Rows that do not exist hold large numbers.
    observation = observed(np.random.default_rng(0), counts)
    action = OnnxPolicy(onnx_model(spec, portable(spec, held))).run(observation, {})["action"]
    best = NumpyPolicy(greedy(spec), held).act(observation, np.zeros((len(counts), 0), np.float32)).action
    np.testing.assert_array_equal(action.ravel(), best.ravel())
    assert (action.ravel() < counts).all()


@pytest.mark.parametrize("name", EPISODES)
def test_policies_that_draw_and_remember_their_action_agree_with_the_training_network(name: str) -> None:
    case = EPISODES[name]
    assert parity(case.spec, case.arrays["weights"], model_of(case).run).largest < 1e-5
    assert parity(case.spec, case.arrays["weights"], NumpyOutputs(case.spec, case.arrays["weights"])).largest < 1e-5


def test_memory_goes_in_and_comes_out() -> None:
    spec = recurrent()
    weights = weights_for(spec)
    model = OnnxPolicy(onnx_model(spec, portable(spec, weights)))
    runtime = NumpyPolicy(greedy(spec), weights)
    carry = runtime.initial_carry(3)
    for _ in range(5):
        observation = {"state": np.random.default_rng(1).standard_normal((3, 3)).astype(np.float32)}
        expected = runtime.act(observation, np.zeros((3, 0), np.float32), carry)
        outputs = model.run(observation, carry)
        np.testing.assert_array_equal(outputs["action"], expected.action)
        carry = {name: outputs[f"next.{name}"] for name in carry}
        for name, memory in expected.carry.items():
            np.testing.assert_allclose(carry[name], memory, rtol=1e-5, atol=1e-6)


def test_the_model_says_what_it_is_and_takes_any_number_of_rows() -> None:
    spec = mlp()
    policy = portable(spec, weights_for(spec))
    model = onnx.load_from_string(onnx_model(spec, policy))
    props = {entry.key: entry.value for entry in model.metadata_props}
    assert PolicySpec.from_json(props["rl4sys.spec"]) == spec
    assert (props["rl4sys.version"], props["rl4sys.sha256"]) == ("3", policy.sha256)
    dimensions = [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    assert dimensions == ["rows", 3]
    assert [output.name for output in model.graph.output] == ["action", "logits"]
    for rows in (1, 7):
        assert OnnxPolicy(onnx_model(spec, policy)).run({"state": np.zeros((rows, 3), np.float32)}, {})[
            "action"
        ].shape == (rows,)


def test_bytes_and_masks_are_taken_as_they_are() -> None:
    arrays = (ArraySpec("picture", "uint8", (2, 3)), ArraySpec("state", "float32", (2,)), ArraySpec("n", "int64", (1,)))
    builder = ProgramBuilder((*arrays, ArraySpec("action_mask", "bool", (3,))))
    logits = builder.linear(builder.features(standardize=True), 3, "actor")
    spec = PolicySpec(DiscreteAction(3), builder.program(), Head("categorical", (logits,), mask="action_mask"))
    weights = weights_for(spec)
    assert parity(spec, weights, OnnxPolicy(onnx_model(spec, portable(spec, weights))).run).largest < 1e-5


def test_an_op_without_an_onnx_form_is_refused() -> None:
    spec = mlp()
    policy = portable(spec, weights_for(spec))
    strange = PolicySpec(spec.action, spec.program, Head("dice", spec.head.inputs))  # type: ignore[arg-type]
    with pytest.raises(UnsupportedHead, match="Use --format rl4sys"):
        parameters(strange)
    op = spec.program.ops[0]
    program = Program(spec.program.inputs, (type(op)("dream", op.outputs, op.inputs),), spec.program.tensors)
    with pytest.raises(UnknownOp, match=r"no ONNX form of the ops \['dream'\]"):
        onnx_model(PolicySpec(spec.action, program, spec.head), policy)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(OnnxUnavailable, match=r"pip install 'rl4sys\[onnx\]'"):
        onnx_model(mlp(), portable(mlp(), weights_for(mlp())))
