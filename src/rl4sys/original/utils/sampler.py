"""Measures this process at an interval, in a background thread, and writes the values to a CSV file."""

from __future__ import annotations

import csv
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Sample = Callable[[], Mapping[str, float]]


class Sampler:
    """Writes one line for each sample to `DIRECTORY/TIME/NAME.csv`."""

    def __init__(self, name: str, directory: str, log_interval: float, sample: Sample) -> None:
        self.path = Path(directory) / time.strftime("%Y%m%d_%H%M%S") / f"{name}.csv"
        self.log_interval = log_interval
        self._sample = sample
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, callback: Callable[[dict[str, Any]], None] | None = None) -> None:
        """Begin; `callback` gets every sample."""
        if self.is_running:
            raise RuntimeError("It is running already; call stop_background_profiling first.")
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, args=(callback,), name="rl4sys-sampler", daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None = 5.0) -> bool:
        """Stop; false if that takes longer than `timeout` seconds."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)
        return not self.is_running

    @property
    def is_running(self) -> bool:
        """Whether it measures at present."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self, callback: Callable[[dict[str, Any]], None] | None) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("w", newline="") as file:
            writer = None
            while True:
                values = {"timestamp": time.time(), **self._sample()}
                writer = writer or _with_header(csv.DictWriter(file, list(values)))
                writer.writerow(values)
                file.flush()
                if callback is not None:
                    callback(values)
                if self._stop.wait(self.log_interval):
                    return


def _with_header(writer: csv.DictWriter[str]) -> csv.DictWriter[str]:
    writer.writeheader()
    return writer
