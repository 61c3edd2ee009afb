"""Files by key below a URL: `s3://`, `gs://` and `file://`, through pyarrow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

SCHEMES = ("s3", "gs", "file")
_CONNECT_SECONDS, _REQUEST_SECONDS, _TRIES = 3, 60, 2
_REASON_CHARACTERS = 300


class StorageUnavailable(RuntimeError):
    """Storage that cannot be used: a wrong URL, a missing package, or a place that may not be written to."""


def is_url(text: str | Path) -> bool:
    """Whether a text is a URL and not a path."""
    return "://" in str(text)


def open_storage(url: str) -> ObjectStorage:
    """The storage below a URL; nothing is read or written yet."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        expected = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise StorageUnavailable(f"{url} is no storage; give a URL that begins with one of {expected}")
    try:
        import pyarrow.fs
    except ImportError:
        raise StorageUnavailable(
            f"{url}: storage needs the package 'pyarrow'. Install it with: pip install 'rl4sys[ray]'"
        ) from None
    options = dict(parse_qsl(parts.query))
    path = f"{parts.netloc}{parts.path}".rstrip("/")
    try:
        if parts.scheme == "s3":
            system: FileSystem = pyarrow.fs.S3FileSystem(**_s3_options(options))
        elif parts.scheme == "gs":
            options.setdefault("retry_limit_seconds", str(_CONNECT_SECONDS))
            system = pyarrow.fs.GcsFileSystem.from_uri(parts._replace(query=urlencode(options)).geturl())[0]
        else:
            system, path = pyarrow.fs.LocalFileSystem(), parts.path.rstrip("/")
    except (OSError, ValueError, TypeError) as error:
        raise StorageUnavailable(f"{url} cannot be opened: {error}") from error
    return ObjectStorage(url.partition("?")[0].rstrip("/"), parts.query, system, path)


def _s3_options(options: dict[str, str]) -> dict[str, Any]:
    """The options of a URL such as `s3://bucket/runs?endpoint_override=localhost:5000&scheme=http&region=eu-west-1`."""
    from pyarrow.fs import AwsStandardS3RetryStrategy

    endpoint = options.pop("endpoint_override", None) or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint is not None and "://" in endpoint:
        scheme, _, endpoint = endpoint.partition("://")
        options.setdefault("scheme", scheme)
    return {
        "endpoint_override": endpoint,
        "connect_timeout": _CONNECT_SECONDS,
        "request_timeout": _REQUEST_SECONDS,
        "retry_strategy": AwsStandardS3RetryStrategy(max_attempts=_TRIES),
        **options,
    }


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """The files below a URL, by keys with slashes. A file appears whole or not at all."""

    url: str
    options: str
    """The query of the URL, such as an endpoint."""
    system: FileSystem
    path: str

    def below(self, name: str) -> ObjectStorage:
        """The storage one level deeper."""
        return ObjectStorage(f"{self.url}/{name}", self.options, self.system, f"{self.path}/{name}")

    @property
    def full_url(self) -> str:
        """The URL from which `open_storage` makes the same storage."""
        return f"{self.url}?{self.options}" if self.options else self.url

    def read(self, key: str) -> bytes:
        """The bytes of a file, or `FileNotFoundError`."""
        with self.system.open_input_stream(f"{self.path}/{key}", compression=None) as file:
            data: bytes = file.read()
        return data

    def write(self, key: str, data: bytes) -> None:
        """Write a file."""
        place = f"{self.path}/{key}"
        if self._is_local:
            # A reader of a directory would otherwise see half a file; object stores show whole ones only.
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            aside = Path(f"{place}.{os.getpid()}.tmp")
            aside.write_bytes(data)
            aside.replace(place)
            return
        with self.system.open_output_stream(place, compression=None) as file:
            file.write(data)

    def names(self, key: str = "") -> list[str]:
        """The names directly below a key, in order; empty if there is nothing."""
        from pyarrow.fs import FileSelector

        where = f"{self.path}/{key}".rstrip("/")
        found = self.system.get_file_info(FileSelector(where, allow_not_found=True))
        return sorted(info.base_name for info in found if not info.base_name.endswith(".tmp"))

    def delete(self, key: str) -> None:
        """Remove a file; one that is gone already is no error."""
        try:
            self.system.delete_file(f"{self.path}/{key}")
        except FileNotFoundError:
            return

    def require_writable(self) -> None:
        """Raise `StorageUnavailable`, with the reason, unless files can be written here."""
        try:
            self.write(".writable", b"")
            self.delete(".writable")
        except OSError as error:
            # The clouds' own errors have thousands of characters.
            reason = " ".join(str(error).split())[:_REASON_CHARACTERS]
            raise StorageUnavailable(
                f"{self.url} cannot be written to: {reason}. Check the URL, the permissions and the credentials."
            ) from error

    def walk(self, depth: int) -> Iterator[ObjectStorage]:
        """This storage and those up to `depth` levels below it."""
        yield self
        if depth > 0:
            from pyarrow.fs import FileSelector, FileType

            found = self.system.get_file_info(FileSelector(self.path, allow_not_found=True))
            for info in sorted(found, key=lambda info: info.base_name):
                if info.type == FileType.Directory and not info.base_name.startswith("."):
                    yield from self.below(info.base_name).walk(depth - 1)

    @property
    def _is_local(self) -> bool:
        return bool(self.system.type_name == "local")
