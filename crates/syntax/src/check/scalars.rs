//! Turns integer scalars that are used only as values into runtime arguments.
//!
//! Every integer scalar begins as a symbol, because a subscript or a range may contain it. A scalar
//! that occurs only in values does not affect the structure of the program. It becomes an argument
//! of every call, as a float is, and its symbol is dropped, so that one kernel serves all its
//! values. Scalars in comparisons of indices and in divisors stay symbols, because proofs rely on
//! them.

use std::collections::BTreeSet;
use std::sync::Arc;

use tilewright_ir::unchecked::{Parts, add_symbols};
use tilewright_ir::{
    Atom, BinaryOp, DType, Expr, ExprKind, IndexExpr, Number, Scalar, ScalarId, SymbolId, SymbolKind, Term,
};

use super::model::Model;

/// Turns the scalars that occur only in values into arguments. The pass does not update the
/// `resolved` parts of statements, which keep the old symbols.
pub(super) fn make_arguments(model: &mut Model) {
    let known = structural_symbols(model);
    let argument_scalars: Vec<Option<ScalarId>> = (0..)
        .map(SymbolId)
        .zip(&model.symbols)
        .map(|(id, symbol)| match symbol.kind {
            SymbolKind::Scalar(scalar) if !known.contains(&id) => Some(scalar),
            _ => None,
        })
        .collect();
    if argument_scalars.iter().all(Option::is_none) {
        return;
    }
    let arguments = Arguments { argument_scalars: &argument_scalars, scalars: &model.scalars };
    model.derived.iter_mut().for_each(|derived| arguments.replace_in(&mut derived.value));
    for lowered in model.statements.iter_mut().filter_map(|statement| statement.lowered.as_mut()) {
        arguments.replace_in(&mut lowered.value);
        for guard in lowered.reads.iter_mut().flat_map(|read| &mut read.guards) {
            arguments.replace_in(Arc::make_mut(&mut guard.condition));
        }
    }
    drop_symbols(model, &argument_scalars);
}

/// Drops symbols that nothing mentions any more, and renumbers the others.
fn drop_symbols(model: &mut Model, dropped: &[Option<ScalarId>]) {
    let kept = |at: usize| dropped[at].is_none();
    let moved: Vec<IndexExpr> = (0..dropped.len())
        .map(|at| IndexExpr::symbol(SymbolId((0..at).filter(|before| kept(*before)).count() as u32)))
        .collect();
    model.map_indices(&mut |index| {
        index.substitute(&mut |atom| match atom {
            Atom::Symbol(symbol) => Some(moved[symbol.index()].clone()),
            _ => None,
        })
    });
    for derived in &mut model.derived {
        derived.symbol = SymbolId((0..derived.symbol.index()).filter(|at| kept(*at)).count() as u32);
    }
    let mut at = 0..;
    model.symbols.retain(|_| at.next().is_some_and(kept));
}

/// The symbols in subscripts, ranges, extents, divisors and comparisons of indices.
fn structural_symbols(model: &Model) -> BTreeSet<SymbolId> {
    let mut known = BTreeSet::new();
    for range in model.vars.iter().flat_map(|var| [&var.range, &var.dependent]).flatten() {
        add_symbols(&range.from, &mut known);
        add_symbols(&range.to, &mut known);
    }
    for extent in
        model.tensors.iter().flat_map(|tensor| [&tensor.declared, &tensor.shape]).flatten().flatten()
    {
        add_symbols(extent, &mut known);
    }
    for precondition in model.preconditions.iter() {
        add_symbols(&precondition.left, &mut known);
        add_symbols(&precondition.right, &mut known);
    }
    for derived in &model.derived {
        add_structural_of_value(&derived.value, &mut known);
    }
    for named in &model.given_names {
        add_symbols(&named.index, &mut known);
    }
    for equal in &model.equal_sizes {
        add_symbols(&equal.left, &mut known);
        add_symbols(&equal.right, &mut known);
    }
    for read in model.statements.iter().flat_map(|statement| &statement.view_reads) {
        read.indices.iter().chain(&read.ends).for_each(|index| add_symbols(index, &mut known));
    }
    for lowered in model.statements.iter().filter_map(|statement| statement.lowered.as_ref()) {
        add_structural(lowered, &mut known);
    }
    known
}

fn add_structural(lowered: &Parts, known: &mut BTreeSet<SymbolId>) {
    lowered.indices.iter().for_each(|index| add_symbols(index, known));
    add_structural_of_value(&lowered.value, known);
    for read in &lowered.reads {
        read.access.indices.iter().for_each(|index| add_symbols(index, known));
        read.guards.iter().for_each(|guard| add_structural_of_value(&guard.condition, known));
    }
}

fn add_structural_of_value(value: &Expr, known: &mut BTreeSet<SymbolId>) {
    match &value.kind {
        ExprKind::Load(access) => access.indices.iter().for_each(|index| add_symbols(index, known)),
        ExprKind::Index(index) => index.visit_atoms(&mut |atom| {
            if matches!(atom, Atom::FloorDiv(_) | Atom::Mod(_) | Atom::Data(_)) {
                add_symbols(&IndexExpr::atom(atom.clone()), known);
            }
        }),
        ExprKind::Binary(op, operands) if op.is_comparison() && operands.iter().all(is_index) => {
            for operand in operands.iter() {
                if let ExprKind::Index(index) = &operand.kind {
                    add_symbols(index, known);
                }
            }
        }
        _ => value.operands().iter().for_each(|operand| add_structural_of_value(operand, known)),
    }
}

fn is_index(value: &Expr) -> bool {
    value.dtype.is_integer() && matches!(value.kind, ExprKind::Index(_) | ExprKind::Literal(_))
}

/// The scalars that become arguments of every call.
struct Arguments<'a> {
    /// For each symbol, its scalar if that scalar becomes an argument.
    argument_scalars: &'a [Option<ScalarId>],
    scalars: &'a [Scalar],
}

impl Arguments<'_> {
    /// Replaces symbols by their arguments.
    fn replace_in(&self, value: &mut Expr) {
        match &value.kind {
            ExprKind::Index(index) if self.mentioned_in(index) => {
                *value = match lone_symbol(index) {
                    Some(symbol) => self.argument(symbol),
                    None => self.arithmetic(index),
                }
                .cast(value.dtype);
            }
            _ => value.operands_mut().iter_mut().for_each(|operand| self.replace_in(operand)),
        }
    }

    fn mentioned_in(&self, index: &IndexExpr) -> bool {
        index.any_atom(&mut |atom| matches!(atom, Atom::Symbol(symbol) if self.argument_scalars[symbol.index()].is_some()))
    }

    /// The scalar of a symbol, in its own type.
    fn argument(&self, symbol: SymbolId) -> Expr {
        match self.argument_scalars[symbol.index()] {
            Some(scalar) => {
                Expr { dtype: self.scalars[scalar.index()].dtype, kind: ExprKind::Scalar(scalar) }
            }
            None => as_int64(IndexExpr::symbol(symbol)),
        }
    }

    /// The value of an index that contains arguments, computed in 64 bits as indices are.
    fn arithmetic(&self, index: &IndexExpr) -> Expr {
        let mut rest = IndexExpr::constant(index.constant_part());
        let mut terms = Vec::new();
        for term in index.terms() {
            match self.mentioned_in(&IndexExpr::from(term)) {
                true => terms.push(self.product(term)),
                false => rest = rest.add(&IndexExpr::from(term)),
            }
        }
        if rest.as_constant() != Some(0) {
            terms.push(as_int64(rest));
        }
        fold_binary(BinaryOp::Add, terms)
    }

    fn product(&self, term: &Term) -> Expr {
        let mut rest = IndexExpr::constant(term.coefficient);
        let mut factors = Vec::new();
        for factor in &term.factors {
            let own = IndexExpr::atom(factor.clone());
            match factor {
                _ if !self.mentioned_in(&own) => rest = rest.mul(&own),
                Atom::Symbol(symbol) => factors.push(self.argument(*symbol).cast(DType::Int64)),
                Atom::Min(pair) => factors.push(self.extremum(BinaryOp::Min, pair)),
                Atom::Max(pair) => factors.push(self.extremum(BinaryOp::Max, pair)),
                // Scalars in quotients and data stay symbols.
                _ => factors.push(as_int64(own)),
            }
        }
        if rest.as_constant() != Some(1) {
            factors.push(as_int64(rest));
        }
        fold_binary(BinaryOp::Mul, factors)
    }

    fn extremum(&self, op: BinaryOp, pair: &(IndexExpr, IndexExpr)) -> Expr {
        Expr::binary(op, self.arithmetic(&pair.0), self.arithmetic(&pair.1))
    }
}

fn lone_symbol(index: &IndexExpr) -> Option<SymbolId> {
    match index.terms() {
        [Term { factors, coefficient: 1 }] if index.constant_part() == 0 => match factors.as_slice() {
            [Atom::Symbol(symbol)] => Some(*symbol),
            _ => None,
        },
        _ => None,
    }
}

/// An index as an int64 value, without replacement.
fn as_int64(index: IndexExpr) -> Expr {
    match index.as_constant() {
        Some(number) => Expr::literal(DType::Int64, Number::Int(number.into())),
        None => Expr { dtype: DType::Int64, kind: ExprKind::Index(Box::new(index)) },
    }
}

fn fold_binary(op: BinaryOp, parts: Vec<Expr>) -> Expr {
    let all = parts.into_iter().reduce(|left, right| Expr::binary(op, left, right));
    all.unwrap_or_else(|| as_int64(IndexExpr::constant(0)))
}

#[cfg(test)]
mod tests {
    use crate::check::{Bindings, check};
    use crate::parse;
    use tilewright_ir::Program;

    fn program(value: &str, bindings: &[(&str, i64)]) -> Program {
        let source =
            format!("def f(int32(N) x, int32 a, int32 b, uint64 c) -> (int64(N) y) {{ y(i) = {value} }}");
        let bindings: Bindings = bindings.iter().copied().collect();
        let checked = check(&parse(&source).ast, "f", &bindings);
        checked.program.unwrap_or_else(|| panic!("{value}: {:?}", checked.diagnostics))
    }

    fn symbols(program: &Program) -> Vec<&str> {
        program.symbols.iter().map(|symbol| symbol.name.as_str()).collect()
    }

    #[test]
    fn value_scalars_become_arguments() {
        let values = [
            "x(i) + a",
            "x(i) / a",
            "a",
            "-a",
            "a * b + 2*i*a - N + x(i)",
            "min(a, b + 1) * max(i, b) + int64(c)",
            "x(i) > a ? b : 0",
        ];
        for value in values {
            let own = program(value, &[]);
            assert_eq!(symbols(&own), ["N"], "{value}");
            // The given values of these scalars make no difference, and a given size stays known.
            let given = program(value, &[("a", 3), ("b", -4), ("N", 5)]);
            assert_eq!(given.general.as_deref(), Some(&own), "{value}");
            assert_eq!(given.symbols[0].value, Some(5));
        }
    }

    #[test]
    fn structural_scalars_stay_symbols() {
        let values = [
            "i / a",
            "i % a + b",
            "i < a ? x(i) : 0",
            "a > 2 ? x(i) : 0",
            "x(i) > 0 && a ? 1 : 2",
            "i + a < N ? x(max(i + a, 0)) : b",
            "x(k) where k = x(i), k in 0:a",
        ];
        for value in values {
            assert_eq!(symbols(&program(value, &[])), ["a", "N"], "{value}");
        }
    }
}
