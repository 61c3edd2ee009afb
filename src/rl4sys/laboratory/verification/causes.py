"""Why a repetition probably differs: what is not as it was, the likeliest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rl4sys.config import plugin_hashes
from rl4sys.environments import Grade
from rl4sys.experiments import Run
from rl4sys.experiments.machine import fingerprint_of_machine
from rl4sys.laboratory.verification.differences import Difference

_OF_ENVIRONMENTS = ("gymnasium", "box2d", "mujoco", "dm_control")
_OF_ARITHMETIC = ("threads", "device", "cpu", "torch", "numpy")


def facts_now(run: Run, config: str) -> dict[str, Any]:
    """What a manifest would say about a run, whose config has this hash, if it were made now."""
    return {
        **fingerprint_of_machine(),
        "seed": run.config.experiment.seed,
        "device": str(run.components.device),
        "threads": run.threads,
        "grade": run.components.grade.name,
        "config": config,
        "plugins": plugin_hashes(run.config.plugins),
    }


def changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """What differs between two descriptions of a run, in a sentence each, by name."""
    told = {
        name: f"{name} was {was[name]}, now {now[name]}"
        for name in ("rl4sys", "python", "seed", "device", "threads", "cpu", "platform", "cores")
        if name in was and was[name] != now[name]
    }
    for name, version in was["packages"].items():
        if version != now["packages"].get(name):
            told[name] = f"{name} was {version or 'not installed'}, now {now['packages'].get(name) or 'not installed'}"
    if was["grade"] != now["grade"]:
        told["grade"] = f"the environment's exactness was {was['grade']}, now {now['grade']}"
    if was["config"] != now["config"]:
        told["config"] = "config.yaml was changed after the run began"
    for path, sha in was.get("plugins", {}).items():
        if now["plugins"].get(path) != sha:
            told[path] = f"the plug-in {path} was changed or is gone"
    return told | _of_git(was.get("git"), now["git"])


def likely_causes(was: Mapping[str, Any], now: Mapping[str, Any], difference: Difference) -> tuple[str, ...]:
    """What may explain a difference, the likeliest first; never nothing."""
    told = changes(was, now)
    first = _OF_ARITHMETIC if difference.first in ("weights", "algorithm") else (*_OF_ENVIRONMENTS, "grade")
    nearest = [told.pop(name) for name in (*(name for name in told if name.endswith(".py")), *first) if name in told]
    causes = [*nearest, *_of_course(was, difference), *told.values()]
    return tuple(causes) or (_without_reason(difference),)


def resume_causes(resumed: Run, difference: Difference) -> tuple[str, ...]:
    """What may explain that a run which was interrupted did not go on exactly; never nothing."""
    causes = [f"it went on, but not exactly, at {reason}" for reason in resumed.inexact]
    if resumed.components.grade in (Grade.E3, Grade.E4):
        causes.append(f"the environment has grade {resumed.components.grade.name}: {resumed.components.grade.value}")
    if causes:
        return tuple(causes)
    if difference.first == "trajectory":
        return ("the environment or a wrapper keeps something that its state leaves out, such as a generator",)
    return ("the `state` of the algorithm, the buffer or a plug-in leaves out something that updates depend on",)


def _of_git(was: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> dict[str, str]:
    if not was or not now:
        return {}
    if was["revision"] != now["revision"]:
        return {"git": f"the git revision was {was['revision'][:12]}, now {now['revision'][:12]}"}
    if was["dirty"] or now["dirty"]:
        when = "then and now" if was["dirty"] and now["dirty"] else "then" if was["dirty"] else "now"
        return {"git": f"the code had changes that were not committed ({when}), so the same revision proves little"}
    return {}


def _of_course(was: Mapping[str, Any], difference: Difference) -> Iterator[str]:
    """What the run's own history says."""
    if Grade[was["grade"]] in (Grade.E3, Grade.E4):
        yield f"the environment has grade {was['grade']}: {Grade[was['grade']].value}"
    for reason in was["inexact"]:
        step = reason.partition(":")[0].removeprefix("step ")
        if step.isdigit() and int(step) <= difference.step:
            yield f"the run itself went on, but not exactly, at {reason}"


def _without_reason(difference: Difference) -> str:
    if difference.first == "trajectory":
        return (
            "nothing that was recorded differs, so something draws chance that no seed reaches, or looks at a clock: "
            "look at the environment, at wrappers and plug-ins first"
        )
    if difference.first == "metrics":
        return "what was learned is equal, so the metrics themselves or the evaluation are computed otherwise"
    return (
        "what was collected is equal, so the arithmetic is not: look for operations of the algorithm or its networks "
        "that are not deterministic on this device"
    )
