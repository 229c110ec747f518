//! Finds the recurrence in the loop that `scan` names, or the reason why there is none.
//!
//! The draft is legal, so every iteration of the recurrence runs after the iteration before, which
//! it reads. So the iterations inside one iteration of the loop are a part: they follow each other
//! without a gap, and the first of them has all inner ordered loops at 0.

use tilewright_ir::Update;
use tilewright_ir::nest::{Access, Atom, Expr, ExprKind, IndexExpr, LoopKind, LoopVarId};

use super::form::{Form, form};
use crate::draft::scan::ScanRole;
use crate::draft::{Draft, LoopRole, Statement, StatementId};
use crate::steps::kind::adjective;

/// A recurrence whose ordered loop is split.
pub(super) struct Recurrence {
    pub statement: StatementId,
    /// The loop over the parts.
    pub part: LoopVarId,
    /// The ordered loops inside, whose iterations are those of a part, outermost first.
    pub steps: Vec<LoopVarId>,
    /// The other loops inside, outermost first.
    pub others: Vec<LoopVarId>,
    /// The position of an iteration in its part.
    pub position: IndexExpr,
    /// The number of the part; none if outer loops begin parts elsewhere.
    pub number: Option<PartNumber>,
    /// The place of the ordered loop's variable in the instances of the statement.
    pub variable: usize,
    /// The value of the iteration before, as the statement reads it.
    pub before: Expr,
    pub form: Form,
}

/// The parts of a recurrence, counted over all iterations of the loops around.
#[derive(Clone)]
pub(super) struct PartNumber {
    /// The number of the part.
    pub number: IndexExpr,
    /// The number of iterations of each part.
    pub length: i64,
    /// The number of iterations of the next ordered loop around the parts; 0 if there is none.
    pub within: i64,
}

impl Recurrence {
    /// Finds the recurrence in a loop.
    pub fn find(draft: &Draft, part: LoopVarId) -> Result<Recurrence, String> {
        let id = statement_in(draft, part)?;
        let path = draft.path(id);
        let at = path.iter().position(|var| *var == part).expect("the loop is around its statement");
        let is_ordered = |var: &LoopVarId| draft.loop_of(*var).role == LoopRole::Ordered;
        let (steps, others): (Vec<LoopVarId>, Vec<LoopVarId>) =
            path[at + 1..].iter().partition(|var| is_ordered(var));
        let Some(last) = steps.last().copied() else {
            return Err("it is not the outer part of an ordered loop: `split` that loop first".to_string());
        };
        let statement = draft.statement(id);
        check_statement(draft, statement)?;
        check_loops(draft, part, &steps, &others)?;
        let Place { variable, position, number } = place(statement, part, (&steps, &others))?;
        let element = element_before(statement, part, &steps, last)?;
        check_reads(draft, statement, &element)?;
        let before = value_before(draft, statement, &element)?;
        let tensor = element.tensor;
        let depends = |value: &Expr| {
            let mut found = false;
            value.visit_reads(&mut |read| found |= read.tensor == tensor);
            found
        };
        let form = form(&statement.value, &|value| *value == before, &depends)?;
        Ok(Recurrence { statement: id, part, steps, others, position, number, variable, before, form })
    }
}

/// The only statement in an ordered loop.
fn statement_in(draft: &Draft, part: LoopVarId) -> Result<StatementId, String> {
    let own = draft.loop_of(part);
    if own.role != LoopRole::Ordered || own.owner.is_some() {
        return Err("it is not the outer part of an ordered loop of the program".to_string());
    }
    if own.kind != LoopKind::Serial {
        return Err(format!("it is already {}: apply `scan` before that step", adjective(own.kind)));
    }
    match draft.statements_in(draft.body_of(part)).as_slice() {
        [only] => Ok(*only),
        [first, second, ..] => Err(format!(
            "`{}` and `{}` are both computed in it",
            draft.statement(*first).name,
            draft.statement(*second).name
        )),
        [] => Err("no statement is computed in it".to_string()),
    }
}

fn check_statement(draft: &Draft, statement: &Statement) -> Result<(), String> {
    let name = &statement.name;
    let buffer = &draft.buffers[statement.target.tensor.index()];
    let dtype = buffer.buffer.dtype;
    if statement.update != Update::Assign {
        return Err(format!("`{name}` is a reduction"));
    }
    if statement.accumulator.is_some() {
        return Err("the result is promoted already: apply `scan` before `promote`".to_string());
    }
    if buffer.allocated_at.is_some() || statement.is_narrowed {
        return Err(format!("`{name}` is already computed at a loop of its consumer"));
    }
    if dtype.compute_type() != dtype {
        return Err(format!(
            "the elements of `{}` are {}, so the recurrence is rounded in every iteration",
            buffer.buffer.name,
            dtype.name()
        ));
    }
    Ok(())
}

/// Checks that the loops inside can be copied.
fn check_loops(
    draft: &Draft,
    part: LoopVarId,
    steps: &[LoopVarId],
    others: &[LoopVarId],
) -> Result<(), String> {
    let around = draft.loops_up_to(part);
    let is_kept = |var: LoopVarId| {
        let own = draft.loop_of(var);
        own.keeps_order || own.slides || own.name.is_empty()
    };
    if around.iter().chain(steps).chain(others).any(|var| is_kept(*var)) || draft.has_attachments(part) {
        return Err(
            "its iterations already follow those of another statement: apply `scan` first".to_string()
        );
    }
    // The elements that are computed must be the same in every iteration of the recurrence.
    let varies = |index: &IndexExpr| steps.iter().chain([&part]).any(|var| index.mentions(*var));
    let mixed = others.iter().find(|var| {
        let own = draft.loop_of(**var);
        let among_others = |guard: &&IndexExpr| others.iter().any(|other| guard.mentions(*other));
        varies(&own.extent) || own.guards.iter().filter(among_others).any(varies)
    });
    match mixed {
        Some(var) => Err(format!(
            "the iterations of `{}` depend on those of the ordered loop",
            draft.qualified_loop_name(*var)
        )),
        None => Ok(()),
    }
}

/// Where an iteration of the recurrence is.
struct Place {
    variable: usize,
    position: IndexExpr,
    number: Option<PartNumber>,
}

/// Takes the value of the ordered loop's variable apart: the position in the part, and the parts
/// before.
fn place(
    statement: &Statement,
    part: LoopVarId,
    (steps, others): (&[LoopVarId], &[LoopVarId]),
) -> Result<Place, String> {
    let refuse = || Err("the ordered loop is not just split into parts".to_string());
    let points = statement.instances.first().map(|own| own.point.as_slice()).unwrap_or_default();
    let is_inside = |index: &IndexExpr| steps.iter().chain([&part]).any(|var| index.mentions(*var));
    let points = points.iter().enumerate().filter_map(|(at, index)| Some((at, index.as_ref()?)));
    let mut ordered = points.filter(|(_, index)| is_inside(index));
    let (Some((at, variable)), None) = (ordered.next(), ordered.next()) else { return refuse() };
    let mut position = IndexExpr::constant(0);
    let mut coefficients = Vec::new();
    for term in variable.terms() {
        match term.factors.as_slice() {
            [Atom::Var(var)] if others.contains(var) => return refuse(),
            [Atom::Var(var)] => coefficients.push((*var, term.coefficient)),
            factors if factors.iter().any(|atom| is_inside(&IndexExpr::atom(atom.clone()))) => {
                return refuse();
            }
            _ => {}
        }
    }
    let coefficient = |var: &LoopVarId| {
        let found = coefficients.iter().find(|(own, _)| own == var);
        found.map(|(_, coefficient)| *coefficient).filter(|coefficient| *coefficient > 0)
    };
    for var in steps {
        let Some(coefficient) = coefficient(var) else { return refuse() };
        position = position.add(&IndexExpr::var(*var).scale(coefficient));
    }
    let (Some(length), Some(1)) = (coefficient(&part), steps.last().and_then(coefficient)) else {
        return refuse();
    };
    let parts_before = variable.sub(&position).offset(-variable.constant_part());
    let around = coefficients.iter().filter(|(var, _)| *var != part && !steps.contains(var));
    let within = around.map(|(_, coefficient)| *coefficient).min().unwrap_or(0);
    let number = quotient(&parts_before, length).map(|number| PartNumber { number, length, within });
    Ok(Place { variable: at, position, number })
}

/// A sum of multiples of a number, divided by the number.
fn quotient(sum: &IndexExpr, by: i64) -> Option<IndexExpr> {
    let mut found = IndexExpr::constant(0);
    for term in sum.terms() {
        let [Atom::Var(var)] = term.factors.as_slice() else { return None };
        if term.coefficient % by != 0 {
            return None;
        }
        found = found.add(&IndexExpr::var(*var).scale(term.coefficient / by));
    }
    Some(found)
}

/// The element that the iteration before has written. One subscript moves by the same distance in
/// every iteration, so all iterations write different elements.
fn element_before(
    statement: &Statement,
    part: LoopVarId,
    steps: &[LoopVarId],
    last: LoopVarId,
) -> Result<Access, String> {
    let target = &statement.target;
    let is_inside = |index: &IndexExpr| steps.iter().chain([&part]).any(|var| index.mentions(*var));
    let refuse = || Err(format!("one subscript of `{}` must be the loop's variable", statement.name));
    let moving: Vec<usize> = (0..target.indices.len()).filter(|at| is_inside(&target.indices[*at])).collect();
    let [at] = moving.as_slice() else { return refuse() };
    let index = &target.indices[*at];
    let is_linear = |term: &tilewright_ir::nest::Term| {
        matches!(term.factors.as_slice(), [Atom::Var(_)])
            || !term.factors.iter().any(|atom| is_inside(&IndexExpr::atom(atom.clone())))
    };
    if target.indices.iter().any(IndexExpr::has_data) || !index.terms().iter().all(is_linear) {
        return refuse();
    }
    let before = IndexExpr::var(last).offset(-1);
    let moved = index.substitute(&mut |atom| (*atom == Atom::Var(last)).then(|| before.clone()));
    match moved.sub(index).as_constant() {
        Some(distance) if distance != 0 => {}
        _ => return refuse(),
    }
    let mut element = target.clone();
    element.indices[*at] = moved;
    Ok(element)
}

fn check_reads(draft: &Draft, statement: &Statement, element: &Access) -> Result<(), String> {
    let name = &draft.buffers[element.tensor.index()].buffer.name;
    let reads: Vec<Access> =
        statement.reads().into_iter().filter(|read| read.tensor == element.tensor).collect();
    if reads.is_empty() {
        return Err(format!("its value does not read `{name}` of the iteration before"));
    }
    if reads.iter().any(|read| read.indices != element.indices) {
        return Err(format!("its value reads `{name}` elsewhere than just one iteration before"));
    }
    Ok(())
}

/// The value of the iteration before, as the statement reads it: an element, or after another
/// `scan` a choice between the element and the value before a part.
fn value_before(draft: &Draft, statement: &Statement, element: &Access) -> Result<Expr, String> {
    let dtype = draft.buffers[element.tensor.index()].buffer.dtype;
    let load = Expr { dtype, kind: ExprKind::Load(element.clone()) };
    let Some(ScanRole::Result { carry, .. }) = &statement.scan else { return Ok(load) };
    let mut found = None;
    visit(&statement.value, &mut |value| {
        if let ExprKind::Select(parts) = &value.kind
            && parts[1] == load
            && matches!(&parts[2].kind, ExprKind::Load(own) if own.tensor == *carry)
        {
            found = Some(value.clone());
        }
    });
    found.ok_or_else(|| "its values before the parts of another `scan` are staged elsewhere".to_string())
}

fn visit<'e>(value: &'e Expr, each: &mut dyn FnMut(&'e Expr)) {
    each(value);
    value.operands().iter().for_each(|operand| visit(operand, each));
}
