"""The configs on the page about config files load."""

from pathlib import Path

import pytest

from rl4sys.experiments import load_experiment, packaged_configs

from .documents import ROOT, files

CONFIGS = ROOT / "docs" / "configs.md"


def test_the_layers_on_the_page_load(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(dict(files(CONFIGS))["mine.yaml"])
    config = load_experiment(tmp_path / "mine.yaml")
    assert (config.name, config.experiment.seed) == ("faster", 3)
    assert config.training.checkpoint_frequency == config.training.total_timesteps == 50_000


def test_every_folder_of_configs_is_on_the_page() -> None:
    page = CONFIGS.read_text()
    folders = [path.name for path in packaged_configs().iterdir() if path.is_dir()]
    assert [name for name in folders if f"`configs/{name}/`" not in page] == []


@pytest.mark.parametrize("layer", ["algorithms", "environments", "networks"])
def test_each_shipped_layer_can_be_extended(layer: str) -> None:
    others = {"algorithms": "algorithms/ppo.yaml", "environments": "environments/cartpole.yaml"}
    shipped = list((packaged_configs() / layer).glob("*.yaml"))
    assert shipped
    for path in shipped:
        extended = [*(name for kind, name in others.items() if kind != layer), f"{layer}/{path.name}"]
        # Environment names are resolved when one is made, so all of these load without extras.
        names = {"environment": {"name": "CartPole-v1"}} if layer == "environments" else {}
        assert load_experiment({"extends": extended, **names}).algorithm is not None, path
