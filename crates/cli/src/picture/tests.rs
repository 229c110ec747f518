//! Every format, every kind of sample and every layout there and back; damaged and lying files.

use tilewright::ir::{DType, Number, Tensor};
use tilewright::syntax::{Bindings, parse};

use super::export::Plan;
use super::import::{self, Parameter};
use super::layout::{Dimension, Layout, Order, inferred_dimensions, written_dimensions};
use super::*;

const ALL: [Format; 7] =
    [Format::Png, Format::Jpeg, Format::Tiff, Format::Pfm, Format::Pgm, Format::Ppm, Format::Pnm];

/// A picture of 5 by 4 pixels whose samples all differ.
fn picture(channels: usize, kind: &str) -> Picture {
    let numbers = 0..5 * 4 * channels;
    let samples = match kind {
        "u8" => Samples::U8(numbers.map(|at| (at * 3) as u8).collect()),
        "u16" => Samples::U16(numbers.map(|at| (at * 800) as u16).collect()),
        "f32" => Samples::F32(numbers.map(|at| at as f32 / 7.0 - 3.0).collect()),
        _ => Samples::F64(numbers.map(|at| at as f64 / 7.0 - 3.0).collect()),
    };
    Picture::new(5, 4, channels, samples)
}

/// Every picture that a format holds without loss.
fn pictures(format: Format) -> Vec<Picture> {
    let kinds: &[&str] = match format {
        Format::Tiff => &["u8", "u16", "f32", "f64"],
        Format::Pfm => &["f32"],
        Format::Jpeg => &[],
        _ => &["u8", "u16"],
    };
    let channels: &[usize] = match format {
        Format::Png | Format::Tiff => &[1, 3, 4],
        Format::Jpeg | Format::Pfm | Format::Pnm => &[1, 3],
        Format::Pgm => &[1],
        Format::Ppm => &[3],
    };
    kinds.iter().flat_map(|kind| channels.iter().map(|channels| picture(*channels, kind))).collect()
}

#[test]
fn every_format_holds_its_samples() {
    for format in ALL {
        for picture in pictures(format) {
            let bytes = encode(format, &picture).unwrap();
            assert_eq!(decode(format, &bytes).as_ref(), Ok(&picture), "{format:?}");
        }
    }
}

#[test]
fn jpeg_comes_close() {
    for channels in [1, 3] {
        // A gradient along the columns: neighbouring pixels differ by 6.
        let samples = (0..40 * 16 * channels).map(|at| (at / channels % 40 * 6) as u8).collect();
        let picture = Picture::new(40, 16, channels, Samples::U8(samples));
        let decoded = decode(Format::Jpeg, &encode(Format::Jpeg, &picture).unwrap()).unwrap();
        assert_eq!((decoded.width, decoded.height, decoded.channels), (40, 16, channels));
        let (Samples::U8(found), Samples::U8(wanted)) = (&decoded.samples, &picture.samples) else {
            panic!("JPEG holds 8 bits")
        };
        let most = found.iter().zip(wanted).map(|(one, other)| one.abs_diff(*other)).max();
        assert!(most < Some(8), "{most:?}");
    }
}

#[test]
fn pfm_has_rows_from_below_in_either_order_of_bytes() {
    let wanted = Picture::new(1, 2, 1, Samples::F32(vec![1.0, 2.0]));
    let rows = [2.0f32, 1.0];
    let file =
        |scale: &str, bytes: [[u8; 4]; 2]| [b"Pf\n1 2\n", scale.as_bytes(), b"\n", &bytes.concat()].concat();
    assert_eq!(decode(Format::Pfm, &file("-1.0", rows.map(f32::to_le_bytes))), Ok(wanted.clone()));
    assert_eq!(decode(Format::Pfm, &file("1.0", rows.map(f32::to_be_bytes))), Ok(wanted.clone()));
    // A factor is not applied.
    assert_eq!(decode(Format::Pfm, &file("-0.003922", rows.map(f32::to_le_bytes))), Ok(wanted));
    let refusal = decode(Format::Pfm, &file("0", rows.map(f32::to_le_bytes))).unwrap_err();
    assert!(refusal.contains("the scale 0"), "{refusal}");
}

#[test]
fn pgm_has_comments_and_any_largest_value() {
    let mut file = b"P5 # from a camera\n2 # columns\n1\n1023\n".to_vec();
    file.extend([3, 255, 0, 1]);
    let found = decode(Format::Pgm, &file).unwrap();
    assert_eq!((found.maximum, &found.samples), (1023, &Samples::U16(vec![1023, 1])));
    let first_sample = file.len() - 4;
    file[first_sample] = 4;
    let refusal = decode(Format::Pgm, &file).unwrap_err();
    assert!(refusal.contains("at most 1023"), "{refusal}");
    assert!(decode(Format::Pgm, b"P2 1 1 255 7").unwrap_err().contains("P5 or P6"));
}

#[test]
fn a_file_of_another_format_is_named() {
    let png = encode(Format::Png, &picture(3, "u8")).unwrap();
    assert_eq!(
        decode(Format::Jpeg, &png).unwrap_err(),
        "it is a PNG file, though its name says JPEG; give it the name of its format"
    );
    for format in ALL {
        assert_eq!(decode(format, b"").unwrap_err(), "it is empty");
        assert_eq!(decode(format, b"nonsense").unwrap_err(), format!("not a {} file", format.name()));
    }
}

#[test]
fn a_file_that_is_cut_short_is_refused_at_every_length() {
    for format in ALL {
        let jpeg = || vec![picture(3, "u8"), picture(1, "u8")];
        for picture in if format == Format::Jpeg { jpeg() } else { pictures(format) } {
            let bytes = encode(format, &picture).unwrap();
            for length in 0..bytes.len() {
                let decoded = decode(format, &bytes[..length]);
                assert!(decoded.is_err(), "{format:?} cut to {length} of {}", bytes.len());
            }
        }
    }
}

#[test]
fn changed_bytes_never_panic() {
    for format in ALL {
        let whole = if format == Format::Jpeg { vec![picture(3, "u8")] } else { pictures(format) };
        for picture in whole {
            let bytes = encode(format, &picture).unwrap();
            for at in 0..bytes.len() {
                for value in [0, 1, 0x7f, 0x80, 0xff, !bytes[at]] {
                    let mut changed = bytes.clone();
                    changed[at] = value;
                    let _ = decode(format, &changed);
                }
            }
        }
    }
}

/// A PNG with a header of these extents, and no pixels.
fn lying_png(width: u32, height: u32) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut file, width, height);
    encoder.set_color(::png::ColorType::Rgba);
    drop(encoder.write_header().unwrap());
    file
}

#[test]
fn lies_about_the_size_cost_no_memory() {
    let declared = |format, bytes: &[u8]| {
        let refusal = decode(format, bytes).unwrap_err();
        assert!(refusal.contains("its header declares"), "{refusal}");
    };
    declared(Format::Png, &lying_png(2_000_000_000, 2_000_000_000));
    declared(Format::Png, &lying_png(60_000, 60_000));
    declared(Format::Pfm, b"PF\n4000000000 4000000000\n-1.0\n");
    declared(Format::Pfm, b"PF\n18446744073709551615 3\n-1.0\n");
    declared(Format::Pgm, b"P5\n99999 99999\n255\n");
    let mut jpeg = encode(Format::Jpeg, &picture(1, "u8")).unwrap();
    let frame = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].fill(0xff);
    declared(Format::Jpeg, &jpeg);
    let mut tiff = encode(Format::Tiff, &picture(1, "u8")).unwrap();
    for tag in [256u16, 257] {
        // The tag, and the type of its value.
        let is_entry = |bytes: &[u8]| bytes[..2] == tag.to_le_bytes() && matches!(bytes[2..], [3 | 4, 0]);
        let entry = tiff.windows(4).position(is_entry).unwrap();
        tiff[entry + 8..entry + 10].fill(0xff);
    }
    declared(Format::Tiff, &tiff);
    assert_eq!(decode(Format::Pgm, b"P5\n0 7\n255\n").unwrap_err(), "it has no pixels");
}

#[test]
fn planes_of_a_tiff_become_pixels() {
    // Tags: width, height, bits, compression, photometric, offsets, samples, rows, counts, planar.
    let short = |tag: u16, value: u16| {
        [tag.to_le_bytes(), 3u16.to_le_bytes(), [1, 0], [0, 0], value.to_le_bytes(), [0, 0]].concat()
    };
    let at = |tag: u16, count: u16, offset: u16| {
        [tag.to_le_bytes(), 3u16.to_le_bytes(), count.to_le_bytes(), [0, 0], offset.to_le_bytes(), [0, 0]]
            .concat()
    };
    let entries = [
        short(256, 2),
        short(257, 1),
        at(258, 3, 8),
        short(259, 1),
        short(262, 2),
        at(273, 3, 14),
        short(277, 3),
        short(278, 1),
        at(279, 3, 20),
        short(284, 2),
    ];
    let numbers = [8u16, 8, 8, 26, 28, 30, 2, 2, 2];
    let mut file = b"II*\0".to_vec();
    file.extend(32u32.to_le_bytes());
    file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    file.extend([1, 2, 10, 20, 100, 200]);
    file.extend((entries.len() as u16).to_le_bytes());
    file.extend(entries.concat());
    file.extend([0; 4]);
    let wanted = Picture::new(2, 1, 3, Samples::U8(vec![1, 10, 100, 2, 20, 200]));
    assert_eq!(decode(Format::Tiff, &file), Ok(wanted));
}

/// The dimensions of a parameter that is declared in this way, with sizes that are known.
fn dimensions(ty: &str, sizes: &[(&str, i64)]) -> Vec<Dimension> {
    let module = parse(&format!("def f({ty} x) -> (y) {{ y(i) = 1 where i in 0:2 }}"));
    let sizes: Bindings = sizes.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    written_dimensions(&module.ast.functions[0].params[0].ty, &sizes)
}

fn layout(ty: &str, sizes: &[(&str, i64)]) -> Result<Layout, String> {
    Layout::of("x", &dimensions(ty, sizes))
}

#[test]
fn the_program_says_where_the_channels_are() {
    let found = |ty: &str, sizes: &[(&str, i64)]| {
        let layout = layout(ty, sizes).unwrap();
        (layout.order, layout.channels)
    };
    assert_eq!(found("float(H, W)", &[]), (Order::Gray, Some(1)));
    // A number in the program counts before names, and names before values.
    assert_eq!(found("float(3, H, W)", &[]), (Order::Planar, Some(3)));
    assert_eq!(found("float(3, H, W)", &[("W", 4)]), (Order::Planar, Some(3)));
    assert_eq!(found("float(H, W, 4)", &[]), (Order::Interleaved, Some(4)));
    assert_eq!(found("float(C, H, 1)", &[]), (Order::Interleaved, Some(1)));
    assert_eq!(found("float(C, H, W)", &[]), (Order::Planar, None));
    assert_eq!(found("float(C, H, W)", &[("C", 3), ("W", 3)]), (Order::Planar, Some(3)));
    assert_eq!(found("float(H, W, channels)", &[]), (Order::Interleaved, None));
    assert_eq!(found("float(A, H, W)", &[("A", 3)]), (Order::Planar, Some(3)));
    assert_eq!(found("float(H, W, A)", &[("A", 3), ("W", 3)]), (Order::Interleaved, Some(3)));
    assert_eq!(found("float(A, H, W + 1)", &[("W", 2)]), (Order::Interleaved, Some(3)));
    let batch = layout("float(N, 3, H, W)", &[]).unwrap();
    assert!(batch.is_batch && batch.order == Order::Planar);
    assert_eq!(batch.shape(5, 4, 3), [1, 3, 4, 5]);
    assert_eq!(batch.extents(&[1, 3, 4, 5]), Some([5, 4, 3]));
}

#[test]
fn a_layout_is_never_guessed() {
    let refusal = |ty: &str, sizes: &[(&str, i64)]| layout(ty, sizes).unwrap_err();
    assert!(
        refusal("float(3, H, 4)", &[]).contains("both the first and the last dimension of `x` (3 and 4)")
    );
    assert!(refusal("float(C, H, c)", &[]).contains("both the first"));
    assert!(refusal("float(A, H, W)", &[("A", 3), ("W", 4)]).contains("both the first"));
    let open = refusal("float(A, H, W)", &[]);
    assert!(open.contains("write 3 or C for A (planar) or for W (interleaved)"), "{open}");
    assert!(open.contains("--sizes A=3 or --sizes W=3"), "{open}");
    assert!(refusal("float(2, H, W)", &[]).contains("the first is 2 and the last is W"));
    assert!(refusal("float(N)", &[]).contains("`x` has 1 dimension, "));
    assert!(refusal("float(A, B, 3, H, W)", &[]).contains("`x` has 5 dimensions"));
    assert!(refusal("float(8, 3, H, W)", &[]).contains("a batch of 8 pictures"));
    assert!(refusal("float(N, 3, H, W)", &[("N", 2)]).contains("a batch of 2 pictures"));
}

fn import(picture: Picture, ty: &str) -> Result<Tensor, String> {
    let module = parse(&format!("def f({ty} x) -> (y) {{ y(i) = 1 where i in 0:2 }}"));
    let dtype = module.ast.functions[0].params[0].ty.dtype;
    import::tensor(picture, &Parameter { name: "x", dtype, layout: layout(ty, &[]).unwrap() })
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    (0..tensor.len()).map(|at| tensor.get(at).as_f64()).collect()
}

/// Two pixels side by side.
fn pair(channels: usize, samples: &[u8]) -> Picture {
    Picture::new(2, 1, channels, Samples::U8(samples.to_vec()))
}

#[test]
fn a_picture_takes_the_layout_of_its_parameter() {
    let rgb = || pair(3, &[1, 2, 3, 4, 5, 6]);
    let planar = import(rgb(), "uint8(3, H, W)").unwrap();
    assert_eq!((planar.shape(), planar.bytes()), (&[3, 1, 2][..], &[1, 4, 2, 5, 3, 6][..]));
    let interleaved = import(rgb(), "uint8(H, W, 3)").unwrap();
    assert_eq!((interleaved.shape(), interleaved.bytes()), (&[1, 2, 3][..], &[1, 2, 3, 4, 5, 6][..]));
    assert_eq!(import(rgb(), "uint8(C, H, W)").unwrap(), planar);
    assert_eq!(import(rgb(), "uint8(1, C, H, W)").unwrap().shape(), [1, 3, 1, 2]);
    let gray = import(pair(1, &[7, 9]), "uint8(H, W)").unwrap();
    assert_eq!((gray.shape(), gray.bytes()), (&[1, 2][..], &[7, 9][..]));
    assert_eq!(import(pair(1, &[7, 9]), "uint8(H, W, 1)").unwrap().shape(), [1, 2, 1]);
}

#[test]
fn channels_are_added_where_that_loses_nothing() {
    let bytes = |picture, ty| import(picture, ty).unwrap().bytes().to_vec();
    assert_eq!(bytes(pair(1, &[7, 9]), "uint8(H, W, 3)"), [7, 7, 7, 9, 9, 9]);
    assert_eq!(bytes(pair(1, &[7, 9]), "uint8(4, H, W)"), [7, 9, 7, 9, 7, 9, 255, 255]);
    assert_eq!(bytes(pair(3, &[1, 2, 3, 4, 5, 6]), "uint8(H, W, 4)"), [1, 2, 3, 255, 4, 5, 6, 255]);
    assert_eq!(bytes(pair(2, &[7, 0, 9, 5]), "uint8(H, W, 4)"), [7, 7, 7, 0, 9, 9, 9, 5]);
    // An alpha that is opaque everywhere says nothing.
    assert_eq!(bytes(pair(4, &[1, 2, 3, 255, 4, 5, 6, 255]), "uint8(H, W, 3)"), [1, 2, 3, 4, 5, 6]);
    assert_eq!(bytes(pair(2, &[7, 255, 9, 255]), "uint8(H, W)"), [7, 9]);
}

#[test]
fn other_channels_are_refused_with_what_to_do() {
    let gray = import(pair(3, &[1; 6]), "uint8(H, W)").unwrap_err();
    assert!(gray.contains("it has 3 channels (RGB), and `x` has one"), "{gray}");
    assert!(gray.contains("0.299 * x(0, y, x)"), "{gray}");
    let lost = import(pair(4, &[1, 2, 3, 255, 4, 5, 6, 254]), "uint8(H, W, 3)").unwrap_err();
    assert!(lost.contains("not opaque") && lost.contains("4 channels"), "{lost}");
    assert!(import(pair(2, &[7, 255, 9, 0]), "uint8(H, W)").unwrap_err().contains("not opaque"));
    assert!(import(pair(4, &[255; 8]), "uint8(H, W)").unwrap_err().contains("(RGB and alpha)"));
}

#[test]
fn floats_are_from_0_to_1_and_integers_as_stored() {
    let floats = import(pair(1, &[255, 51]), "float(H, W)").unwrap();
    assert_eq!(numbers(&floats), [1.0, f64::from(51f32 / 255.0)]);
    assert_eq!(numbers(&import(pair(1, &[255, 51]), "double(H, W)").unwrap()), [1.0, 0.2]);
    assert_eq!(numbers(&import(pair(1, &[255, 0]), "half(H, W)").unwrap()), [1.0, 0.0]);
    let raw = Picture { maximum: 1023, ..Picture::new(2, 1, 1, Samples::U16(vec![1023, 341])) };
    assert_eq!(numbers(&import(raw.clone(), "double(H, W)").unwrap()), [1.0, 1.0 / 3.0]);
    assert_eq!(numbers(&import(raw, "uint16(H, W)").unwrap()), [1023.0, 341.0]);
    let float = Picture::new(2, 1, 1, Samples::F32(vec![-3.5, 1e9]));
    assert_eq!(numbers(&import(float, "float(H, W)").unwrap()), [-3.5, 1e9]);
}

#[test]
fn types_that_do_not_fit_are_refused_with_what_to_do() {
    let refusal = |kind, ty| import(picture(1, kind), ty).unwrap_err();
    assert!(refusal("u8", "uint16(H, W)").contains("257 * uint16(x(…))"));
    assert!(refusal("u16", "uint8(H, W)").contains("declare `x` as uint16"));
    assert!(refusal("f32", "uint8(H, W)").contains("it has float samples, and `x` is uint8"));
    assert!(refusal("u8", "int(H, W)").contains("`x` is int32"));
    assert!(refusal("u8", "bool(H, W)").contains("`x` is bool"));
}

fn tensor(dtype: DType, shape: &[usize], numbers: &[f64]) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, shape).unwrap();
    for (at, number) in numbers.iter().enumerate() {
        tensor.set(at, if dtype.is_float() { Number::Float(*number) } else { Number::Int(*number as i128) });
    }
    tensor
}

fn export(format: Format, tensor: &Tensor) -> Result<(Picture, usize), String> {
    let dimensions = inferred_dimensions(tensor.shape());
    Plan::new(format, "y", tensor.dtype(), &dimensions, tensor.shape())?.picture("y", tensor)
}

#[test]
fn results_become_pictures() {
    let planar = tensor(DType::UInt8, &[3, 1, 7], &(0..21).map(f64::from).collect::<Vec<_>>());
    let (picture, _) = export(Format::Png, &planar).unwrap();
    assert_eq!((picture.width, picture.height, picture.channels), (7, 1, 3));
    let Samples::U8(samples) = picture.samples else { panic!() };
    assert_eq!(&samples[..6], [0, 7, 14, 1, 8, 15]);
    let interleaved = tensor(DType::UInt16, &[5, 5, 4], &(0..100).map(f64::from).collect::<Vec<_>>());
    let (picture, _) = export(Format::Tiff, &interleaved).unwrap();
    assert_eq!(picture.samples, Samples::U16((0..100).collect()));
}

#[test]
fn floats_are_clamped_and_counted_or_kept() {
    let values = [-0.5, 0.0, 0.5, 1.0, 1.5, f64::INFINITY];
    let floats = tensor(DType::Float32, &[1, 6], &values);
    let (picture, clamped) = export(Format::Png, &floats).unwrap();
    assert_eq!((picture.samples, clamped), (Samples::U8(vec![0, 0, 128, 255, 255, 255]), 3));
    let kept = Samples::F32(values.iter().map(|value| *value as f32).collect());
    for format in [Format::Tiff, Format::Pfm] {
        assert_eq!(export(format, &floats).unwrap(), (Picture::new(6, 1, 1, kept.clone()), 0));
    }
    let double = tensor(DType::Float64, &[1, 6], &values);
    assert_eq!(export(Format::Tiff, &double).unwrap().0.samples, Samples::F64(values.to_vec()));
    let nan = tensor(DType::Float32, &[1, 6], &[f64::NAN, 0.0, 0.0, 0.0, 0.0, f64::NAN]);
    let refusal = export(Format::Jpeg, &nan).unwrap_err();
    assert!(refusal.contains("2 of the 6 elements of `y` are NaN"), "{refusal}");
    assert!(export(Format::Pfm, &nan).is_ok());
}

#[test]
fn eight_bits_survive_the_way_through_floats() {
    let bytes: Vec<u8> = (0..=255).collect();
    let picture = Picture::new(256, 1, 1, Samples::U8(bytes));
    for ty in ["half(H, W)", "float(H, W)", "double(H, W)"] {
        let floats = import(picture.clone(), ty).unwrap();
        assert_eq!(export(Format::Png, &floats).unwrap(), (picture.clone(), 0), "{ty}");
    }
}

#[test]
fn results_that_a_format_does_not_hold_are_refused() {
    let refusal =
        |format, dtype, shape: &[usize]| export(format, &Tensor::zeros(dtype, shape).unwrap()).unwrap_err();
    assert!(
        refusal(Format::Jpeg, DType::UInt16, &[9, 9])
            .contains("a JPEG file holds 8 bits: write .png or .tiff")
    );
    assert!(refusal(Format::Pfm, DType::UInt8, &[9, 9]).contains("a PFM file holds floats"));
    assert!(refusal(Format::Png, DType::Int32, &[9, 9]).contains("`y` is int32"));
    assert!(refusal(Format::Tiff, DType::Bool, &[9, 9]).contains("`y` is bool"));
    assert!(
        refusal(Format::Jpeg, DType::UInt8, &[4, 9, 9])
            .contains("has 4 channels, and a JPEG file holds 1 or 3")
    );
    assert!(refusal(Format::Pgm, DType::UInt8, &[3, 9, 9]).contains("a PGM file holds 1: write .ppm"));
    assert!(refusal(Format::Ppm, DType::UInt8, &[9, 9]).contains("has 1 channel, and a PPM file holds 3"));
    assert!(refusal(Format::Png, DType::UInt8, &[9]).contains("`y` has 1 dimension"));
    assert!(refusal(Format::Png, DType::UInt8, &[7, 9, 9]).contains("the first is 7 and the last is 9"));
    assert!(refusal(Format::Png, DType::UInt8, &[3, 9, 4]).contains("use a .npy file"));
    assert!(refusal(Format::Png, DType::UInt8, &[0, 9]).contains("`y` has no pixels"));
}
