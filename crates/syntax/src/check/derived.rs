//! Computes the named integers that depend on scalars, as far as the scalars are given, and
//! compares named integers with the values that the user gives for them.
//!
//! `resolve` has made each of these integers a symbol, so that all other passes treat it as a size.
//! Its value is computed after shapes are inferred, because it may depend on extents. Without the
//! scalars, the symbol stays open, or has the value that the user gives for it.

use tilewright_ir::derived::{Derived, DerivedError};
use tilewright_ir::{Atom, IndexExpr, Number, ScalarId, SymbolId};

use super::Bindings;
use super::model::Model;
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

/// Computes every named integer whose scalars and sizes are known. Returns false after a report.
pub(super) fn settle(model: &mut Model, bindings: &Bindings) -> bool {
    let mut is_fine = true;
    for at in 0..model.derived.len() {
        let found = substitute_extents(model, at).and_then(|()| compute(model, at, bindings));
        if let Err(mistake) = found {
            is_fine = false;
            model.report(*mistake);
        }
    }
    let wrong: Vec<Diagnostic> = wrong_names(model).collect();
    is_fine &= wrong.is_empty();
    wrong.into_iter().for_each(|mistake| model.report(mistake));
    is_fine
}

type Verdict = Result<(), Box<Diagnostic>>;

fn mistake(span: Span, message: String) -> Diagnostic {
    Diagnostic::error(Code::InvalidSize, span, message)
}

fn span_of(derived: &Derived) -> Span {
    derived.origin.into()
}

fn name_of(model: &Model, derived: &Derived) -> String {
    model.symbols[derived.symbol.index()].name.clone()
}

/// Replaces extents by expressions of sizes. An extent that depends on the integer itself, or on a
/// later one, is a mistake.
fn substitute_extents(model: &mut Model, at: usize) -> Verdict {
    let mut own = model.derived[at].clone();
    let mut is_known = true;
    own.value.map_indices(&mut |index| {
        let settled = model.with_extents(index);
        is_known &= settled.is_some();
        settled.unwrap_or_else(|| index.clone())
    });
    let computed_before =
        |symbol: &SymbolId| !model.derived[at..].iter().any(|other| other.symbol == *symbol);
    let depends_on_earlier = own.symbols().iter().all(computed_before);
    let (span, name) = (span_of(&own), name_of(model, &own));
    model.derived[at] = own;
    // An unknown extent has been reported where it stays unknown.
    match depends_on_earlier || !is_known {
        true => Ok(()),
        false => {
            let message = format!("`{name}` depends on an extent that depends on `{name}`");
            Err(mistake(span, message).into())
        }
    }
}

/// Computes the value if all its scalars and sizes are known, and compares it with the given one.
fn compute(model: &mut Model, at: usize, bindings: &Bindings) -> Verdict {
    let own = model.derived[at].clone();
    let (span, name) = (span_of(&own), name_of(model, &own));
    let scalar = |id: ScalarId| -> Option<Number> {
        let declared = &model.scalars[id.index()];
        Some(bindings.scalar(&declared.name)?.convert(declared.dtype))
    };
    let with = match own.scalars_text(&model.scalars, &scalar) {
        scalars if scalars.is_empty() => "at these sizes".to_owned(),
        scalars => format!("with {scalars}"),
    };
    let value = match own.evaluate(&|symbol| model.symbols[symbol.index()].value, &scalar) {
        Ok(value) => value,
        Err(DerivedError::Unknown) => return Ok(()),
        Err(DerivedError::NoSize(value)) if value < 0 => {
            let message = format!("the named integer `{name}` must be at least 0, and is {value}");
            return Err(mistake(span, message).label(with).into());
        }
        Err(error) => {
            let message = format!("`{name}` has no value: {error}");
            return Err(mistake(span, message).label(with).into());
        }
    };
    let symbol = &mut model.symbols[own.symbol.index()];
    if let Some(given) = symbol.value.filter(|given| *given != value) {
        let message = format!("`{name}` is {value} {with}, but {given} is given for it");
        return Err(mistake(span, message).into());
    }
    if let Some(least) = symbol.least.filter(|least| value < *least) {
        let message = format!("the named integer `{name}` must be at least {least}, and is {value}");
        return Err(mistake(span, message).label(with).into());
    }
    symbol.value = Some(value);
    Ok(())
}

/// The mistakes of values that are given for named integers which are notation.
fn wrong_names(model: &Model) -> impl Iterator<Item = Diagnostic> {
    model.given_names.iter().filter_map(|named| {
        let index = with_given_sizes(model, &named.index)?;
        let value = index.as_constant().filter(|value| *value != named.given)?;
        let message = format!("`{}` is {value}, but {} is given for it", named.name, named.given);
        Some(mistake(named.span, message))
    })
}

fn with_given_sizes(model: &Model, index: &IndexExpr) -> Option<IndexExpr> {
    let index = model.with_extents(index)?;
    Some(index.substitute(&mut |atom| match atom {
        Atom::Symbol(symbol) => model.symbols[symbol.index()].value.map(IndexExpr::constant),
        _ => None,
    }))
}
