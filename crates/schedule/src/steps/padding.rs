//! Recognises operands that are read with padding: `0 <= y && y < H ? I(y, x) : 0`.
//!
//! The value of the whole select is a function of the subscripts if two conditions hold: every read
//! of a tensor has that form, and the select's condition bounds exactly the subscripts that may
//! leave the tensor. A promotion then copies the value of the select to its buffer. The buffer
//! holds the padding too, the copy checks the condition, and the loops that compute need no checks.

use tilewright_ir::nest::{Access, Atom, BufferId, Expr, ExprKind, IndexExpr};
use tilewright_ir::{BinaryOp, DType, Number};

use crate::draft::comparison::{as_condition, conjuncts};
use crate::draft::simplify::Ranges;
use crate::draft::{Draft, StatementId};

/// The values that stand for elements outside a tensor.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Padding {
    /// The dimensions in which elements may lie outside.
    pub dimensions: Vec<usize>,
    /// The conditions, each as a dimension, the sign of its subscript and a constant. The signed
    /// subscript plus the constant must be at least 0.
    conditions: Vec<(usize, i64, i64)>,
    /// The value outside the tensor.
    pub outside: Expr,
    /// The type of the select.
    pub dtype: DType,
}

/// The padding with which these statements read a tensor, if all reads have the same padding.
pub(super) fn padding(draft: &Draft, tensor: BufferId, statements: &[StatementId]) -> Option<Padding> {
    let mut found: Option<Padding> = None;
    for id in statements {
        let statement = draft.statement(*id);
        let reads = statement.reads().iter().filter(|read| read.tensor == tensor).count();
        let mut selects = Vec::new();
        collect_selects(&statement.value, tensor, &mut selects);
        if selects.len() != reads {
            return None;
        }
        let ranges = draft.ranges(*id);
        let shape = &draft.buffers[tensor.index()].buffer.shape;
        for choice in selects {
            let own = padding_of_select(choice, shape, &ranges)?;
            if *found.get_or_insert_with(|| own.clone()) != own {
                return None;
            }
        }
    }
    found
}

/// Collects the selects between an element of the tensor and a constant.
fn collect_selects<'e>(expr: &'e Expr, tensor: BufferId, found: &mut Vec<&'e Expr>) {
    if selected_element(expr).is_some_and(|access| access.tensor == tensor) {
        found.push(expr);
        return;
    }
    expr.operands().iter().for_each(|operand| collect_selects(operand, tensor, found));
}

/// The access of an expression that selects between an element and a constant.
pub(super) fn selected_element(expr: &Expr) -> Option<&Access> {
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

fn padding_of_select(choice: &Expr, shape: &[i64], ranges: &Ranges) -> Option<Padding> {
    let ExprKind::Select(arms) = &choice.kind else { return None };
    let access = selected_element(choice)?;
    let mut conditions = Vec::new();
    for part in conjuncts(&arms[0]) {
        let condition = as_condition(part, ranges)?;
        conditions.push(access.indices.iter().enumerate().find_map(|(dimension, index)| {
            let above = condition.sub(index).as_constant().map(|added| (dimension, 1, added));
            above.or_else(|| condition.add(index).as_constant().map(|added| (dimension, -1, added)))
        })?);
    }
    conditions.sort();
    let mut dimensions: Vec<usize> = conditions.iter().map(|(dimension, ..)| *dimension).collect();
    dimensions.dedup();
    // Where the condition holds, the element must exist, even for points of the buffer that no
    // iteration reads.
    let inside = |dimension: &usize| {
        let bound = |sign, most: i64| {
            conditions
                .iter()
                .any(|(own, own_sign, added)| own == dimension && *own_sign == sign && *added <= most)
        };
        bound(1, 0) && bound(-1, shape[*dimension] - 1)
    };
    // The other subscripts must be inside the tensor without the condition, because the loops will
    // no longer check it.
    let always_inside = |dimension: &usize| {
        let index = &access.indices[*dimension];
        let last = shape[*dimension] - 1;
        is_always_defined(index)
            && ranges.never_negative(index)
            && ranges.never_negative(&index.scale(-1).offset(last))
    };
    let mut others = (0..shape.len()).filter(|dimension| !dimensions.contains(dimension));
    if !dimensions.iter().all(inside) || !others.all(|dimension| always_inside(&dimension)) {
        return None;
    }
    Some(Padding { dimensions, conditions, outside: arms[2].clone(), dtype: choice.dtype })
}

/// Returns true when a subscript has a value whatever the data. Sums and products of 64-bit data
/// may need more than 64 bits, and so may an unsigned value alone; clamping comes too late then.
fn is_always_defined(index: &IndexExpr) -> bool {
    let is_alone = index.constant_part() == 0
        && matches!(index.terms(), [term] if term.coefficient == 1 && term.factors.len() == 1);
    index.terms().iter().flat_map(|term| &term.factors).all(|atom| match atom {
        Atom::Data(data) => match data.value.dtype {
            DType::UInt64 => false,
            DType::Int64 => is_alone,
            _ => true,
        },
        Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
            is_always_defined(&pair.0) && is_always_defined(&pair.1)
        }
        Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => true,
    })
}

impl Padding {
    /// A filling of 0 for elements outside the tensor that nothing reads, so that their value does
    /// not matter.
    pub fn filling(dtype: DType) -> Padding {
        let zero = if dtype.is_float() { Number::Float(0.0) } else { Number::Int(0) };
        let outside = Expr::literal(dtype, zero.convert(dtype));
        Padding { dimensions: Vec::new(), conditions: Vec::new(), outside, dtype }
    }

    /// The same padding with the dimensions renumbered.
    pub fn with_dimensions(mut self, new: impl Fn(usize) -> usize) -> Padding {
        self.dimensions.iter_mut().for_each(|dimension| *dimension = new(*dimension));
        self.conditions.iter_mut().for_each(|(dimension, ..)| *dimension = new(*dimension));
        self
    }

    /// Extends the padding to elements before the first of a dimension (`before`), or after the
    /// last (`behind`, its extent).
    pub fn cover(&mut self, dimension: usize, before: bool, behind: Option<i64>) {
        if self.dimensions.contains(&dimension) {
            return;
        }
        self.dimensions.push(dimension);
        self.conditions.extend(before.then_some((dimension, 1, 0)));
        self.conditions.extend(behind.map(|extent| (dimension, -1, extent - 1)));
    }

    /// Returns true when every group along a dimension is either inside or outside as a whole.
    /// Groups begin at multiples of their size.
    pub fn keeps_groups_whole(&self, dimension: usize, size: i64) -> bool {
        let own = self.conditions.iter().filter(|(own, ..)| *own == dimension);
        own.into_iter().all(|(_, sign, added)| match sign {
            1 => added % size == 0,
            _ => (added + 1) % size == 0,
        })
    }

    /// The value of the select for an element. The conditions are checked for the first and the
    /// last element of its group, all of which are inside or outside together.
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

/// Replaces every select between an element of the tensor and a constant by `replace` of the
/// element.
pub(super) fn replace_selects(expr: &mut Expr, tensor: BufferId, replace: &mut dyn FnMut(&Access) -> Expr) {
    if let Some(access) = selected_element(expr).filter(|access| access.tensor == tensor) {
        *expr = replace(access);
        return;
    }
    expr.operands_mut().iter_mut().for_each(|operand| replace_selects(operand, tensor, replace));
}
