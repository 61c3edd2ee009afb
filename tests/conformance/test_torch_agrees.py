import numpy as np
import pytest
import torch

from rl4sys.experience import Arrays
from rl4sys.networks import from_spec

from .golden import EPISODES, HEADS, OPS, Golden


def tensors(arrays: Arrays) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


def registers(case: Golden) -> dict[str, torch.Tensor]:
    module, parameters = from_spec(case.spec)
    parameters.flat.copy_(torch.from_numpy(case.arrays["weights"].copy()))
    with torch.no_grad():
        return module(tensors(case.registers()), tensors(case.group("carry")) or None)


@pytest.mark.parametrize("name", OPS)
def test_the_torch_program_computes_every_op(name: str) -> None:
    case = OPS[name]
    found = registers(case)
    result = found[case.spec.head.inputs[0]]
    np.testing.assert_allclose(result, case.arrays["action"], rtol=1e-5, atol=1e-5)
    for memory in case.spec.program.carry:
        expected = case.arrays[f"next_carry.{memory.name}"]
        np.testing.assert_allclose(found[memory.next], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["deterministic_discrete", "deterministic_multi_discrete"])
def test_the_best_choice_of_the_torch_program_is_the_golden_one(name: str) -> None:
    case = HEADS[name]
    scores = registers(case)[case.spec.head.inputs[0]]
    parts = [scores] if name == "deterministic_discrete" else torch.split(scores, [2, 4, 3], dim=1)
    best = np.stack([part.argmax(dim=1).numpy() for part in parts], axis=1)
    np.testing.assert_array_equal(best, case.arrays["action"].reshape(best.shape))


@pytest.mark.parametrize("name", EPISODES)
def test_the_torch_program_remembers_what_every_decision_left(name: str) -> None:
    case = EPISODES[name]
    remembered = case.group("next_carry")
    before = {n: np.concatenate([np.zeros_like(a[:1]), a[:-1]]) for n, a in remembered.items()}
    module, parameters = from_spec(case.spec)
    parameters.flat.copy_(torch.from_numpy(case.arrays["weights"].copy()))
    with torch.no_grad():
        found = module(tensors(case.registers()), tensors(before))
    for memory in case.spec.program.carry:
        # The head's own action is not a part of the program.
        if memory.next != case.spec.head.action_register:
            np.testing.assert_allclose(found[memory.next], remembered[memory.name], rtol=1e-5, atol=1e-5)
