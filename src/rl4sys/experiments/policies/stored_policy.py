"""Reads the policy of a run from the file that the run keeps: neither its algorithm nor its plug-ins are needed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

from rl4sys.config import ConfigError, load_plugins, use_copies
from rl4sys.config.module_copies import use_module_copies
from rl4sys.config.plugin_copies import copies_in
from rl4sys.environments import ENVIRONMENTS, EnvironmentConfig
from rl4sys.experiments.saved_policies import BEST, LATEST
from rl4sys.policy import PortablePolicy
from rl4sys.policy.portable_policy import SUFFIX
from rl4sys.run_files import POLICIES, is_run, read_config
from rl4sys.run_finder import find_newest

_log = logging.getLogger(__name__)


class StoredPolicy(NamedTuple):
    """A policy, and the environment that it was trained in, if that is known here."""

    policy: PortablePolicy
    environment: EnvironmentConfig | None


def stored_policy(source: str | Path, *, best: bool = True) -> StoredPolicy:
    """The policy of a policy file, or of a run: the best one or the newest. Of several runs it is that of the newest.

    Runs that have not saved a policy yet, and all other places, are asked for a checkpoint, which needs what the
    algorithm needs.
    """
    path = Path(source)
    if path.suffix == SUFFIX and path.is_file():
        policy = PortablePolicy.read(path)
        return StoredPolicy(policy, _environment(policy, path))
    if not path.exists():
        path = find_newest(path, note=lambda text: _log.warning("%s", text))
    if (file := _file_in(path, best=best)) is not None:
        run = file.parent.parent
        _offer_plugins(run)
        policy = PortablePolicy.read(file)
        return StoredPolicy(policy, _environment(policy, file))
    from rl4sys.experiments.policies.trained_policy import find_policy

    found = find_policy(path, best=best)
    return StoredPolicy(found.policy, found.environment)


def _file_in(path: Path, *, best: bool) -> Path | None:
    """The policy file of a run, if `path` names a run that has one."""
    if not is_run(path):
        return None
    policies = path / POLICIES
    files = [policies / f"{name}{SUFFIX}" for name in ((BEST, LATEST) if best else (LATEST,))]
    return next((file for file in files if file.is_file()), None)


def _offer_plugins(run: Path) -> None:
    """Load what the run was trained with; a plug-in that cannot be loaded may not be needed to act."""
    use_copies(copies_in(run))
    use_module_copies(run)
    for plugin in read_config(run).get("plugins", ()):
        try:
            load_plugins([plugin], relative_to=Path.cwd())
        except ConfigError as error:
            _log.warning("%s", error)


def _environment(policy: PortablePolicy, path: Path) -> EnvironmentConfig | None:
    if policy.environment is None:
        return None
    ENVIRONMENTS.load_entry_points("rl4sys.environments")
    try:
        return ENVIRONMENTS.parse(policy.environment, path)
    except ConfigError as error:
        _log.warning("The environment that %s was trained in is not known here: %s", path, error)
        return None
