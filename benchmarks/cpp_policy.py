"""Time of one decision of the C++ policy runtime, compared with ONNX Runtime, both on one thread and in turns.

Run `make cpp` and `python benchmarks/cpp_policy.py` (needs `pip install 'rl4sys[onnx]'`). The same weights decide in
both: as a `.rl4sys` spec in C++, and as the ONNX model that `rl4sys policy export --format onnx` writes, through ONNX
Runtime's own C++ library with IO binding. Times are CPU time. Blocks of decisions alternate, so that both have the
same neighbours, and the figures are medians over the blocks. The call from Python that ONNX Runtime's figure contains
is measured with a model that copies one number, and shown. Weights are random: about half of what leaves a ReLU is 0.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import thread_time_ns
from typing import Any

import numpy as np

from rl4sys.experience import ArraySpec
from rl4sys.experiments.policies.onnx_policy import onnx_model
from rl4sys.policy import DiscreteAction, Head, PolicySpec, PortablePolicy, ProgramBuilder, layout_of

ROOT = Path(__file__).parents[1]
BUILD = Path(os.environ.get("RL4SYS_CPP_BUILD", ROOT / "cpp" / "build" / "release"))
CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Filters, kernel and stride of the Nature CNN (Mnih et al., 2015)."""


def dense(inputs: int, width: int, choices: int) -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("state", "float32", (inputs,)),))
    register = "state"
    for layer in range(2):
        register = builder.activation(builder.linear(register, width, f"actor.{layer}"), "tanh")
    return _deterministic(builder, builder.linear(register, choices, "actor.action"), choices)


def nature_cnn(choices: int = 6) -> PolicySpec:
    """84 × 84 pixels with 4 frames, as bytes."""
    frames = ArraySpec("frames", "uint8", (84, 84, 4))
    builder = ProgramBuilder((frames,))
    register = builder.channels_first(builder.numbers(frames, standardize=False))
    for number, (filters, kernel, stride) in enumerate(CONVOLUTIONS):
        register = builder.activation(builder.conv2d(register, filters, kernel, f"cnn.{number}", stride=stride), "relu")
    register = builder.activation(builder.linear(builder.flat(register), 512, "actor.0"), "relu")
    return _deterministic(builder, builder.linear(register, choices, "actor.action"), choices)


def _deterministic(builder: ProgramBuilder, scores: str, choices: int) -> PolicySpec:
    return PolicySpec(DiscreteAction(choices), builder.program(), Head("deterministic", (scores,)))


POLICIES = {
    "8→64→64→4": (dense(8, 64, 4), 2000),
    "64→512→512→8": (dense(64, 512, 8), 200),
    "Nature CNN 84×84×4": (nature_cnn(), 30),
}
"""Each with the decisions of one block."""


class InCpp:
    """The C++ runtime, in a process of its own that decides when it is asked to."""

    def __init__(self, spec: PolicySpec, weights: np.ndarray, folder: Path, kernel_set: str | None) -> None:
        program = BUILD / "benchmarks" / "rl4sys_turns_benchmark"
        if not program.is_file():
            raise SystemExit(f"{program} is missing. Run `make cpp` first.")
        (folder / "spec.json").write_text(spec.to_json(), encoding="utf-8")
        (folder / "weights.bin").write_bytes(weights.tobytes())
        command = [str(program), str(folder / "spec.json"), str(folder / "weights.bin")]
        command += [] if kernel_set is None else [kernel_set]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def block(self, rows: int, decisions: int) -> float:
        """Microseconds of one decision for all rows."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{rows} {decisions}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.process.args} ended with code {self.process.wait()}; see its message above.")
        return float(answer) / 1000

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


class InOnnxRuntime:
    """The exported model, with inputs and outputs bound once."""

    def __init__(self, model: bytes, inputs: dict[str, np.ndarray]) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.inputs = inputs
        for name, array in inputs.items():
            self.binding.bind_cpu_input(name, array)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name, "cpu")

    def block(self, decisions: int) -> float:
        """Microseconds of one call."""
        run, binding = self.session.run_with_iobinding, self.binding
        begin = thread_time_ns()
        for _ in range(decisions):
            run(binding)
        return (thread_time_ns() - begin) / 1000 / decisions


def call_overhead() -> float:
    """Microseconds of a call that computes nothing."""
    import onnx

    one = onnx.helper.make_tensor_value_info("x", 1, [1])
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "copy", [one], [onnx.helper.make_tensor_value_info("y", 1, [1])])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return InOnnxRuntime(model.SerializeToString(), {"x": np.zeros(1, np.float32)}).block(5000)


@contextmanager
def both(spec: PolicySpec, rows: int, kernel_set: str | None) -> Iterator[tuple[InCpp, InOnnxRuntime]]:
    rng = np.random.default_rng(0)
    weights = (0.05 * rng.standard_normal(layout_of(spec.program).size)).astype(np.float32)
    policy = PortablePolicy(spec, spec, weights, 0, 0)
    inputs = {array.name: _some_rows(array, rows) for array in spec.program.inputs}
    with tempfile.TemporaryDirectory() as folder:
        cpp = InCpp(spec, weights, Path(folder), kernel_set)
        try:
            yield cpp, InOnnxRuntime(onnx_model(spec, policy), inputs)
        finally:
            cpp.close()


def _some_rows(array: ArraySpec, rows: int) -> np.ndarray:
    """The same as in the C++ program: bytes from 0 to 255, or float32 from 0 to 1."""
    values = (np.arange(rows * int(np.prod(array.shape))) * 37).astype(np.uint8).reshape(rows, *array.shape)
    return values if array.dtype == "uint8" else (values / 255).astype(np.float32)


def compare(spec: PolicySpec, rows: int, decisions: int, blocks: int, kernel_set: str | None) -> dict[str, float]:
    with both(spec, rows, kernel_set) as (cpp, other):
        cpp.block(rows, decisions)
        other.block(decisions)
        pairs = [(cpp.block(rows, decisions), other.block(decisions)) for _ in range(blocks)]
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {"cpp_us": ours, "onnxruntime_us": theirs, "ratio": statistics.median(a / b for a, b in pairs)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, default=30, help="blocks of decisions of each runtime")
    parser.add_argument("--kernels", help="a kernel set, such as avx2; by default the fastest of this machine")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    results: dict[str, Any] = {"call_us": call_overhead()}
    for name, (spec, decisions) in POLICIES.items():
        for rows in (1, 8):
            block = max(5, decisions // rows)
            results[f"{name}, {rows} row(s)"] = compare(spec, rows, block, options.blocks, options.kernels)
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print(f"a call of ONNX Runtime from Python that computes nothing: {results.pop('call_us'):.1f} µs")
    print(f"{'':32}{'C++ µs':>10}{'ONNX µs':>10}{'C++ / ONNX':>12}")
    for name, found in results.items():
        print(f"{name:32}{found['cpp_us']:10.2f}{found['onnxruntime_us']:10.2f}{found['ratio']:12.2f}")
    print("targets: the Nature CNN below 1, 512 wide at most 1, 8→64→64→4 at most 0.5 µs")


if __name__ == "__main__":
    main()
