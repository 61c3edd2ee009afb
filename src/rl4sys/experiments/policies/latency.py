"""The latency of one decision of a policy, in each installed runtime."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

from rl4sys.experience import StreamKey
from rl4sys.experiments.policies.description import ForeignModel
from rl4sys.experiments.policies.export import spec_for_onnx
from rl4sys.experiments.policies.greedy import greedy, is_supported
from rl4sys.experiments.policies.onnx_policy import OnnxPolicy, onnx_model
from rl4sys.experiments.policies.parity import some_observations
from rl4sys.experiments.threads import act_with_one_thread
from rl4sys.policy import KeyedNoise, NumpyPolicy, PolicySpec, PortablePolicy, layout_of


class Latency(NamedTuple):
    """Microseconds of one call that decides for all rows; a tenth of the calls warms up and is not counted."""

    runtime: str
    policy: str
    median: float
    p99: float


def bench_policy(policy: PortablePolicy, rows: int, decisions: int) -> Iterator[Latency]:
    """Both policies in the numpy runtime, and the best action in onnxruntime where that is installed."""
    act_with_one_thread()
    for name, spec in (("exploit", policy.exploit), ("explore", policy.explore)):
        yield _timed("numpy", name, decisions, _numpy_call(spec, policy, rows))
    spec = spec_for_onnx(policy)
    if is_supported(spec) and all(importlib.util.find_spec(package) for package in ("onnx", "onnxruntime")):
        model = OnnxPolicy(onnx_model(spec, policy))
        weights = np.asarray(policy.weights, np.float32)
        yield _timed("onnxruntime", "exploit", decisions, _onnx_call(model, spec, weights, rows))


def bench_onnx(path: Path, rows: int, decisions: int) -> Iterator[Latency]:
    """A model that was exported before."""
    model = OnnxPolicy(path.read_bytes())
    if "rl4sys.spec" not in model.properties:
        raise ForeignModel(f"{path} was not exported by rl4sys; it does not say what it observes. Give one that was.")
    spec = PolicySpec.from_json(model.properties["rl4sys.spec"])
    nothing = np.zeros(layout_of(spec.program).size, np.float32)
    yield _timed("onnxruntime", "exploit", decisions, _onnx_call(model, spec, nothing, rows))


def _numpy_call(spec: PolicySpec, policy: PortablePolicy, rows: int) -> Callable[[int], object]:
    runtime = NumpyPolicy(spec, policy.weights)
    streams = [StreamKey("bench", lane=lane) for lane in range(rows)]
    noise, carry = KeyedNoise(0, streams, runtime.noise_size), runtime.initial_carry(rows)
    observation = some_observations(spec, policy.weights, rows, np.random.default_rng(0))
    return lambda number: runtime.act(observation, noise.at(number), carry)


def _onnx_call(model: OnnxPolicy, spec: PolicySpec, weights: np.ndarray, rows: int) -> Callable[[int], object]:
    observation = some_observations(spec, weights, rows, np.random.default_rng(0))
    carry = {memory.name: np.zeros((rows, *memory.shape), np.float32) for memory in greedy(spec).program.carry}
    return lambda number: model.run(observation, carry)


def _timed(runtime: str, policy: str, decisions: int, call: Callable[[int], object]) -> Latency:
    warm_up, times = decisions // 10, np.empty(decisions)
    for number in range(-warm_up, decisions):
        begin = perf_counter_ns()
        call(number + warm_up)
        if number >= 0:
            times[number] = (perf_counter_ns() - begin) / 1000
    return Latency(runtime, policy, float(np.median(times)), float(np.percentile(times, 99)))
