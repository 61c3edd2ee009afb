"""The gradients of the ops over groups, latents and attention."""

from functools import partial

import numpy as np
import pytest
import torch
from tests.finite_differences import numerical_gradient

from rl4sys.experience import Array, ArraySpec
from rl4sys.networks import FUNCTIONS, EnsembleProgram, Parameters, orthogonal, stacked_parameters, uniform_fan_in
from rl4sys.policy import Op, ProgramBuilder


def function(kind: str, **settings: object) -> Op:
    return Op(kind, ("out",), (), (), settings)


def test_a_latent_has_the_gradient_of_its_mixed_probabilities() -> None:
    logits = torch.randn(5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    uniform, weights = torch.full((5, 2), 0.3), torch.arange(6.0).double()
    op = function("latent", groups=2, unimix=0.01, draw=True)
    (drawn,) = FUNCTIONS["latent"](op, [logits, uniform], [])
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    (found,) = torch.autograd.grad((drawn * weights).sum(), logits)
    probability = 0.99 * torch.softmax(logits.view(5, 2, 3), -1).flatten(1) + 0.01 / 3
    (expected,) = torch.autograd.grad((probability * weights).sum(), logits)
    torch.testing.assert_close(found, expected)


def _gate(x: Array, state: Array) -> Array:
    """Two groups; each has its reset gate, candidate and update gate side by side."""
    rows = len(x)
    reset, candidate, update = x.reshape(rows, 2, 3, -1).transpose(2, 0, 1, 3)
    sigmoid = [1.0 / (1.0 + np.exp(-part)) for part in (reset, update - 1.0)]
    new = np.tanh(sigmoid[0] * candidate)
    after: Array = (sigmoid[1] * new + (1.0 - sigmoid[1]) * state.reshape(rows, 2, -1)).reshape(rows, -1)
    return after


def test_the_block_gate_and_its_gradients_equal_the_formula() -> None:
    rng = np.random.default_rng(0)
    x, state, weight = rng.normal(size=(3, 12)), rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    tensors = [torch.from_numpy(array).requires_grad_() for array in (x, state)]
    (after,) = FUNCTIONS["gate"](function("gate", groups=2, update_bias=-1.0), tensors, [])
    assert after.detach().numpy() == pytest.approx(_gate(x, state), rel=1e-6)
    by_x, by_state = torch.autograd.grad((after * torch.from_numpy(weight)).sum(), tensors)
    assert by_x.numpy() == pytest.approx(numerical_gradient(lambda a: (weight * _gate(a, state)).sum(), x), abs=1e-6)
    assert by_state.numpy() == pytest.approx(
        numerical_gradient(lambda a: (weight * _gate(x, a)).sum(), state), abs=1e-6
    )


def test_the_gate_the_products_and_the_softmax_are_differentiable() -> None:
    def both(x: torch.Tensor, state: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        (wide,) = FUNCTIONS["grouped_linear"](function("grouped_linear"), [x], [weight, torch.zeros(12)])
        (after,) = FUNCTIONS["gate"](function("gate", groups=2, update_bias=-1.0), [wide, state], [])
        return FUNCTIONS["softmax"](function("softmax", groups=2), [after], [])[0]

    made = torch.Generator().manual_seed(1)
    arguments = [torch.randn(*shape, generator=made, dtype=torch.float64) for shape in ((3, 4), (3, 4), (2, 2, 6))]
    assert torch.autograd.gradcheck(both, [argument.requires_grad_() for argument in arguments])


def test_attention_is_differentiable_by_all_that_it_reads() -> None:
    count = torch.tensor([[0.0], [2.0], [5.0]], dtype=torch.float64)

    def look(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        *read, bias = inputs
        return FUNCTIONS["attention"](function("attention", heads=2), [*read, count], [bias])[:3]

    made = torch.Generator().manual_seed(2)
    shapes = [(3, 4)] * 3 + [(3, 3, 4)] * 2 + [(2, 3)]
    arguments = [torch.randn(*shape, generator=made, dtype=torch.float64) for shape in shapes]
    assert torch.autograd.gradcheck(look, [argument.requires_grad_() for argument in arguments])


def test_members_of_an_ensemble_gate_and_draw_as_if_they_were_alone() -> None:
    builder = ProgramBuilder(tuple(ArraySpec(name, "float32", (4,)) for name in ("x", "h", "u")))
    state = builder.gate(builder.grouped_linear("x", 12, 2, "wide"), "h", groups=2)
    logits = builder.linear(builder.multiply(builder.symlog(state), builder.softmax(state, 2)), 8, "logits")
    latent = builder.latent(logits, 4, "u")
    program, made = builder.program(), torch.Generator().manual_seed(3)
    draw = partial(uniform_fan_in, generator=made)
    parameters = stacked_parameters(program, 3, (), torch.device("cpu"), draw)
    inputs = {name: torch.rand(5, 4, generator=made) for name in ("x", "h", "u")}
    together = EnsembleProgram(program, parameters.views, keep=(state, latent))(inputs)
    for member in range(3):
        own = {name: view.detach()[member] for name, view in parameters.views.items()}
        alone = EnsembleProgram(program, own, keep=(state, latent))(inputs)
        torch.testing.assert_close(together[state][member], alone[state])
        assert torch.equal(together[latent][member], alone[latent])


def test_the_blocks_of_a_grouped_layer_start_as_matrices_of_their_own() -> None:
    builder = ProgramBuilder((ArraySpec("x", "float32", (8,)),))
    builder.grouped_linear("x", 8, 2, "wide")
    parameters = Parameters(builder.program().tensors, torch.device("cpu"))
    orthogonal(parameters, {"wide": 1.0}, torch.Generator().manual_seed(0))
    for block in parameters.views["wide.weight"]:
        torch.testing.assert_close(block @ block.T, torch.eye(4))
    uniform_fan_in(parameters, torch.Generator().manual_seed(0))
    assert 0.4 < parameters.views["wide.weight"].abs().max() <= 0.5
