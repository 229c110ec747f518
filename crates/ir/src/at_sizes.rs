//! Makes a [`Program`] at other sizes: numbers for its symbols, which are its sizes and integer
//! scalars.

use crate::builder::{BuildError, check_unchecked, size_mistakes};
use crate::check::check;
use crate::program::Program;
use crate::unchecked::{UncheckedProgram, assemble};

impl Program {
    /// Returns the program with other values of its symbols, in their order. The result is checked
    /// again, because the proofs of the checks hold for the program's own sizes only.
    pub fn at_sizes(&self, values: &[i64]) -> Result<Program, Vec<BuildError>> {
        let unchecked = self.unchecked_at(values);
        let mistakes = size_mistakes(&unchecked.symbols);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Ok(self.contracted_alike(check_unchecked(unchecked)?))
    }

    /// Like [`Program::at_sizes`], but not checked at these sizes. The program need not be
    /// meaningful there: shapes may be negative, and accesses out of bounds.
    pub fn at_unchecked_sizes(&self, values: &[i64]) -> Option<Program> {
        let mut unchecked = self.unchecked_at(values);
        let general = unchecked.specialize();
        let definedness = check(general.as_ref().unwrap_or(&unchecked)).definedness;
        Some(self.contracted_alike(assemble(unchecked, &definedness)?))
    }

    /// Another program, which fuses products with sums if this one does.
    fn contracted_alike(&self, other: Program) -> Program {
        if self.contract { other } else { other.without_contraction() }
    }

    /// The unchecked program for all sizes, with values that are not substituted yet.
    fn unchecked_at(&self, values: &[i64]) -> UncheckedProgram {
        let mut unchecked = UncheckedProgram::from_program(self.general.as_deref().unwrap_or(self));
        for (symbol, value) in unchecked.symbols.iter_mut().zip(values) {
            symbol.value = Some(*value);
        }
        unchecked
    }
}
