"""Options as other libraries and the first RL4Sys have them, rewritten as arguments of ours.

`train --config X`, `train --resume DIR`, `--total_timesteps N`, `--exp-name NAME`, `--universe gym --domain HalfCheetah
--task v5`. Any other option that a command does not have becomes a setting: `--lr 1e-3` is `lr=1e-3`, which is then
refused with the exact key, and `--algorithm.lr 1e-3` is `algorithm.lr=1e-3`.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence

COMMANDS = ("train", "resume", "sweep", "tune")
"""Commands that take settings as KEY=VALUE."""
_NAMES = {"exp_name": "--name", "experiment_name": "--name", "run_name": "--name", "algo": "--algorithm"}
_RENAMED = _NAMES | {"env_id": "--env", "environment": "--env"}
_SETTINGS = {
    "total_timesteps": "training.total_timesteps",
    "timesteps": "training.total_timesteps",
    "checkpoint_frequency": "training.checkpoint_frequency",
    "checkpoint_freq": "training.checkpoint_frequency",
    "eval_frequency": "training.eval_frequency",
}
_WORLD = ("universe", "domain", "task")


def rewritten(arguments: Sequence[str], known: Collection[str]) -> list[str]:
    """The arguments of a command with options that it knows; `known` has the names of these, such as `--seed`."""
    command, *rest = arguments
    made, world = [command], dict.fromkeys(_WORLD, "")
    for option, value in _split(rest, known):
        name = option.removeprefix("--").replace("-", "_")
        if not option or (value is None and name in ("config", "resume", *_RENAMED, *_WORLD)):
            made.append(option or str(value))
        elif name == "config":
            made.append(str(value))
        elif name == "resume" and command == "train":
            made = ["resume", str(value), *made[1:]]
        elif name in _WORLD:
            world[name] = str(value)
        elif name in _RENAMED and _RENAMED[name] in known:
            made += [_RENAMED[name], str(value)]
        else:
            made.append(f"{_SETTINGS.get(name, name)}={'true' if value is None else value}")
    if any(world.values()):
        parts = [world["universe"] or "gym", world["domain"], world["task"]]
        made += ["--env", "/".join(part for part in parts if part)]
    return made


def _split(arguments: Sequence[str], known: Collection[str]) -> Iterator[tuple[str, str | None]]:
    """Options that are not known, with their values; every other argument comes as a value without an option."""
    waiting = list(arguments)
    while waiting:
        text = waiting.pop(0)
        option, equals, value = text.partition("=")
        if text == "--":
            yield from (("", rest) for rest in [text, *waiting])
            return
        if not text.startswith("--") or option in known or _is_misspelt(option, known):
            yield "", text
        elif equals:
            yield option, value
        elif waiting and not waiting[0].startswith("--"):
            yield option, waiting.pop(0)
        else:
            yield option, None


def _is_misspelt(option: str, known: Collection[str]) -> bool:
    """Whether one of our own options was probably meant, which the parser then suggests."""
    # Imported here: commands for operators do without the packages that configs need.
    from rl4sys.config.other_names import OTHER_NAMES

    name = option.removeprefix("--").replace("-", "_")
    if "." in name or name in (*_RENAMED, *_SETTINGS, *OTHER_NAMES):
        return False
    return bool(difflib.get_close_matches(option, known, n=1, cutoff=0.8))
