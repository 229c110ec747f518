//! Applies the step `scan y[2].part -> carry`: computes a recurrence in parts that do not wait for
//! each other ("reduce, then scan"). [`mod@recurrence`] finds the recurrence, and [`mod@form`] how
//! a value depends on the one before.
//!
//! New statements compute the total of each part, and from the totals the value before each part.
//! The recurrence begins each part with that value. A part is the iterations of the ordered loops
//! inside one iteration of the named loop; the last part may have fewer of them.

mod form;
mod recurrence;

use tilewright_ir::nest::{
    Access, Atom, Buffer, BufferId, Expr, ExprKind, IndexExpr, LoopKind, LoopVarId, PartValue,
    RecurrencePart, Scope,
};
use tilewright_ir::{BinaryOp, DType, ReduceOp, Update};

use crate::draft::rewrite::replace_exprs;
use crate::draft::scan::{Restart, ScanRole};
use crate::draft::{Draft, Legal, Loop, LoopRole, Node, Statement, StatementId, access, replace_var};
use crate::illegal::Illegal;
use crate::step::{LoopName, StatementName};
use form::{Form, reduction};
use recurrence::{PartNumber, Recurrence};

/// Makes the iterations of the loop over the parts independent of each other.
pub(super) fn scan(draft: &mut Draft, target: &LoopName, name: &str) -> Legal<()> {
    let part = draft.find_loop(target)?;
    let refuse = |why: String| Illegal::Scan { name: target.to_string(), why };
    let recurrence = Recurrence::find(draft, part).map_err(refuse)?;
    let (parts, factors) = (format!("{name}_parts"), format!("{name}_factors"));
    let has_factors = matches!(recurrence.form, Form::Affine { .. });
    let names = [name, &parts, &factors];
    for name in &names[..if has_factors { 3 } else { 2 }] {
        draft.expect_unused_name(name)?;
    }

    let old = draft.statement(recurrence.statement).clone();
    let values = Values::new(draft, &recurrence, &old);
    let mut nests = Vec::new();
    let rule = match &recurrence.form {
        Form::Commutative { op, operand } => {
            let total = match reduction(*op) {
                Some(op) => PartTotal::Reduced(op, operand.clone()),
                None => PartTotal::InOrder(InOrder::Operator(*op), operand.clone()),
            };
            let totals = values.add_buffer(draft, &parts)?;
            nests.extend(values.total(draft, totals, (PartValue::Total, total)));
            Rule { totals, combine: Combination::Operator(*op) }
        }
        Form::Affine { factor, term } => {
            let [products, totals] = [values.add_buffer(draft, &factors)?, values.add_buffer(draft, &parts)?];
            let product = PartTotal::Reduced(ReduceOp::Mul, factor.clone());
            nests.extend(values.total(draft, products, (PartValue::Factor, product)));
            let total = PartTotal::InOrder(InOrder::Factor(factor.clone()), term.clone());
            nests.extend(values.total(draft, totals, (PartValue::Total, total)));
            Rule { totals, combine: Combination::Factors(products) }
        }
    };
    let carry = values.add_buffer(draft, name)?;
    nests.extend(values.carry(draft, carry, &rule));
    values.restart(draft, carry);
    let (parent, at) = draft.detach(Node::Loop(part));
    nests.push(Node::Loop(part));
    draft.insert(parent, at, nests);
    Ok(())
}

/// How the totals of the parts are combined.
struct Rule {
    totals: BufferId,
    combine: Combination,
}

enum Combination {
    Operator(BinaryOp),
    /// `factor * before + total`, with the buffer of the factors.
    Factors(BufferId),
}

/// How the total of a part is computed.
enum PartTotal {
    /// As a reduction of this value over the iterations of the part.
    Reduced(ReduceOp, Expr),
    /// In the order of the iterations, from the value that the first of them adds.
    InOrder(InOrder, Expr),
}

enum InOrder {
    Operator(BinaryOp),
    /// `factor * total + value`.
    Factor(Expr),
}

/// The statements of one recurrence, and buffers with an element for each part and each iteration
/// of the loops that are not part of the recurrence.
struct Values<'s> {
    recurrence: &'s Recurrence,
    old: &'s Statement,
    dtype: DType,
    shape: Vec<i64>,
    allocated_at: Option<LoopVarId>,
    /// Whether some parts, or some elements of a part, may not exist.
    is_partial: bool,
}

/// Copies of loops, with the loops that they copy.
type Copies = [(LoopVarId, LoopVarId)];

impl<'s> Values<'s> {
    fn new(draft: &Draft, recurrence: &'s Recurrence, old: &'s Statement) -> Values<'s> {
        let ranges = draft.ranges(recurrence.statement);
        let extent_of =
            |var: &LoopVarId| ranges.greatest_value(&draft.loop_of(*var).extent).unwrap_or(1).max(1);
        let indexed = std::iter::once(&recurrence.part).chain(&recurrence.others);
        let varies = |var: &LoopVarId| draft.loop_of(*var).extent.as_constant().is_none();
        let guarded = |var: &LoopVarId| !draft.loop_of(*var).guards.is_empty();
        let is_partial = indexed.clone().any(varies) || indexed.clone().chain(&recurrence.steps).any(guarded);
        Values {
            recurrence,
            old,
            dtype: draft.buffers[old.target.tensor.index()].buffer.dtype,
            shape: indexed.map(extent_of).collect(),
            allocated_at: draft.loops_around(recurrence.part).last().copied(),
            is_partial,
        }
    }

    fn add_buffer(&self, draft: &mut Draft, name: &str) -> Legal<BufferId> {
        let (dtype, shape) = (self.dtype, self.shape.clone());
        let buffer = Buffer { name: name.to_string(), dtype, shape, scope: Scope::Scratch };
        let added = draft.add_buffer(buffer, self.allocated_at)?;
        draft.buffers[added.index()].may_be_partial = self.is_partial;
        Ok(added)
    }

    /// The element of a buffer for the iteration of these loops. `part` is the number of the part.
    fn element(&self, buffer: BufferId, part: IndexExpr, copies: &Copies) -> Access {
        let others = self.recurrence.others.iter().map(|var| renamed(&IndexExpr::var(*var), copies));
        access(buffer, std::iter::once(part).chain(others).collect())
    }

    fn load(&self, buffer: BufferId, part: IndexExpr, copies: &Copies) -> Expr {
        Expr { dtype: self.dtype, kind: ExprKind::Load(self.element(buffer, part, copies)) }
    }

    /// `for part, for t: totals[part] op= value`, inside copies of the other loops.
    fn total(&self, draft: &mut Draft, totals: BufferId, (kind, total): (PartValue, PartTotal)) -> Vec<Node> {
        let Recurrence { statement, part, steps, .. } = self.recurrence;
        let id = StatementId(draft.statements.len());
        let path = draft.path(*statement);
        let inside: Vec<LoopVarId> = path.into_iter().skip_while(|var| var != part).collect();
        let is_reduced = matches!(total, PartTotal::Reduced(..));
        let role = |var: LoopVarId| match (steps.contains(&var), is_reduced) {
            (false, _) => LoopRole::Spatial,
            (true, true) => LoopRole::Reduction,
            (true, false) => LoopRole::Ordered,
        };
        let copies = copy_loops(draft, &inside, id, &role);
        let number = renamed(&IndexExpr::var(*part), &copies);
        let position = renamed(&self.recurrence.position, &copies);
        let in_copies = |mut value: Expr| {
            value.map_indices(&mut |index| renamed(index, &copies));
            value
        };
        let (update, value) = match total {
            PartTotal::Reduced(op, value) => (Update::Reduce { op, reset: true }, in_copies(value)),
            PartTotal::InOrder(rule, value) => {
                let (first, before) = (in_copies(value), self.load(totals, number.clone(), &copies));
                let next = match rule {
                    InOrder::Operator(op) => Expr::binary(op, before, first.clone()),
                    InOrder::Factor(factor) => {
                        let product = Expr::binary(BinaryOp::Mul, in_copies(factor), before);
                        Expr::binary(BinaryOp::Add, product, first.clone())
                    }
                };
                (Update::Assign, choice_unless_first(&position, next, first))
            }
        };
        let mut instances = self.old.instances.clone();
        for instance in &mut instances {
            instance.map_indices(&mut |index| renamed(index, &copies));
        }
        let in_order = (!is_reduced).then(|| position.clone());
        let role = self.role(kind, (&copies, Some(position)), in_order);
        let target = self.element(totals, number, &copies);
        let nest: Vec<LoopVarId> = copies.iter().map(|(_, copy)| *copy).collect();
        self.add_statement(draft, (target, update, value), instances, role);
        draft.wrap_in_loops(&nest, vec![Node::Statement(id)])
    }

    /// `for part: carry[part] = the value before the part`, inside copies of the other loops.
    fn carry(&self, draft: &mut Draft, carry: BufferId, rule: &Rule) -> Vec<Node> {
        let Recurrence { part, steps, others, before, .. } = self.recurrence;
        let id = StatementId(draft.statements.len());
        let inside: Vec<LoopVarId> = others.iter().chain([part]).copied().collect();
        let role = |var: LoopVarId| if var == *part { LoopRole::Ordered } else { LoopRole::Spatial };
        let copies = copy_loops(draft, &inside, id, &role);
        let number = renamed(&IndexExpr::var(*part), &copies);
        let (_, over_parts) = copies.last().expect("the loop over the parts is copied");
        draft.loops[over_parts.index()].keeps_order = true;
        // A part without any iteration has no total.
        let guards = steps.iter().flat_map(|var| draft.loop_of(*var).guards.clone());
        let guards: Vec<IndexExpr> = guards.map(|guard| renamed(&at_zero(&guard, steps), &copies)).collect();
        draft.loops[over_parts.index()].guards.extend(guards);

        let earlier = number.offset(-1);
        let [value, total] = [carry, rule.totals].map(|buffer| self.load(buffer, earlier.clone(), &copies));
        let next = match rule.combine {
            Combination::Operator(op) => Expr::binary(op, value, total),
            Combination::Factors(factors) => {
                let factor = self.load(factors, earlier.clone(), &copies);
                Expr::binary(BinaryOp::Add, Expr::binary(BinaryOp::Mul, factor, value), total)
            }
        };
        // The first part begins with the value that the recurrence reads there.
        let mut start = before.clone();
        let first = steps.iter().chain([part]).copied().collect::<Vec<LoopVarId>>();
        start.map_indices(&mut |index| renamed(&at_zero(index, &first), &copies));
        let start = without_certain_choice(start);
        let value = choice_unless_first(&number, next, start);
        let target = self.element(carry, number, &copies);
        let nest: Vec<LoopVarId> = copies.iter().map(|(_, copy)| *copy).collect();
        let role = self.role(PartValue::Before, (&copies, None), None);
        self.add_statement(draft, (target, Update::Assign, value), Vec::new(), role);
        draft.wrap_in_loops(&nest, vec![Node::Statement(id)])
    }

    /// The task of a new statement, whose loops are copies of those of the recurrence.
    fn role(
        &self,
        value: PartValue,
        (copies, position): (&Copies, Option<IndexExpr>),
        in_order: Option<IndexExpr>,
    ) -> ScanRole {
        let Recurrence { part, variable, number, .. } = self.recurrence;
        let unknown = || PartNumber { number: IndexExpr::var(*part), length: 0, within: 0 };
        let PartNumber { number, length, within } = number.clone().unwrap_or_else(unknown);
        let mut instance = self.old.instances[0].clone();
        instance.point[*variable] = Some(number);
        instance.map_indices(&mut |index| renamed(index, copies));
        instance.point.extend(position.map(Some));
        ScanRole::Part { value: RecurrencePart { length, within, value }, instance, position: in_order }
    }

    fn add_statement(
        &self,
        draft: &mut Draft,
        (target, update, value): (Access, Update, Expr),
        instances: Vec<crate::draft::Instance>,
        role: ScanRole,
    ) {
        let name = StatementName::first(draft.buffers[target.tensor.index()].buffer.name.clone());
        draft.add_statement(Statement {
            name,
            target,
            update,
            value,
            accumulator: None,
            is_partial: false,
            vars: Vec::new(),
            is_narrowed: false,
            instances,
            scan: Some(role),
        });
    }

    /// Lets the recurrence begin each part with the value before it.
    fn restart(&self, draft: &mut Draft, carry: BufferId) {
        let Recurrence { statement, part, position, before, .. } = self.recurrence;
        let number = IndexExpr::var(*part);
        let element = match &before.kind {
            ExprKind::Select(parts) => parts[1].clone(),
            _ => before.clone(),
        };
        let begin = self.load(carry, number.clone(), &[]);
        let value = choice_unless_first(position, element, begin);
        let restart = Restart { part: number, position: position.clone() };
        draft.change(*statement, |own| {
            replace_exprs(&mut own.value, &mut |old| (old == before).then(|| value.clone()));
            let mut restarts = match own.scan.take() {
                Some(ScanRole::Result { restarts, .. }) => restarts,
                _ => Vec::new(),
            };
            restarts.push(restart);
            own.scan = Some(ScanRole::Result { carry, restarts });
        });
        let own = &mut draft.loops[part.index()];
        own.role = LoopRole::Spatial;
        own.owner = Some(*statement);
        let inside = draft.loops_in(draft.body_of(*part));
        draft.mark_changed(&[&[*part][..], &inside].concat());
    }
}

/// `1 <= position ? value : first`.
fn choice_unless_first(position: &IndexExpr, value: Expr, first: Expr) -> Expr {
    let position = Expr { dtype: DType::Int64, kind: ExprKind::Index(Box::new(position.clone())) };
    let is_later = Expr::binary(BinaryOp::LessEqual, form::number(DType::Int64, 1), position);
    Expr { dtype: value.dtype, kind: ExprKind::Select(Box::new([is_later, value, first])) }
}

/// The second value of `1 <= position ? value : first` if the position is 0. It is not if an
/// ordered loop is between the parts of two scans.
fn without_certain_choice(choice: Expr) -> Expr {
    if let ExprKind::Select(parts) = &choice.kind
        && let ExprKind::Binary(BinaryOp::LessEqual, sides) = &parts[0].kind
        && let ExprKind::Index(position) = &sides[1].kind
        && position.as_constant() == Some(0)
    {
        return parts[2].clone();
    }
    choice
}

/// Adds serial copies of loops around a new statement. A copy has the guards of its loop that
/// mention copied loops only.
fn copy_loops(
    draft: &mut Draft,
    loops: &[LoopVarId],
    owner: StatementId,
    role: &dyn Fn(LoopVarId) -> LoopRole,
) -> Vec<(LoopVarId, LoopVarId)> {
    let mut copies: Vec<(LoopVarId, LoopVarId)> = Vec::new();
    for original in loops {
        let old = draft.loop_of(*original).clone();
        let copy = draft.add_loop(Loop {
            extent: renamed(&old.extent, &copies),
            kind: LoopKind::Serial,
            role: role(*original),
            owner: Some(owner),
            is_unchanged: false,
            guards: Vec::new(),
            ..old
        });
        copies.push((*original, copy));
    }
    for original in loops {
        let guards = draft.loop_of(*original).guards.clone();
        let of_copies = |guard: &&IndexExpr| {
            guard.vars().iter().all(|var| loops.contains(var) || !is_inside(draft, *var, loops))
        };
        let guards: Vec<IndexExpr> =
            guards.iter().filter(of_copies).map(|guard| renamed(guard, &copies)).collect();
        let (_, copy) = copies.iter().find(|(own, _)| own == original).expect("every loop is copied");
        draft.loops[copy.index()].guards = guards;
    }
    copies
}

/// Returns true when a loop is inside one of these loops, or around one of them and not around all.
fn is_inside(draft: &Draft, var: LoopVarId, loops: &[LoopVarId]) -> bool {
    let around = draft.loops_around(var);
    loops.iter().any(|own| around.contains(own))
        || loops.iter().any(|own| !draft.loops_around(*own).contains(&var))
}

/// An expression in the first iteration of loops.
fn at_zero(index: &IndexExpr, loops: &[LoopVarId]) -> IndexExpr {
    index.substitute(&mut |atom| match atom {
        Atom::Var(var) if loops.contains(var) => Some(IndexExpr::constant(0)),
        _ => None,
    })
}

fn renamed(index: &IndexExpr, copies: &Copies) -> IndexExpr {
    copies.iter().fold(index.clone(), |index, (from, to)| replace_var(&index, *from, *to))
}
