"""Workflows, templates and metadata of the project agree with the Makefile and the package."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import rl4sys

from .documents import ROOT

GITHUB = sorted((ROOT / ".github").rglob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def _jobs(workflow: Path) -> dict[str, Any]:
    jobs: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    return jobs


def _shell(workflow: Path) -> list[str]:
    return [step["run"] for job in _jobs(workflow).values() for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("page", [*GITHUB, ROOT / "CITATION.cff"], ids=lambda page: page.name)
def test_every_file_is_valid_yaml(page: Path) -> None:
    assert isinstance(yaml.safe_load(page.read_text()), dict)


def test_workflows_call_only_make_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {
        target for workflow in WORKFLOWS for run in _shell(workflow) for target in re.findall(r"\bmake ([a-z-]+)", run)
    }
    assert {"test", "wheel", "test-docs", "release-check"} <= called
    assert called <= targets


def test_workflows_call_only_scripts_that_exist() -> None:
    scripts = {word for workflow in WORKFLOWS for run in _shell(workflow) for word in re.findall(r"[\w./-]+\.sh", run)}
    assert scripts
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


def test_what_is_released_and_tested_is_complete() -> None:
    released = "\n".join(_shell(ROOT / ".github" / "workflows" / "release.yml"))
    assert released.index("doxygen") < released.index("make docs-site COMPLETE=1") < released.index("make wheel")
    tested = "\n".join(_shell(ROOT / ".github" / "workflows" / "tests.yml"))
    assert tested.index("tests/ui/packages.sh") < tested.index("make test")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.name)
def test_every_job_has_a_time_limit(workflow: Path) -> None:
    assert all("timeout-minutes" in job for job in _jobs(workflow).values())


def test_wheels_are_tried_on_every_python_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    wheel = _jobs(ROOT / ".github" / "workflows" / "wheels.yml")["wheel"]
    assert wheel["strategy"]["matrix"]["python"] == named
    native = tomllib.loads((ROOT / "cpp" / "pyproject.toml").read_text())
    built = native["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{version.replace('.', '')}-manylinux_*" for version in named]


def test_the_native_runtime_has_the_version_of_the_package() -> None:
    native = tomllib.loads((ROOT / "cpp" / "pyproject.toml").read_text())["project"]
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["native"]
    assert native["version"] == rl4sys.__version__
    assert [line.partition(";")[0] for line in extra] == [f"rl4sys-native=={rl4sys.__version__}"]


@pytest.mark.parametrize(("tag", "code"), [(f"v{rl4sys.__version__}", 0), ("v0.0.1", 1)])
def test_a_tag_is_compared_with_version_changelog_and_citation(tag: str, code: int) -> None:
    check = subprocess.run([sys.executable, ROOT / ".ci" / "release_check.py", tag], capture_output=True, text=True)
    assert check.returncode == code, check.stderr
    assert ("CHANGELOG.md" in check.stderr) == bool(code)
