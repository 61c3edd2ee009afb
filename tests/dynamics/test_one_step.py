"""Losses, statistics and programs of one-step models."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl4sys.config import ConfigError, parse
from rl4sys.dynamics import (
    STATISTICS,
    DeterministicConfig,
    EnsembleConfig,
    GaussianConfig,
    OneStepModel,
    OneStepTargets,
    Standardization,
    flat_state,
)
from rl4sys.experience import ArraySpec
from rl4sys.networks import Parameters
from rl4sys.policy import BoxAction, Head, NumpyPolicy, PolicySpec, ProgramBuilder, Tensor

SEEN = (ArraySpec("picture", "uint8", (2, 2)), ArraySpec("numbers", "float32", (3,)), ArraySpec("count", "int32", ()))


def statistics(size: int) -> tuple[Standardization, Parameters]:
    tensors = [Tensor(name, (1 if ".reward." in name else size,)) for name in STATISTICS]
    parameters = Parameters(tensors, torch.device("cpu"))
    parameters.freeze(*STATISTICS)
    return Standardization(parameters), parameters


def test_the_loss_of_a_gaussian_is_its_weighted_likelihood() -> None:
    rng = np.random.default_rng(0)
    mean, std, target = rng.normal(size=(2, 5, 3)), rng.uniform(0.1, 2.0, (2, 5, 3)), rng.normal(size=(2, 5, 3))
    expected = (std**1.0 * (0.5 * ((mean - target) / std) ** 2 + np.log(std))).sum(-1).mean(-1)
    parts = [torch.from_numpy(part) for part in np.split(mean, [2], -1) + np.split(std, [2], -1)]
    targets = OneStepTargets(*(torch.from_numpy(part) for part in np.split(target, [2], -1)))
    model = OneStepModel(EnsembleConfig(beta=0.5, size=2), SEEN[1:2], 1)
    np.testing.assert_allclose(model.losses(tuple(parts), targets).numpy(), expected, rtol=1e-9)


def test_the_loss_of_a_deterministic_model_is_half_the_squared_error() -> None:
    rng = np.random.default_rng(0)
    mean, target = torch.from_numpy(rng.normal(size=(1, 5, 3))), torch.from_numpy(rng.normal(size=(1, 5, 3)))
    model = OneStepModel(DeterministicConfig(), SEEN[1:2], 1)
    found = model.losses((mean[..., :2], mean[..., 2:]), OneStepTargets(target[..., :2], target[..., 2:]))
    assert found.item() == pytest.approx(0.5 * ((mean - target) ** 2).sum(-1).mean().item())


def test_statistics_of_many_batches_are_those_of_the_data() -> None:
    running, _ = statistics(2)
    rng = np.random.default_rng(0)
    for number in range(300):
        rows = torch.from_numpy(rng.normal([5.0, -3.0], [2.0, 0.1], (64, 2)).astype(np.float32))
        running.observe(number, rows, 0.5 * rows, rows[:, :1])
    np.testing.assert_allclose(running.deviation("state").numpy(), [2.0, 0.1], rtol=0.05)
    standard = running.standardized("delta", torch.tensor([[2.5 + 1.0, -1.5]]))
    np.testing.assert_allclose(standard.numpy(), [[1.0, 0.0]], atol=0.05)


def test_a_constant_observation_keeps_its_unit() -> None:
    running, _ = statistics(1)
    rows = torch.full((8, 1), 4.0)
    running.observe(0, rows, rows - rows, rows)
    assert running.standardized("state", rows).abs().max() == 0.0
    assert running.deviation("state").item() == 1.0


def test_restoring_undoes_standardizing() -> None:
    running, _ = statistics(2)
    rows = torch.randn(16, 2) * 3.0 + 1.0
    running.observe(0, rows, rows, rows[:, :1])
    torch.testing.assert_close(running.restored("delta", running.standardized("delta", rows)), rows)


def test_the_acting_program_and_torch_flatten_observations_alike() -> None:
    rng = np.random.default_rng(0)
    seen = {
        "picture": rng.integers(0, 256, (4, 2, 2), np.uint8),
        "numbers": rng.normal(size=(4, 3)).astype(np.float32),
        "count": rng.integers(0, 5, 4).astype(np.int32),
    }
    # Numbers without an axis are not flattened by programs, either.
    specs, builder = SEEN[:2], ProgramBuilder(SEEN[:2])
    register = builder.features(standardize=False)
    unbounded = BoxAction((-np.inf,) * 7, (np.inf,) * 7)
    policy = NumpyPolicy(PolicySpec(unbounded, builder.program(), Head("deterministic", (register,))))
    expected = policy.act(seen, np.zeros((4, 0), np.float32)).action
    found = flat_state({name: torch.from_numpy(array) for name, array in seen.items()}, specs)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_standard_deviations_stay_within_their_bounds() -> None:
    model = OneStepModel(GaussianConfig(min_std=0.1, max_std=0.5), SEEN[1:2], 1)
    program, outputs = model.training()
    scales = [op.settings for op in program.ops if op.kind == "scale"]
    assert scales == [{"factor": 0.4, "offset": 0.1}] * 2
    assert len(outputs) == 4


def test_the_tensors_of_all_members_lie_as_in_the_stacked_parameters() -> None:
    model = OneStepModel(EnsembleConfig(size=2, hidden_dims=(4,)), SEEN[1:2], 1)
    training, _ = model.training(("epsilon", 1))
    acting, _ = model.acting(training, ("epsilon",))
    names = [tensor.name for tensor in acting.tensors]
    assert names[:4] == ["model.0.0.weight", "model.1.0.weight", "model.0.0.bias", "model.1.0.bias"]
    assert names.count("epsilon") == 1
    planning, _ = model.planning(sample=False)
    shapes = {tensor.name: tensor.shape for tensor in acting.tensors}
    assert all(shapes[tensor.name] == tensor.shape for tensor in planning.tensors)


def test_bounds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ConfigError, match="min_std < max_std"):
        parse(GaussianConfig, {"min_std": 2.0, "max_std": 1.0})
