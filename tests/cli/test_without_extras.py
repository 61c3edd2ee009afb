"""`pip install rl4sys` alone is the client core: what needs more says which extra."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import rl4sys

WITHOUT = "import sys; sys.modules.update(dict.fromkeys({names!r})); {code}"
COMMAND = "sys.argv = ['rl4sys', *{arguments!r}]; from rl4sys.cli.main import main; main()"


def run(names: list[str], code: str) -> subprocess.CompletedProcess[str]:
    script = WITHOUT.format(names=names, code=code)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)


def test_training_in_python_names_the_extra() -> None:
    done = run(["torch"], "import rl4sys; rl4sys.train({})")
    assert done.returncode == 1
    assert "needs the package 'torch'. Install it with: pip install 'rl4sys[train]'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_command_names_the_extra_in_one_line(missing: str) -> None:
    done = run([missing], COMMAND.format(arguments=["train"]))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: this needs the package '{missing}'. Install it with: pip install 'rl4sys[train]'\n"


def test_help_and_doctor_work_without_torch() -> None:
    done = run(["torch", "gymnasium"], COMMAND.format(arguments=["doctor"]))
    assert done.returncode == 0
    assert "pip install 'rl4sys[train]'" in done.stdout


def test_training_without_torch_is_one_line() -> None:
    done = run(["torch"], COMMAND.format(arguments=["train"]))
    assert done.returncode == 2
    assert done.stderr == "error: this needs the package 'torch'. Install it with: pip install 'rl4sys[train]'\n"


NOTHING = ["typer", "rich", "torch", "pydantic", "gymnasium"]


def test_doctor_lists_missing_packages_without_any_extra() -> None:
    done = run(NOTHING, COMMAND.format(arguments=["doctor"]))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"rl4sys {rl4sys.__version__}\n")
    (torch,) = [line for line in done.stdout.splitlines() if line.startswith("torch ")]
    assert torch.split(maxsplit=2)[1:] == ["missing", "training: pip install 'rl4sys[train]'"]
    assert "no CUDA GPU; `device: auto` chooses cpu" in done.stdout


def test_doctor_prints_json_without_any_extra() -> None:
    done = run(NOTHING, COMMAND.format(arguments=["doctor", "--json"]))
    assert (done.returncode, done.stderr) == (0, "")
    versions = {part["name"]: part["version"] for part in json.loads(done.stdout)["parts"]}
    assert versions["torch"] is versions["pydantic"] is None
    assert versions["numpy"] is not None


def test_the_version_is_printed_without_any_extra() -> None:
    done = run(NOTHING, COMMAND.format(arguments=["--version"]))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"rl4sys {rl4sys.__version__}\n", "")


# Not pydantic: newer releases of typer need it themselves.
HEAVY = ["torch", "gymnasium", "yaml", "prometheus_client", "grpc_health", "safetensors", "matplotlib"]


def test_the_status_needs_neither_torch_nor_the_packages_of_a_server() -> None:
    done = run(HEAVY, COMMAND.format(arguments=["status", "127.0.0.1:1", "--check"]))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: 127.0.0.1:1: ")


def test_tokens_are_made_without_torch_and_the_packages_of_a_server() -> None:
    done = run(HEAVY, COMMAND.format(arguments=["token", "new", "--role", "viewer"]))
    assert done.returncode == 0
    assert " role=viewer" in done.stderr


def test_a_command_for_operators_names_its_own_small_extra() -> None:
    done = run(["typer"], COMMAND.format(arguments=["status"]))
    assert done.stderr == "error: this needs the package 'typer'. Install it with: pip install 'rl4sys[ops]'\n"


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "jinja2"])
def test_the_pages_name_their_extra(missing: str) -> None:
    done = run([missing], COMMAND.format(arguments=["ui"]))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: The pages need the package '{missing}'. Install it with: pip install 'rl4sys[ui]'\n"


def test_the_pages_of_runs_need_neither_torch_nor_matplotlib() -> None:
    modules = "rl4sys.ui.ui_server, rl4sys.laboratory.studies.study_summary"
    done = run(["torch", "gymnasium", "pydantic", "matplotlib"], f"import {modules}")
    assert (done.returncode, done.stderr) == (0, "")
