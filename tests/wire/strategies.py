"""Hypothesis strategies for everything that is sent, and the segments of Lunar Lander."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rl4sys.experience import Array, Arrays, ArraySpec, Ending, Segment, SegmentSchema, StreamKey
from rl4sys.policy import (
    HEAD_KINDS,
    MASK,
    ActionSpec,
    BoxAction,
    Chance,
    DiscreteAction,
    Head,
    Memory,
    MultiDiscreteAction,
    Op,
    PolicySpec,
    Program,
    ProgramBuilder,
    Tensor,
    action_array,
)
from rl4sys.wire import SegmentFormat

INTEGERS = [f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)]
DTYPES = ["bool", "float16", "float32", "float64", *INTEGERS]
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
array_specs = st.builds(ArraySpec, texts, st.sampled_from(DTYPES), shapes)
groups = st.lists(array_specs, max_size=3, unique_by=lambda spec: spec.name).map(tuple)
bounds = st.tuples(st.floats(allow_nan=False), st.floats(allow_nan=False)).map(sorted)
boxes = st.lists(bounds, min_size=1, max_size=4).map(lambda pairs: BoxAction(*map(tuple, zip(*pairs, strict=True))))
counts = st.one_of(st.integers(1, 5), st.sampled_from([255, 256, 257, 65_536, 65_537, 2**32, 2**32 + 1]))
actions: st.SearchStrategy[ActionSpec] = st.one_of(
    st.builds(DiscreteAction, counts, st.integers(-5, 5)),
    st.builds(MultiDiscreteAction, st.lists(counts, min_size=1, max_size=4).map(tuple)),
    boxes,
)
reals = st.floats(allow_nan=False, allow_infinity=False)
integers = st.integers(-(2**63), 2**63 - 1)
values = st.one_of(st.booleans(), integers, reals, st.text(max_size=5), st.lists(integers, max_size=3), st.lists(reals))
settings = st.dictionaries(texts, values, max_size=3)
chances = st.tuples(st.integers(1, 8), st.sampled_from(["normal", "uniform"]))


@st.composite
def policies(draw: st.DrawFn) -> PolicySpec:
    """Programs in which every name is defined, which is all that a message guarantees."""
    first, second, memory, *assigned = draw(st.lists(texts, min_size=3, max_size=7, unique=True))
    inputs = tuple(ArraySpec(name, draw(st.sampled_from(DTYPES)), draw(shapes)) for name in (first, second))
    tensors = tuple(Tensor(name, draw(shapes)) for name in draw(st.lists(texts, min_size=1, max_size=3, unique=True)))
    remembers = draw(st.booleans())
    known = [first, second, memory] if remembers else [first, second]
    ops = []
    for name in assigned:
        reads = tuple(draw(st.lists(st.sampled_from(known), max_size=2)))
        weights = tuple(tensor.name for tensor in draw(st.lists(st.sampled_from(tensors), max_size=2)))
        ops.append(Op(draw(texts), (name,), reads, weights, draw(settings)))
        known.append(name)
    carry = (Memory(memory, draw(shapes), known[-1]),) if remembers else ()
    kind = draw(st.sampled_from(HEAD_KINDS))
    chance = {"noise": "".join(known), "size": draw(st.integers(1, 8)), "std": draw(st.floats(0, 9))}
    constants = chance if kind == "noise_conditioned" else {}
    head = Head(kind, (known[-1],), (tensors[0].name,), draw(st.none() | st.just(first)), constants)
    drawn = tuple(Chance(f"{''.join(known)}{i}", *draw(chances)) for i in range(draw(st.integers(0, 2))))
    program = Program(inputs, tuple(ops), tensors, carry, drawn)
    model = Program(inputs, (), tensors, (Memory(memory, draw(shapes), first),), drawn)
    return PolicySpec(draw(actions), program, head, model if kind == "planned" else None)


@st.composite
def formats(draw: st.DrawFn) -> SegmentFormat:
    action = draw(actions)
    choices = {"discrete": lambda: (action.n,), "multi_discrete": lambda: action.sizes, "box": tuple}[action.kind]()
    schema = SegmentSchema(draw(groups), action_array(action), draw(groups), draw(groups))
    return SegmentFormat(schema, choices)


def _array(draw: st.DrawFn, spec: ArraySpec, *rows: int) -> Array:
    dtype = np.dtype(spec.dtype)
    finite = {"allow_nan": False, "allow_infinity": False} if dtype.kind == "f" else {}
    return draw(hnp.arrays(dtype, (*rows, *spec.shape), elements=hnp.from_dtype(dtype, **finite), fill=st.nothing()))


def _arrays(draw: st.DrawFn, specs: tuple[ArraySpec, ...], *rows: int) -> Arrays:
    return {spec.name: _array(draw, spec, *rows) for spec in specs}


@st.composite
def formatted_segments(draw: st.DrawFn) -> tuple[SegmentFormat, Segment]:
    """A format, and a segment that follows it."""
    form = draw(formats())
    steps = draw(st.integers(1, 4))
    action = _array(draw, form.schema.action, steps)
    if form.choices:
        action %= np.array(form.choices, np.int64).reshape(form.schema.action.shape)
    numbers = st.integers(0, 2**63 - 1)
    segment = Segment(
        StreamKey("client", draw(texts), draw(numbers)),
        draw(numbers),
        draw(numbers),
        draw(numbers),
        draw(st.sampled_from(Ending)),
        _arrays(draw, form.schema.observation, steps + 1),
        action,
        _array(draw, ArraySpec("reward", "float32", ()), steps),
        _arrays(draw, form.schema.extras, steps),
        _arrays(draw, form.schema.carry),
    )
    return form, segment


LANDER = SegmentFormat(
    SegmentSchema(
        (ArraySpec("observation", "float32", (8,)),),
        ArraySpec("action", "int64", ()),
        (ArraySpec("log_prob", "float32", ()),),
    ),
    (4,),
)
RICH = SegmentFormat(
    SegmentSchema(
        (ArraySpec("image", "uint8", (4, 3, 1)), ArraySpec("queue", "float64", ()), ArraySpec(MASK, "bool", (5,))),
        ArraySpec("action", "int64", (2,)),
        (ArraySpec("log_prob", "float32", ()),),
        (ArraySpec("core.hidden", "float32", (3,)), ArraySpec("core.count", "int64", ())),
    ),
    (3, 300),
)


def lander_segment(steps: int = 100) -> Segment:
    rng = np.random.default_rng(3)
    return Segment(
        StreamKey("lander"),
        episode=1234,
        start=300,
        policy_version=567,
        ending=Ending.CONTINUES,
        observation={"observation": rng.standard_normal((steps + 1, 8), np.float32)},
        action=rng.integers(0, 4, steps),
        reward=rng.standard_normal(steps, np.float32),
        extras={"log_prob": rng.standard_normal(steps, np.float32)},
        carry={},
    )


def rich_segment(steps: int = 3) -> Segment:
    rng = np.random.default_rng(4)
    return Segment(
        StreamKey("camera", "left", 2),
        episode=5,
        start=0,
        policy_version=1,
        ending=Ending.TERMINATED,
        observation={
            "image": rng.integers(0, 256, (steps + 1, 4, 3, 1), np.uint8),
            "queue": rng.standard_normal(steps + 1),
            MASK: rng.random((steps + 1, 5)) < 0.5,
        },
        action=rng.integers(0, [3, 300], (steps, 2)),
        reward=rng.standard_normal(steps, np.float32),
        extras={"log_prob": rng.standard_normal(steps, np.float32)},
        carry={"core.hidden": np.ones(3, np.float32), "core.count": np.array(7)},
    )


def recurrent_policy() -> PolicySpec:
    """One op of each shape: settings, two outputs, a memory, a mask."""
    builder = ProgramBuilder((ArraySpec("state", "float32", (3,)), ArraySpec(MASK, "bool", (4,))))
    features = builder.layer_norm(builder.features(standardize=True), "norm")
    logits = builder.activation(builder.linear(builder.lstm(features, 5, "core"), 4, "out"), "leaky_relu")
    return PolicySpec(DiscreteAction(4, start=-1), builder.program(), Head("categorical", (logits,), mask=MASK))
