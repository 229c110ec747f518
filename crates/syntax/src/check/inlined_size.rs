//! Refuses functions that have far too many statements after calls are inlined, before any call is
//! inlined: 40 functions that each call the one before twice have 2^40.
//!
//! The count is a lower bound. Statements in loops do not count, because a loop over stages may
//! have no iterations. `resolve` counts the statements that it makes, and refuses other functions.

use std::collections::HashMap;

use super::resolve::{MOST_CALLS, MOST_STATEMENTS};
use crate::ast::{Function, Module, StmtKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

/// The message about a function with too many statements. The position is the statement that
/// exceeds the limit, in the innermost function that has too many by itself.
pub(super) fn too_many_statements(module: &Module, function: &Function) -> Option<Diagnostic> {
    let mut counts = Counts { module, known: HashMap::new() };
    let span = counts.count(function, 0).err()?;
    let message = format!("more than {MOST_STATEMENTS} statements after calls are inlined");
    Some(Diagnostic::error(Code::TooComplex, span, message))
}

/// The number of statements of functions, or the statement that exceeds the limit.
struct Counts<'m> {
    module: &'m Module,
    known: HashMap<&'m str, Result<usize, Span>>,
}

impl<'m> Counts<'m> {
    fn count(&mut self, function: &Function, depth: usize) -> Result<usize, Span> {
        let mut sum = 0;
        for statement in &function.body {
            sum += match &statement.kind {
                StmtKind::Comprehension(_) => 1,
                StmtKind::Call { callee, .. } => self.count_call(&callee.text, depth + 1)?,
                StmtKind::Declare(_) | StmtKind::For { .. } => 0,
            };
            if sum > MOST_STATEMENTS {
                return Err(statement.span);
            }
        }
        Ok(sum)
    }

    fn count_call(&mut self, callee: &str, depth: usize) -> Result<usize, Span> {
        let Some(function) = self.module.function(callee).filter(|_| depth <= MOST_CALLS) else {
            return Ok(0);
        };
        if let Some(count) = self.known.get(callee) {
            return *count;
        }
        // A recursive call is refused later.
        self.known.insert(&function.name.text, Ok(0));
        let count = self.count(function, depth);
        self.known.insert(&function.name.text, count);
        count
    }
}
