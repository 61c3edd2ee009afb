"""The check finds offline what would fail, cost or be open to others on real machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.commands import Here
from rl4sys.clusters.cluster_file import ClusterFileError, read_cluster_file
from rl4sys.clusters.file_checks import check_cluster_file
from rl4sys.clusters.new_file import NewCluster, write_cluster_files

Change = Callable[[dict[str, Any]], None]


def changed(tmp_path: Path, kind: str, change: Change) -> Path:
    """The file of a new cluster after a change."""
    path = tmp_path / "cluster.yaml"
    given = {"gce": {"project": "my-project"}, "kuberay": {"image": "r/i:1"}}.get(kind, {})
    write_cluster_files(NewCluster(kind, **given), path, force=False)
    values = yaml.safe_load(path.read_text())
    change(values)
    path.write_text(yaml.safe_dump(values))
    return path


def without(*path: str) -> Change:
    def change(values: dict[str, Any]) -> None:
        for part in path[:-1]:
            values = values[part]
        del values[path[-1]]

    return change


def setting(value: object, *path: str) -> Change:
    def change(values: dict[str, Any]) -> None:
        for part in path[:-1]:
            values = values[part]
        values[path[-1]] = value

    return change


HEAD = ("available_node_types", "head", "node_config")
ERRORS = [
    ("gce", without("provider", "project_id"), "provider.project_id", "it is missing"),
    ("gce", setting(7, "provider", "project_id"), "provider.project_id", "it is 7, not a name"),
    ("ec2", without("provider", "region"), "provider.region", "it is missing"),
    ("gce", setting("europe-west1-b", "provider", "availability_zone"), "provider.availability_zone", "is not in"),
    ("ec2", setting(2, "min_workers"), "min_workers", "no longer has it at the top level"),
    ("ec2", setting("two", "max_workers"), "max_workers", "not an integer"),
    ("ec2", setting("soon", "idle_timeout_minutes"), "idle_timeout_minutes", "'soon' is not of type 'number'"),
    ("ec2", setting(1, "max_wrokers"), "(top level)", "max_wrokers"),
    ("ec2", setting("main", "head_node_type"), "head_node_type", "not among available_node_types (head, worker)"),
    ("ec2", setting({"machineType": "n2"}, *HEAD), "available_node_types.head.node_config.InstanceType", "another"),
    ("ec2", setting(["ray start --head --dashboard-host=0.0.0.0"], "head_start_ray_commands"), "head_", "0.0.0.0"),
    ("ec2", without("head_start_ray_commands"), "head_start_ray_commands", "opens the dashboard"),
    ("ec2", setting({}, "file_mounts"), "file_mounts", "no token is given"),
    ("ec2", setting("/none", "file_mounts", "~/.ray/auth_token"), "file_mounts", "there is no token file /none"),
    ("ec2", setting(["*.token"], "rsync_exclude"), "file_mounts.~/.ray/auth_token", "leaves it out"),
    ("ec2", without("setup_commands"), "setup_commands", "nightly"),
    ("kuberay", without("spec", "authOptions"), "spec.authOptions", "token authentication is off"),
    ("kuberay", setting("0.0.0.0", "spec", "headGroupSpec", "rayStartParams", "dashboard-host"), "spec.", "0.0.0.0"),
    ("kuberay", setting("LoadBalancer", "spec", "headGroupSpec", "serviceType"), "spec.headGroupSpec", "opens"),
    ("sky", setting("echo hello", "run"), "run", "RL4SYS_COMMAND"),
    ("sky", setting("3", "num_nodes"), "num_nodes", "not an integer"),
    ("sky", without("envs", "RAY_AUTH_MODE"), "envs", "token authentication is off"),
]
WARNINGS = [
    ("ec2", setting(["pip install 'rl4sys[train]' torch==2.6"], "setup_commands"), "setup_commands", "rl4sys[train]"),
    ("ec2", without(*HEAD, "IamInstanceProfile"), "available_node_types.head", "full access"),
    ("ec2", without("provider", "cache_stopped_nodes"), "provider.cache_stopped_nodes", "still cost"),
    ("gce", setting([{"preemptible": True}], *HEAD, "scheduling"), "available_node_types.head", "on spot"),
    ("sky", without("resources", "autostop"), "resources.autostop", "cost"),
]


@pytest.mark.parametrize(("kind", "change", "key", "problem"), ERRORS)
def test_an_error_names_the_key_and_what_is_wrong(
    kind: str, change: Change, key: str, problem: str, tmp_path: Path
) -> None:
    found = check_cluster_file(read_cluster_file(changed(tmp_path, kind, change)))
    errors = [finding for finding in found if finding.severity == "error"]
    assert any(finding.key.startswith(key) and problem in str(finding) for finding in errors), errors


@pytest.mark.parametrize(("kind", "change", "key", "problem"), WARNINGS)
def test_a_warning_names_the_key_and_what_is_wrong(
    kind: str, change: Change, key: str, problem: str, tmp_path: Path
) -> None:
    found = check_cluster_file(read_cluster_file(changed(tmp_path, kind, change)))
    assert [(finding.severity, problem in finding.problem) for finding in found] == [("warning", True)]
    assert found[0].key.startswith(key)


def test_a_slurm_script_must_run_its_command_and_leave_other_rays_alone(tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    path.write_text("#!/bin/bash\n#SBATCH --time=1:00:00\n#SBATCH --requeue\n#SBATCH --signal=B:TERM@120\nray stop\n")
    said = [str(finding) for finding in check_cluster_file(read_cluster_file(path))]
    assert len(said) == 2
    assert 'does not run "$@"' in said[0]
    assert "`ray stop` ends every Ray of yours" in said[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cluster_name: a\nprovider: {type: local}\n", "expected gcp (for gce) or aws (for ec2)"),
        ("cluster_name: a\nprovider: {type: [aws]}\n", "expected gcp (for gce) or aws (for ec2)"),
        ("hello: world\n", "is no cluster file"),
        ("a: [\n", "is not YAML"),
        ("7\n", "has no keys"),
    ],
)
def test_a_file_of_no_known_kind_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(ClusterFileError) as refused:
        read_cluster_file(path)
    assert said in str(refused.value)


def test_the_command_prints_findings_and_its_exit_code_is_1(rl4sys: Here, tmp_path: Path) -> None:
    path = changed(tmp_path, "gce", without("provider", "project_id"))
    code, out, err = rl4sys("cluster", "check", str(path))
    assert (code, err) == (1, "")
    assert out.splitlines()[0] == (
        "error: provider.project_id: it is missing; write the project id that is to be charged or used."
    )


def test_the_command_prints_json(rl4sys: Here, tmp_path: Path) -> None:
    path = changed(tmp_path, "ec2", without("provider", "region"))
    found = json.loads(rl4sys("cluster", "check", str(path), "--json").out)
    assert (found["kind"], found["findings"][0]["key"]) == ("ec2", "provider.region")


def test_a_file_of_another_provider_is_refused(rl4sys: Here, tmp_path: Path) -> None:
    path = changed(tmp_path, "ec2", lambda values: None)
    code, out, _ = rl4sys("cluster", "check", str(path), "--kind", "gce")
    assert (code, "this is a file for ec2, not for gce" in out) == (1, True)


def test_a_missing_file_is_one_sentence(rl4sys: Here) -> None:
    code, _, err = rl4sys("cluster", "up", "none.yaml", "--yes")
    assert (code, err.count("\n")) == (2, 1)
    assert "There is no file none.yaml. Write one with: rl4sys cluster init" in err
