//! The shapes of tensors while ranges are inferred.
//!
//! The shape of a tensor is the declared shape, or the hull of the elements that its statements
//! write: the smallest box from 0 that contains them. `ranges` asks for it before, between and
//! after these statements.

use tilewright_ir::interval::upper_bound;
use tilewright_ir::precondition::simplify;
use tilewright_ir::prove::larger;
use tilewright_ir::{IndexExpr, TensorId};

use super::model::{Model, Source};
use super::preconditions;
use crate::diagnostic::{Code, Diagnostic};

/// For each tensor, the statements that write it, in order, and the hulls of its first writers.
pub(super) struct Writers {
    pub(super) statements: Vec<Vec<usize>>,
    /// The hull of the first writer, of the first two, and so on, computed on demand.
    hulls: Vec<Vec<Vec<IndexExpr>>>,
}

impl Writers {
    pub(super) fn new(model: &Model) -> Writers {
        let mut statements = vec![Vec::new(); model.tensors.len()];
        for (at, statement) in model.statements.iter().enumerate() {
            statements[statement.target.index()].push(at);
        }
        Writers { statements, hulls: vec![Vec::new(); model.tensors.len()] }
    }

    pub(super) fn writers_of(&self, tensor: TensorId) -> &[usize] {
        &self.statements[tensor.index()]
    }

    /// The hull of the first `count` writers of a tensor, which must have ranges already.
    fn hull_of_first(&mut self, model: &Model, tensor: TensorId, count: usize) -> Option<Vec<IndexExpr>> {
        let hulls = &mut self.hulls[tensor.index()];
        while hulls.len() < count {
            let next = written_ends(model, self.statements[tensor.index()][hulls.len()])?;
            hulls.push(match hulls.last() {
                None => next,
                Some(before) => join(before, &next, model),
            });
        }
        hulls.get(count.checked_sub(1)?).cloned()
    }
}

/// The known shape of a tensor where a statement reads it.
pub(super) enum Shape {
    Known(Vec<IndexExpr>),
    /// Statements before this one still have open ranges.
    Open,
    /// No statement before this one defines the tensor.
    Undefined,
    /// A mistake about the tensor was reported.
    Poisoned,
}

/// The shape of a tensor as defined by the statements before `at`.
pub(super) fn shape_before(model: &Model, tensor: TensorId, at: usize, writers: &mut Writers) -> Shape {
    let info = model.tensor(tensor);
    if info.poisoned {
        return Shape::Poisoned;
    }
    if let Some(declared) = &info.declared {
        let settled: Option<Vec<IndexExpr>> =
            declared.iter().map(|extent| model.with_extents(extent)).collect();
        return settled.map_or(Shape::Open, Shape::Known);
    }
    let earlier = writers.writers_of(tensor).partition_point(|other| *other < at);
    if earlier == 0 {
        return Shape::Undefined;
    }
    if writers.writers_of(tensor)[..earlier].iter().any(|other| !model.statements[*other].has_ranges) {
        return Shape::Open;
    }
    writers.hull_of_first(model, tensor, earlier).map_or(Shape::Open, Shape::Known)
}

/// The smallest box from 0 that contains all elements that the statements write.
pub(super) fn hull(model: &Model, statements: &[usize]) -> Option<Vec<IndexExpr>> {
    let mut ends = statements.iter().map(|at| written_ends(model, *at));
    let first = ends.next()??;
    ends.try_fold(first, |shape, next| Some(join(&shape, &next?, model)))
}

/// One past the last index that a statement writes, in each dimension.
fn written_ends(model: &Model, at: usize) -> Option<Vec<IndexExpr>> {
    let lowered = model.statements[at].lowered.as_ref()?;
    let preconditions = preconditions::of_program(model);
    let end = |index| {
        let last = upper_bound(&model.with_extents(index)?, model)?;
        Some(simplify(&last.offset(1), &preconditions))
    };
    lowered.indices.iter().map(end).collect()
}

fn join(left: &[IndexExpr], right: &[IndexExpr], model: &Model) -> Vec<IndexExpr> {
    left.iter().zip(right).map(|(left, right)| larger(left, right, model)).collect()
}

/// The hull of all statements that write a tensor, once all of them have ranges.
pub(super) fn final_shape(model: &Model, tensor: TensorId, writers: &mut Writers) -> Option<Vec<IndexExpr>> {
    let all = writers.writers_of(tensor);
    let ranged = all.iter().all(|at| model.statements[*at].has_ranges);
    if ranged { writers.hull_of_first(model, tensor, all.len()) } else { None }
}

/// Sets the final shape of a tensor, once every statement that writes it has ranges.
pub(super) fn set_final_shape(model: &mut Model, id: TensorId, writers: &mut Writers) {
    let info = model.tensor(id);
    if info.poisoned || matches!(info.source, Source::Param { .. }) {
        return;
    }
    if let Some(declared) = info.declared.clone() {
        let settled: Option<Vec<IndexExpr>> =
            declared.iter().map(|extent| model.with_extents(extent)).collect();
        model.tensors[id.index()].shape = settled;
        return;
    }
    let all = writers.writers_of(id).to_vec();
    if all.iter().any(|at| !model.statements[*at].has_ranges) {
        return;
    }
    match writers.hull_of_first(model, id, all.len()) {
        Some(shape) => model.tensors[id.index()].shape = Some(shape),
        None => report_unbounded_scatter(model, id, &all),
    }
}

fn report_unbounded_scatter(model: &mut Model, id: TensorId, writers: &[usize]) {
    let name = model.tensor(id).text.clone();
    let place = writers.iter().find_map(|at| {
        let statement = &model.statements[*at];
        let lowered = statement.lowered.as_ref()?;
        let open = lowered.indices.iter().position(|index| upper_bound(index, model).is_none())?;
        Some(statement.resolved.indices.get(open).map_or(statement.target_span, |value| value.span))
    });
    let span = place.unwrap_or(model.tensor(id).span);
    let message = format!("the size of `{name}` cannot be inferred from a computed index");
    model.report(
        Diagnostic::error(Code::AmbiguousRange, span, message)
            .label("this index has no known upper bound")
            .help(format!("declare the size among the results or in the body: `int32(256) {name}`"))
            .help("or bound the index: `where b = …, b in 0:256`"),
    );
    model.tensors[id.index()].poisoned = true;
}
