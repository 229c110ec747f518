//! The text of a program in parts, so that parts can be left out.

use std::fmt::{self, Display, Formatter};

/// A function of the language, with values for its sizes.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Parameters with their types.
    pub params: Vec<String>,
    /// Names of the results.
    pub results: Vec<String>,
    /// Statements, declarations and loops, one in each entry.
    pub body: Vec<String>,
    /// Sizes and their values.
    pub sizes: Vec<(String, i64)>,
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "def f({}) -> ({}) {{", self.params.join(", "), self.results.join(", "))?;
        for statement in &self.body {
            writeln!(f, "  {statement}")?;
        }
        writeln!(f, "}}")
    }
}
