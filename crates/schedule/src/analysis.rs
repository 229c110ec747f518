//! Analyses accesses and expressions of a program for the code that writes schedules: strides in
//! memory, variables in conditions, required divisors, and numbers of operations.

use std::collections::BTreeSet;

use tilewright_ir::ids::{Ids, InProgram};
use tilewright_ir::interval::Knowledge;
use tilewright_ir::{
    Access, BinaryOp, Builtin, Expr, ExprKind, IndexExpr, Program, Range, Statement, SymbolId, Term, VarId,
    index::Atom,
};

use crate::draft::borders::inside_border;
use crate::draft::comparison::as_condition;
pub use crate::draft::multiples::Multiple;
use crate::draft::multiples::{multiples, with_constant_quotients};
use crate::draft::simplify::Ranges;

/// The distance in memory that an access moves when a loop advances by one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// The same number of elements in every iteration.
    Elements(i64),
    /// A distance that differs between iterations.
    Irregular,
}

/// Returns the distance that an access moves with a variable. `distances` holds the stride of each
/// dimension, in elements.
pub fn stride<I: Ids>(indices: &[IndexExpr<I>], distances: &[i64], var: I::Var) -> Stride {
    let moving = indices.iter().zip(distances).filter(|(index, _)| index.mentions(var));
    let place = moving.fold(IndexExpr::constant(0), |place, (index, distance)| {
        place.add(&unclamped(index).scale(*distance))
    });
    let place = place.merge_quotients();
    // Quotients and remainders that belong together are merged first. A remainder that is left over
    // is that of a tensor which begins again at its end.
    let unwrapped = || linear_stride(&unwrapped(&place), var);
    linear_stride(&place, var).or_else(unwrapped).map_or(Stride::Irregular, Stride::Elements)
}

/// The coefficient of a variable, if the expression is linear in it.
fn linear_stride<I: Ids>(place: &IndexExpr<I>, var: I::Var) -> Option<i64> {
    if !place.mentions(var) {
        return Some(0);
    }
    let (coefficient, rest) = place.split_on(&Atom::Var(var))?;
    if rest.mentions(var) { None } else { coefficient.as_constant() }
}

/// The largest distance between the elements of neighbouring lanes for which whole vectors and a
/// shuffle are cheaper than a load for each lane.
pub(crate) const LONGEST_SHUFFLED_STEP: i64 = 4;

/// Returns true when neighbouring iterations use elements that are close together, so that a vector
/// of them takes a few loads and a shuffle, as in `x(2*i + 1)` and `x(i/2)`. Borders do not count.
pub fn is_shuffled<I: Ids>(indices: &[IndexExpr<I>], var: I::Var) -> bool {
    let Some((last, outer)) = indices.split_last() else { return false };
    let last = unclamped(last);
    let is_short = |step: i64| step.abs() <= LONGEST_SHUFFLED_STEP;
    let is_linear = |value: &IndexExpr<I>| linear_stride(value, var).is_some_and(is_short);
    let is_even = |pair: &(IndexExpr<I>, IndexExpr<I>)| {
        // Vectors have a power of two lanes, so every vector begins at such a multiple.
        pair.1.as_constant().is_some_and(|by| by == 2 || by == 4) && is_linear(&pair.0)
    };
    let is_close = |term: &Term<I>| match term.factors.as_slice() {
        [Atom::Var(_)] => is_short(term.coefficient),
        [Atom::FloorDiv(pair) | Atom::Mod(pair)] => is_short(term.coefficient) && is_even(pair),
        _ => false,
    };
    let mentions = |term: &&Term<I>| IndexExpr::from(*term).mentions(var);
    outer.iter().all(|index| !index.mentions(var)) && last.terms().iter().filter(mentions).all(is_close)
}

/// Returns a subscript as it is away from the borders: without the constants that it is clamped to.
pub fn unclamped<I: Ids>(index: &IndexExpr<I>) -> IndexExpr<I> {
    index.substitute(&mut |atom| match atom {
        Atom::Min(_) | Atom::Max(_) => inside_border(atom).map(|(free, _)| free),
        _ => None,
    })
}

/// Returns a subscript as it is away from the borders, also for wrapped and mirrored tensors.
fn unwrapped<I: Ids>(index: &IndexExpr<I>) -> IndexExpr<I> {
    index.substitute(&mut |atom| inside_border(atom).map(|(free, _)| free))
}

/// The accesses in an expression, including those inside subscripts.
pub fn accesses<I: Ids>(expr: &Expr<I>) -> Vec<Access<I>> {
    let mut found = Vec::new();
    expr.visit_reads(&mut |access| found.push(access.clone()));
    found
}

/// Returns the variables that a statement's value depends on other than by the elements it reads:
/// as numbers, or in conditions that the variables' ranges do not decide.
pub fn variables_in_conditions(program: &Program, statement: &Statement) -> BTreeSet<VarId> {
    let mut ranges = Ranges::<InProgram>::default();
    let mut shifted = Vec::new();
    for var in &statement.vars {
        let range = &program.var(*var).range;
        ranges.add_loop(*var, &range.extent());
        shifted.push((*var, IndexExpr::var(*var).add(&range.from)));
    }
    let from_zero = |index: &IndexExpr| {
        index.substitute(&mut |atom| match atom {
            Atom::Var(var) => shifted.iter().find(|(own, _)| own == var).map(|(_, value)| value.clone()),
            _ => None,
        })
    };
    let mut value = statement.value.clone();
    value.map_indices(&mut |index| from_zero(index));
    let mut found = BTreeSet::new();
    collect_undecided_variables(&value, &ranges, &mut found);
    found
}

/// The numbers that a statement requires to be divisible before it reads anything.
pub fn required_multiples(statement: &Statement) -> Vec<Multiple> {
    multiples(&statement.value)
}

/// Replaces quotients in a statement's value by constants, where they are constant whenever the
/// statement reads anything.
pub fn fold_constant_quotients(program: &Program, statement: &mut Statement) {
    let (required, known) =
        (required_multiples(statement), VariableRanges { program, vars: statement.vars.clone() });
    statement.value.map_indices(&mut |index| with_constant_quotients(index, &required, &known));
}

/// The ranges of a statement's variables.
struct VariableRanges<'p> {
    program: &'p Program,
    vars: Vec<VarId>,
}

impl Knowledge for VariableRanges<'_> {
    fn range(&self, var: VarId) -> Option<Range> {
        self.vars.contains(&var).then(|| self.program.var(var).range.clone())
    }

    fn least(&self, _: SymbolId) -> Option<i64> {
        None
    }
}

fn collect_undecided_variables(expr: &Expr, ranges: &Ranges<InProgram>, found: &mut BTreeSet<VarId>) {
    if as_condition(expr, ranges).is_some_and(|condition| ranges.never_negative(&condition)) {
        return;
    }
    match &expr.kind {
        ExprKind::Index(index) => found.extend(index.vars()),
        ExprKind::Load(_) => {}
        _ => expr.operands().iter().for_each(|operand| collect_undecided_variables(operand, ranges, found)),
    }
}

/// A rough count of the operations that an expression takes at one point. A call of a C library
/// function counts as 20.
pub fn operations<I: Ids>(expr: &Expr<I>) -> usize {
    let own = match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Index(_) | ExprKind::Scalar(_) | ExprKind::Cast(_) => 0,
        ExprKind::Load(_) | ExprKind::Unary(..) | ExprKind::Select(_) => 1,
        ExprKind::Binary(BinaryOp::Div | BinaryOp::Mod, _) => 4,
        ExprKind::Binary(BinaryOp::Power, _) => 20,
        ExprKind::Binary(..) => 1,
        ExprKind::Call(Builtin::Philox, _) => 100,
        ExprKind::Call(Builtin::Popcount | Builtin::Clz | Builtin::Ctz, _) => 2,
        ExprKind::Call(Builtin::Abs | Builtin::Floor | Builtin::Ceil | Builtin::Fma, _) => 1,
        ExprKind::Call(..) => 20,
    };
    own + expr.operands().iter().map(operations).sum::<usize>()
}

/// The number of iterations of nested loops: the product of their trips, or `i64::MAX` if it is
/// larger than that.
pub fn iterations(trips: impl IntoIterator<Item = i64>) -> i64 {
    trips.into_iter().fold(1, i64::saturating_mul)
}
