//! Operands that are read with padding: `0 <= y && y < H ? I(y, x) : 0`.
//!
//! Where every read of a tensor has that form, and the condition says of each subscript that it names just when it is
//! inside the tensor, the value of the whole choice is a function of the subscripts. A promotion then stages that:
//! the buffer holds the padding too, the copy asks, and the loops that compute ask nothing.

use tilewright_ir::{Access, BinaryOp, DType, Expr, ExprKind, IndexExpr, Number, TensorId};

use crate::draft::comparison::{as_condition, parts};
use crate::draft::simplify::Ranges;
use crate::draft::{Draft, StatementId};

/// What stands for elements outside of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Padding {
    /// Dimensions that may be left.
    pub dimensions: Vec<usize>,
    /// For each condition its dimension, the sign of the subscript and what is added, which must be at least 0.
    conditions: Vec<(usize, i64, i64)>,
    /// The value outside.
    pub outside: Expr,
    /// The type of the choice.
    pub dtype: DType,
}

/// The padding with which these statements read a tensor, if all reads have the same.
pub(super) fn padding(draft: &Draft, tensor: TensorId, statements: &[StatementId]) -> Option<Padding> {
    let mut found: Option<Padding> = None;
    for id in statements {
        let statement = draft.statement(*id);
        let reads = statement.reads().iter().filter(|read| read.tensor == tensor).count();
        let mut choices = Vec::new();
        collect(&statement.value, tensor, &mut choices);
        if choices.len() != reads {
            return None;
        }
        let ranges = draft.ranges(*id);
        let shape = &draft.buffers[tensor.index()].buffer.shape;
        for choice in choices {
            let own = of_choice(choice, shape, &ranges)?;
            if *found.get_or_insert_with(|| own.clone()) != own {
                return None;
            }
        }
    }
    found
}

/// The choices between an element of the tensor and a constant.
fn collect<'e>(expr: &'e Expr, tensor: TensorId, found: &mut Vec<&'e Expr>) {
    if element(expr).is_some_and(|access| access.tensor == tensor) {
        found.push(expr);
        return;
    }
    expr.operands().iter().for_each(|operand| collect(operand, tensor, found));
}

/// The element that an expression is, or else a constant.
pub(super) fn element(expr: &Expr) -> Option<&Access> {
    let ExprKind::Select(arms) = &expr.kind else { return None };
    let ExprKind::Literal(_) = &arms[2].kind else { return None };
    match &arms[1].kind {
        ExprKind::Load(access) => Some(access),
        ExprKind::Cast(inner) => match &inner.kind {
            ExprKind::Load(access) => Some(access),
            _ => None,
        },
        _ => None,
    }
}

fn of_choice(choice: &Expr, shape: &[i64], ranges: &Ranges) -> Option<Padding> {
    let ExprKind::Select(arms) = &choice.kind else { return None };
    let access = element(choice)?;
    let mut conditions = Vec::new();
    for part in parts(&arms[0]) {
        let condition = as_condition(part, ranges)?;
        conditions.push(access.indices.iter().enumerate().find_map(|(dimension, index)| {
            let above = condition.sub(index).as_constant().map(|added| (dimension, 1, added));
            above.or_else(|| condition.add(index).as_constant().map(|added| (dimension, -1, added)))
        })?);
    }
    conditions.sort();
    let mut dimensions: Vec<usize> = conditions.iter().map(|(dimension, ..)| *dimension).collect();
    dimensions.dedup();
    // Where the condition holds, the element exists, also for elements that no iteration asks for.
    let inside = |dimension: &usize| {
        let bound = |sign, most: i64| {
            conditions
                .iter()
                .any(|(own, own_sign, added)| own == dimension && *own_sign == sign && *added <= most)
        };
        bound(1, 0) && bound(-1, shape[*dimension] - 1)
    };
    // The other subscripts must not need the condition, which the loops will no longer ask.
    let always_inside = |dimension: &usize| {
        let index = &access.indices[*dimension];
        ranges.never_negative(index) && ranges.never_negative(&index.scale(-1).offset(shape[*dimension] - 1))
    };
    let mut others = (0..shape.len()).filter(|dimension| !dimensions.contains(dimension));
    if !dimensions.iter().all(inside) || !others.all(|dimension| always_inside(&dimension)) {
        return None;
    }
    Some(Padding { dimensions, conditions, outside: arms[2].clone(), dtype: choice.dtype })
}

impl Padding {
    /// Nothing is read outside of the tensor; what stands there does not matter.
    pub fn filling(dtype: DType) -> Padding {
        let zero = if dtype.is_float() { Number::Float(0.0) } else { Number::Int(0) };
        let outside = Expr::literal(dtype, zero.convert(dtype));
        Padding { dimensions: Vec::new(), conditions: Vec::new(), outside, dtype }
    }

    /// The same with other dimensions in the place of each.
    pub fn with_dimensions(mut self, new: impl Fn(usize) -> usize) -> Padding {
        self.dimensions.iter_mut().for_each(|dimension| *dimension = new(*dimension));
        self.conditions.iter_mut().for_each(|(dimension, ..)| *dimension = new(*dimension));
        self
    }

    /// Also stands for elements before the first of a dimension, or behind the last.
    pub fn cover(&mut self, dimension: usize, before: bool, behind: Option<i64>) {
        if self.dimensions.contains(&dimension) {
            return;
        }
        self.dimensions.push(dimension);
        self.conditions.extend(before.then_some((dimension, 1, 0)));
        self.conditions.extend(behind.map(|extent| (dimension, -1, extent - 1)));
    }

    /// Whether of groups along a dimension, which begin at multiples of their size, each is inside as a whole or outside.
    pub fn keeps_whole(&self, dimension: usize, size: i64) -> bool {
        let own = self.conditions.iter().filter(|(own, ..)| *own == dimension);
        own.into_iter().all(|(_, sign, added)| match sign {
            1 => added % size == 0,
            _ => (added + 1) % size == 0,
        })
    }

    /// The value of the choice for an element: the conditions are asked of the first and the last of its neighbours that are
    /// inside or outside together.
    pub fn value(&self, load: Expr, (firsts, lasts): (&[IndexExpr], &[IndexExpr])) -> Expr {
        let zero = || Expr::literal(DType::Int64, Number::Int(0));
        let holds = self.conditions.iter().map(|(dimension, sign, added)| {
            let indices = if *sign == 1 { firsts } else { lasts };
            let index = indices[*dimension].scale(*sign).offset(*added);
            let index = Expr { dtype: DType::Int64, kind: ExprKind::Index(Box::new(index)) };
            Expr::binary(BinaryOp::GreaterEqual, index, zero())
        });
        let all = holds.reduce(|left, right| Expr::binary(BinaryOp::And, left, right));
        let load = load.cast(self.dtype);
        match all {
            Some(condition) => Expr {
                dtype: self.dtype,
                kind: ExprKind::Select(Box::new([condition, load, self.outside.clone()])),
            },
            None => load,
        }
    }
}

/// Puts `replace` of the element in the place of every choice.
pub(super) fn replace_choices(expr: &mut Expr, tensor: TensorId, replace: &mut dyn FnMut(&Access) -> Expr) {
    if let Some(access) = element(expr).filter(|access| access.tensor == tensor) {
        *expr = replace(access);
        return;
    }
    expr.operands_mut().iter_mut().for_each(|operand| replace_choices(operand, tensor, replace));
}
