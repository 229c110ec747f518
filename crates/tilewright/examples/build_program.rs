//! A program that is built in Rust, without text: a blur of an image, whose border is repeated.
//!
//!     cargo run --release -p tilewright --example build_program

use ndarray::Array2;
use tilewright::builder::Index;
use tilewright::{DType, Error, Program, ProgramBuilder, ReduceOp};

/// The blur of an image: the mean of 3 by 3 pixels.
fn blur(height: i64, width: i64) -> Result<Program, Error> {
    let mut p = ProgramBuilder::new("blur");
    let (h, w) = (p.size("H"), p.size("W"));
    let image = p.input("image", DType::Float32, (h, w));
    let sums = p.temporary("sums", DType::Float32, (h, w));
    let blurred = p.output("blurred", DType::Float32, (h, w));
    let (y, x) = (p.index("y", 0, h), p.index("x", 0, w));
    let (r, s) = (p.index("r", 0, 3), p.index("s", 0, 3));
    let clamped = |at: Index, size| at.max(0).min(size - 1);
    let pixel = image.at((clamped(y + r - 1, h), clamped(x + s - 1, w)));
    p.reduce(ReduceOp::Add, sums.at((y, x)), pixel);
    p.assign(blurred.at((y, x)), sums.at((y, x)) / 9.0);
    // The builder refuses a program with an access out of bounds, an element that is written twice,
    // or one that is never defined.
    Program::try_from(p.build_at([("H", height), ("W", width)])?)
}

/// A program with a mistake, and what the builder says about it.
fn shifted() -> String {
    let mut p = ProgramBuilder::new("shifted");
    let n = p.size("N");
    let (x, y) = (p.input("x", DType::Float32, n), p.output("y", DType::Float32, n));
    let i = p.index("i", 0, n);
    p.assign(y.at(i), x.at(i + 1));
    p.build().map_or_else(|mistakes| mistakes[0].to_string(), |_| "no mistake".to_owned())
}

fn main() -> Result<(), Error> {
    let (height, width) = (4, 6);
    let kernel = blur(height as i64, width as i64)?.compile()?;
    let image = Array2::from_shape_fn((height, width), |(y, x)| (9 * (y + x)) as f32);
    let mut blurred = Array2::<f32>::zeros((height, width));
    kernel.call().input("image", &image)?.output("blurred", &mut blurred)?.run()?;
    println!("{blurred}");
    println!("a program that is refused: {}", shifted());
    Ok(())
}
