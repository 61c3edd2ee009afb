"""A user's own files run once, and fail with their names."""

from pathlib import Path

import pytest

from rl4sys.config import Config, ConfigError, Registry, load_plugins

REGISTRY = Registry("part", Config)

SOURCE = f"""
from {__name__} import REGISTRY
from rl4sys.config import Config

@REGISTRY.register("own")
class Own(Config):
    size: int = 3
    \"\"\"How large.\"\"\"
"""


def test_a_file_beside_the_config_registers_its_types(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SOURCE)
    load_plugins(["own.py"], relative_to=tmp_path)
    assert REGISTRY.type("own").model_fields["size"].description == "How large."


def test_a_file_runs_once_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("runs = []")
    (first,) = load_plugins(["own.py"], relative_to=tmp_path)
    second, third = load_plugins([tmp_path / "own.py", "./x/../own.py"], relative_to=tmp_path)
    assert first is second is third


def test_two_files_of_one_name_are_two_plugins(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.py").write_text(f"where = '{folder}'")
    modules = load_plugins(["a/own.py", "b/own.py"], relative_to=tmp_path)
    assert [module.where for module in modules] == ["a", "b"]


@pytest.mark.parametrize("module", ["rl4sys.state", "rl4sys.no_such_module"])
def test_a_plugin_for_an_earlier_version_is_refused_with_the_page_that_helps(tmp_path: Path, module: str) -> None:
    (tmp_path / "earlier.py").write_text(f"from {module} import no_such_name")
    with pytest.raises(ConfigError, match=r"'earlier\.py' cannot be loaded: .*docs/own_algorithm\.md") as refused:
        load_plugins(["earlier.py"], relative_to=tmp_path)
    assert "\n" not in str(refused.value)


def test_a_module_is_imported_by_name(tmp_path: Path) -> None:
    assert load_plugins(["json"], relative_to=tmp_path)[0].__name__ == "json"


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        ("onw.py", r"no plug-in file .*onw\.py; did you mean 'own\.py'\?"),
        ("own.py", r"'own\.py' cannot be loaded: ZeroDivisionError"),
        ("no_such_module", "'no_such_module' cannot be loaded: ModuleNotFoundError"),
        ("./own.txt", r"own\.txt is not a Python file"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_named(tmp_path: Path, plugin: str, message: str) -> None:
    (tmp_path / "own.py").write_text("1 / 0")
    (tmp_path / "own.txt").write_text("")
    with pytest.raises(ConfigError, match=message):
        load_plugins([plugin], relative_to=tmp_path)


def test_a_repaired_file_can_be_loaded_again(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("1 / 0")
    with pytest.raises(ConfigError):
        load_plugins(["own.py"], relative_to=tmp_path)
    (tmp_path / "own.py").write_text("answer = 42  # repaired")
    assert load_plugins(["own.py"], relative_to=tmp_path)[0].answer == 42
