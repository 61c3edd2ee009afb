"""The native runtime of RL4Sys for Python. Install it with `pip install rl4sys[native]`; rl4sys finds it by itself."""

from rl4sys_native._core import ActContext, ActForm, ActPath, Columns, RowPolicy, kernel_sets, known_ops, noise_rows
from rl4sys_native._core import version as __version__

__all__ = [
    "ActContext",
    "ActForm",
    "ActPath",
    "Columns",
    "RowPolicy",
    "__version__",
    "kernel_sets",
    "known_ops",
    "noise_rows",
]
