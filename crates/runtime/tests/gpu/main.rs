//! Generated code on devices: every test runs on every device of this machine, and reports if there
//! is none.
//!
//! Most kernels are written by hand here, with macros that `dialect.rs` defines for both languages.
//! The tests therefore cover the launching, and not a schedule or a code generator. `generated.rs`
//! tests launching and code generation together, and `scheduled.rs` tests the path from a schedule
//! to a device.
//!
//! `TILEWRIGHT_REQUIRE` makes it a failure that a device or a compiler is missing. Its value is
//! `opencl`, `cuda`, `nvrtc` or `cuda-headers`, or several of them with commas.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod case;
mod combined;
mod compiling;
mod dialect;
mod examples;
mod extrema;
mod gathered;
mod generated;
mod indices;
mod integers;
mod lanes;
mod packed;
mod quotients;
mod running;
mod scattered;
mod scheduled;
mod serpentine;
mod timing;
