from __future__ import annotations

from pathlib import Path

import pytest
import torch
from threadpoolctl import ThreadpoolController

from rl4sys.experience import ArraySpec
from rl4sys.experiments import Run
from rl4sys.experiments.threads import measure_threads, threads_for
from rl4sys.learning import DeviceUnavailable, choose_device
from rl4sys.policy import DiscreteAction, Head, PolicySpec, ProgramBuilder

from .runs import PPO, small


@pytest.mark.parametrize("wanted", ["meta", "tpu", "cuda:x", ""])
def test_a_device_that_is_none_is_refused(wanted: str) -> None:
    with pytest.raises(DeviceUnavailable, match="use auto, cpu, cuda or cuda:1"):
        choose_device(wanted)


def test_the_cpu_is_always_there() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type in ("cpu", "cuda")


def test_measuring_threads_leaves_their_number_as_it_was(tmp_path: Path) -> None:
    builder = ProgramBuilder((ArraySpec("observation", "float32", (4,)),))
    scores = builder.linear(builder.features(standardize=False), 2, "out")
    spec = PolicySpec(DiscreteAction(2), builder.program(), Head("deterministic", (scores,)))
    before = torch.get_num_threads()
    assert measure_threads(spec, 16, cores=2) in (1, 2)
    assert torch.get_num_threads() == before
    assert threads_for(small(PPO, tmp_path, threads=3), spec) == 3


def test_numpy_multiplies_with_one_thread_within_a_run(tmp_path: Path) -> None:
    blas = ThreadpoolController().select(internal_api="openblas")
    if not blas.lib_controllers:
        pytest.skip("this numpy has another BLAS")
    with blas.limit(limits=2), Run.create(small(PPO, tmp_path)):
        assert {library["num_threads"] for library in blas.info()} == {1}
