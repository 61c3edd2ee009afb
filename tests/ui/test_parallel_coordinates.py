from __future__ import annotations

from rl4sys.ui.parallel_coordinates import HEIGHT, PlottedTrial, parallel_coordinates


def trial(score: float | None, **values: object) -> PlottedTrial:
    return PlottedTrial(str(score), values, score)


def test_lines_are_ordered_and_coloured_by_score() -> None:
    drawing = parallel_coordinates([trial(3.0, lr=0.1), trial(1.0, lr=0.2), trial(2.0, lr=0.3)], "return")
    assert drawing is not None
    assert [line.title for line in drawing.lines] == ["1.0", "2.0", "3.0"]
    assert [line.level for line in drawing.lines] == [0, 1, 3]
    assert [axis.name for axis in drawing.axes] == ["lr", "return"]


def test_values_of_different_orders_are_spaced_by_their_logarithms() -> None:
    drawing = parallel_coordinates([trial(float(n), lr=10.0**-n) for n in range(3)], "return")
    assert drawing is not None
    heights = [height for height, _ in drawing.axes[0].marks]
    assert heights[1] - heights[0] == heights[2] - heights[1]


def test_choices_are_spaced_evenly_and_lists_are_shown_in_short() -> None:
    drawing = parallel_coordinates([trial(1.0, dims=[64, 64]), trial(2.0, dims=[8]), trial(3.0, dims=None)], "return")
    assert drawing is not None
    assert {text for _, text in drawing.axes[0].marks} == {"64x64", "8", "null"}
    assert all(0 <= height <= HEIGHT for height, _ in drawing.axes[0].marks)


def test_values_that_are_close_are_not_marked_over_each_other() -> None:
    scores = [10.0, 114.0, 117.0, 118.0, 190.0, 193.0]
    drawing = parallel_coordinates([trial(score, lr=score) for score in scores], "return")
    assert drawing is not None
    assert [text for _, text in drawing.axes[1].marks] == ["10", "114", "193"]


def test_settings_that_do_not_differ_have_no_axis() -> None:
    drawing = parallel_coordinates([trial(1.0, lr=0.1, gamma=0.9), trial(2.0, lr=0.2, gamma=0.9)], "return")
    assert drawing is not None
    assert [axis.name for axis in drawing.axes] == ["lr", "return"]


def test_equal_scores_lie_in_the_middle() -> None:
    drawing = parallel_coordinates([trial(1.0, lr=0.1), trial(1.0, lr=0.2)], "return")
    assert drawing is not None
    assert len(drawing.axes[1].marks) == 1


def test_without_scores_there_is_nothing_to_draw() -> None:
    assert parallel_coordinates([trial(None, lr=0.1), trial(1.0, lr=0.2)], "return") is None
    assert parallel_coordinates([], "return") is None
