"""What a plot shows: its lines as matplotlib draws them, not only that there is a picture."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D


class SavedFigures:
    """Keeps the figures that are saved while it is in use, in place of their files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.figures: list[Figure] = []
        monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: self.figures.append(figure))

    def visible_lines(self, panel: int = 0) -> list[Line2D]:
        """The lines of a panel of the last figure that can be seen: of two points or more, or with markers."""
        return [line for line in self.figures[-1].axes[panel].lines if _is_visible(line)]


def _is_visible(line: Line2D) -> bool:
    points = {(float(x), float(y)) for x, y in zip(*line.get_data(), strict=True)}
    return len(points) > 1 or (len(points) == 1 and line.get_marker() not in (None, "None", "", " "))
