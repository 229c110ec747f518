//! Makes a program for the interpreter if some of its sizes are 0.
//!
//! The checker proves a program for sizes of at least 1, and kernels are compiled for such sizes
//! only. At a size of 0 there is hardly anything to compute: tensors have no elements, and
//! reductions over nothing give their neutral element. So the interpreter computes the results. It
//! checks every access, and needs no proof.

use tilewright_ir::{IndexExpr, Program, Symbol, SymbolId, SymbolKind, TensorId};
use tilewright_syntax::{Bindings, Parsed};

use crate::source::general_program;

/// Returns a function as a program for the interpreter, if some of its sizes are 0.
///
/// Returns `None` if no size is 0, and if the function does not exist at these sizes: it has
/// mistakes, a size is missing or negative, a shape would be negative, or a precondition fails. The
/// ordinary check reports these.
pub fn empty_program(parsed: &Parsed, function: &str, sizes: &Bindings, contract: bool) -> Option<Program> {
    // Most calls have no size of 0, and are not checked twice.
    if sizes.iter().all(|(_, value)| value != 0) {
        return None;
    }
    let general = general_program(parsed, function, &Bindings::default(), contract).program.ok()?;
    let given = |id: SymbolId| sizes.get(&general.symbols[id.index()].name);
    let values = general.derived_values(&given, &|scalar| sizes.scalar(scalar))?;
    let is_possible = |(symbol, value): (&Symbol, &i64)| {
        *value >= least_value(symbol) && sizes.get(&symbol.name).is_none_or(|given| given == *value)
    };
    if !general.symbols.iter().zip(&values).all(is_possible) {
        return None;
    }
    let mut sizes = general.symbols.iter().zip(&values).filter(|(own, _)| own.kind == SymbolKind::Size);
    let is_empty = sizes.any(|(_, value)| *value == 0);
    let program = general.at_unchecked_sizes(&values)?;
    let is_allowed = program.preconditions.iter().all(|own| own.holds() != Some(false));
    (is_empty && is_allowed && has_no_negative_extent(&program)).then_some(program)
}

/// The least value of a symbol: 0 for a size, and what the checker asks of a scalar.
fn least_value(symbol: &Symbol) -> i64 {
    match symbol.kind {
        SymbolKind::Size => 0,
        SymbolKind::Scalar(_) | SymbolKind::Derived => symbol.least.unwrap_or(i64::MIN),
    }
}

/// Whether no shape and no range is negative.
fn has_no_negative_extent(program: &Program) -> bool {
    let is_range = |extent: &IndexExpr| extent.as_constant().is_some_and(|extent| extent >= 0);
    let has_shape = |at: usize| program.shape(TensorId(at as u32)).is_some();
    (0..program.tensors.len()).all(has_shape)
        && program.statements().iter().all(|(statement, _)| {
            statement.vars.iter().all(|var| is_range(&program.var(*var).range.extent()))
        })
}
