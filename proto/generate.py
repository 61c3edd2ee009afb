"""Writes the Python code for the protos into `src/rl4sys/wire/generated`: run `make proto`.

Generated code runs with the protobuf and grpcio that made it and with newer ones up to the next major version of
protobuf, never with older ones. So it is made with the oldest release that speaks protobuf 6, in an environment of its
own: what comes out works with protobuf 6 and 7.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

from grpc_tools import protoc

TOOLS = "1.72.1"
"""The grpcio-tools release that writes code for protobuf 6.30.0 and grpcio 1.72.1, and for everything newer."""

PROTOS = Path(__file__).parent
GENERATED = PROTOS.parent / "src/rl4sys/wire/generated"
PACKAGE = "rl4sys.wire.generated"


def sources() -> list[Path]:
    """The proto files, in a fixed order."""
    return sorted((PROTOS / "rl4sys/v1").glob("*.proto"))


def fingerprint() -> str:
    """SHA-256 over all proto files: the generated code carries it, so that a test can tell when it is out of date."""
    sha = hashlib.sha256()
    for source in sources():
        sha.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return sha.hexdigest()


def generate() -> None:
    """Compile into a temporary directory, correct the imports, then replace what was generated before."""
    if version("grpcio-tools") != TOOLS:
        raise SystemExit(f"grpcio-tools is {version('grpcio-tools')}; the code is made with {TOOLS}. Run: make proto")
    with tempfile.TemporaryDirectory() as scratch:
        outputs = [f"--{kind}_out={scratch}" for kind in ("python", "pyi", "grpc_python")]
        files = [str(source.relative_to(PROTOS)) for source in sources()]
        if protoc.main(["protoc", f"-I{PROTOS}", *outputs, *files]) != 0:
            raise SystemExit("protoc refused the protos; see above.")
        shutil.rmtree(GENERATED, ignore_errors=True)
        GENERATED.mkdir(parents=True)
        for path in sorted(Path(scratch, "rl4sys/v1").iterdir()):
            # Only training.proto has a service; for the others the plug-in writes an empty shell.
            if not path.name.endswith("_pb2_grpc.py") or "class " in path.read_text():
                (GENERATED / path.name).write_text(_relocated(path.read_text()))
    (GENERATED / "__init__.py").write_text(
        '"""Written by `make proto` from `proto/rl4sys/v1`: do not edit."""\n\n'
        f'SOURCES_SHA256 = "{fingerprint()}"\n'
        '"""Of the proto files that this code was made from."""\n'
    )


def _relocated(code: str) -> str:
    """The code with its imports where the modules really are; protoc knows only the paths of the protos."""
    code = code.replace("from rl4sys.v1 import", f"from {PACKAGE} import")
    # Only names of modules: 'rl4sys.v1.Training' is what the service is called on the wire.
    code = re.sub(r"'rl4sys\.v1\.(\w+_pb2)'", rf"'{PACKAGE}.\1'", code)
    # An import that looks unused loads what the next line depends on: no tool may tidy it away.
    return f"# ruff: noqa\n# fmt: off\n# mypy: ignore-errors\n{code}"


if __name__ == "__main__":
    generate()
