"""Policies as programs, and the numpy runtime that executes them."""

from rl4sys.policy.action_encoding import action_encoder, action_vectors
from rl4sys.policy.action_spec import (
    ActionSpec,
    BoxAction,
    DiscreteAction,
    MixedAction,
    MultiDiscreteAction,
    action_array,
    output_size,
)
from rl4sys.policy.action_structure import ActionStructure, ActionTree
from rl4sys.policy.candidate_heads import NoAllowedAction
from rl4sys.policy.candidates import CANDIDATES, COUNT, candidate_arrays, real_rows
from rl4sys.policy.heads import noise_size
from rl4sys.policy.local_ops import LOCAL_COMPILERS, TORCH_MODULE, cannot_travel
from rl4sys.policy.native_extension import NativeUnavailable, native_extension, native_problem
from rl4sys.policy.native_policy import NativePolicy, row_policy
from rl4sys.policy.noise import KeyedNoise, StreamNoise, noise_of, noise_rows
from rl4sys.policy.numpy_policy import Decision, NumpyPolicy, UnknownOp, layout_of
from rl4sys.policy.ops import COMPILERS
from rl4sys.policy.policy_runtime import (
    NUMPY,
    RunningPolicy,
    RuntimeChoice,
    kernel_set,
    require_kernel_set,
    run_policy,
)
from rl4sys.policy.policy_spec import (
    CLIENT_HEADS,
    HEAD_KINDS,
    Chance,
    Head,
    Memory,
    Op,
    PolicySpec,
    Program,
    Tensor,
)
from rl4sys.policy.portable_policy import PolicyFileDamaged, PortablePolicy
from rl4sys.policy.program_builder import MASK, ProgramBuilder

__all__ = [
    "CANDIDATES",
    "CLIENT_HEADS",
    "COMPILERS",
    "COUNT",
    "HEAD_KINDS",
    "LOCAL_COMPILERS",
    "MASK",
    "NUMPY",
    "TORCH_MODULE",
    "ActionSpec",
    "ActionStructure",
    "ActionTree",
    "BoxAction",
    "Chance",
    "Decision",
    "DiscreteAction",
    "Head",
    "KeyedNoise",
    "Memory",
    "MixedAction",
    "MultiDiscreteAction",
    "NativePolicy",
    "NativeUnavailable",
    "NoAllowedAction",
    "NumpyPolicy",
    "Op",
    "PolicyFileDamaged",
    "PolicySpec",
    "PortablePolicy",
    "Program",
    "ProgramBuilder",
    "RunningPolicy",
    "RuntimeChoice",
    "StreamNoise",
    "Tensor",
    "UnknownOp",
    "action_array",
    "action_encoder",
    "action_vectors",
    "candidate_arrays",
    "cannot_travel",
    "kernel_set",
    "layout_of",
    "native_extension",
    "native_problem",
    "noise_of",
    "noise_rows",
    "noise_size",
    "output_size",
    "real_rows",
    "require_kernel_set",
    "row_policy",
    "run_policy",
]
