"""One policy for each head and kind of action, with an independent implementation in torch and float64.

The networks before the heads compute with small binary fractions, exactly in float32 whatever the order of
summation. So every runtime sees the same scores to the bit, ties included, and must choose the same actions.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from vectors import Array, Case

from rl4sys.experience import ArraySpec
from rl4sys.policy import (
    COUNT,
    MASK,
    ActionSpec,
    BoxAction,
    DiscreteAction,
    Head,
    Memory,
    MixedAction,
    MultiDiscreteAction,
    PolicySpec,
    ProgramBuilder,
    noise_size,
)
from rl4sys.policy.policy_spec import HeadKind, Setting

ROWS = 10_000
FEWER_ROWS = 400
"""Where a head chooses among candidates, which differs only in how many choices there are."""
EPSILON = 0.375
THETA = 0.25
CHANCES = 3
LOG_STD_LOW, LOG_STD_HIGH = -2.0, 0.5
DISCRETE = DiscreteAction(5, start=2)
SEVERAL = MultiDiscreteAction((2, 4, 3))
UNBOUNDED = BoxAction((-math.inf, -1.0), (math.inf, 1.0))
ASYMMETRIC = BoxAction((-1.0, -0.5), (3.0, 0.25))
MIXED = MixedAction((2, 3), (-1.0, 0.0), (1.0, math.inf))


@dataclass(frozen=True, slots=True)
class Shown:
    """What a head reads, by row."""

    scores: torch.Tensor
    """Logits, values, or mean beside log-std."""
    mask: torch.Tensor
    noise: torch.Tensor
    weights: dict[str, torch.Tensor]
    carry: torch.Tensor | None = None


def head_cases() -> Iterator[Case]:
    """Every head with every kind of action it can produce."""
    for mask in (None, MASK):
        suffix = "" if mask is None else "_masked"
        yield _case(f"categorical_discrete{suffix}", DISCRETE, "categorical", mask)
        yield _case(f"categorical_multi_discrete{suffix}", SEVERAL, "categorical", mask)
        yield _case(f"epsilon_greedy_discrete{suffix}", DISCRETE, "epsilon_greedy", mask)
        yield _case(f"deterministic_discrete{suffix}", DISCRETE, "deterministic", mask)
        yield _case(f"deterministic_multi_discrete{suffix}", SEVERAL, "deterministic", mask)
        yield _case(f"mixed{suffix}", MIXED, "mixed", mask)
        yield _case(f"deterministic_mixed{suffix}", MIXED, "deterministic", mask)
        yield _case(f"categorical_candidates{suffix}", DISCRETE, "categorical", mask, count=COUNT)
        yield _case(f"epsilon_greedy_candidates{suffix}", DISCRETE, "epsilon_greedy", mask, count=COUNT)
        yield _case(f"deterministic_candidates{suffix}", DISCRETE, "deterministic", mask, count=COUNT)
    yield _case("gaussian", UNBOUNDED, "gaussian")
    yield _case("tanh_gaussian", ASYMMETRIC, "tanh_gaussian")
    yield _case("deterministic_box", UNBOUNDED, "deterministic")
    yield _case("deterministic_box_tanh", ASYMMETRIC, "deterministic", squash="tanh")
    yield _case("deterministic_box_clip", ASYMMETRIC, "deterministic", squash="clip")
    yield _case("tanh_gaussian_epsilon", ASYMMETRIC, "tanh_gaussian", epsilon=True)
    yield _case("perturbed", ASYMMETRIC, "perturbed")
    yield _case("perturbed_remembering", ASYMMETRIC, "perturbed", remembers=True)
    yield _case("noise_conditioned", ASYMMETRIC, "noise_conditioned", epsilon=True, std=0.75)
    yield _case("noise_conditioned_still", ASYMMETRIC, "noise_conditioned", std=0.0)


def _case(name: str, action: ActionSpec, kind: HeadKind, mask: str | None = None, **options: Setting) -> Case:
    spec = _policy(action, kind, mask, options)
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    rows = ROWS if spec.head.count is None else FEWER_ROWS
    weights = {tensor.name: _fractions(rng, tensor.name, tensor.shape) for tensor in spec.program.tensors}
    sensor = rng.randint(0, 256, (rows, 4)).astype(np.uint8)
    noise = (rng.randint(0, 2**24, (rows, noise_size(spec))) / 2.0**24).astype(np.float32)
    noise[:20], noise[20:40] = 0.0, 1.0 - 2.0**-24
    tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
    drawn = (
        None
        if kind != "noise_conditioned"
        else float(options["std"]) * _normal(torch.from_numpy(noise[:, : 2 * CHANCES]))
    )
    scores = _scores(torch.from_numpy(sensor), tensors, drawn)
    choices = (rows, action.choices if isinstance(action, MixedAction) else scores.shape[1])
    allowed = _mask(rng, choices, action) if mask else torch.ones(choices, dtype=torch.bool)
    counts: dict[str, Array] = {}
    if spec.head.count is not None:
        counts[f"observation.{COUNT}"] = rng.randint(1, choices[1] + 1, (rows, 1)).astype(np.float32)
        allowed[:, 0] = True
        existing = torch.arange(choices[1]) < torch.from_numpy(counts[f"observation.{COUNT}"])
    carry = {m.name: _fractions(rng, m.name, (rows, *m.shape)) for m in spec.program.carry}
    before = next(map(torch.from_numpy, carry.values()), None)
    possible = allowed & existing if counts else allowed
    expected = _expected(spec, Shown(scores, possible, torch.from_numpy(noise), tensors, before))
    arrays = {"weights": np.concatenate([array.ravel() for array in weights.values()])}
    arrays |= {"observation.sensor": sensor} | ({f"observation.{MASK}": allowed.numpy()} if mask else {})
    arrays |= counts | {f"carry.{name}": array for name, array in carry.items()}
    return Case(name, spec, arrays | {"noise": noise} | expected)


def _mask(rng: np.random.RandomState, shape: tuple[int, int], action: ActionSpec) -> torch.Tensor:
    """Half of the choices, and always one."""
    mask = torch.from_numpy(rng.randint(0, 2, shape).astype(bool))
    for part in _parts(mask, action):
        part[~part.any(dim=1), 0] = True
    return mask


def _policy(action: ActionSpec, kind: HeadKind, mask: str | None, options: dict[str, Setting]) -> PolicySpec:
    settings = {name: value for name, value in options.items() if name in ("squash", "count")}
    width = {"discrete": 5, "multi_discrete": 9, "box": 2, "mixed": 7}[action.kind]
    choices = action.choices if isinstance(action, MixedAction) else width
    masks = () if mask is None else (ArraySpec(MASK, "bool", (choices,)),)
    counts = (ArraySpec(COUNT, "float32", (1,)),) if "count" in settings else ()
    builder = ProgramBuilder((ArraySpec("sensor", "uint8", (4,)), *masks, *counts))
    register = builder.op("scale", ("sensor",), (4,), factor=1.0 / 64.0, offset=-2.0)
    if kind == "noise_conditioned":
        register = builder.op("concat", (register, builder.chance("chance", CHANCES)), (4 + CHANCES,))
        settings = {"noise": "chance", "size": CHANCES, "std": options["std"]}
    body = builder.activation(builder.linear(register, 6, "body"), "relu")
    inputs: tuple[str, ...] = (builder.linear(body, width, "scores"),)
    tensors: tuple[str, ...] = ()
    match kind:
        case "epsilon_greedy":
            tensors = (builder.tensor("epsilon", 1),)
        case "gaussian" | "mixed":
            tensors = (builder.tensor("log_std", 2),)
        case "tanh_gaussian":
            inputs += (builder.linear(body, width, "log_std"),)
            settings = {"log_std_low": LOG_STD_LOW, "log_std_high": LOG_STD_HIGH}
            if options.get("epsilon"):
                tensors = (builder.tensor("epsilon", 1),)
        case "perturbed":
            tensors = (builder.tensor("std", width), builder.tensor("epsilon", 1))
        case "noise_conditioned" if options.get("epsilon"):
            tensors = (builder.tensor("epsilon", 1),)
    program = builder.program()
    if options.get("remembers"):
        program = replace(program, carry=(Memory("drift", (width,), "drift.next"),))
        inputs, settings = (*inputs, "drift"), {"theta": THETA, "next": "drift.next"}
    return PolicySpec(action, program, Head(kind, inputs, tensors, mask, settings))


def _fractions(rng: np.random.RandomState, name: str, shape: tuple[int, ...]) -> Array:
    """Multiples of 1/32 (of 1/64 in the last layer), small enough that 24 bits hold every sum."""
    if name == "epsilon":
        return np.array([EPSILON], np.float32)
    if name.startswith("body"):
        return (rng.randint(-32, 32, shape) / 32.0).astype(np.float32)
    return (rng.randint(-16, 16, shape) / 64.0).astype(np.float32)


def _scores(sensor: torch.Tensor, weights: dict[str, torch.Tensor], drawn: torch.Tensor | None) -> torch.Tensor:
    """Computed in float64 where noise is among the inputs, since nothing is exact then."""
    x = sensor.to(torch.float32) / 64.0 - 2.0
    if drawn is not None:
        x = torch.cat([x.double(), drawn], dim=1)
        weights = {name: tensor.double() for name, tensor in weights.items()}
    body = F.relu(x @ weights["body.weight"] + weights["body.bias"])
    columns = [body @ weights["scores.weight"] + weights["scores.bias"]]
    if "log_std.weight" in weights:
        columns.append(body @ weights["log_std.weight"] + weights["log_std.bias"])
    return torch.cat(columns, dim=1)


def _expected(spec: PolicySpec, shown: Shown) -> dict[str, Array]:
    match spec.head.kind, spec.action:
        case "gaussian", _:
            return _gaussian(shown)
        case "tanh_gaussian", BoxAction() as box:
            return _sometimes_uniform(shown, box, _tanh_gaussian(shown, box))
        case "perturbed", BoxAction() as box:
            return _sometimes_uniform(shown, box, _perturbed(shown, box))
        case "noise_conditioned", BoxAction() as box:
            scale, middle = _scale_and_middle(box)
            squashed = _answer(torch.tanh(shown.scores) * scale + middle)
            return _sometimes_uniform(shown, box, squashed, slice(2 * CHANCES, -1))
        case "deterministic", BoxAction() as box:
            scale, middle = _scale_and_middle(box)
            match spec.head.settings.get("squash"):
                case "tanh":
                    return _answer(torch.tanh(shown.scores.double()) * scale + middle)
                case "clip":
                    return _answer(shown.scores.double().clamp(-1.0, 1.0) * scale + middle)
            return _answer(shown.scores)
        case "epsilon_greedy", _:
            return _epsilon_greedy(shown)
        case _, MixedAction() as mixed:
            return _mixed(spec.head.kind, mixed, shown)
    scores, masks = (_parts(array, spec.action) for array in (shown.scores, shown.mask))
    if spec.head.kind == "deterministic":
        choices = [_best(s, m) for s, m in zip(scores, masks, strict=True)]
        return _answer(_joined(choices, spec.action))
    drawn = [_draw(s, m, shown.noise[:, i]) for i, (s, m) in enumerate(zip(scores, masks, strict=True))]
    log_prob = torch.stack([log_prob for _, log_prob in drawn]).sum(dim=0)
    return _answer(_joined([choice for choice, _ in drawn], spec.action), log_prob)


def _mixed(kind: HeadKind, action: MixedAction, shown: Shown) -> dict[str, Array]:
    """Choices as from a multi-discrete head over the first scores, numbers as from a Gaussian over the others."""
    choices, parts = action.choices, len(action.sizes)
    scores, masks = shown.scores[:, :choices].split(action.sizes, 1), shown.mask.split(action.sizes, 1)
    numbers = replace(shown, scores=shown.scores[:, choices:], noise=shown.noise[:, parts:])
    if kind == "deterministic":
        best = [_best(s, m).double() for s, m in zip(scores, masks, strict=True)]
        return _answer(torch.cat([torch.stack(best, 1), numbers.scores.double()], 1).float())
    drawn = [_draw(s, m, shown.noise[:, i]) for i, (s, m) in enumerate(zip(scores, masks, strict=True))]
    log_std = shown.weights["log_std"].double()
    normal = torch.distributions.Normal(numbers.scores.double(), log_std.exp())
    vector = normal.mean + normal.stddev * _normal(numbers.noise)
    log_prob = torch.stack([log_prob for _, log_prob in drawn]).sum(dim=0) + normal.log_prob(vector).sum(dim=1)
    return _answer(torch.cat([torch.stack([choice for choice, _ in drawn], 1).double(), vector], 1), log_prob)


def _draw(logits: torch.Tensor, mask: torch.Tensor, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The first choice whose cumulative weight exceeds u times the total; its log-probability."""
    logits = logits.double().masked_fill(~mask, -math.inf)
    cumulative = torch.exp(logits - logits.amax(dim=1, keepdim=True)).cumsum(dim=1)
    choice = (cumulative <= u.double()[:, None] * cumulative[:, -1:]).sum(dim=1)
    return choice, torch.log_softmax(logits, dim=1).gather(1, choice[:, None])[:, 0]


def _best(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The first of the highest allowed scores."""
    return scores.masked_fill(~mask, -math.inf).argmax(dim=1)


def _epsilon_greedy(shown: Shown) -> dict[str, Array]:
    """Explores where u₀ < ε: allowed choice number ⌊u₁ · allowed⌋, counted from 0."""
    number = (shown.noise[:, 1].double() * shown.mask.sum(dim=1)).floor()
    random = (shown.mask.cumsum(dim=1) == number[:, None] + 1).int().argmax(dim=1)
    explores = shown.noise[:, 0] < shown.weights["epsilon"]
    return _answer(torch.where(explores, random, _best(shown.scores, shown.mask)))


def _gaussian(shown: Shown) -> dict[str, Array]:
    log_std = shown.weights["log_std"].double()
    normal = torch.distributions.Normal(shown.scores.double(), log_std.exp())
    action = normal.mean + normal.stddev * _normal(shown.noise)
    return _answer(action, normal.log_prob(action).sum(dim=1))


def _tanh_gaussian(shown: Shown, box: BoxAction) -> dict[str, Array]:
    """log p = log N(raw) − log(scale · (1 − tanh² raw)), where 1 − tanh² = 1 / cosh²."""
    mean, log_std = shown.scores.double().chunk(2, dim=1)
    scale, middle = _scale_and_middle(box)
    normal = torch.distributions.Normal(mean, log_std.clamp(LOG_STD_LOW, LOG_STD_HIGH).exp())
    raw = normal.mean + normal.stddev * _normal(shown.noise)
    log_prob = normal.log_prob(raw) - torch.log(scale) + 2.0 * torch.log(torch.cosh(raw))
    return _answer(torch.tanh(raw) * scale + middle, log_prob.sum(dim=1))


def _perturbed(shown: Shown, box: BoxAction) -> dict[str, Array]:
    """tanh(mean) + n, clipped to ±1 and scaled to the bounds; n = std · z, or (1 − θ) · (n before) + std · z."""
    scale, middle = _scale_and_middle(box)
    shift = shown.weights["std"].double() * _normal(shown.noise)
    memory = {}
    if shown.carry is not None:
        shift = (1.0 - THETA) * shown.carry.double() + shift
        memory = {"next_carry.drift": shift.float().numpy()}
    return _answer((torch.tanh(shown.scores.double()) + shift).clamp(-1.0, 1.0) * scale + middle) | memory


def _sometimes_uniform(
    shown: Shown, box: BoxAction, otherwise: dict[str, Array], uniform: slice = slice(1, -1, 2)
) -> dict[str, Array]:
    """Where the last number is below ε, number j of the action is low + u · (high − low), u being j of the slice."""
    if "epsilon" not in shown.weights:
        return otherwise
    scale, middle = _scale_and_middle(box)
    anything = (2.0 * shown.noise.double()[:, uniform] - 1.0) * scale + middle
    explores = shown.noise[:, -1] < shown.weights["epsilon"]
    action = torch.where(explores[:, None], anything, torch.from_numpy(otherwise["action"]).double())
    if "extras.log_prob" not in otherwise:
        return otherwise | _answer(action)
    density = -torch.log(2.0 * scale).sum()
    return _answer(action, torch.where(explores, density, torch.from_numpy(otherwise["extras.log_prob"]).double()))


def _normal(noise: torch.Tensor) -> torch.Tensor:
    """Box–Muller over neighbouring pairs: √(−2 ln(1 − u₀)) · cos(2π u₁), rounded to float32; an odd last is left."""
    even = noise.double()[:, : noise.shape[1] // 2 * 2]
    first, second = even[:, 0::2], even[:, 1::2]
    return (torch.sqrt(-2.0 * torch.log(1.0 - first)) * torch.cos(2.0 * math.pi * second)).float().double()


def _scale_and_middle(box: BoxAction) -> tuple[torch.Tensor, torch.Tensor]:
    low, high = torch.tensor(box.low, dtype=torch.float64), torch.tensor(box.high, dtype=torch.float64)
    return (high - low) / 2.0, (high + low) / 2.0


def _parts(array: torch.Tensor, action: ActionSpec) -> list[torch.Tensor]:
    return list(array.split(list(action.sizes), dim=1)) if action.kind in ("multi_discrete", "mixed") else [array]


def _joined(choices: list[torch.Tensor], action: ActionSpec) -> torch.Tensor:
    return torch.stack(choices, dim=1) if action.kind == "multi_discrete" else choices[0]


def _answer(action: torch.Tensor, log_prob: torch.Tensor | None = None) -> dict[str, Array]:
    # One byte holds every choice; readers compare values.
    dtype = torch.float32 if action.is_floating_point() else torch.uint8
    answer = {"action": action.to(dtype).numpy()}
    return answer if log_prob is None else answer | {"extras.log_prob": log_prob.float().numpy()}
