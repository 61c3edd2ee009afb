"""Encoders and decoders: vectors, images and both."""

import numpy as np
import pytest
import torch

from rl4sys.dynamics import Decoder, Encoder
from rl4sys.dynamics.encoder import require_sizes
from rl4sys.experience import ArraySpec
from rl4sys.networks import Parameters, UnsuitableNetwork, truncated_normal
from rl4sys.policy import BoxAction, Head, NumpyPolicy, PolicySpec, Program, ProgramBuilder

VECTOR = ArraySpec("speed", "float32", (3,))
IMAGE = ArraySpec("camera", "uint8", (16, 32, 3))
CASES = pytest.mark.parametrize("observation", [(VECTOR,), (IMAGE,), (VECTOR, IMAGE)], ids=["vector", "image", "both"])


def _views(program: Program) -> Parameters:
    parameters = Parameters(program.tensors, torch.device("cpu"))
    truncated_normal(parameters, {}, torch.Generator().manual_seed(0))
    return parameters


def _seen(observation: tuple[ArraySpec, ...], rows: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {spec.name: (rng.random((rows, *spec.shape)) * 200).astype(spec.dtype) for spec in observation}


@CASES
def test_the_encoder_is_the_same_in_torch_and_as_ops(observation: tuple[ArraySpec, ...]) -> None:
    encoder = Encoder(observation, units=8, layers=2, depth=2)
    builder = ProgramBuilder(observation)
    register = encoder.write(builder)
    parameters = _views(builder.program())
    box = BoxAction((-np.inf,) * encoder.size, (np.inf,) * encoder.size)
    policy = NumpyPolicy(
        PolicySpec(box, builder.program(), Head("deterministic", (register,))), parameters.flat.numpy()
    )
    seen = _seen(observation)
    with torch.no_grad():
        expected = encoder(parameters.views, {name: torch.from_numpy(array) for name, array in seen.items()})
    assert policy.act(seen, np.zeros((4, 0), np.float32)).action == pytest.approx(expected.numpy(), abs=1e-5)


@CASES
def test_a_decoder_learns_one_observation(observation: tuple[ArraySpec, ...]) -> None:
    decoder = Decoder(observation, feature=5, units=8, layers=1, depth=2)
    parameters = _views(Program((), (), decoder.tensors()))
    seen = {name: torch.from_numpy(array) for name, array in _seen(observation, 1).items()}
    optimizer, feature = torch.optim.Adam(parameters.views.values(), 0.05), torch.ones(1, 5)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = decoder.loss(parameters.views, feature, seen).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_images_that_cannot_be_halved_four_times_are_refused() -> None:
    with pytest.raises(UnsuitableNetwork, match=r"84 × 84 pixels.*pixels.size=64"):
        require_sizes((ArraySpec("camera", "uint8", (84, 84, 3)),))
