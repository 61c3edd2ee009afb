"""Finds a trained policy: of a run, a checkpoint, a server's learner, or a file.

Not among the names of the package: with it comes the server, which a process that trains does not need.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rl4sys.algorithms import Algorithm
from rl4sys.checkpoints import CheckpointDamaged, Checkpoints, LoadedCheckpoint, NoCheckpoint
from rl4sys.config import ConfigError
from rl4sys.engine import Progress
from rl4sys.environments import ENVIRONMENTS, EnvironmentConfig, Grade
from rl4sys.experience import Array
from rl4sys.experiments.components import Components
from rl4sys.experiments.config import load_experiment
from rl4sys.experiments.run_directory import RunDamaged, RunDirectory, find_run
from rl4sys.experiments.saved_policies import BEST, LATEST
from rl4sys.policy import PolicyFileDamaged, PolicySpec, PortablePolicy
from rl4sys.policy.portable_policy import SUFFIX
from rl4sys.run_files import CHECKPOINTS, POLICIES
from rl4sys.server.learners.learner_setup import LearnerSetup, is_learner
from rl4sys.server.workers.learner_config import build_learner, resolve
from rl4sys.state import State
from rl4sys.suggestions import did_you_mean_one_of
from rl4sys.weights.layout import FLOAT32
from rl4sys.wire import require_decides

_log = logging.getLogger(__name__)

_KEPT = 2
"""Nothing is written here, so how many checkpoints are kept does not matter."""


class PolicyNotFound(FileNotFoundError):
    """There is no policy in the given place."""


@dataclass(frozen=True, slots=True)
class TrainingState:
    """Where a policy comes from, as far as that is known: the algorithm, its state and progress at the checkpoint."""

    algorithm: Algorithm
    state: Any
    progress: Progress
    observations: Any = None
    """The statistics of observations; None without any."""
    rewards: Any = None
    """The statistics of rewards; None without any."""

    def learner_state(self) -> State:
        """What a learner of the same algorithm and shapes can continue from."""
        return {"algorithm": self.state, "observations": self.observations, "rewards": self.rewards}

    def weights(self) -> Array:
        """The weights that the training network itself holds."""
        self.algorithm.train_state.restore(self.state)
        self.algorithm.train_state.advance(self.progress)
        return self.algorithm.train_state.policy_weights()


@dataclass(frozen=True, slots=True)
class TrainedPolicy:
    """A policy with what is known about it."""

    origin: Path
    """The run, checkpoint, learner or file that it was read from."""
    policy: PortablePolicy
    name: str
    """For files that are made of it."""
    environment: EnvironmentConfig | None = None
    """What it was trained in, where that is known."""
    training: TrainingState | None = None
    skipped: tuple[str, ...] = ()
    """Damaged checkpoints that would have come first."""


def find_policy(text: str | Path, *, best: bool = True) -> TrainedPolicy:
    """The policy of a path: a run, one of its checkpoints, a learner of a server, a folder or file of a policy.

    A file within one of these stands for it, and the beginning of a name for a run in `runs/`. Of a run, `best` takes
    the best checkpoint instead of the newest.
    """
    path = Path(text)
    if path.parent.name == POLICIES and (saved := path.with_name(f"{path.name}{SUFFIX}")).is_file():
        path = saved
    if path.is_file():
        if path.suffix == SUFFIX:
            return _of_file(path)
        if path.suffix == ".onnx":
            raise PolicyNotFound(
                f"'{text}' is an ONNX file, made for other programs. Give the run or {SUFFIX} file that it came from."
            )
        path = path.parent
    elif path.suffix in (SUFFIX, ".onnx") and not path.exists():
        raise PolicyNotFound(
            f"There is no file '{text}'. {_similar_files(path)}Write one with: rl4sys policy export RUN"
        )
    if (path / "exploit.json").is_file():
        return _of_policy_folder(path)
    place = path.resolve()
    if place.parent.name == CHECKPOINTS and place.name.isdigit() and place.is_dir():
        return _of_directory(place.parent.parent, step=int(place.name), best=False)
    if place.name == CHECKPOINTS and place.is_dir():
        return _of_directory(place.parent, step=None, best=best)
    if is_learner(path):
        return _of_directory(path, step=None, best=best)
    return _of_run(find_run(path), best=best)


def _of_run(run: RunDirectory, *, best: bool) -> TrainedPolicy:
    """The policy of a checkpoint; where environment or plug-ins cannot be loaded, the one that the run saved."""
    names = (BEST, LATEST) if best else (LATEST,)
    files = [file for name in names if (file := run.policies / f"{name}{SUFFIX}").is_file()]
    try:
        return _of_directory(run.path, step=None, best=best)
    except (CheckpointDamaged, NoCheckpoint, RunDamaged):
        raise
    except Exception as error:  # whatever importing a user's own code raises
        if not files:
            raise
        _log.warning(
            "What %s was trained with cannot be loaded here: %s Using the policy that it saved, %s.",
            *(run.path, str(error).rstrip(".") + ".", files[0]),
        )
        return replace(_of_file(files[0]), name=run.path.resolve().name)


def _similar_files(path: Path) -> str:
    files = [file.name for file in path.parent.iterdir() if file.is_file()] if path.parent.is_dir() else []
    hint = did_you_mean_one_of(path.name, files)
    return f"{hint} " if hint else ""


def _of_directory(directory: Path, *, step: int | None, best: bool) -> TrainedPolicy:
    """The policy of a run or a learner; a step that was asked for must be whole, otherwise the newest good one is."""
    if is_learner(directory):
        setup = LearnerSetup.read(directory)
        algorithm = build_learner(resolve(setup.algorithm, setup.parameters), setup, is_new=False).algorithm
        environment, name, total_steps = None, setup.learner, None
        advice = "The learner has not saved one yet: it does so at its checkpoint_frequency and when the server stops."
    else:
        run = find_run(directory)
        config = load_experiment(run.config)
        algorithm = Components(config, torch.device("cpu"), Grade.E3).algorithm()
        environment, name, advice = config.environment, directory.resolve().name, None
        total_steps = config.training.total_timesteps
    checkpoints = Checkpoints(directory / CHECKPOINTS, _KEPT, advice)
    preferred = step if step is not None or not best else checkpoints.best()
    loaded = checkpoints.load_policy(preferred)
    if step is not None and loaded.step != step:
        raise CheckpointDamaged(
            f"The checkpoint of step {step:,} cannot be read ({loaded.skipped[0]}). "
            f"Give {directory} for the newest good one, of step {loaded.step:,}."
        )
    origin = directory if step is None else directory / CHECKPOINTS / f"{step:012d}"
    return _loaded(origin, name, algorithm, environment, loaded, total_steps)


def _loaded(
    origin: Path,
    name: str,
    algorithm: Algorithm,
    environment: EnvironmentConfig | None,
    loaded: LoadedCheckpoint,
    total_steps: int | None,
) -> TrainedPolicy:
    state: Mapping[str, Any] = loaded.state
    learner = state["learner"]
    store, policies = learner["store"], algorithm.policies
    said = ENVIRONMENTS.dump(environment) if environment is not None else None
    policy = PortablePolicy(policies.explore, policies.exploit, store["blob"], store["latest"], learner["steps"], said)
    progress = Progress(learner["steps"], total_steps)
    training = TrainingState(algorithm, learner["algorithm"], progress, learner["observations"], learner["rewards"])
    return TrainedPolicy(origin, policy, name, environment, training, tuple(loaded.skipped))


def _of_file(path: Path) -> TrainedPolicy:
    policy = _checked(path, PortablePolicy.read(path))
    environment = None
    if policy.environment is not None:
        try:
            environment = ENVIRONMENTS.parse(policy.environment, path)
        except ConfigError as error:
            _log.warning("The environment that %s was trained in is not known here: %s", path, error)
    return TrainedPolicy(path, policy, path.stem, environment)


def _of_policy_folder(folder: Path) -> TrainedPolicy:
    """A policy of a run as versions before 0.2 wrote it: a folder with specs, weights and a manifest."""
    try:
        explore, exploit = (
            PolicySpec.from_json((folder / f"{name}.json").read_text()) for name in ("explore", "exploit")
        )
        manifest, blob = json.loads((folder / "manifest.json").read_bytes()), (folder / "weights.f32").read_bytes()
        if hashlib.sha256(blob).hexdigest() != manifest["sha256"]:
            raise ValueError("the SHA-256 of weights.f32 is another than manifest.json says")
        weights = np.frombuffer(blob, FLOAT32)
    except (KeyError, TypeError, ValueError) as error:
        raise PolicyFileDamaged(f"{folder} is damaged: {error}. Give the run itself, to use a checkpoint.") from error
    run = RunDirectory(folder.resolve().parent.parent)
    environment = load_experiment(run.config).environment if run.is_run else None
    name = run.path.name if run.is_run else folder.resolve().name
    said = ENVIRONMENTS.dump(environment) if environment is not None else None
    policy = PortablePolicy(explore, exploit, weights, manifest["version"], manifest["steps"], said)
    return TrainedPolicy(folder, _checked(folder, policy), name, environment)


def _checked(path: Path, policy: PortablePolicy) -> PortablePolicy:
    """The same policy, if this runtime can decide with it: a file may come from anywhere."""
    for spec in (policy.explore, policy.exploit):
        try:
            require_decides(spec)
        except ValueError as error:
            raise PolicyFileDamaged(f"{path} cannot decide here: {error}") from error
    return policy
