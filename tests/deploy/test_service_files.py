"""The unit of systemd and the Dockerfile name commands, options, files and extras that exist."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import signal
import subprocess
import tomllib
from pathlib import Path

import pytest
from tests.docs.documents import ROOT
from typer.testing import CliRunner

from rl4sys.cli.commands import build
from rl4sys.server.transport.grpc_server import DRAIN_SECONDS

UNIT = (ROOT / "deploy" / "rl4sys.service").read_text("utf-8")
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text("utf-8")


def service() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(UNIT)
    return parser["Service"]


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments, continued lines joined."""
    lines = [line for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def arguments(name: str) -> list[str]:
    return [rest for word, rest in instructions() if word == name]


def require_accepted(words: list[str]) -> None:
    outcome = CliRunner().invoke(build(), [*words, "--help"])
    assert outcome.exit_code == 0, outcome.output


def test_the_unit_starts_a_command_that_exists() -> None:
    program, *words = shlex.split(service()["ExecStart"])
    assert Path(program).name == "rl4sys"
    assert words[:2] == ["serve", "--config"]
    require_accepted(words)


def test_the_unit_waits_longer_than_a_server_drains_and_signals_it_alone() -> None:
    unit = service()
    assert float(unit["TimeoutStopSec"]) > 2 * DRAIN_SECONDS
    assert unit["KillMode"] == "mixed"
    assert unit["ExecReload"] == f"/bin/kill -{signal.SIGHUP.name.removeprefix('SIG')} $MAINPID"
    assert unit["Restart"] == "on-failure"


def test_the_unit_writes_only_to_its_own_directory() -> None:
    unit = service()
    assert unit["ProtectSystem"] == "strict"
    assert unit["StateDirectoryMode"] == "0700"
    assert shlex.split(unit["ExecStart"])[-1] == f"/var/lib/{unit['StateDirectory']}" == unit["WorkingDirectory"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / "rl4sys.service"
    copy.write_text(UNIT.replace("/opt/rl4sys/bin/rl4sys", "/bin/true"))
    checked = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True)
    assert [line for line in checked.stderr.splitlines() if "rl4sys.service" in line] == []


def test_the_image_starts_a_command_that_exists_as_a_user_without_rights() -> None:
    (entry,) = arguments("ENTRYPOINT")
    program, *words = shlex.split(entry.strip("[]").replace(",", " "))
    assert program == "rl4sys"
    require_accepted(words)
    assert arguments("USER") == ["10001:10001"]
    assert instructions().index(("USER", "10001:10001")) > max(
        place for place, (word, _) in enumerate(instructions()) if word in ("COPY", "RUN")
    )


def test_the_health_check_of_the_image_is_a_status_command() -> None:
    command = arguments("HEALTHCHECK")[0].partition("CMD ")[2].partition(" || ")[0]
    options = re.search(r'RL4SYS_STATUS_OPTIONS="([^"]+)"', DOCKERFILE)
    assert options is not None
    program, *words = shlex.split(command.replace("$RL4SYS_STATUS_OPTIONS", options[1]))
    assert (program, words[0], words[-1]) == ("rl4sys", "status", "--check")
    require_accepted(words)


def test_everything_that_is_copied_or_installed_exists() -> None:
    ignored = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    for sources in (rest.split()[:-1] for rest in arguments("COPY") if not rest.startswith("--from")):
        assert all((ROOT / name).exists() and f"!{name}" in ignored for name in sources)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    (asked,) = re.findall(r'"\.\[([\w,]+)\]"', DOCKERFILE)
    assert set(asked.split(",")) <= extras.keys()
    assert f"rl4sys[{asked}]" in (ROOT / "docs" / "deployment.md").read_text("utf-8")


def test_stages_that_are_copied_from_exist() -> None:
    stages = {rest.split(" AS ")[1] for rest in arguments("FROM") if " AS " in rest}
    assert {
        rest.split()[0].removeprefix("--from=") for rest in arguments("COPY") if rest.startswith("--from")
    } == stages
