from __future__ import annotations

import numpy as np
import pytest

from rl4sys.environments.area_resize import AreaResize


def test_a_new_pixel_is_the_mean_of_the_area_that_it_covers() -> None:
    image = np.arange(36, dtype=np.uint8).reshape(6, 6)
    assert AreaResize(6, 6, 3)(image).tolist() == [[4, 6, 8], [16, 18, 20], [28, 30, 32]]


@pytest.mark.parametrize(("height", "size"), [(210, 84), (250, 84), (214, 64), (230, 96), (220, 160), (210, 17)])
def test_shrunk_images_equal_those_of_opencv_to_the_bit(height: int, size: int) -> None:
    cv2 = pytest.importorskip("cv2")
    rng, resize = np.random.default_rng(size), AreaResize(height, 160, size)
    for step in range(30):
        # Few colours: then many means lie halfway between two numbers.
        image = rng.choice(rng.integers(0, 256, 2 + step, np.uint8), (height, 160))
        assert np.array_equal(resize(image), cv2.resize(image, (size, size), interpolation=cv2.INTER_AREA))


def test_a_change_of_any_row_is_seen() -> None:
    resize, image = AreaResize(210, 160, 84), np.zeros((210, 160), np.uint8)
    for row in range(210):
        resize(image)
        image[row] = 255
        assert np.array_equal(resize(image), AreaResize(210, 160, 84)(image))


def test_images_are_not_enlarged() -> None:
    with pytest.raises(ValueError, match="cannot be shrunk"):
        AreaResize(50, 160, 84)
