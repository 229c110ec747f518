//! What static analysis tells about expressions, for whoever writes schedules.

use std::collections::BTreeSet;

use tilewright_ir::interval::Knowledge;
use tilewright_ir::{
    Access, BinaryOp, Builtin, Expr, ExprKind, IndexExpr, Program, Range, Statement, SymbolId, VarId,
    index::Atom,
};

use crate::draft::comparison::as_condition;
pub use crate::draft::multiples::Multiple;
use crate::draft::multiples::{multiples, settled};
use crate::draft::simplify::{Ranges, clamped};
use crate::draft::visit_reads;

/// How an access moves through memory when a loop takes one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// So many elements on.
    Elements(i64),
    /// Not by the same distance every time.
    Irregular,
}

/// The distance that an access moves with a variable. `distances`: between neighbours of each dimension.
pub fn stride(indices: &[IndexExpr], distances: &[i64], var: VarId) -> Stride {
    let moving = indices.iter().zip(distances).filter(|(index, _)| index.mentions(var));
    let place = moving.fold(IndexExpr::constant(0), |place, (index, distance)| {
        place.add(&unclamped(index).scale(*distance))
    });
    let place = place.joined();
    if !place.mentions(var) {
        return Stride::Elements(0);
    }
    let linear = place.split_on(&Atom::Var(var)).filter(|(_, rest)| !rest.mentions(var));
    linear.and_then(|(coefficient, _)| coefficient.as_constant()).map_or(Stride::Irregular, Stride::Elements)
}

/// A subscript as it is away from the borders: without the numbers that it is clamped to.
fn unclamped(index: &IndexExpr) -> IndexExpr {
    index.substitute(&mut |atom| match atom {
        Atom::Min(pair) | Atom::Max(pair) => clamped(pair).map(|(free, _)| free.clone()),
        _ => None,
    })
}

/// The accesses in an expression, those inside subscripts included.
pub fn accesses(expr: &Expr) -> Vec<Access> {
    let mut found = Vec::new();
    visit_reads(expr, &mut |access| found.push(access.clone()));
    found
}

/// The variables of a statement that its value depends on in another way than by what it reads: as numbers, or by
/// conditions that their ranges do not decide.
pub fn in_conditions(program: &Program, statement: &Statement) -> BTreeSet<VarId> {
    let mut ranges = Ranges::default();
    let mut shifted = Vec::new();
    for var in &statement.vars {
        let range = &program.var(*var).range;
        ranges.add(*var, &range.extent());
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
    undecided(&value, &ranges, &mut found);
    found
}

/// What a statement asks to have no remainder before it reads anything.
pub fn asked_multiples(statement: &Statement) -> Vec<Multiple> {
    multiples(&statement.value)
}

/// Puts numbers in the place of quotients in a statement's value that are always the same where it reads anything.
pub fn settle(program: &Program, statement: &mut Statement) {
    let (asked, known) = (asked_multiples(statement), Values { program, vars: statement.vars.clone() });
    statement.value.map_indices(&mut |index| settled(index, &asked, &known));
}

/// The values of a statement's variables.
struct Values<'p> {
    program: &'p Program,
    vars: Vec<VarId>,
}

impl Knowledge for Values<'_> {
    fn range(&self, var: VarId) -> Option<Range> {
        self.vars.contains(&var).then(|| self.program.var(var).range.clone())
    }

    fn least(&self, _: SymbolId) -> Option<i64> {
        None
    }
}

fn undecided(expr: &Expr, ranges: &Ranges, found: &mut BTreeSet<VarId>) {
    if as_condition(expr, ranges).is_some_and(|condition| ranges.never_negative(&condition)) {
        return;
    }
    match &expr.kind {
        ExprKind::Index(index) => found.extend(index.vars()),
        ExprKind::Load(_) => {}
        _ => expr.operands().iter().for_each(|operand| undecided(operand, ranges, found)),
    }
}

/// A rough count of what an expression costs at one point; a function of the C library's counts a lot.
pub fn operations(expr: &Expr) -> usize {
    let own = match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Index(_) | ExprKind::Scalar(_) | ExprKind::Cast(_) => 0,
        ExprKind::Load(_) | ExprKind::Unary(..) | ExprKind::Select(_) => 1,
        ExprKind::Binary(BinaryOp::Div | BinaryOp::Mod, _) => 4,
        ExprKind::Binary(..) => 1,
        ExprKind::Call(Builtin::Abs | Builtin::Floor | Builtin::Ceil | Builtin::Fma, _) => 1,
        ExprKind::Call(..) => 20,
    };
    own + expr.operands().iter().map(operations).sum::<usize>()
}
