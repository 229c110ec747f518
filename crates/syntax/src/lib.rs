//! Turns source text into a checked [`Program`](tilewright_ir::Program).
//!
//! [`lexer`] cuts the text into tokens, and [`parser`] builds an [`ast`]. [`mod@check`] resolves
//! names, infers types and ranges, and checks that accesses stay in bounds. Each step reports its
//! findings as [`Diagnostic`]s and continues, so that one run shows all mistakes. No text makes
//! this crate panic.
//!
//! ```
//! let source = "def mv(float(M,K) A, float(K) x) -> (y) { y(i) +=! A(i,k) * x(k) }";
//! let module = tilewright_syntax::parse(source);
//! let checked = tilewright_syntax::check(&module.ast, "mv", &Default::default());
//! assert!(checked.diagnostics.is_empty());
//! assert!(checked.program.is_some_and(|program| program.stages.len() == 1));
//! ```

pub mod ast;
pub mod check;
pub mod diagnostic;
pub mod lexer;
pub mod parser;
mod ranges;
pub mod sizes;
pub mod span;
pub mod storage_order;

pub use check::{
    Bindings, Checked, Reason, ReasonKind, check, diagnose, name_collisions, runs_alone, signature,
    uncalled_function,
};
pub use diagnostic::{Code, Diagnostic, Severity};
pub use parser::{Parsed, parse};
pub use ranges::ranges_text;
pub use span::Span;
