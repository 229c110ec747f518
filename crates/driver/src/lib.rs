//! The compilation pipeline: from source text to code that can be called.
//!
//! The tuner and every front end (the Rust library, the command line, the Python package) compile
//! through this crate. The stages, in order:
//!
//! | module | input → output |
//! |---|---|
//! | [`source`] | text, a function's name and sizes → a [`Program`](tilewright_ir::Program) |
//! | [`zero_sizes`] | the same, at sizes of which some are 0 → a `Program` for the interpreter |
//! | [`target`] | a target's name, such as `cuda:1` → an [`OpenTarget`] |
//! | [`schedule`] | program and target → the schedule to use: given, from the cache, or default |
//! | [`mod@compile`] | program, schedule and target → loops and [`Code`] |
//! | [`code`] | code and tensors → results |
//! | [`stage`] | any of these as text, for people |
//!
//! A front end translates its arguments to these types, and their errors to its own. Nothing here
//! prints, and no choice here depends on environment variables.

mod adapted;
pub mod code;
pub mod compile;
pub mod schedule;
pub mod source;
pub mod stage;
pub mod target;
pub mod zero_sizes;

pub use code::{BoundCode, Code};
pub use compile::{CompileError, Compiled, compile, lower};
pub use schedule::{ChosenSchedule, Origin};
pub use source::{ProgramError, Source};
pub use stage::Stage;
pub use target::{OpenTarget, TargetName, UnknownTarget};
