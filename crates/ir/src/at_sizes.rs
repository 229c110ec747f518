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
        Ok(Program { contract: self.contract, ..check_unchecked(unchecked)? })
    }

    /// Like [`Program::at_sizes`], but checks the program only for all sizes. At these sizes it
    /// need not be meaningful: shapes may be negative, and accesses out of bounds.
    pub fn at_unchecked_sizes(&self, values: &[i64]) -> Option<Program> {
        let mut unchecked = self.unchecked_at(values);
        let general = unchecked.specialize();
        let definedness = check(general.as_ref().unwrap_or(&unchecked)).definedness;
        let program = assemble(unchecked, &definedness)?;
        Some(Program { contract: self.contract, ..program })
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
