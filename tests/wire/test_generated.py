import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from rl4sys.wire import generated

PROTOS = Path(__file__).parents[2] / "proto"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"proto_{name}", PROTOS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_code_is_up_to_date() -> None:
    assert script("generate").fingerprint() == generated.SOURCES_SHA256, "Run: make proto"


def test_the_generated_code_describes_the_same_messages_as_the_protos() -> None:
    lint = script("lint")
    written = lint.compiled(PROTOS)
    built = type(written)()
    for file in written.file:
        module = importlib.import_module(f"{generated.__name__}.{Path(file.name).stem}_pb2")
        module.DESCRIPTOR.CopyToProto(built.file.add())
    assert lint.numbers(built) == lint.numbers(written), "Run: make proto"


def test_the_wire_package_imports_no_heavy_packages() -> None:
    heavy = ("torch", "pydantic", "ray", "omegaconf", "gymnasium", "grpc", "rl4sys.v1")
    program = f"import sys, rl4sys.wire; print(*sorted(sys.modules.keys() & set({heavy!r})))"
    result = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []
