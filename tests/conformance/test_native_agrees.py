import pytest
from tests.native import needs_native

from rl4sys.experience import Arrays
from rl4sys.policy import NativePolicy, NumpyPolicy, native_extension, native_problem

from .golden import EPISODES, HEADS, OPS, Golden
from .test_numpy_agrees import assert_agrees

pytestmark = needs_native
KERNELS = native_extension().kernel_sets() if native_problem() is None else []
RUN = {name: case for name, case in (HEADS | OPS).items() if KERNELS and NativePolicy.can_run(case.spec)}


def native(case: Golden, kernels: str) -> NativePolicy:
    return NativePolicy(case.spec, case.arrays["weights"], kernels)


def test_the_extension_runs_every_golden_policy_that_does_not_plan() -> None:
    assert {name for name, case in (HEADS | OPS).items() if case.spec.head.kind != "planned"} == set(RUN)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("name", RUN)
def test_every_op_and_head_decides_what_torch_decides(name: str, kernels: str) -> None:
    case = RUN[name]
    decision = native(case, kernels).act(case.group("observation"), case.arrays["noise"], case.group("carry") or None)
    assert_agrees(decision, case)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("name", EPISODES)
def test_every_decision_of_an_episode_is_what_torch_decides(name: str, kernels: str) -> None:
    case = EPISODES[name]
    policy, carry = native(case, kernels), None
    for row in range(len(case.arrays["noise"])):
        decision = policy.act_on_row(case.group("observation"), row, case.arrays["noise"][row : row + 1], carry)
        assert_agrees(decision, case, slice(row, row + 1))
        carry = {name: array.copy() for name, array in decision.carry.items()}


@pytest.mark.parametrize("name", RUN)
def test_rows_have_the_same_bits_alone_and_together(name: str) -> None:
    case, count = RUN[name], 7
    policy = native(case, KERNELS[0])
    observation, carry = ({n: a[:count] for n, a in case.group(g).items()} for g in ("observation", "carry"))
    noise = case.arrays["noise"][:count]
    together, finite = policy.act_on_rows(observation, noise, carry or None)
    action, extras = together.action.copy(), {n: a.copy() for n, a in together.extras.items()}
    assert finite.all()
    for row in range(count):
        held: Arrays = {n: a[row : row + 1] for n, a in carry.items()}
        alone = policy.act_on_row(observation, row, noise[row : row + 1], held or None)
        assert action[row].tobytes() == alone.action[0].tobytes()
        assert all(extras[n][row].tobytes() == array[0].tobytes() for n, array in alone.extras.items())


@pytest.mark.parametrize("name", [name for name, case in HEADS.items() if case.spec.head.mask is not None])
def test_a_mask_that_allows_nothing_has_the_error_of_numpy(name: str) -> None:
    case = HEADS[name]
    observation = {n: a[:3].copy() for n, a in case.group("observation").items()}
    observation[case.spec.head.mask or ""][1] = False
    noise, carry = case.arrays["noise"][:3], {n: a[:3] for n, a in case.group("carry").items()}
    errors = []
    for policy in (native(case, KERNELS[0]), NumpyPolicy(case.spec, case.arrays["weights"])):
        with pytest.raises(ValueError, match="no action") as raised:
            policy.act_on_rows(observation, noise, carry or None)
        errors.append((raised.type, str(raised.value)))
    assert errors[0] == errors[1]
