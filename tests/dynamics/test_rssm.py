"""The recurrent state-space model: its scan, its gradients, its resets."""

import torch
from tests.dynamics.models import SMALL, random_views, sequences

from rl4sys.dynamics import State
from rl4sys.dynamics.latents import drawn, probabilities

Views = dict[str, torch.Tensor]


def _row_by_row(views: Views, *batch: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The equations of the paper, one row after the other, differentiated by autograd."""
    embedding, action, is_first, uniform = batch
    state = State(embedding.new_zeros(len(action), SMALL.deter), embedding.new_zeros(len(action), SMALL.stoch))
    found = []
    for row in range(is_first.shape[1]):
        keep = (~is_first[:, row]).double().unsqueeze(-1)
        layer = SMALL._inputs()[2](views, action[:, row] * keep)
        deter = SMALL._recur(views, state.deter * keep, state.stoch * keep, layer)
        chances = probabilities(SMALL._posterior(views, torch.cat([deter, embedding[:, row]], -1)), SMALL.classes)
        state = State(deter, drawn(chances, uniform[:, row]))
        found.append((*state, chances))
    return tuple(torch.stack(part, 1) for part in zip(*found, strict=True))


def _scan(views: Views, *batch: torch.Tensor) -> tuple[torch.Tensor, ...]:
    state, chances = SMALL.observe(views, *batch)
    return (*state, chances)


def _gradients(outputs: tuple[torch.Tensor, ...], inputs: list[torch.Tensor]) -> tuple[torch.Tensor | None, ...]:
    generator = torch.Generator().manual_seed(5)
    weighted = [(out * torch.randn(out.shape, generator=generator).double()).sum() for out in outputs]
    return torch.autograd.grad(torch.stack(weighted).sum(), inputs, allow_unused=True)


def test_the_scan_equals_the_equations_row_by_row() -> None:
    views, batch = random_views(), sequences()
    for found, expected in zip(_scan(views, *batch), _row_by_row(views, *batch), strict=True):
        assert torch.allclose(found, expected, atol=1e-12)


def test_gradients_of_the_scan_equal_those_of_autograd() -> None:
    views, batch = random_views(), sequences()
    embedding = batch[0].requires_grad_()
    inputs = [*views.values(), embedding]
    found, expected = (_gradients(run(views, *batch), inputs) for run in (_scan, _row_by_row))
    for name, ours, theirs in zip([*views, "embedding"], found, expected, strict=True):
        assert (ours is None) == (theirs is None), name
        assert ours is None or theirs is None or torch.allclose(ours, theirs, atol=1e-10), name


def test_nothing_before_the_start_of_an_episode_changes_anything_after_it() -> None:
    views, (embedding, action, is_first, uniform) = random_views(), sequences(length=6)
    is_first[:] = False
    is_first[:, 3] = True
    before = _scan(views, embedding, action, is_first, uniform)
    for array in (embedding, action, uniform):
        array[:, :3] = torch.rand(array[:, :3].shape)
    action[:, 3] = 7.0
    for first, second in zip(before, _scan(views, embedding, action, is_first, uniform), strict=True):
        assert torch.equal(first[:, 3:], second[:, 3:])
        assert not torch.equal(first[:, :3], second[:, :3])


def test_imagining_follows_the_prior() -> None:
    views = random_views()
    state, action = SMALL.initial(4, torch.device("cpu")), torch.ones(4, SMALL.actions).double()
    state = State(*(part.double() for part in state))
    uniform = torch.rand(4, SMALL.groups).double()
    following = SMALL.imagine(views, state, action, uniform)
    assert torch.equal(following.stoch, drawn(SMALL.prior(views, following.deter), uniform))
    assert following.stoch.sum(-1).tolist() == [SMALL.groups] * 4
