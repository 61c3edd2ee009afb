"""Import rl4sys_native from an installed wheel, outside the source tree, and take one decision with it."""

import sys

import numpy as np
import rl4sys_native

SPEC = {
    "action": {"kind": "discrete", "n": 3, "start": 0},
    "program": {
        "inputs": [{"name": "scores", "dtype": "float32", "shape": [3]}],
        "ops": [],
        "tensors": [],
        "carry": [],
    },
    "head": {"kind": "deterministic", "inputs": ["scores"], "tensors": [], "mask": None, "settings": {}},
}
for kernels in rl4sys_native.kernel_sets():
    policy = rl4sys_native.RowPolicy(SPEC, kernels)
    action = np.zeros(1, np.int64)
    scores, noise = np.array([[0.0, 2.0, 1.0]], np.float32), np.zeros((1, 0), np.float32)
    decided = policy.decide_rows((scores,), 0, 1, noise, None, action, None, (), np.zeros(1, np.uint8))
    if not decided or action[0] != 1:
        raise SystemExit(f"The kernels '{kernels}' chose {action[0]}; expected 1.")
sets = ", ".join(rl4sys_native.kernel_sets())
print(f"rl4sys-native {rl4sys_native.__version__} decides on Python {sys.version.split()[0]} with {sets}.")
