"""The test pictures of scripts/test_pictures.py, and the command on them, compared with NumPy."""

import importlib.util
import re
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import numpy as np
import pytest

import cases_camera

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT, DOCUMENT = REPOSITORY / "scripts/test_pictures.py", REPOSITORY / "docs/pictures.md"
HEIGHT, WIDTH, SEED = 48, 64, 5


def loaded():
    """Returns the script as a module."""
    spec = importlib.util.spec_from_file_location("picture_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = loaded()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures") / "new"
    options = ["--width", str(WIDTH), "--height", str(HEIGHT), "--seed", str(SEED)]
    subprocess.run([sys.executable, SCRIPT, folder, *options], check=True, capture_output=True)
    return folder


def read_png(path):
    """Decodes a PNG with 8 or 16 bits and no palette, by the standard's five filters."""
    data, at, compressed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height = int.from_bytes(body[:4]), int.from_bytes(body[4:8])
            samples, depth = {0: 1, 2: 3, 6: 4}[body[9]], body[8] // 8
        compressed += body if kind == b"IDAT" else b""
        at += length + 12
    pixel = samples * depth
    lines = np.frombuffer(zlib.decompress(compressed), np.uint8).reshape(height, 1 + width * pixel)
    above, rows = np.zeros(width * pixel, int), []
    for line in lines:
        above = unfiltered(line[0], line[1:].astype(int), above, pixel)
        rows.append(above)
    picture = np.array(rows, np.uint8).view(">u2" if depth == 2 else np.uint8)
    shape = (height, width) if samples == 1 else (height, width, samples)
    return picture.astype(picture.dtype.newbyteorder("=")).reshape(shape)


def unfiltered(filter, row, above, pixel):
    for at in range(len(row)):
        left = row[at - pixel] if at >= pixel else 0
        corner = above[at - pixel] if at >= pixel else 0
        guess = left + above[at] - corner
        nearest = min([left, above[at], corner], key=lambda value: abs(guess - value))
        row[at] += [0, left, above[at], (left + above[at]) // 2, nearest][filter]
        row[at] %= 256
    return row


def read_pfm(path):
    kind, size, scale, samples = path.read_bytes().split(b"\n", 3)
    width, height = map(int, size.split())
    shape = (height, width, 3) if kind == b"PF" else (height, width)
    return np.frombuffer(samples, "<f4" if float(scale) < 0 else ">f4").reshape(shape)[::-1]


# --- The script.


def test_the_same_seed_makes_the_same_files(folder):
    again = script.pictures(HEIGHT, WIDTH, SEED)
    assert sorted(again) == sorted(path.name for path in folder.iterdir())
    assert all((folder / name).read_bytes() == contents for name, contents in again.items())
    other = script.pictures(HEIGHT, WIDTH, SEED + 1)
    without_noise = {"disparity.pfm", "matrix_3200.npy", "matrix_7000.npy", "filters.npz"}
    assert {name for name, contents in again.items() if other[name] == contents} == without_noise


def test_the_files_show_one_scene(folder):
    linear = read_pfm(folder / "scene.pfm")
    assert linear.shape == (HEIGHT, WIDTH, 3) and linear.min() >= 0 and 0.8 < linear.max() <= 1
    # Edges: neighbouring pixels that differ a great deal. Gradients: many different values.
    assert abs(np.diff(linear, axis=1)).max() > 0.5 and len(np.unique(linear)) > 1000
    eight, sixteen = read_png(folder / "scene.png"), read_png(folder / "scene_16.png")
    assert eight.dtype == np.uint8 and sixteen.dtype == np.uint16
    np.testing.assert_allclose(eight / 255, script.srgb(linear), atol=0.5 / 255 + 1e-6)
    np.testing.assert_allclose(sixteen / 65535, script.srgb(linear), atol=0.5 / 65535 + 1e-6)


def test_the_sensor_sees_the_scene_through_its_filters(folder):
    linear, sensor = read_pfm(folder / "scene.pfm"), read_png(folder / "bayer.png")
    assert sensor.dtype == np.uint16 and sensor.max() == script.WHITE
    np.testing.assert_array_equal(np.fromfile(folder / "bayer.raw", "<u2").reshape(HEIGHT, WIDTH), sensor)
    light = (sensor.astype(float) - script.BLACK) / (script.WHITE - script.BLACK)
    for row, column, channel in [(0, 0, 1), (0, 1, 0), (1, 0, 2), (1, 1, 1)]:
        error = abs(light[row::2, column::2] - linear[row::2, column::2, channel])
        # All but the hot pixels.
        assert np.quantile(error, 0.99) < 0.05


def test_the_disparity_leads_from_left_to_right(folder):
    left, right = read_png(folder / "left.png"), read_png(folder / "right.png")
    disparity = read_pfm(folder / "disparity.pfm")
    assert set(np.unique(disparity)) == {script.FAR, script.NEAR}
    rows, columns = np.indices(disparity.shape)
    target = columns - disparity.astype(int)
    same = (left == right[rows, np.maximum(target, 0)]).all(axis=-1)
    near = disparity == script.NEAR
    assert same[near & (target >= 0)].all()
    # Of the wall, the disc hides a stripe in the right view.
    assert same[~near & (target >= 0)].mean() > 0.85


def test_missing_pixels_are_transparent_and_the_others_are_those_of_the_scene(folder):
    scene, holes = read_png(folder / "scene.png"), read_png(folder / "holes.png")
    opaque = holes[..., 3] == 255
    assert set(np.unique(holes[..., 3])) == {0, 255} and 0.3 < opaque.mean() < 0.9
    np.testing.assert_array_equal(holes[opaque, :3], scene[opaque])
    assert not holes[~opaque].any()


def test_small_and_dim_pictures_show_the_scene(folder):
    scene = read_png(folder / "scene_16.png").astype(float)
    small, dim = read_png(folder / "small_16.png"), read_png(folder / "dim.png")
    assert small.shape == (HEIGHT // 4, WIDTH // 4, 3) and np.ptp(dim) <= 60
    np.testing.assert_allclose(small[1, 2], scene[4:8, 8:12].mean(axis=(0, 1)), atol=1)
    assert np.corrcoef(dim.ravel(), scene.ravel())[0, 1] > 0.999
    levels = read_png(folder / "levels_16.png")
    assert levels.dtype == np.uint16
    np.testing.assert_array_equal(levels, read_png(folder / "gray.png"))


def test_the_filters_of_the_network_find_the_colours_of_a_smooth_picture():
    """On a picture whose colours are linear in place, and differ by constants, nothing is lost."""
    rows, columns = np.indices((12, 14))
    picture = np.stack([2.0 * rows + 3 * columns + shift for shift in (5, 0, 9)], axis=-1)
    weights = {name: array.astype(float) for name, array in script.filters().items()}
    found = cases_camera.demosaic(script.through_filters(picture), **weights, layers=1)["image"]
    inside = np.s_[:, 2:-2, 2:-2]
    np.testing.assert_allclose(found[inside], np.moveaxis(picture, -1, 0)[inside])


def test_help_and_mistakes(tmp_path):
    def run(*options):
        return subprocess.run([sys.executable, SCRIPT, *options], capture_output=True, text=True)

    helped = run("--help")
    assert helped.returncode == 0 and "bayer.raw" in helped.stdout and "--seed" in helped.stdout
    small = run(tmp_path / "x", "--width", "3")
    assert small.returncode == 2 and "less than 32" in small.stderr and not (tmp_path / "x").exists()
    assert run().returncode == 2


# --- The document.


def test_the_commands_of_the_document_work(tilewright_in, tmp_path):
    """Programs are those of the blocks, named by their first line. A checksum is not compared."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, block in re.findall(r"^```tw\n# (\w+\.tw)(.*?)^```", text, re.M | re.S):
        (tmp_path / name).write_text("#" + block)
    for folder in "examples", "scripts":
        (tmp_path / folder).symlink_to(REPOSITORY / folder)
    commands = re.findall(r"^    \$ (.*)((?:\n    (?!\$).*)*)", text, re.M)
    assert len(commands) > 5
    for command, printed in commands:
        program, *arguments = command.split()
        if program == "python3":
            subprocess.run([sys.executable, *arguments], cwd=tmp_path, check=True, capture_output=True)
            continue
        assert program == "tilewright"
        done = tilewright_in(tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
        shown = re.sub(r"checksum \w+", "checksum …", done.stdout).strip()
        assert shown == textwrap.dedent(printed).strip(), command


# --- The command on these pictures.


@pytest.fixture
def program(tmp_path):
    def write(text):
        path = tmp_path / "program.tw"
        path.write_text(text)
        return path

    return write


def run(tilewright, program, *arguments):
    done = tilewright("run", program, *arguments)
    assert done.returncode == 0, done.stderr


def test_a_picture_of_8_bits_is_filtered(tilewright, program, folder, tmp_path):
    source = program("def f(uint8(H, W, 3) I) -> (O) { O(y, x, c) = I(y, W - 1 - x, c) where x in 0:W }")
    for name in ["a.png", "a.tiff"]:
        run(tilewright, source, "--in", f"I={folder / 'scene.png'}", "--out", tmp_path / name)
        run(tilewright, source, "--in", f"I={tmp_path / name}", "--out", tmp_path / "back.png")
        np.testing.assert_array_equal(read_png(tmp_path / "back.png"), read_png(folder / "scene.png"))
    run(tilewright, source, "--in", f"I={folder / 'scene.png'}", "--out", tmp_path / "mirror.png")
    np.testing.assert_array_equal(read_png(tmp_path / "mirror.png"), read_png(folder / "scene.png")[:, ::-1])


def test_planes_of_16_bits_and_floats(tilewright, program, folder, tmp_path):
    source = program("def f(uint16(3, H, W) I) -> (O) { O(c, y, x) = I(2 - c, y, x) where c in 0:3 }")
    run(tilewright, source, "--in", f"I={folder / 'scene_16.png'}", "--out", tmp_path / "swapped.png")
    np.testing.assert_array_equal(read_png(tmp_path / "swapped.png"), read_png(folder / "scene_16.png")[..., ::-1])
    source = program("def f(float(C, H, W) I) -> (O) { O(c, y, x) = 2 * I(c, y, x) }")
    run(tilewright, source, "--in", f"I={folder / 'scene.pfm'}", "--out", tmp_path / "twice.pfm")
    np.testing.assert_array_equal(read_pfm(tmp_path / "twice.pfm"), 2 * read_pfm(folder / "scene.pfm"))
    run(tilewright, source, "--in", f"I={folder / 'scene.png'}", "--out", tmp_path / "twice.png")
    doubled = np.minimum(2 * read_png(folder / "scene.png").astype(int), 255)
    np.testing.assert_array_equal(read_png(tmp_path / "twice.png"), doubled)


def test_the_raw_picture_of_a_sensor(tilewright, program, folder, tmp_path):
    source = program("def f(uint16(H, W) raw) -> (O) { O(y, x) = float(raw(y, x) - 25) / 998 }")
    run(tilewright, source, "--in", f"raw={folder / 'bayer.png'}", "--out", tmp_path / "a.npy")
    sizes = ["--sizes", f"H={HEIGHT},W={WIDTH}"]
    run(tilewright, source, "--in", f"raw={folder / 'bayer.raw'}", *sizes, "--out", tmp_path / "b.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_two_pictures_of_a_stereo_pair(tilewright, program, folder, tmp_path):
    source = program(
        "def f(uint8(3, H, W) left, uint8(3, H, W) right) -> (worst, best) {"
        " worst(y, x) max=! left(c, y, x)  best(y, x) min=! right(c, y, x) }"
    )
    inputs = ["--in", f"left={folder / 'left.png'}", "--in", f"right={folder / 'right.png'}"]
    outputs = ["--out", f"worst={tmp_path / 'worst.png'}", "--out", f"best={tmp_path / 'best.tiff'}"]
    run(tilewright, source, *inputs, *outputs)
    np.testing.assert_array_equal(read_png(tmp_path / "worst.png"), read_png(folder / "left.png").max(axis=-1))
