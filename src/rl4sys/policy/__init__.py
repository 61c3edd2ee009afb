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
from rl4sys.policy.noise import KeyedNoise, StreamNoise, noise_of
from rl4sys.policy.numpy_policy import Decision, NumpyPolicy, UnknownOp, layout_of
from rl4sys.policy.ops import COMPILERS
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
    "MASK",
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
    "NoAllowedAction",
    "NumpyPolicy",
    "Op",
    "PolicyFileDamaged",
    "PolicySpec",
    "PortablePolicy",
    "Program",
    "ProgramBuilder",
    "StreamNoise",
    "Tensor",
    "UnknownOp",
    "action_array",
    "action_encoder",
    "action_vectors",
    "candidate_arrays",
    "layout_of",
    "noise_of",
    "noise_size",
    "output_size",
    "real_rows",
]
