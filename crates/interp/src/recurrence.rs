//! Bounds the errors of recurrences that kernels compute in parts.
//!
//! A recurrence `y(t) = a * y(t - 1) + e` is one chain of rounded operations. A kernel may instead
//! compute the totals of parts first, in any order, and combine them. Its intermediate values are
//! sums of products of the same numbers, so the *size* of `y(t)` bounds them: the value with every
//! number replaced by its absolute value, and every difference by a sum. In each iteration a kernel
//! makes at most [`ROUNDINGS`] rounding errors of that size: in the total, in the product of the
//! factors, in the value before the part, and in the result.
//!
//! Sums of whole numbers that a float represents exactly are exact in any order. Minima and maxima
//! are not rounded at all.

use std::collections::BTreeMap;

use tilewright_ir::ids::InProgram;
use tilewright_ir::{
    Access, Atom, BinaryOp, DType, Expr, ExprKind, Statement, TensorId, UnaryOp, Update, VarId,
};

use crate::bounded::unit_roundoff;
use crate::state::{RunResult, State};
use crate::value::Value;

/// The rounding errors in one iteration, in unit roundoffs of the size.
const ROUNDINGS: f64 = 12.0;

/// A statement that adds to a multiple of its value of the iteration before.
pub(crate) struct Recurrence<'p> {
    statement: &'p Statement,
    before: Access,
}

/// The size of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    most: f64,
    /// Whether the value is computed from exact whole numbers alone.
    is_whole: bool,
}

/// The sizes of the elements that recurrences have written.
pub(crate) type Sizes = BTreeMap<TensorId, Vec<Option<Size>>>;

impl<'p> Recurrence<'p> {
    /// The recurrence of a statement in an ordered loop over a variable, if it is one.
    pub(crate) fn find(statement: &'p Statement, var: VarId, dtype: DType) -> Option<Recurrence<'p>> {
        if statement.update != Update::Assign || !dtype.is_float() || dtype.compute_type() != dtype {
            return None;
        }
        let before = element_before(statement, var)?;
        let mut is_only_read = true;
        let mut check = |read: &Access| {
            is_only_read &= read.tensor != before.tensor || read.indices == before.indices;
        };
        statement.value.visit_reads(&mut check);
        let found = Recurrence { statement, before };
        let value = &statement.value;
        (is_only_read && found.depends(value) && found.is_linear(value)).then_some(found)
    }

    fn is_before(&self, expr: &Expr) -> bool {
        matches!(&expr.kind, ExprKind::Load(read) if *read == self.before)
    }

    fn depends(&self, expr: &Expr) -> bool {
        let mut found = false;
        expr.visit_reads(&mut |read| found |= read.tensor == self.before.tensor);
        found
    }

    fn is_linear(&self, expr: &Expr) -> bool {
        let is_linear_or_free = |expr: &Expr| !self.depends(expr) || self.is_linear(expr);
        match &expr.kind {
            ExprKind::Load(_) => self.is_before(expr),
            ExprKind::Unary(UnaryOp::Neg, inner) => self.is_linear(inner),
            ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, sides) => sides.iter().all(is_linear_or_free),
            ExprKind::Binary(BinaryOp::Mul, sides) => {
                sides.iter().all(is_linear_or_free) && !sides.iter().all(|side| self.depends(side))
            }
            ExprKind::Binary(BinaryOp::Div, sides) => self.is_linear(&sides[0]) && !self.depends(&sides[1]),
            ExprKind::Select(parts) => !self.depends(&parts[0]) && parts[1..].iter().all(is_linear_or_free),
            _ => false,
        }
    }

    /// The value of the statement at the current point, with a bound for kernels that compute the
    /// recurrence in parts. `place` is the element that the statement writes.
    pub(crate) fn widen<V: Value>(
        &self,
        value: V,
        place: usize,
        (state, sizes): (&State<InProgram, V>, &mut Sizes),
    ) -> RunResult<V> {
        let size = self.size(&self.statement.value, state, sizes)?;
        let dtype = self.statement.value.dtype;
        let elements = state.memory[self.before.tensor.index()].tensor.len();
        sizes.entry(self.before.tensor).or_insert_with(|| vec![None; elements])[place] = Some(size);
        let unit = unit_roundoff(dtype);
        let is_exact = size.is_whole && size.most <= 1.0 / unit;
        Ok(if is_exact || !size.most.is_finite() {
            value
        } else {
            value.widened(ROUNDINGS * unit * size.most, dtype)
        })
    }

    fn size<V: Value>(&self, expr: &Expr, state: &State<InProgram, V>, sizes: &Sizes) -> RunResult<Size> {
        if self.is_before(expr) {
            let place = state.element_index(self.before.tensor, &self.before.indices, self.before.origin)?;
            let known = sizes.get(&self.before.tensor).and_then(|sizes| sizes[place.value]);
            return known.map_or_else(|| Ok(Size::of(state.eval(expr)?)), Ok);
        }
        if !self.depends(expr) {
            return Ok(Size::of(state.eval(expr)?));
        }
        let of = |expr: &Expr| self.size(expr, state, sizes);
        Ok(match &expr.kind {
            ExprKind::Binary(op, sides) => of(&sides[0])?.combined(*op, of(&sides[1])?),
            ExprKind::Select(parts) => {
                let condition = state.eval(&parts[0])?;
                match (condition.has_certain_truth(), condition.number().is_true()) {
                    (true, true) => of(&parts[1])?,
                    (true, false) => of(&parts[2])?,
                    (false, _) => of(&parts[1])?.combined(BinaryOp::Max, of(&parts[2])?),
                }
            }
            _ => match expr.operands() {
                [inner] => of(inner)?,
                _ => Size { most: f64::INFINITY, is_whole: false },
            },
        })
    }
}

impl Size {
    fn of<V: Value>(value: V) -> Size {
        let most = value.magnitude();
        Size { most, is_whole: value.is_exact() && most.fract() == 0.0 }
    }

    fn combined(self, op: BinaryOp, other: Size) -> Size {
        let most = match op {
            BinaryOp::Mul => self.most * other.most,
            BinaryOp::Div => self.most / other.most,
            BinaryOp::Max => self.most.max(other.most),
            _ => self.most + other.most,
        };
        Size { most, is_whole: self.is_whole && other.is_whole && op != BinaryOp::Div }
    }
}

/// The element that the iteration before has written, if one subscript moves with the loop.
fn element_before(statement: &Statement, var: VarId) -> Option<Access> {
    let moving: Vec<usize> =
        (0..statement.indices.len()).filter(|at| statement.indices[*at].mentions(var)).collect();
    let [at] = moving.as_slice() else { return None };
    let [term] = statement.indices[*at].terms() else { return None };
    if term.factors.as_slice() != [Atom::Var(var)] {
        return None;
    }
    let mut indices = statement.indices.clone();
    indices[*at] = indices[*at].offset(-term.coefficient);
    Some(Access { tensor: statement.target, indices, origin: statement.origin })
}
