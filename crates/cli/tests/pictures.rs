//! Tests of pictures as inputs and results of `tilewright run` and of the other commands that take
//! `--in`. `src/picture/tests.rs` has the formats and layouts one by one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use support::Folder;

const PROGRAMS: [(&str, &str); 9] = [
    ("invert.tw", "def invert(uint8(3, H, W) I) -> (O) { O(c, y, x) = 255 - I(c, y, x) }\n"),
    ("swap.tw", "def swap(uint8(H, W, 3) I) -> (O) { O(y, x, c) = I(y, x, 2 - c) where c in 0:3 }\n"),
    ("gray.tw", "def gray(uint8(H, W) I) -> (O) { O(y, x) = I(y, x) }\n"),
    ("bayer.tw", "def bayer(uint16(H, W) raw) -> (O) { O(y, x) = raw(y, x) - 16 }\n"),
    ("scale.tw", "def scale(float(C, H, W) I, float gain) -> (O) { O(c, y, x) = gain * I(c, y, x) }\n"),
    ("open.tw", "def open(float(A, B, D) I) -> (O) { O(a, b, d) = I(a, b, d) }\n"),
    ("wide.tw", "def wide(double(H, W) I) -> (O) { O(y, x) = I(y, x) }\n"),
    (
        "two.tw",
        "def two(uint8(H, W) I) -> (light, dark) { light(y, x) = max(I(y, x), 128)  dark(y, x) = min(I(y, x), 127) }\n",
    ),
    ("update.tw", "def update(uint8(H, W) I) -> (O) { O(y, x) = O(y, x) + I(y, x) }\n"),
];

/// A folder with the programs, and a picture of 6 by 5 pixels in two formats.
fn folder() -> Folder {
    let folder = Folder::new();
    PROGRAMS.iter().for_each(|(name, text)| folder.write(name, text));
    folder.write("photo.ppm", ppm(&samples()));
    folder.write("gray.pgm", [b"P5\n6 5\n255\n", &samples()[..30]].concat());
    folder.succeeds("run swap.tw --in I=photo.ppm --out swapped.ppm");
    folder.succeeds("run swap.tw --in I=swapped.ppm --out photo.png");
    folder
}

fn samples() -> Vec<u8> {
    (0..6 * 5 * 3).map(|at| (at * 7 % 251) as u8).collect()
}

fn ppm(samples: &[u8]) -> Vec<u8> {
    [b"P6\n6 5\n255\n", samples].concat()
}

impl Folder {
    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }
}

#[test]
fn a_picture_goes_in_and_a_picture_comes_out() {
    let folder = folder();
    let out = folder.succeeds("run invert.tw --in I=photo.png --out inverted.png");
    assert!(out.starts_with("O: uint8(3, 5, 6)  checksum ") && out.ends_with("  -> inverted.png\n"), "{out}");
    folder.succeeds("run invert.tw --in I=inverted.png --out again.PPM");
    assert_eq!(folder.bytes("again.PPM"), ppm(&samples()));
    // The interpreter reads and writes in the same way. Other commands take pictures, too.
    folder.succeeds("run invert.tw --in I=inverted.png --out interpreted.ppm --target interp");
    assert_eq!(folder.bytes("interpreted.ppm"), ppm(&samples()));
    folder.succeeds("run invert.tw --in I=photo.png --check");
    let loops = folder.succeeds("show invert.tw --stage program --in I=photo.png");
    assert!(loops.contains("uint8(3, 5, 6)"), "{loops}");
    folder.succeeds("prove invert.tw --in I=photo.png");
    folder.succeeds("bench invert.tw --in I=photo.png --samples 3 --time 10ms");
}

#[test]
fn every_format_comes_back() {
    let folder = folder();
    for name in ["a.png", "a.tif", "a.TIFF", "a.ppm", "a.pnm"] {
        folder.succeeds(&format!("run swap.tw --in I=photo.ppm --out {name}"));
        folder.succeeds(&format!("run swap.tw --in I={name} --out back.ppm"));
        assert_eq!(folder.bytes("back.ppm"), ppm(&samples()), "{name}");
    }
    for name in ["a.jpg", "a.JPEG"] {
        folder.succeeds(&format!("run swap.tw --in I=photo.ppm --out {name}"));
        let back = folder.succeeds(&format!("run swap.tw --in I={name}"));
        assert!(back.starts_with("O: uint8(5, 6, 3)"), "{back}");
    }
    // Floats: exactly through TIFF and PFM.
    folder.succeeds("run scale.tw --in I=photo.png --in gain=-3 --out a.npy");
    for name in ["a.pfm", "a.tiff"] {
        folder.succeeds(&format!("run scale.tw --in I=photo.png --in gain=-3 --out {name}"));
        folder.succeeds(&format!("run scale.tw --in I={name} --in gain=1 --out back.npy"));
        assert_eq!(folder.bytes("back.npy"), folder.bytes("a.npy"), "{name}");
    }
    folder.succeeds("run wide.tw --in I=gray.pgm --out double.tiff");
    folder.succeeds("run wide.tw --in I=double.tiff --out back.pgm");
    assert_eq!(folder.bytes("back.pgm"), folder.bytes("gray.pgm"));
}

#[test]
fn raw_pictures_of_sensors_come_in_several_ways() {
    let folder = folder();
    let values: Vec<u16> = (0..12).map(|at| 16 + 90 * at).collect();
    let little: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let big: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
    folder.write("sensor.raw", &little);
    folder.write("sensor.pgm", [b"P5\n4 3\n1023\n", &big[..]].concat());
    let from_raw = folder.succeeds("run bayer.tw --in raw=sensor.raw --sizes H=3,W=4 --out raw.png");
    let from_pgm = folder.succeeds("run bayer.tw --in raw=sensor.pgm --out pgm.png");
    assert_eq!(from_raw.replace("raw.png", "pgm.png"), from_pgm);
    assert_eq!(folder.bytes("raw.png"), folder.bytes("pgm.png"));
    let from_png = folder.succeeds("run bayer.tw --in raw=pgm.png");
    assert!(from_png.starts_with("O: uint16(3, 4)") && from_png.contains("[65520, 74, "), "{from_png}");
    folder.succeeds("run bayer.tw --in raw=sensor.pgm --out back.raw");
    let lower: Vec<u8> = values.iter().flat_map(|value| (value - 16).to_le_bytes()).collect();
    assert_eq!(folder.bytes("back.raw"), lower);
    folder.fails("run bayer.tw --in raw=sensor.raw --sizes W=4", 1, &["give H with --sizes", "12 elements"]);
    folder.fails("run bayer.tw --in raw=sensor.raw", 1, &["give H and W with --sizes"]);
    folder.fails("run bayer.tw --in raw=sensor.raw --sizes H=4,W=4", 1, &["24 bytes", "the shape (4, 4)"]);
    folder.fails(
        "run bayer.tw --in raw=sensor.raw --sizes H=4000000000,W=4000000000",
        1,
        &["12 elements of uint16"],
    );
}

#[test]
fn pictures_that_do_not_fit_are_explained() {
    let folder = folder();
    let refused = |line: &str, parts: &[&str]| folder.fails(&format!("run {line}"), 1, parts);
    refused("gray.tw --in I=photo.png", &["photo.png: it has 3 channels (RGB), and `I` has one"]);
    refused("bayer.tw --in raw=gray.pgm", &["samples of 8 bits", "257 * uint16(raw(…))"]);
    refused("open.tw --in I=photo.png", &["which dimension of `I` holds the channels", "--sizes A=3"]);
    folder.succeeds("run open.tw --in I=photo.png --sizes A=3");
    folder.succeeds("run open.tw --in I=photo.png --sizes D=3");
    refused(
        "scale.tw --in I=photo.png --in gain=photo.png",
        &["gain is a scalar", "--in gain=2", "photo.png"],
    );
    refused("scale.tw --in I=photo.png --in gain=x.raw", &["gain is a scalar"]);
    refused("mm.tw --in A=photo.png --sizes N=2", &["it has 3 channels"]);
    refused("double.tw --in x=gray.pgm", &["`x` has 1 dimension, and a picture has rows and columns"]);
    refused("gray.tw --in I=gray.pgm --sizes W=7", &["W is 7 from --sizes, but 6 from I (gray.pgm)"]);
    refused("update.tw --in I=gray.pgm --in O=gray.pgm", &["does not write the type of `O`"]);
    refused("gray.tw --in J=gray.pgm", &["`gray` has no input J"]);
    refused("gray.tw --in I=missing.png", &["missing.png: No such file"]);
    folder.write("photo.webp", "RIFF");
    refused("gray.tw --in I=photo.webp", &[".webp files are not read here", ".png"]);
    folder.write("text.png", "not a picture");
    refused("gray.tw --in I=text.png", &["text.png: not a PNG file"]);
    folder.write("photo.jpg", folder.bytes("photo.png"));
    refused("invert.tw --in I=photo.jpg", &["it is a PNG file, though its name says JPEG"]);
    folder.write("cut.png", &folder.bytes("photo.png")[..60]);
    refused("invert.tw --in I=cut.png", &["cut.png: it is cut short"]);
    folder.write("folder.txt", "");
    fs::create_dir(folder.path("a.png")).unwrap();
    refused("invert.tw --in I=a.png", &["a.png: "]);
}

#[test]
fn results_that_are_no_pictures_are_refused_before_the_run() {
    let folder = folder();
    let refused = |line: &str, status, parts: &[&str]| folder.fails(&format!("run {line}"), status, parts);
    refused("bayer.tw --sizes H=8,W=8 --out a.jpg", 1, &["--out a.jpg: `O` is uint16", "8 bits"]);
    refused("double.tw --sizes N=8 --out a.png", 1, &["--out a.png: `y` has 1 dimension"]);
    refused("gray.tw --sizes H=8,W=8 --out a.pfm", 1, &["a PFM file holds floats"]);
    refused("gray.tw --sizes H=8,W=8 --out a.bmp", 2, &["not written as .bmp", ".png"]);
    refused("gray.tw --sizes H=8,W=8 --out O=a.txt", 2, &["the file's name must end in .npy, .raw, .png"]);
    refused("gray.tw --sizes H=8,W=8 --out P=a.png", 1, &["`gray` has no result P", "It has: O"]);
    refused("gray.tw --sizes H=0,W=8 --out a.png", 1, &["`O` has no pixels"]);
    refused("gray.tw --sizes H=8,W=8 --out missing/a.png", 1, &["--out missing/a.png: No such file"]);
    refused("gray.tw --sizes H=8,W=8 --out a.png --out O=a.png", 2, &["--out names a.png twice"]);
    refused("gray.tw --sizes H=8,W=8 --out one --out two", 2, &["two folders: one and two"]);
    assert!(!folder.path("a.png").exists() && !folder.path("a.bmp").exists());
}

#[test]
fn several_results_have_names() {
    let folder = folder();
    let line = "run two.tw --in I=gray.pgm --out light=light.pgm --out dark=dark.npy";
    let out = folder.succeeds(line);
    assert!(out.contains("  -> light.pgm\n") && out.contains("  -> dark.npy\n"), "{out}");
    // A result without a file is printed, and a folder takes all of them.
    let out = folder.succeeds("run two.tw --in I=gray.pgm --out dark=dark.png");
    assert!(out.contains("  -> dark.png\n") && out.contains("[128, "), "{out}");
    let out = folder.succeeds("run two.tw --in I=gray.pgm --out all --out dark=all.png");
    assert!(out.contains("-> all/light.npy\n") && out.contains("-> all/dark.npy, all.png\n"), "{out}");
    folder.fails(
        "run two.tw --in I=gray.pgm --out a.png",
        2,
        &["the program has the results light, dark", "--out light=a.png"],
    );
    // A folder may have the name of a picture, and an equals sign behind a slash.
    fs::create_dir(folder.path("old.png")).unwrap();
    folder.succeeds("run two.tw --in I=gray.pgm --out old.png");
    assert!(folder.path("old.png/light.npy").exists());
    folder.succeeds("run two.tw --in I=gray.pgm --out ./a=b");
    assert!(folder.path("a=b/light.npy").exists());
}

#[test]
fn floats_that_are_clamped_are_counted() {
    let folder = folder();
    let ended = folder.tilewright("run scale.tw --in I=photo.png --in gain=2 --out bright.png");
    let above = samples().iter().filter(|sample| **sample > 127).count();
    let note = format!(
        "note: {above} of the 90 elements of `O` are below 0 or above 1, and were clamped in bright.png"
    );
    assert!(ended.status == 0 && ended.err.contains(&note), "{}", ended.err);
    let ended = folder.tilewright("run scale.tw --in I=photo.png --in gain=1 --out same.ppm");
    assert!(ended.status == 0 && !ended.err.contains("note"), "{}", ended.err);
    assert_eq!(folder.bytes("same.ppm"), ppm(&samples()));
    folder.write("roots.tw", "def roots(float(H, W) I) -> (O) { O(y, x) = sqrt(-1 - I(y, x)) }\n");
    folder.fails("run roots.tw --in I=gray.pgm --out nan.png", 1, &["30 of the 30 elements of `O` are NaN"]);
    folder.succeeds("run roots.tw --in I=gray.pgm --out nan.tiff");
}

#[test]
fn a_photo_that_viewers_turn_is_read_as_it_is_stored() {
    let folder = folder();
    folder.succeeds("run swap.tw --in I=photo.ppm --out photo.jpg");
    let exif = b"\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let jpeg = folder.bytes("photo.jpg");
    folder.write("turned.jpg", [&jpeg[..2], exif, &jpeg[2..]].concat());
    let ended = folder.tilewright("run swap.tw --in I=turned.jpg");
    assert!(ended.out.starts_with("O: uint8(5, 6, 3)"), "{}", ended.out);
    let note = "note: viewers turn or mirror turned.jpg (its orientation is 6); it is read as it is stored";
    assert!(ended.err.contains(note), "{}", ended.err);
    assert!(!folder.tilewright("run swap.tw --in I=photo.jpg").err.contains("note"));
}

#[test]
fn files_are_written_completely_or_not_at_all() {
    let folder = folder();
    symlink("/dev/full", folder.path("full.png")).unwrap();
    let ended = folder.tilewright("run gray.tw --in I=gray.pgm --out full.png");
    assert_eq!(ended.status, 3, "{}", ended.err);
    assert!(ended.err.contains("cannot write to full.png: No space left on device"), "{}", ended.err);
    // A picture that cannot be made leaves the old file.
    folder.write("roots.tw", "def roots(float(H, W) I) -> (O) { O(y, x) = sqrt(-1 - I(y, x)) }\n");
    folder.write("old.png", "old");
    folder.fails("run roots.tw --in I=gray.pgm --out old.png", 1, &["NaN"]);
    assert_eq!(folder.bytes("old.png"), b"old");
    folder.succeeds("run gray.tw --in I=gray.pgm --out old.png");
    let names: Vec<String> = fs::read_dir(folder.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".tilewright"))
        .collect();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn files_without_permission_are_refused() {
    let folder = folder();
    fs::set_permissions(folder.path("gray.pgm"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::create_dir(folder.path("locked")).unwrap();
    fs::set_permissions(folder.path("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    if fs::read(folder.path("gray.pgm")).is_ok() {
        eprintln!("skipped: this user may read and write every file");
        return;
    }
    folder.fails("run gray.tw --in I=gray.pgm", 1, &["gray.pgm: Permission denied"]);
    folder.fails(
        "run invert.tw --in I=photo.png --out locked/a.png",
        1,
        &["--out locked/a.png: Permission denied"],
    );
}

#[test]
fn a_picture_is_the_input_of_a_search() {
    let folder = Folder::with_peaks();
    PROGRAMS.iter().for_each(|(name, text)| folder.write(name, text));
    folder.write("photo.ppm", ppm(&samples()));
    let out = folder.succeeds("tune invert.tw --in I=photo.ppm --trials 2 --threads 1 --json");
    assert!(out.contains("\"event\":\"done\""), "{out}");
}
