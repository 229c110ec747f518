"""Pictures of other libraries: objects of Pillow, and arrays in the layouts that libraries use."""

import numpy as np
import pytest

import tilewright as tw

try:
    from PIL import Image
except ImportError:
    Image = None

with_pillow = pytest.mark.skipif(Image is None, reason="Pillow is not installed")

PLANAR = "def invert(uint8(3, H, W) I) -> (O) { O(c, y, x) = 255 - I(c, y, x) }"
INTERLEAVED = "def invert(uint8(H, W, 3) I) -> (O) { O(y, x, c) = 255 - I(y, x, c) }"
GRAY = "def invert(uint8(H, W) I) -> (O) { O(y, x) = 255 - I(y, x) }"


@pytest.fixture
def rgb():
    return np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)


@with_pillow
def test_pictures_of_pillow_are_tensors(rgb):
    picture = Image.fromarray(rgb)
    result = tw.define(INTERLEAVED)(picture)
    np.testing.assert_array_equal(result, 255 - rgb)
    assert isinstance(result, np.ndarray) and Image.fromarray(result).size == picture.size
    np.testing.assert_array_equal(tw.define(GRAY)(picture.getchannel("R")), 255 - rgb[..., 0])
    kernel = tw.define(INTERLEAVED).compile(picture)
    np.testing.assert_array_equal(kernel(picture), 255 - rgb)


@with_pillow
def test_the_modes_of_pillow_have_types(rgb):
    deep = Image.fromarray(np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000)
    twice = tw.define("def f(uint16(H, W) I) -> (O) { O(y, x) = I(y, x) / 2 }")
    np.testing.assert_array_equal(twice(deep), np.asarray(deep) // 2)
    floats = Image.fromarray(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
    copy = tw.define("def f(float(H, W) I) -> (O) { O(y, x) = I(y, x) }")
    np.testing.assert_array_equal(copy(floats), np.asarray(floats))
    mask = Image.fromarray(rgb[..., 0] > 9)
    negate = tw.define("def f(bool(H, W) I) -> (O) { O(y, x) = !I(y, x) }")
    np.testing.assert_array_equal(negate(mask), ~np.asarray(mask))
    with pytest.raises(TypeError, match=r"`I` is uint8 in the program, and uint16 was given"):
        tw.define(GRAY)(deep)


@with_pillow
def test_pictures_of_pillow_that_do_not_fit_are_explained(rgb):
    picture = Image.fromarray(rgb)
    with pytest.raises(TypeError, match=r"`I` is a picture with a palette.*I\.convert\(\"RGB\"\)"):
        tw.define(GRAY)(picture.quantize(8))
    with pytest.raises(tw.ProgramError, match=r"np\.moveaxis\(I, -1, 0\)"):
        tw.define(PLANAR)(picture)
    with pytest.raises(tw.ProgramError, match=r"`I` has 2 dimensions here, but I has the shape \(5, 7, 3\)"):
        tw.define(GRAY)(picture)
    with pytest.raises(ValueError, match="the tensor for the result `O` is refused: it is read-only"):
        tw.define(INTERLEAVED)(rgb, out=picture.copy())


def test_layouts_that_differ_are_explained(rgb):
    with pytest.raises(tw.ProgramError, match=r"last \(interleaved\).*first \(planar\).*np\.moveaxis\(I, -1, 0\)"):
        tw.define(PLANAR)(rgb)
    np.testing.assert_array_equal(tw.define(PLANAR)(np.moveaxis(rgb, -1, 0)), 255 - np.moveaxis(rgb, -1, 0))
    planar = np.ascontiguousarray(np.moveaxis(rgb, -1, 0))
    with pytest.raises(tw.ProgramError, match=r"np\.moveaxis\(I, 0, -1\)"):
        tw.define(INTERLEAVED)(planar)
    np.testing.assert_array_equal(tw.define(INTERLEAVED)(np.moveaxis(planar, 0, -1)), 255 - rgb)


def test_parts_and_mirror_images_of_arrays_are_tensors(rgb):
    """As other libraries give them: BGR instead of RGB, a crop, a flip, every second pixel, one channel."""
    invert, gray = tw.define(INTERLEAVED), tw.define(GRAY)
    for view in [rgb[..., ::-1], rgb[1:4, 2:6], rgb[::-1, ::-1], rgb[::2, ::3]]:
        np.testing.assert_array_equal(invert(view), 255 - view)
    np.testing.assert_array_equal(gray(rgb[..., 1]), 255 - rgb[..., 1])
    # Results go into a part of an array, too.
    out = np.zeros_like(rgb)
    gray(rgb[..., 1], out=out[..., 2])
    np.testing.assert_array_equal(out[..., 2], 255 - rgb[..., 1])
    assert not out[..., :2].any()


class WithArray:
    """A picture of a library that only knows NumPy's protocol."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class WithInterface:
    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


@pytest.mark.parametrize("kind", [WithArray, WithInterface])
def test_anything_that_numpy_makes_an_array_of_is_a_tensor(rgb, kind):
    np.testing.assert_array_equal(tw.define(INTERLEAVED)(kind(rgb)), 255 - rgb)
    with pytest.raises(ValueError, match="it is read-only"):
        tw.define(INTERLEAVED)(rgb, out=kind(rgb.copy()))
    with pytest.raises(TypeError, match=r"`I` takes a tensor .* not With"):
        tw.define(INTERLEAVED)(kind(np.array(3, dtype=np.uint8)))
    with pytest.raises(TypeError, match="`I` is an array of object"):
        tw.define(INTERLEAVED)(kind(np.array([None])))


def test_an_exception_of_the_object_names_its_parameter():
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise ValueError("the file is closed")

    with pytest.raises(ValueError, match="`I`: the file is closed"):
        tw.define(GRAY)(Broken())
    with pytest.raises(TypeError, match="or anything with __dlpack__, a buffer or __array__.*not list"):
        tw.define(GRAY)([[1, 2]])
