import subprocess
import sys
from pathlib import Path

import pytest
from tests.examples.processes import start

from .documents import PAGES, ROOT, anchors, blocks, links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_has_a_target(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {link}"


def test_the_configuration_reference_is_current() -> None:
    # In its own process: what other tests register does not belong in the reference.
    script = ROOT / "docs" / "write_reference.py"
    check = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)

    assert check.returncode == 0, check.stderr


@pytest.mark.slow
def test_the_training_in_readme_and_quickstart_and_the_python_in_policies_run(tmp_path: Path) -> None:
    _, training = blocks(ROOT / "README.md", "python")
    quickstart = [block for block in blocks(ROOT / "docs" / "quickstart.md", "python") if not block.startswith("# ")]
    stepped = [block for block in blocks(ROOT / "docs" / "laboratory.md", "python") if "Run.create" in block]
    assert quickstart
    assert stepped
    program = "\n".join([training, *quickstart, *stepped, *blocks(ROOT / "docs" / "policies.md", "python")])

    finished = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)

    assert finished.returncode == 0, finished.stderr


@pytest.mark.slow
def test_the_python_client_in_readme_sends_what_it_records(tmp_path: Path) -> None:
    client, _ = blocks(ROOT / "README.md", "python")
    system = "def observations(): return [[float(n)] * 8 for n in range(50)]\ndef latency(route): return route / 4\n"
    serve = ("-m", "rl4sys.cli", "serve", "--listen", "127.0.0.1:0", "--data", tmp_path / "data")
    with start(*serve, temporary=tmp_path) as server:
        assert server.stdout is not None
        port = server.stdout.readline().split()[1]
        own = client.replace('"client_id"', f'"server": "127.0.0.1:{port}", "timeout": 90, "client_id"')
        program = f"{system}{own}\nprint(agent.health().decisions, agent.health().acknowledged)"
        finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)

    assert finished.returncode == 0, finished.stderr
    decisions, acknowledged = map(int, finished.stdout.split())
    assert decisions == 50
    assert acknowledged >= 1
