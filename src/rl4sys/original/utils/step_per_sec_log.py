"""`rl4sys.utils.step_per_sec_log`: steps per second, written to a CSV file."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from types import TracebackType
from typing import Self


class StepPerSecLogger:
    """Writes one line for each value to `DIRECTORY/TIME/NAME.csv`."""

    def __init__(self, proj_name: str, output_dir: str = "speedlog") -> None:
        self.csv_path = Path(output_dir) / time.strftime("%Y%m%d_%H%M%S") / f"{proj_name}.csv"
        self.csv_path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.csv_path.open("w", newline="")
        self._writer = csv.writer(self._file)
        self._writer.writerow(["timestamp", "steps_per_sec"])

    def log(self, steps_per_sec: float) -> None:
        """Write one value."""
        self._writer.writerow([time.time(), steps_per_sec])
        self._file.flush()

    def get_csv_path(self) -> str:
        """The path of the file."""
        return str(self.csv_path)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
