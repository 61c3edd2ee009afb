"""Likely causes of a difference: what has changed since the run was recorded, the likeliest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rl4sys.config import plugin_hashes
from rl4sys.environments import Grade
from rl4sys.experiments import Run
from rl4sys.experiments.manifest import fingerprint_of_machine
from rl4sys.laboratory.verification.differences import Difference

_ENVIRONMENT_PACKAGES = ("gymnasium", "box2d", "mujoco", "dm_control")
_ARITHMETIC = ("threads", "kernels", "device", "cpu", "torch", "numpy")


def current_manifest(run: Run, config: str) -> dict[str, Any]:
    """The manifest of a run, whose config has this hash, as it would be written now."""
    return {
        **fingerprint_of_machine(),
        "seed": run.config.experiment.seed,
        "device": str(run.components.device),
        "threads": run.threads,
        "kernels": run.components.kernels,
        "grade": run.components.grade.name,
        "config": config,
        "plugins": plugin_hashes(run.config.plugins),
    }


def changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """What differs between two manifests: a sentence by name."""
    found = {
        name: f"{name} was {was[name]}, now {now[name]}"
        for name in ("rl4sys", "python", "seed", "device", "threads", "kernels", "cpu", "platform", "cores")
        if name in was and was[name] != now[name]
    }
    for name, version in was["packages"].items():
        if version != now["packages"].get(name):
            found[name] = f"{name} was {version or 'not installed'}, now {now['packages'].get(name) or 'not installed'}"
    if was["grade"] != now["grade"]:
        found["grade"] = f"the environment's exactness was {was['grade']}, now {now['grade']}"
    if was["config"] != now["config"]:
        found["config"] = "config.yaml was changed after the run began"
    for path, sha in was.get("plugins", {}).items():
        if now["plugins"].get(path) != sha:
            found[path] = f"the plug-in {path} was changed or is gone"
    return found | _from_git(was.get("git"), now["git"])


def likely_causes(was: Mapping[str, Any], now: Mapping[str, Any], difference: Difference) -> tuple[str, ...]:
    """What may explain a difference, the likeliest first; at least one cause."""
    found = changes(was, now)
    first = _ARITHMETIC if difference.first in ("weights", "algorithm") else (*_ENVIRONMENT_PACKAGES, "grade")
    nearest = [found.pop(name) for name in (*(name for name in found if name.endswith(".py")), *first) if name in found]
    causes = [*nearest, *_from_history(was, difference), *found.values()]
    return tuple(causes) or (_unexplained(difference),)


def resume_causes(resumed: Run, difference: Difference) -> tuple[str, ...]:
    """What may explain that an interrupted run did not resume exactly; at least one cause."""
    causes = [f"it resumed, but not exactly, at {reason}" for reason in resumed.inexact]
    if resumed.components.grade in (Grade.E3, Grade.E4):
        causes.append(f"the environment has grade {resumed.components.grade.name}: {resumed.components.grade.value}")
    if causes:
        return tuple(causes)
    if difference.first == "trajectory":
        return ("the environment or a wrapper has something that its saved state lacks, such as a random generator",)
    return ("the `state` of the algorithm, the buffer or a plug-in lacks something that updates depend on",)


def _from_git(was: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> dict[str, str]:
    if not was or not now:
        return {}
    if was["revision"] != now["revision"]:
        return {"git": f"the git revision was {was['revision'][:12]}, now {now['revision'][:12]}"}
    if was["dirty"] or now["dirty"]:
        when = "then and now" if was["dirty"] and now["dirty"] else "then" if was["dirty"] else "now"
        return {"git": f"the code had uncommitted changes ({when}), so the same revision proves little"}
    return {}


def _from_history(was: Mapping[str, Any], difference: Difference) -> Iterator[str]:
    """Causes in the history of the run itself."""
    if Grade[was["grade"]] in (Grade.E3, Grade.E4):
        yield f"the environment has grade {was['grade']}: {Grade[was['grade']].value}"
    for reason in was["inexact"]:
        step = reason.partition(":")[0].removeprefix("step ")
        if step.isdigit() and int(step) <= difference.step:
            yield f"the run itself resumed, but not exactly, at {reason}"


def _unexplained(difference: Difference) -> str:
    if difference.first == "trajectory":
        return (
            "nothing in the manifest differs, so something uses unseeded randomness or the clock: "
            "check the environment, wrappers and plug-ins first"
        )
    if difference.first == "metrics":
        return "what was learned is equal, so the metrics or the evaluation are computed differently"
    return (
        "the collected data is equal, so the arithmetic differs: look for operations of the algorithm or its networks "
        "that are not deterministic on this device"
    )
