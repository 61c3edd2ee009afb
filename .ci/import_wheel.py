"""Import the light client from an installed wheel, outside the source tree."""

import sys
from pathlib import Path

import rl4sys

where = Path(rl4sys.__file__).parent
if "site-packages" not in where.parts:
    raise SystemExit(f"rl4sys was imported from {where}; expected an installed wheel.")
for name in ("connect", "run_environment", "Ending", "RL4SysAgent"):
    getattr(rl4sys, name)
if heavy := {"torch", "pydantic", "gymnasium", "typer"} & sys.modules.keys():
    raise SystemExit(
        f"The light client imported {', '.join(sorted(heavy))}; expected numpy, grpcio, protobuf, zstandard."
    )
if not list((where / "configs").rglob("*.yaml")):
    raise SystemExit(f"The wheel has no configs in {where / 'configs'}; see force-include in pyproject.toml.")
print(f"rl4sys {rl4sys.__version__} imports on Python {sys.version.split()[0]}.")
