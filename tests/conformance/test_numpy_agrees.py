import numpy as np
import pytest

from rl4sys.experience import Arrays, StreamKey
from rl4sys.policy import Decision, KeyedNoise, NumpyPolicy
from rl4sys.policy.noise import normal, philox, stream_key

from .golden import EPISODES, HEADS, OPS, Golden, strict_json

NOISE = strict_json("noise.json")


def decide(case: Golden, rows: slice = slice(None)) -> Decision:
    policy = NumpyPolicy(case.spec, case.arrays["weights"])
    observation, carry = ({n: a[rows] for n, a in case.group(g).items()} for g in ("observation", "carry"))
    return policy.act(observation, case.arrays["noise"][rows], carry or None)


def assert_agrees(decision: Decision, case: Golden, rows: slice = slice(None)) -> None:
    expected: Arrays = {name: array[rows] for name, array in case.arrays.items()}
    if decision.action.dtype == np.int64:
        np.testing.assert_array_equal(decision.action, expected["action"])
    else:
        np.testing.assert_allclose(decision.action, expected["action"], rtol=1e-5, atol=1e-5)
    assert decision.extras.keys() == case.group("extras").keys()
    for name, array in decision.extras.items():
        np.testing.assert_allclose(array, expected[f"extras.{name}"], rtol=1e-5, atol=1e-5)
    for name, array in decision.carry.items():
        np.testing.assert_allclose(array, expected[f"next_carry.{name}"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", OPS)
def test_every_op_computes_what_torch_computes(name: str) -> None:
    assert_agrees(decide(OPS[name]), OPS[name])


@pytest.mark.parametrize("name", HEADS)
def test_every_head_decides_what_torch_decides(name: str) -> None:
    assert len(HEADS[name].arrays["action"]) == (400 if HEADS[name].spec.head.count else 10_000)
    assert_agrees(decide(HEADS[name]), HEADS[name])


@pytest.mark.parametrize("name", EPISODES)
def test_every_decision_of_an_episode_is_what_torch_decides(name: str) -> None:
    case = EPISODES[name]
    policy = NumpyPolicy(case.spec, case.arrays["weights"])
    carry: Arrays | None = None
    for row in range(len(case.arrays["noise"])):
        decision = policy.act_on_row(case.group("observation"), row, case.arrays["noise"][row : row + 1], carry)
        assert_agrees(decision, case, slice(row, row + 1))
        carry = {name: array.copy() for name, array in decision.carry.items()}


@pytest.mark.parametrize("name", HEADS)
def test_a_decision_does_not_depend_on_the_rows_beside_it(name: str) -> None:
    for row in range(60):
        assert_agrees(decide(HEADS[name], slice(row, row + 1)), HEADS[name], slice(row, row + 1))
    assert_agrees(decide(HEADS[name], slice(60, 67)), HEADS[name], slice(60, 67))


@pytest.mark.parametrize("count", [2, 7, 64])
@pytest.mark.parametrize("name", [*HEADS, *OPS])
def test_many_rows_at_once_have_the_bits_of_single_rows(name: str, count: int) -> None:
    case = (HEADS | OPS)[name]
    policy = NumpyPolicy(case.spec, case.arrays["weights"])
    count = min(count, len(case.arrays["noise"]))
    observation, carry = ({n: a[:count] for n, a in case.group(g).items()} for g in ("observation", "carry"))
    noise = case.arrays["noise"][:count]
    together, finite = policy.act_on_rows(observation, noise, carry or None)
    assert finite.all()
    for row in range(count):
        held = {n: a[row : row + 1] for n, a in carry.items()}
        alone = policy.act_on_row(observation, row, noise[row : row + 1], held or None)
        pairs = [(together.action, alone.action)]
        pairs += [(together.extras[n], a) for n, a in alone.extras.items()]
        pairs += [(together.carry[n], a) for n, a in alone.carry.items()]
        assert all(one[row].tobytes() == other[0].tobytes() for one, other in pairs)


@pytest.mark.parametrize("answer", NOISE["philox"])
def test_philox_gives_its_published_answers(answer: dict[str, list[int]]) -> None:
    words = philox(np.array(answer["counter"], np.uint64), np.array(answer["key"], np.uint64))
    assert words.tolist() == answer["words"]


@pytest.mark.parametrize("golden", NOISE["streams"], ids=lambda g: f"{g['seed']}-{g['client']}-{g['lane']}")
def test_streams_have_their_golden_numbers(golden: dict) -> None:
    stream = StreamKey(golden["client"], golden["agent"], golden["lane"])
    assert stream_key(golden["seed"], stream) == tuple(golden["key"])
    noise = KeyedNoise(golden["seed"], [stream], golden["size"])
    for step in golden["steps"]:
        assert noise.at(step["step"])[0].tolist() == step["uniform"]
        np.testing.assert_allclose(normal(noise.at(step["step"]))[0], step["normal"], rtol=1e-6)
