//! Generated code on devices: every test runs on every device of this machine, and says so where there is none.
//!
//! Most code is written by hand here, in words that `dialect.rs` gives a meaning in both languages, so that what is tested
//! is the launching and not a schedule or a code generator; `generated.rs` tries the two together, and
//! `scheduled.rs` is the way from a schedule to a device.
//!
//! TILEWRIGHT_REQUIRE=opencl, or cuda, or nvrtc, or several with commas, makes it a failure that one is missing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod case;
mod combined;
mod compiling;
mod dialect;
mod examples;
mod gathered;
mod generated;
mod indices;
mod lanes;
mod running;
mod scheduled;
mod serpentine;
mod timing;
