//! Describes which elements of a tensor one point of a statement reads, such as
//! `blur(y - 1..y + 1, x)`.
//!
//! The description is for people. A subscript that is clamped to the edge of an image, such as
//! `max(y - 1, 0)`, counts as `y - 1`. Both ends of a range are read.

use tilewright_ir::interval::{Knowledge, lower_bound, upper_bound};
use tilewright_ir::print;
use tilewright_ir::{Access, Atom, IndexExpr, Program, Range, Statement, SymbolId, VarId, VarKind};

/// The elements that a statement reads through some accesses to one tensor. Returns `None` if every
/// access reads exactly the element that the statement writes.
pub fn window(program: &Program, statement: &Statement, accesses: &[&Access]) -> Option<String> {
    let first = accesses.first()?;
    if accesses.iter().all(|access| access.indices == statement.indices) {
        return None;
    }
    let ranges = ReductionRanges { program, statement };
    let tensor = program.tensor(first.tensor);
    let dimension = |at: usize| {
        let subscripts = accesses.iter().map(|access| &access.indices[at]);
        span(&ranges, subscripts).map_or("…".to_owned(), |span| span.text(program, &tensor.shape[at]))
    };
    let dimensions: Vec<String> = (0..first.indices.len()).map(dimension).collect();
    Some(format!("{}({})", tensor.name, dimensions.join(", ")))
}

/// The least and the greatest subscript of one dimension.
struct Span {
    low: IndexExpr,
    high: IndexExpr,
}

impl Span {
    /// The span as text; `:` is the whole dimension.
    fn text(&self, program: &Program, extent: &IndexExpr) -> String {
        if self.low.as_constant() == Some(0) && self.high == extent.offset(-1) && self.low != self.high {
            return ":".to_owned();
        }
        let low = print::index(&self.low, program);
        if self.low == self.high { low } else { format!("{low}..{}", print::index(&self.high, program)) }
    }

    /// The span of both, if their ends can be compared.
    fn join(self, other: Span) -> Option<Span> {
        let first_is_less = self.low.sub(&other.low).as_constant()? <= 0;
        let first_is_greater = self.high.sub(&other.high).as_constant()? >= 0;
        Some(Span {
            low: if first_is_less { self.low } else { other.low },
            high: if first_is_greater { self.high } else { other.high },
        })
    }
}

/// The span of several subscripts of one dimension, if it can be expressed without data.
fn span<'a>(ranges: &ReductionRanges, mut subscripts: impl Iterator<Item = &'a IndexExpr>) -> Option<Span> {
    let own = |subscript: &IndexExpr| {
        if subscript.has_data() || subscript.is_overflow() {
            return None;
        }
        let plain = without_clamps(subscript);
        Some(Span { low: lower_bound(&plain, ranges)?, high: upper_bound(&plain, ranges)? })
    };
    let first = own(subscripts.next()?)?;
    subscripts.try_fold(first, |span, subscript| span.join(own(subscript)?))
}

/// Replaces each minimum and maximum by its operand with variables, if only one has any.
fn without_clamps(subscript: &IndexExpr) -> IndexExpr {
    subscript.substitute(&mut |atom| match atom {
        Atom::Min(pair) | Atom::Max(pair) => match (pair.0.vars().is_empty(), pair.1.vars().is_empty()) {
            (false, true) => Some(pair.0.clone()),
            (true, false) => Some(pair.1.clone()),
            _ => None,
        },
        _ => None,
    })
}

/// The ranges of the reduced variables. Other variables stay in the bounds.
struct ReductionRanges<'a> {
    program: &'a Program,
    statement: &'a Statement,
}

impl Knowledge for ReductionRanges<'_> {
    fn range(&self, var: VarId) -> Option<Range> {
        let own = self.program.var(var);
        let is_reduced = own.kind == VarKind::Reduction && self.statement.vars.contains(&var);
        is_reduced.then(|| own.range.clone())
    }

    fn least(&self, symbol: SymbolId) -> Option<i64> {
        self.program.symbols[symbol.index()].least
    }
}
