"""`rl4sys cluster init` writes files that their own check accepts, and never overwrites one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from cli.commands import Here
from rl4sys.clusters.cluster_file import KINDS, read_cluster_file
from rl4sys.clusters.file_checks import check_cluster_file
from rl4sys.clusters.new_file import NewCluster, NewFileError, write_cluster_files

KNOWN = {
    "gce": {"project": "my-project"},
    "ec2": {},
    "kuberay": {"image": "registry.example/rl4sys:0.2.0"},
    "sky": {},
    "slurm": {"partition": "cpu"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_complete_new_file_has_no_findings(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    write_cluster_files(NewCluster(kind, **KNOWN[kind]), path, force=False)
    file = read_cluster_file(path)
    assert (file.kind, file.name, check_cluster_file(file)) == (kind, "rl4sys", ())


@pytest.mark.parametrize("kind", ["gce", "kuberay", "slurm"])
def test_values_that_only_the_user_knows_are_placeholders(kind: str, tmp_path: Path) -> None:
    write_cluster_files(NewCluster(kind), tmp_path / "cluster", force=False)
    found = check_cluster_file(read_cluster_file(tmp_path / "cluster"))
    assert {finding.severity for finding in found if "placeholder" in finding.problem} == {"error"}


def test_versions_are_those_of_this_machine(tmp_path: Path) -> None:
    write_cluster_files(NewCluster("ec2"), tmp_path / "cluster.yaml", force=False)
    pinned = (tmp_path / "cluster-constraints.txt").read_text().splitlines()
    setup = " ".join(yaml.safe_load((tmp_path / "cluster.yaml").read_text())["setup_commands"])
    import ray
    import torch

    assert f"ray=={ray.__version__}" in pinned
    assert f"'torch=={torch.__version__.partition('+')[0]}'" in setup
    assert "rl4sys[train,ray]==" in setup


def test_the_token_is_for_its_owner_only_and_is_kept(tmp_path: Path) -> None:
    for _ in range(2):
        write_cluster_files(NewCluster("ec2"), tmp_path / "cluster.yaml", force=True)
        token = tmp_path / "cluster.token"
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        kept = token.read_text()
    assert token.read_text() == kept


def test_an_existing_file_is_not_overwritten(rl4sys: Here, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine")
    code, _, err = rl4sys("cluster", "init", "ec2", "--output", "mine.yaml")
    assert (code, (tmp_path / "mine.yaml").read_text()) == (2, "mine")
    assert "mine.yaml exists. Give another --output, or --force" in err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "My_Cluster"}, "lower-case letters"),
        ({"project": "p"}, "--project is for gce, not for ec2"),
        ({"wheel": Path("none.whl")}, "there is no such wheel"),
    ],
)
def test_a_wrong_option_is_refused_with_advice(given: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(NewFileError, match=said):
        write_cluster_files(NewCluster("ec2", **given), tmp_path / "cluster.yaml", force=False)
    assert list(tmp_path.iterdir()) == []


def test_a_wheel_is_mounted_and_installed(tmp_path: Path) -> None:
    wheel = tmp_path / "rl4sys-0.2.0-py3-none-any.whl"
    wheel.touch()
    write_cluster_files(NewCluster("ec2", wheel=wheel), tmp_path / "cluster.yaml", force=False)
    values = yaml.safe_load((tmp_path / "cluster.yaml").read_text())
    assert values["file_mounts"][f"~/{wheel.name}"] == str(wheel)
    assert "rl4sys[train,ray] @ file:///home/ubuntu/" in " ".join(values["setup_commands"])


def test_print_only_writes_nothing(rl4sys: Here, tmp_path: Path) -> None:
    code, out, _ = rl4sys("cluster", "init", "slurm", "--print-only")
    assert (code, out.startswith("#!/bin/bash"), list(tmp_path.iterdir())) == (0, True, [])
