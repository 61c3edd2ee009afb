from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from experiments.runs import PPO
from experiments.trained import trained_run
from rl4sys.experiments import RunDirectory
from rl4sys.policy import PortablePolicy

from .commands import Here


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return trained_run(PPO, tmp_path_factory.mktemp("policy"))


def test_an_export_reports_its_parity(rl4sys: Here, trained: RunDirectory) -> None:
    code, out, err = rl4sys("policy", "export", str(trained.path))
    assert (code, err) == (0, "")
    assert f"file    {trained.path.name}.rl4sys" in out
    assert "largest difference" in out
    assert "against the training network of the checkpoint" in out
    assert PortablePolicy.read(Path(f"{trained.path.name}.rl4sys")).steps > 0


@pytest.mark.parametrize("kind", ["rl4sys", "onnx"])
def test_every_format_exports_inspects_and_is_timed(rl4sys: Here, trained: RunDirectory, kind: str) -> None:
    pytest.importorskip("onnxruntime")
    made = json.loads(
        rl4sys("policy", "export", str(trained.path), "--format", kind, "--output", f"a.{kind}", "--json").out
    )
    assert made["bytes"] == Path(f"a.{kind}").stat().st_size
    assert made["parity"]["largest"] <= made["parity"]["bound"] == 1e-4
    facts = json.loads(rl4sys("policy", "inspect", f"a.{kind}", "--json").out)
    assert (facts["sha256"], facts["version"], facts["steps"]) == (made["sha256"], made["version"], made["steps"])
    timed = json.loads(rl4sys("policy", "bench", f"a.{kind}", "--decisions", "20", "--json").out)
    assert "onnxruntime" in {one["runtime"] for one in timed["microseconds"]}


def test_a_run_is_inspected(rl4sys: Here, trained: RunDirectory) -> None:
    code, out, err = rl4sys("policy", "inspect", str(trained.path), "--latest")
    assert (code, err) == (0, "")
    assert "version      8, at step 256" in out
    assert "observation  observation float32[4]" in out
    assert "explore      categorical of r2" in out
    assert "actor.0.weight [4, 8], actor.0.bias [8]" in out
    assert "weights      58 (232 bytes), SHA-256" in out


def test_decisions_are_timed_in_a_table(rl4sys: Here, trained: RunDirectory) -> None:
    code, out, err = rl4sys("policy", "bench", str(trained.path), "--rows", "2", "--decisions", "20")
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == ["runtime", "policy", "rows", "median", "µs", "p99", "µs"]
    assert [row[:3] for row in rows[1:3]] == [["numpy", "exploit", "2"], ["numpy", "explore", "2"]]


def test_a_bound_that_is_too_tight_writes_nothing(rl4sys: Here, trained: RunDirectory) -> None:
    pytest.importorskip("onnxruntime")
    code, out, err = rl4sys(
        "policy", "export", str(trained.path), "--format", "onnx", "--output", "a.onnx", "--bound", "0"
    )
    assert (code, out) == (2, "")
    assert "differs from the training network" in err
    assert not Path("a.onnx").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", "RUN", "--format", "tflite"), "--format tflite: expected one of rl4sys, onnx."),
        (("inspect", "a.rl4sys"), "There is no file 'a.rl4sys'."),
        (("inspect", "damaged.rl4sys"), "is not a valid policy file"),
        (("bench", "nothing"), "There is no run 'nothing'"),
    ],
)
def test_wrong_input_is_a_one_line_error(
    rl4sys: Here, trained: RunDirectory, arguments: tuple[str, ...], message: str
) -> None:
    Path("damaged.rl4sys").write_bytes(b"{}\n")
    code, out, err = rl4sys("policy", *(str(trained.path) if word == "RUN" else word for word in arguments))
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_run_whose_environment_is_gone_is_exported_from_the_policy_that_it_saved(
    rl4sys: Here, trained: RunDirectory
) -> None:
    copy = Path("elsewhere") / trained.path.name
    shutil.copytree(trained.path, copy)
    config = copy / "config.yaml"
    config.write_text(config.read_text().replace("CartPole-v1", "gone_lab:Pole"))
    code, out, err = rl4sys("policy", "export", str(copy), "--output", "a.rl4sys")
    assert (code, "version" in out) == (0, True), err
    assert f"Using the policy that it saved, {copy / 'policies' / 'best.rl4sys'}." in err
    assert PortablePolicy.read(Path("a.rl4sys")).sha256 == PortablePolicy.read(copy / "policies/best.rl4sys").sha256
