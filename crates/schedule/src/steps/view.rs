//! Describes the tensor that a promotion copies to a buffer as a [`View`]: either the tensor
//! itself, or the elements of it that data chooses.
//!
//! For `LUT(I(b, l), d)` it is not known which rows are read, but there is one row for each `b` and
//! `l`. A [`View`] of it has the dimensions `b`, `l` and `d`: the variables that the data-dependent
//! subscript depends on, its keys, replace that subscript. The rest of the promotion (the copied
//! region, its layout, its remainders) treats the view like a tensor of that shape. Only the copy
//! looks up the element, `LUT[I[b, l], d]`.
//!
//! This is the promotion of indirectly accessed arrays of Tensor Comprehensions (section 5.3), with
//! one difference: there the new dimensions are those of the index array, here they are variables
//! of the statement. Between two elements of `I(2*b)` there is one that the program never reads,
//! and its row may not exist.

use std::sync::Arc;

use tilewright_ir::nest::{Access, Atom, BufferId, Data, Expr, ExprKind, IndexExpr, LoopVarId, Term};
use tilewright_ir::{BinaryOp, DType, Origin, UnaryOp};

use super::padding::{Padding, selected_element};
use crate::draft::{Draft, Parent, Statement, StatementId};

/// A tensor, seen with the dimensions that a promotion arranges.
pub(super) struct View {
    /// The extent of every dimension.
    pub shape: Vec<i64>,
    /// The meaning of every dimension.
    axes: Vec<ViewAxis>,
    gather: Option<Gather>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ViewAxis {
    /// A dimension of the tensor.
    TensorDimension(usize),
    /// The values of the key with this number.
    Key(usize),
}

/// The lookup of the elements that data chooses.
struct Gather {
    keys: Vec<Key>,
    /// For each subscript of the read, the subscript in terms of the keys' [`key_var`]s if it
    /// depends on data.
    data_subscripts: Vec<Option<IndexExpr>>,
    /// Conditions of the read, in terms of the same variables. Where one fails, nothing is read,
    /// and the data may give a subscript outside the tensor.
    conditions: Vec<Expr>,
    /// The place of the access in the program's text.
    origin: Origin,
}

impl Gather {
    /// The tensors that the data-dependent subscripts and the conditions read.
    fn tensors(&self) -> Vec<BufferId> {
        let mut found = Vec::new();
        let mut add = |access: &Access| found.push(access.tensor);
        self.data_subscripts.iter().flatten().for_each(|index| index.visit_reads(&mut add));
        self.conditions.iter().for_each(|condition| condition.visit_reads(&mut add));
        found
    }
}

/// A variable of a statement that a data-dependent subscript depends on.
#[derive(Clone)]
struct Key {
    /// Its value, in terms of the loops.
    value: IndexExpr,
    /// The number of its values.
    count: i64,
}

impl View {
    /// The view of the tensor itself.
    pub fn whole_tensor(shape: &[i64]) -> View {
        View {
            shape: shape.to_vec(),
            axes: (0..shape.len()).map(ViewAxis::TensorDimension).collect(),
            gather: None,
        }
    }

    /// The view of the elements that these reads choose, inside the loop `place` or anywhere if it
    /// is none.
    pub fn gathered(
        draft: &Draft,
        tensor: BufferId,
        reads: &[(StatementId, Access)],
        place: Option<LoopVarId>,
        with_selects: bool,
    ) -> Result<View, String> {
        let (id, read) = representative_read(draft, reads)?;
        let around = place.map(|place| draft.loops_up_to(place)).unwrap_or_default();
        let inside: Vec<LoopVarId> = draft.path(id).into_iter().filter(|var| !around.contains(var)).collect();
        let given = conditions(draft.statement(id), tensor, with_selects)?;
        let found = keys(draft, id, &inside, (read, &given)).ok_or(
            "the loops inside do not determine the variables that its subscripts depend on: \
             split and fuse them after this step",
        )?;
        let (keys, chosen, given) = found;
        let shape = &draft.buffers[tensor.index()].buffer.shape;
        let first = chosen.iter().position(Option::is_some).unwrap_or(0);
        let mut axes: Vec<ViewAxis> = (0..first).map(ViewAxis::TensorDimension).collect();
        axes.extend((0..keys.len()).map(ViewAxis::Key));
        axes.extend((first..shape.len()).filter(|at| chosen[*at].is_none()).map(ViewAxis::TensorDimension));
        let extent = |axis: &ViewAxis| match axis {
            ViewAxis::TensorDimension(dimension) => shape[*dimension],
            ViewAxis::Key(key) => keys[*key].count,
        };
        let shape = axes.iter().map(extent).collect();
        let gather = Some(Gather { keys, data_subscripts: chosen, conditions: given, origin: read.origin });
        Ok(View { shape, axes, gather })
    }

    /// The coordinates in the view of an element that a statement reads from the tensor.
    pub fn coordinates(&self, indices: &[IndexExpr]) -> Vec<IndexExpr> {
        let own = |axis: &ViewAxis| match (axis, &self.gather) {
            (ViewAxis::Key(key), Some(gather)) => gather.keys[*key].value.clone(),
            (ViewAxis::TensorDimension(dimension), _) | (ViewAxis::Key(dimension), None) => {
                indices[*dimension].clone()
            }
        };
        self.axes.iter().map(own).collect()
    }

    /// The value at a point of the view: an element of the tensor, or 0 where the conditions of the
    /// read fail.
    pub fn value(&self, (tensor, dtype): (BufferId, DType), coordinates: &[IndexExpr]) -> Expr {
        let load = |indices, origin| Expr { dtype, kind: ExprKind::Load(Access { tensor, indices, origin }) };
        let Some(gather) = &self.gather else { return load(coordinates.to_vec(), Origin::default()) };
        let at = |wanted: ViewAxis| self.axes.iter().position(|axis| *axis == wanted);
        let keys = (0..gather.keys.len()).filter_map(|key| at(ViewAxis::Key(key)));
        let values: Vec<IndexExpr> = keys.map(|at| coordinates[at].clone()).collect();
        let index = |(dimension, chosen): (usize, &Option<IndexExpr>)| match (
            chosen,
            at(ViewAxis::TensorDimension(dimension)),
        ) {
            (Some(chosen), _) => substitute_keys(chosen, &values),
            (None, own) => coordinates[own.expect("other dimensions are axes of the view")].clone(),
        };
        let load = load(gather.data_subscripts.iter().enumerate().map(index).collect(), gather.origin);
        let zero = || Padding::filling(dtype).outside;
        let given = gather.conditions.iter().cloned().map(|mut condition| {
            condition.map_indices(&mut |index| substitute_keys(index, &values));
            condition
        });
        match given.reduce(|left, right| Expr::binary(BinaryOp::And, left, right)) {
            Some(given) => Expr { dtype, kind: ExprKind::Select(Box::new([given, load, zero()])) },
            None => load,
        }
    }

    /// The dimension of the view that is this dimension of the tensor.
    pub fn dimension(&self, own: usize) -> usize {
        let axis = self.axes.iter().position(|axis| *axis == ViewAxis::TensorDimension(own));
        axis.expect("padded dimensions have no subscripts that depend on data")
    }

    /// The position for the copy among the children of `inside`: after all statements that write
    /// the tensors which choose elements, and before the readers.
    pub fn copy_position(
        &self,
        draft: &Draft,
        inside: Parent,
        readers: &[StatementId],
    ) -> Result<usize, String> {
        let place = |id: &StatementId| {
            let branch = draft.child_containing(inside, *id);
            draft.children(inside).iter().position(|node| Some(*node) == branch)
        };
        let before = readers.iter().filter_map(place).min();
        let mut first = 0;
        for tensor in self.gather.iter().flat_map(Gather::tensors) {
            let buffer = &draft.buffers[tensor.index()];
            let name = &buffer.buffer.name;
            if buffer.may_be_partial {
                return Err(format!(
                    "`{name}`, which chooses elements, is a buffer that is not always full: \
                     promote it after this step"
                ));
            }
            for writer in draft.writers(inside, tensor) {
                let behind = place(&writer).map_or(0, |at| at + 1);
                if before.is_some_and(|before| behind > before) {
                    return Err(format!("`{name}`, which chooses elements, is written inside that loop"));
                }
                first = first.max(behind);
            }
        }
        Ok(first)
    }
}

/// Returns the read that represents all reads: data must choose the same elements for each of them.
fn representative_read<'r>(
    draft: &Draft,
    reads: &'r [(StatementId, Access)],
) -> Result<(StatementId, &'r Access), String> {
    let mut by_data = reads.iter().filter(|(_, read)| read.indices.iter().any(IndexExpr::has_data));
    let (id, read) =
        by_data.next().ok_or("no read of it depends on data: leave `gathered` out".to_string())?;
    if let Some((other, _)) = reads.iter().find(|(other, _)| other != id) {
        let [one, other] = [id, other].map(|id| &draft.statement(*id).name);
        return Err(format!(
            "`{one}` and `{other}` both read it there, and only one statement can gather elements"
        ));
    }
    let same = |other: &Access| {
        let mut pairs = read.indices.iter().zip(&other.indices);
        pairs.all(|(one, other)| one == other || !one.has_data() && !other.has_data())
    };
    match reads.iter().all(|(_, other)| same(other)) {
        true => Ok((*id, read)),
        false => Err("its reads there have different subscripts that depend on data".to_string()),
    }
}

/// The variable that stands for a key in subscripts. No loop has this id.
fn key_var(key: usize) -> LoopVarId {
    LoopVarId(u32::MAX - key as u32)
}

/// Replaces the keys in a subscript by these values.
fn substitute_keys(index: &IndexExpr, values: &[IndexExpr]) -> IndexExpr {
    index.substitute(&mut |atom| match atom {
        Atom::Var(var) => values.get((u32::MAX - var.0) as usize).cloned(),
        _ => None,
    })
}

/// The keys, with the data-dependent subscripts and the conditions in terms of them.
type KeyedSubscripts = (Vec<Key>, Vec<Option<IndexExpr>>, Vec<Expr>);

/// Finds the variables of a statement that the data-dependent subscripts and the conditions depend
/// on, and rewrites both in terms of these variables. A variable that is fixed outside the place is
/// a key too, so that the dimensions of the view do not depend on the place.
fn keys(
    draft: &Draft,
    id: StatementId,
    inside: &[LoopVarId],
    (read, given): (&Access, &[Expr]),
) -> Option<KeyedSubscripts> {
    let in_terms_of = |keys: &[Key]| {
        let mut uses = vec![false; keys.len()];
        let mut complete = true;
        let mut new = |index: &IndexExpr| {
            let restated = in_terms_of_keys(index, keys, inside);
            complete &= restated.is_some();
            let restated = restated.unwrap_or_else(|| index.clone());
            (0..keys.len()).for_each(|key| uses[key] |= restated.mentions(key_var(key)));
            restated
        };
        let chosen: Vec<_> = read.indices.iter().map(|index| index.has_data().then(|| new(index))).collect();
        let mut given = given.to_vec();
        given.iter_mut().for_each(|condition| condition.map_indices(&mut new));
        complete.then_some((uses, chosen, given))
    };
    let all = variables(draft, id, inside)?;
    let (uses, ..) = in_terms_of(&all)?;
    let used = all.into_iter().zip(uses).filter_map(|(key, used)| used.then_some(key));
    let keys: Vec<Key> = used.collect();
    let (_, chosen, given) = in_terms_of(&keys)?;
    Some((keys, chosen, given))
}

/// The variables of a statement, and the loops inside that no variable mentions, such as loops of
/// copies and ordered loops.
fn variables(draft: &Draft, id: StatementId, inside: &[LoopVarId]) -> Option<Vec<Key>> {
    let of_program = &draft.statement(id).vars;
    let known = of_program
        .iter()
        .map(|(value, count)| Some(Key { value: value.clone(), count: count.as_constant()? }));
    let others = inside.iter().filter(|var| !of_program.iter().any(|(value, _)| value.mentions(**var)));
    let others = others.filter_map(|var| {
        // A loop that is clipped or guarded does not run all of its iterations.
        let own = draft.loop_of(*var);
        let count = own.extent.as_constant().filter(|_| own.guards.is_empty())?;
        Some(Some(Key { value: IndexExpr::var(*var), count }))
    });
    known.chain(others).collect()
}

/// Rewrites a subscript in terms of the keys, if it depends on the loops inside only through them.
fn in_terms_of_keys(index: &IndexExpr, keys: &[Key], inside: &[LoopVarId]) -> Option<IndexExpr> {
    let varies = |index: &IndexExpr| inside.iter().any(|var| index.mentions(*var));
    let mut rest = index.clone();
    let mut moved = IndexExpr::constant(0);
    for (at, key) in keys.iter().enumerate() {
        let times = key_factor(&rest, key, &varies);
        rest = rest.sub(&key.value.scale(times));
        moved = moved.add(&IndexExpr::var(key_var(at)).scale(times));
    }
    let rest = rest.substitute(&mut |atom| atom_in_terms_of_keys(atom, keys, inside));
    (!varies(&rest)).then(|| moved.add(&rest))
}

/// The factor by which a key occurs in an expression. The factor is read from the first term of the
/// key that varies inside, or else from its first term: coordinates relative to the corner of a
/// buffer contain only the varying terms. A key counts only if all of these terms occur, so that
/// taking it out leaves fewer terms. Otherwise `restated` might never end: where two keys are the
/// quotient and the remainder of one fused loop, each can be taken out of the other for ever.
fn key_factor(index: &IndexExpr, key: &Key, varies: &dyn Fn(&IndexExpr) -> bool) -> i64 {
    let (varying, fixed): (Vec<&Term>, Vec<&Term>) =
        key.value.terms().iter().partition(|term| varies(&IndexExpr::from(*term)));
    let terms = if varying.is_empty() { fixed } else { varying };
    let found = |term: &&Term| index.terms().iter().find(|own| own.factors == term.factors);
    let Some(first) = terms.first().filter(|_| terms.iter().all(|term| found(term).is_some())) else {
        return 0;
    };
    let whole = found(first).filter(|own| own.coefficient % first.coefficient == 0);
    whole.map_or(0, |own| own.coefficient / first.coefficient)
}

fn atom_in_terms_of_keys(atom: &Atom, keys: &[Key], inside: &[LoopVarId]) -> Option<IndexExpr> {
    let both = |pair: &(IndexExpr, IndexExpr)| {
        Some((in_terms_of_keys(&pair.0, keys, inside)?, in_terms_of_keys(&pair.1, keys, inside)?))
    };
    match atom {
        // If only one loop inside occurs in a key, the key determines that loop's variable.
        Atom::Var(var) if inside.contains(var) => keys.iter().enumerate().find_map(|(at, key)| {
            let (times, rest) = key.value.split_on(atom)?;
            let alone = times.as_constant() == Some(1) && !inside.iter().any(|other| rest.mentions(*other));
            alone.then(|| IndexExpr::var(key_var(at)).sub(&rest))
        }),
        Atom::FloorDiv(pair) => both(pair).map(|(value, by)| value.floor_div(&by)),
        Atom::Mod(pair) => both(pair).map(|(value, by)| value.modulo(&by)),
        Atom::Min(pair) => both(pair).map(|(one, other)| one.minimum(&other)),
        Atom::Max(pair) => both(pair).map(|(one, other)| one.maximum(&other)),
        Atom::Data(data) => {
            let mut value = data.value.clone();
            value.map_indices(&mut |index| {
                in_terms_of_keys(index, keys, inside).unwrap_or_else(|| index.clone())
            });
            Some(IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared: data.declared.clone() }))))
        }
        Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => None,
    }
}

/// The conditions under which a statement reads a tensor, if they are the same for all its reads.
/// With `with_selects`, a select between an element and a constant counts as one read, because the
/// buffer holds the padding too.
fn conditions(statement: &Statement, tensor: BufferId, with_selects: bool) -> Result<Vec<Expr>, String> {
    let mut search = Search { tensor, with_selects, conditions: Vec::new(), found: Vec::new() };
    search.expr(&statement.value);
    statement.target.indices.iter().for_each(|index| search.index(index));
    let mut found = search.found.into_iter();
    let first = found.next().unwrap_or_default();
    match found.all(|other| other == first) {
        true => Ok(first),
        false => Err("different conditions decide whether it is read".to_string()),
    }
}

/// A search for the reads of a tensor in an expression.
struct Search {
    tensor: BufferId,
    /// Whether a select between an element and a constant counts as one read.
    with_selects: bool,
    /// The conditions around the current expression.
    conditions: Vec<Expr>,
    /// The conditions of every read that was found.
    found: Vec<Vec<Expr>>,
}

impl Search {
    fn expr(&mut self, expr: &Expr) {
        let wanted = self.tensor;
        let is_own = |access: &Access| access.tensor == wanted;
        match &expr.kind {
            ExprKind::Load(access) => {
                access.indices.iter().for_each(|index| self.index(index));
                if is_own(access) {
                    self.found.push(self.conditions.clone());
                }
            }
            ExprKind::Index(index) => self.index(index),
            ExprKind::Select(_) if self.with_selects && selected_element(expr).is_some_and(is_own) => {
                self.found.push(self.conditions.clone());
            }
            ExprKind::Select(parts) => {
                self.expr(&parts[0]);
                self.under_condition(parts[0].clone(), &parts[1]);
                self.under_condition(negated(parts[0].clone()), &parts[2]);
            }
            ExprKind::Binary(BinaryOp::And, pair) => {
                self.expr(&pair[0]);
                self.under_condition(pair[0].clone(), &pair[1]);
            }
            ExprKind::Binary(BinaryOp::Or, pair) => {
                self.expr(&pair[0]);
                self.under_condition(negated(pair[0].clone()), &pair[1]);
            }
            _ => expr.operands().iter().for_each(|operand| self.expr(operand)),
        }
    }

    fn under_condition(&mut self, condition: Expr, expr: &Expr) {
        self.conditions.push(condition);
        self.expr(expr);
        self.conditions.pop();
    }

    fn index(&mut self, index: &IndexExpr) {
        let mut values = Vec::new();
        index.visit_atoms(&mut |atom| {
            if let Atom::Data(data) = atom {
                values.push(data.value.clone());
            }
        });
        values.iter().for_each(|value| self.expr(value));
    }
}

fn negated(condition: Expr) -> Expr {
    let dtype = condition.dtype;
    Expr { dtype, kind: ExprKind::Unary(UnaryOp::Not, Box::new(condition)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_only_partly_occurs_is_left_in_place() {
        let [v, w] = [LoopVarId(0), LoopVarId(1)];
        let [value, other] = [v, w].map(IndexExpr::var);
        let quotient = value.scale(2).add(&other).floor_div(&IndexExpr::constant(4));
        let key = Key { value: value.add(&quotient), count: 8 };
        // Taking the key out of `v` alone would add the quotient, whose dividend contains `v`.
        assert_eq!(in_terms_of_keys(&value, std::slice::from_ref(&key), &[v, w]), None);
        let whole = key.value.scale(3);
        assert_eq!(in_terms_of_keys(&whole, &[key], &[v, w]), Some(IndexExpr::var(key_var(0)).scale(3)));
    }
}
