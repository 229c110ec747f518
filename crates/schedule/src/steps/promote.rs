//! `promote B at C.ko -> Bp packed (d1/32, d0, d1%32)`: operands, and `promote C at C.io -> acc registers`: results.

use tilewright_ir::nest::{Buffer, LoopKind, Scope};
use tilewright_ir::{Access, Expr, ExprKind, IndexExpr, Role, TensorId, Update, VarId};

use crate::draft::region::Interval;
use crate::draft::simplify::Ranges;
use crate::draft::{
    Accumulator, Draft, Legal, Loop, LoopRole, Node, Statement, StatementId, access, statements_in,
};
use crate::illegal::Illegal;
use crate::step::{LayoutDim, LoopName, Place, PromoteScope};

/// The result of a statement is gathered in a buffer. Lowering makes it, once all loops are known.
pub(super) fn result(
    draft: &mut Draft,
    tensor: &str,
    at: &LoopName,
    name: &str,
    scope: PromoteScope,
    layout: &[LayoutDim],
) -> Legal<()> {
    let refuse = |why: &str| {
        Err(Illegal::Promote { tensor: tensor.to_string(), at: at.to_string(), why: why.to_string() })
    };
    let place = draft.find_loop(at)?;
    let id = draft.find_statement(&at.statement)?;
    draft.expect_free(name)?;
    let statement = draft.statement(id);
    let target = statement.target.tensor;
    if !layout.is_empty() {
        return refuse("the layout of a result's buffer follows its loops, and cannot be chosen");
    }
    if statement.accumulator.is_some() {
        return refuse("it is promoted already");
    }
    if statement.target.indices.iter().any(IndexExpr::has_data) {
        return refuse("which elements it writes depends on data");
    }
    let reduced = draft.path(id).into_iter().filter(|var| draft.loop_of(*var).role == LoopRole::Reduction);
    if reduced.into_iter().any(|var| statement.target.indices.iter().any(|index| index.mentions(var))) {
        return refuse("a reduced loop is in its subscripts, so iterations share elements");
    }
    let inside = draft.body_of(place);
    if draft.writers(inside, target).len() > 1 || !draft.readers(inside, target).is_empty() {
        return refuse("another use of it is inside that loop");
    }
    let in_registers = scope == PromoteScope::Registers;
    draft.statements[id.0].accumulator = Some(Accumulator { name: name.to_string(), at: place, in_registers });
    Ok(())
}

/// What is read of a tensor is copied to a buffer first.
pub(super) fn operand(
    draft: &mut Draft,
    name: &str,
    at: &Place,
    buffer: &str,
    scope: PromoteScope,
    layout: &[LayoutDim],
) -> Legal<()> {
    let tensor = draft.find_tensor(name)?;
    draft.expect_free(buffer)?;
    let place = match at {
        Place::Root => None,
        Place::Loop(at) => Some(draft.find_loop(at)?),
    };
    let refuse = |why: &str| Illegal::Promote { tensor: name.to_string(), at: at.to_string(), why: why.to_string() };
    if scope == PromoteScope::Registers {
        return Err(refuse("only results go into registers; what is read gets there by itself"));
    }
    let reads = operand_reads(draft, tensor, place).map_err(refuse)?;
    let region = draft.footprint(tensor, &reads, place);
    let layout = checked_layout(layout, &region).map_err(|why| refuse(&why))?;

    let once = place.is_none() && is_constant(draft, tensor);
    let room = Buffer {
        name: buffer.to_string(),
        dtype: draft.buffers[tensor.index()].buffer.dtype,
        shape: layout.iter().map(|part| part.extent(&region)).collect(),
        scope: if once { Scope::Constant } else { Scope::Scratch },
    };
    let staged = draft.add_buffer(room, place)?;
    redirect(draft, tensor, place, staged, &region, &layout);
    let nest = copy_nest(draft, tensor, staged, place, &region, &layout);
    match place {
        Some(place) => draft.body_of_mut(place).insert(0, nest),
        None if once => draft.setup.push(nest),
        None => draft.body.insert(0, nest),
    }
    Ok(())
}

/// The reads that the buffer will serve.
fn operand_reads(
    draft: &Draft,
    tensor: TensorId,
    place: Option<VarId>,
) -> Result<Vec<(StatementId, Access)>, &'static str> {
    let nodes = place.map_or(draft.body.as_slice(), |place| draft.body_of(place));
    if !draft.writers(nodes, tensor).is_empty() {
        return Err(match place {
            Some(_) => "it is written inside that loop",
            None => "the program computes it: promote it at a loop of the statement that reads it",
        });
    }
    let reads = draft.readers(nodes, tensor);
    if reads.is_empty() {
        return Err("nothing there reads it");
    }
    Ok(reads)
}

fn is_constant(draft: &Draft, tensor: TensorId) -> bool {
    let Scope::Argument(id) = draft.buffers[tensor.index()].buffer.scope else { return false };
    draft.program.tensor(id).role == Role::Input { constant: true }
}

/// One dimension of a buffer: of a coordinate `r`, it holds `(r % modulo) / divide`.
#[derive(Clone, Copy)]
struct Part {
    dimension: usize,
    modulo: Option<i64>,
    divide: i64,
}

impl Part {
    fn extent(&self, region: &[Interval]) -> i64 {
        let whole = region[self.dimension].extent;
        let count = self.modulo.map_or(whole, |modulo| modulo.min(whole));
        (count + self.divide - 1) / self.divide
    }

    fn of(&self, coordinate: &IndexExpr) -> IndexExpr {
        let rest = self.modulo.map_or(coordinate.clone(), |by| coordinate.modulo(&IndexExpr::constant(by)));
        rest.floor_div(&IndexExpr::constant(self.divide))
    }
}

/// The parts of a layout, if they tell all elements apart: in every dimension one part is the whole quotient, and
/// the remainder of each is what the next takes apart.
fn checked_layout(layout: &[LayoutDim], region: &[Interval]) -> Result<Vec<Part>, String> {
    if layout.is_empty() {
        return Ok((0..region.len()).map(|dimension| Part { dimension, modulo: None, divide: 1 }).collect());
    }
    let parts: Vec<Part> = layout
        .iter()
        .map(|dim| Part { dimension: dim.dimension, modulo: dim.modulo, divide: dim.divide.unwrap_or(1) })
        .collect();
    if let Some(part) = parts.iter().find(|part| part.dimension >= region.len()) {
        return Err(format!("it has no dimension d{}: the last is d{}", part.dimension, region.len().max(1) - 1));
    }
    for dimension in 0..region.len() {
        let mut chain: Vec<&Part> = parts.iter().filter(|part| part.dimension == dimension).collect();
        chain.sort_by_key(|part| part.divide);
        let mut scale = 1;
        for (at, part) in chain.iter().enumerate() {
            let last = at + 1 == chain.len();
            let fits = part.divide == scale && part.modulo.is_none() == last
                && part.modulo.is_none_or(|modulo| modulo > scale && modulo % scale == 0);
            if !fits {
                return Err(format!("the layout does not keep the elements of dimension d{dimension} apart"));
            }
            scale = part.modulo.unwrap_or(scale);
        }
        if chain.is_empty() {
            return Err(format!("the layout leaves out dimension d{dimension}"));
        }
    }
    Ok(parts)
}

/// The place in the buffer of an element of the tensor.
fn staged_indices(indices: &[IndexExpr], region: &[Interval], layout: &[Part], ranges: &Ranges) -> Vec<IndexExpr> {
    let coordinate = |at: usize| indices[at].sub(&region[at].low);
    layout.iter().map(|part| ranges.simplify(&part.of(&coordinate(part.dimension)))).collect()
}

/// Lets the statements at the place read the buffer.
fn redirect(
    draft: &mut Draft,
    tensor: TensorId,
    place: Option<VarId>,
    staged: TensorId,
    region: &[Interval],
    layout: &[Part],
) {
    let nodes = place.map_or(draft.body.as_slice(), |place| draft.body_of(place));
    let dtype = draft.buffers[tensor.index()].buffer.dtype;
    for id in statements_in(nodes) {
        let ranges = draft.ranges(id);
        draft.statements[id.0].replace_loads(&mut |read: &Access| {
            (read.tensor == tensor).then(|| {
                let indices = staged_indices(&read.indices, region, layout, &ranges);
                Expr { dtype, kind: ExprKind::Load(Access { tensor: staged, indices, origin: read.origin }) }
            })
        });
    }
}

/// The loops that fill the buffer, one a dimension of its layout.
fn copy_nest(
    draft: &mut Draft,
    tensor: TensorId,
    staged: TensorId,
    place: Option<VarId>,
    region: &[Interval],
    layout: &[Part],
) -> Node {
    let id = StatementId(draft.statements.len());
    let mut ranges = draft.ranges_of(&place.map(|place| draft.loops_up_to(place)).unwrap_or_default());
    let mut rest: Vec<IndexExpr> = region.iter().map(|interval| interval.available.clone()).collect();
    let mut coordinates: Vec<IndexExpr> = region.iter().map(|interval| interval.low.clone()).collect();
    let mut vars = vec![VarId(0); layout.len()];
    let mut nesting = Vec::new();
    // A part of a dimension is clipped by the coarser parts around it.
    let mut order: Vec<usize> = (0..layout.len()).collect();
    let coarse_first = |left: &usize, right: &usize| {
        let (left, right) = (&layout[*left], &layout[*right]);
        left.dimension != right.dimension || left.divide > right.divide
    };
    if !order.iter().enumerate().all(|(at, left)| order[at + 1..].iter().all(|right| coarse_first(left, right))) {
        order.sort_by_key(|at| (layout[*at].dimension, std::cmp::Reverse(layout[*at].divide)));
    }
    for at in order {
        let Part { dimension, divide, .. } = layout[at];
        let by = IndexExpr::constant(divide);
        let extent = ranges.simplify(&rest[dimension].offset(divide - 1).floor_div(&by));
        let var = draft.add_loop(Loop {
            name: format!("l{at}"),
            extent: extent.clone(),
            kind: LoopKind::Serial,
            role: LoopRole::Spatial,
            owner: Some(id),
            pristine: false,
        });
        ranges.add(var, &extent);
        let done = IndexExpr::var(var).scale(divide);
        rest[dimension] = ranges.simplify(&rest[dimension].sub(&done).minimum(&by));
        coordinates[dimension] = coordinates[dimension].add(&done);
        vars[at] = var;
        nesting.push(var);
    }
    let dtype = draft.buffers[tensor.index()].buffer.dtype;
    let load = Expr { dtype, kind: ExprKind::Load(access(tensor, coordinates)) };
    let name = draft.next_name(&draft.buffers[staged.index()].buffer.name);
    let indices = vars.iter().map(|var| IndexExpr::var(*var)).collect();
    draft.add_statement(Statement {
        name,
        target: access(staged, indices),
        update: Update::Assign,
        value: load.cast(dtype.compute_type()),
        accumulator: None,
        vars: Vec::new(),
    });
    nesting.into_iter().rev().fold(Node::Statement(id), |inner, var| Node::Loop(var, vec![inner]))
}
