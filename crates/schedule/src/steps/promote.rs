//! Applies the step `promote`. For an operand, `promote B at C.ko -> Bp packed (d1/32, d0, d1%32)`
//! copies the part that is read to a buffer. For a result, `promote C at C.io -> acc registers`
//! records that it is accumulated in a buffer, which lowering makes.

use tilewright_ir::nest::{Access, Buffer, BufferId, Expr, ExprKind, IndexExpr, LoopKind, LoopVarId, Scope};
use tilewright_ir::{DType, Update};
use tilewright_target::{Capabilities, Registers};

use super::groups::Groups;
use super::layout::{BadLayout, BufferDimension, checked_layout, nesting_order, padded_shape};
use super::padding::{Padding, padding, replace_selects};
use super::view::View;
use crate::draft::region::Interval;
use crate::draft::simplify::Ranges;
use crate::draft::{
    Accumulator, Draft, DraftBuffer, Legal, Loop, LoopRole, Node, Parent, Statement, StatementId, access,
};
use crate::illegal::Illegal;
use crate::step::{LayoutDim, LoopLevel, LoopName, PromoteScope};

/// Why a result cannot be promoted at a loop where [`Draft::is_used_in_same_branch`] holds.
pub(crate) const USED_AGAIN: &str = "it is used again before the statement is done";

/// Lets a statement accumulate its result in a buffer. Lowering makes the buffer, once all loops
/// are known.
pub(super) fn promote_result(
    draft: &mut Draft,
    tensor: &str,
    at: &LoopName,
    name: &str,
    (scope, gathered): (PromoteScope, bool),
    layout: &[LayoutDim],
) -> Legal<()> {
    let refuse = |why: &str| {
        Err(Illegal::Promote { tensor: tensor.to_string(), at: at.to_string(), why: why.to_string() })
    };
    let place = draft.find_loop(at)?;
    let id = draft.find_statement(&at.statement)?;
    draft.expect_unused_name(name)?;
    let statement = draft.statement(id);
    if !layout.is_empty() {
        let why = "the layout of a result's buffer follows its loops, and cannot be chosen".to_string();
        return Err(Illegal::Layout { tensor: tensor.to_string(), at: at.to_string(), part: None, why });
    }
    if gathered {
        return refuse("it is the result of the statement, and only operands can be gathered");
    }
    if statement.accumulator.is_some() {
        return refuse("it is promoted already");
    }
    if statement.target.indices.iter().any(IndexExpr::has_data) {
        return refuse("the choice of the elements that it writes depends on data");
    }
    let reduced = draft.path(id).into_iter().filter(|var| draft.loop_of(*var).role == LoopRole::Reduction);
    if reduced.into_iter().any(|var| statement.target.indices.iter().any(|index| index.mentions(var))) {
        return refuse("its subscripts contain a reduction loop, so iterations share elements");
    }
    let inside = draft.path(id).into_iter().skip_while(|var| *var != place).skip(1);
    if inside.into_iter().any(|var| draft.loop_of(var).role == LoopRole::Ordered) {
        return refuse(
            "an ordered loop is inside that loop, and each of its iterations writes the result again",
        );
    }
    if draft.is_used_in_same_branch(id, place) {
        return refuse(USED_AGAIN);
    }
    let in_registers = scope == PromoteScope::Registers;
    let accumulator = Accumulator { name: name.to_string(), at: place, in_registers };
    draft.change(id, |statement| statement.accumulator = Some(accumulator));
    Ok(())
}

/// Copies the part of a tensor that is read to a buffer first.
pub(super) fn promote_operand(
    draft: &mut Draft,
    name: &str,
    at: &LoopLevel,
    buffer: &str,
    (scope, gathered): (PromoteScope, bool),
    (layout, pad): (&[LayoutDim], i64),
) -> Legal<()> {
    let tensor = draft.find_tensor(name)?;
    draft.expect_unused_name(buffer)?;
    let place = match at {
        LoopLevel::Root => None,
        LoopLevel::Loop(at) => Some(draft.find_loop(at)?),
    };
    let refuse_for = |why: String| Illegal::Promote { tensor: name.to_string(), at: at.to_string(), why };
    let refuse = |why: &str| refuse_for(why.to_string());
    expect_scope(&draft.capabilities, scope, place).map_err(refuse_for)?;
    if draft.buffers[tensor.index()].may_be_partial {
        return Err(refuse("it is a buffer that is not always full: promote its source instead"));
    }
    let reads = operand_reads(draft, tensor, place).map_err(refuse)?;
    let staging = Staging::plan(draft, tensor, place, (scope, gathered), &reads).map_err(refuse_for)?;
    let Staging { view, mut region, padding, reads_through_selects: reads_choices, position } = staging;
    let layout = checked_layout(layout, &region).map_err(|BadLayout { part, why }| Illegal::Layout {
        tensor: name.to_string(),
        at: at.to_string(),
        part,
        why,
    })?;
    let groups = match scope == PromoteScope::Shared && !gathered {
        true => Groups::extend_region(&layout, &view.shape, padding.as_ref(), &mut region),
        false => None,
    };
    let once = place.is_none() && !gathered && draft.is_constant(tensor);
    let staging_buffer = Buffer {
        name: buffer.to_string(),
        dtype: padding.as_ref().map_or(draft.buffers[tensor.index()].buffer.dtype, |padding| padding.dtype),
        shape: padded_shape(&layout, &region, pad),
        scope: match scope {
            PromoteScope::Registers => Scope::Register,
            _ if once => Scope::Constant,
            _ => Scope::Scratch,
        },
    };
    let staged = draft.add_buffer(staging_buffer, place)?;
    let divides = |part: &BufferDimension| {
        region[part.dimension].extent % (part.divide * part.extent(&region)) == 0
            || part.modulo.is_none() && region[part.dimension].extent % part.divide == 0
    };
    draft.buffers[staged.index()].is_staged = true;
    draft.buffers[staged.index()].pad = pad;
    draft.buffers[staged.index()].may_be_partial =
        region.iter().any(Interval::is_clipped) || !layout.iter().all(divides);
    draft.buffers[staged.index()].is_fully_written =
        scope != PromoteScope::Packed && !draft.buffers[staged.index()].may_be_partial;
    let stage = StagedOperand {
        tensor,
        staged,
        place,
        view,
        region,
        layout,
        groups,
        padding,
        reads_through_selects: reads_choices,
    };
    redirect_reads(draft, &stage);
    let nest = copy_nest(draft, &stage);
    // The copy is attached to the current loops: their statement can no longer move elsewhere
    // without it.
    draft.mark_changed(&place.map(|place| draft.loops_up_to(place)).unwrap_or_default());
    match place {
        None if once => draft.insert(Parent::Setup, draft.setup.len(), nest),
        _ => draft.insert(place.map_or(Parent::Body, Parent::Loop), position, nest),
    }
    Ok(())
}

/// The contents of a staging buffer.
struct Staging {
    view: View,
    region: Vec<Interval>,
    /// The padding outside the tensor, if the buffer holds such elements.
    padding: Option<Padding>,
    /// Whether statements read the tensor through selects between an element and the padding value.
    reads_through_selects: bool,
    /// The position of the copy among the children of its parent.
    position: usize,
}

impl Staging {
    fn plan(
        draft: &Draft,
        tensor: BufferId,
        place: Option<LoopVarId>,
        (scope, gathered): (PromoteScope, bool),
        reads: &[(StatementId, Access)],
    ) -> Result<Staging, String> {
        let Buffer { shape, dtype, .. } = &draft.buffers[tensor.index()].buffer;
        let statements: Vec<StatementId> = reads.iter().map(|(id, _)| *id).collect();
        let padding = padding(draft, tensor, &statements);
        let reads_choices = padding.is_some();
        let view = match gathered {
            true => View::gathered(draft, tensor, reads, place, reads_choices)?,
            false => View::whole_tensor(shape),
        };
        let position = view.copy_position(draft, place.map_or(Parent::Body, Parent::Loop), &statements)?;
        let padding = padding.map(|padding| padding.with_dimensions(|own| view.dimension(own)));
        let reads: Vec<(StatementId, Vec<IndexExpr>)> =
            reads.iter().map(|(id, read)| (*id, view.coordinates(&read.indices))).collect();
        let (region, padding) = match scope {
            PromoteScope::Shared | PromoteScope::Registers => {
                unclipped_region(draft, (&view, *dtype), &reads, place, padding)
            }
            _ => {
                let padded = padding.as_ref().map(|padding| padding.dimensions.as_slice());
                (draft.footprint_in(&view.shape, &reads, place, padded.unwrap_or_default()), padding)
            }
        };
        Ok(Staging { view, region, padding, reads_through_selects: reads_choices, position })
    }
}

/// Refuses registers and shared memory where the target has none for operands, or where no thread
/// and no block would own them. Lowering checks that the place is inside a thread, or inside blocks
/// and outside threads, when all loops are bound.
fn expect_scope(target: &Capabilities, scope: PromoteScope, place: Option<LoopVarId>) -> Result<(), String> {
    let Capabilities { kind, registers, shared_bytes, .. } = target;
    let why = match scope {
        PromoteScope::Registers if matches!(registers, Registers::Vector { .. }) => {
            format!("on a {kind} only results go into registers; instructions load operands themselves")
        }
        PromoteScope::Registers if place.is_none() => {
            "registers belong to a thread: promote at a loop inside the loops over threads".to_owned()
        }
        PromoteScope::Shared if shared_bytes.is_none() => {
            format!("a {kind} has no shared memory: use `packed`")
        }
        PromoteScope::Shared if place.is_none() => {
            "shared memory belongs to a block: promote at a loop inside the loops over blocks".to_owned()
        }
        PromoteScope::Packed | PromoteScope::Registers | PromoteScope::Shared => return Ok(()),
    };
    Err(why)
}

/// The region of a tensor that threads read from shared memory or registers, not clipped to the
/// tensor. The copy pads the elements outside the tensor, so that threads past the end of a tile
/// need no conditions.
fn unclipped_region(
    draft: &Draft,
    (view, dtype): (&View, DType),
    reads: &[(StatementId, Vec<IndexExpr>)],
    place: Option<LoopVarId>,
    padding: Option<Padding>,
) -> (Vec<Interval>, Option<Padding>) {
    let all: Vec<usize> = (0..view.shape.len()).collect();
    let region = draft.footprint_in(&view.shape, reads, place, &all);
    let around = draft.ranges_of(&place.map(|place| draft.loops_up_to(place)).unwrap_or_default());
    let mut padding = padding;
    for (dimension, (interval, extent)) in region.iter().zip(&view.shape).enumerate() {
        let last = interval.low.offset(interval.extent - 1);
        let before = !around.never_negative(&interval.low);
        let behind = !around.never_negative(&IndexExpr::constant(extent - 1).sub(&last));
        if before || behind {
            let own = padding.get_or_insert_with(|| Padding::filling(dtype));
            own.cover(dimension, before, behind.then_some(*extent));
        }
    }
    (region, padding)
}

/// The reads that the buffer will serve.
fn operand_reads(
    draft: &Draft,
    tensor: BufferId,
    place: Option<LoopVarId>,
) -> Result<Vec<(StatementId, Access)>, &'static str> {
    let inside = place.map_or(Parent::Body, Parent::Loop);
    if !draft.writers(inside, tensor).is_empty() {
        return Err(match place {
            Some(_) => "it is written inside that loop",
            None => "the program computes it: promote it at a loop of the statement that reads it",
        });
    }
    let reads = draft.readers(inside, tensor);
    if reads.is_empty() {
        return Err("no statement there reads it");
    }
    Ok(reads)
}

/// An operand and the buffer that stages a region of it.
struct StagedOperand {
    tensor: BufferId,
    staged: BufferId,
    place: Option<LoopVarId>,
    /// The view of the tensor that the buffer holds a region of.
    view: View,
    region: Vec<Interval>,
    layout: Vec<BufferDimension>,
    groups: Option<Groups>,
    /// The padding outside the tensor, if the buffer holds such elements.
    padding: Option<Padding>,
    /// Whether statements read the tensor through selects between an element and the padding value.
    reads_through_selects: bool,
}

impl StagedOperand {
    /// The indices into the buffer for an element that a statement reads from the tensor.
    fn indices(&self, indices: &[IndexExpr], ranges: &Ranges) -> Vec<IndexExpr> {
        let coordinates = self.view.coordinates(indices);
        let coordinate = |at: usize| coordinates[at].sub(&self.region[at].low);
        self.layout.iter().map(|part| ranges.simplify(&part.index_of(&coordinate(part.dimension)))).collect()
    }
}

/// Redirects the reads of the statements at the place to the buffer.
fn redirect_reads(draft: &mut Draft, stage: &StagedOperand) {
    let inside = stage.place.map_or(Parent::Body, Parent::Loop);
    let dtype = draft.buffers[stage.staged.index()].buffer.dtype;
    for id in draft.users(inside, stage.tensor) {
        let ranges = draft.ranges(id);
        let mut staged = |read: &Access| {
            let indices = stage.indices(&read.indices, &ranges);
            Expr {
                dtype,
                kind: ExprKind::Load(Access { tensor: stage.staged, indices, origin: read.origin }),
            }
        };
        draft.change(id, |statement| match stage.reads_through_selects {
            true => replace_selects(&mut statement.value, stage.tensor, &mut staged),
            false => statement.replace_loads(&mut |read| (read.tensor == stage.tensor).then(|| staged(read))),
        });
    }
}

/// Builds the loops that fill the buffer, one for each dimension of its layout.
fn copy_nest(draft: &mut Draft, stage: &StagedOperand) -> Vec<Node> {
    let StagedOperand { tensor, staged, place, view, region, layout, groups, .. } = stage;
    let id = StatementId(draft.statements.len());
    // Registers can only be indexed by constants, so the copy is unrolled.
    let in_registers = draft.buffers[staged.index()].buffer.scope == Scope::Register;
    let mut ranges = draft.ranges_of(&place.map(|place| draft.loops_up_to(place)).unwrap_or_default());
    let mut rest: Vec<IndexExpr> = region.iter().map(|interval| interval.available.clone()).collect();
    let mut coordinates: Vec<IndexExpr> = region.iter().map(|interval| interval.low.clone()).collect();
    // The coordinates of the first element of the group, where each group is entirely inside the
    // tensor or entirely outside.
    let mut firsts = coordinates.clone();
    let mut vars = vec![LoopVarId(0); layout.len()];
    let order = nesting_order(layout);
    for at in &order {
        let BufferDimension { dimension, divide, .. } = layout[*at];
        let by = IndexExpr::constant(divide);
        let extent = ranges.simplify(&rest[dimension].offset(divide - 1).floor_div(&by));
        let var = draft.add_loop(Loop {
            name: format!("l{at}"),
            extent: extent.clone(),
            kind: if in_registers { LoopKind::Unrolled } else { LoopKind::Serial },
            role: LoopRole::Spatial,
            owner: Some(id),
            is_unchanged: false,
            slides: false,
            keeps_order: false,
            guards: Vec::new(),
        });
        ranges.add_loop(var, &extent);
        let done = IndexExpr::var(var).scale(divide);
        rest[dimension] = ranges.simplify(&rest[dimension].sub(&done).minimum(&by));
        coordinates[dimension] = coordinates[dimension].add(&done);
        if !groups.is_some_and(|groups| groups.dimension == dimension && divide == 1) {
            firsts[dimension] = firsts[dimension].add(&done);
        }
        vars[*at] = var;
    }
    let dtype = draft.buffers[tensor.index()].buffer.dtype;
    let element = view.value((*tensor, dtype), &coordinates);
    let behind =
        |at: usize| groups.filter(|groups| groups.dimension == at).map_or(0, |groups| groups.size - 1);
    let lasts: Vec<IndexExpr> = (0..).zip(&firsts).map(|(at, first)| first.offset(behind(at))).collect();
    let value =
        stage.padding.as_ref().map_or(element.clone(), |padding| padding.value(element, (&firsts, &lasts)));
    let buffer = &draft.buffers[staged.index()].buffer;
    let (name, compute) = (draft.next_name(*staged), buffer.dtype.compute_type());
    let indices = vars.iter().map(|var| IndexExpr::var(*var)).collect();
    draft.add_statement(Statement {
        name,
        target: access(*staged, indices),
        update: Update::Assign,
        value: value.cast(compute),
        accumulator: None,
        is_partial: false,
        vars: Vec::new(),
        is_narrowed: false,
        instances: Vec::new(),
        scan: None,
    });
    let loops: Vec<LoopVarId> = order.iter().map(|at| vars[*at]).collect();
    draft.wrap_in_loops(&loops, vec![Node::Statement(id)])
}

impl Draft<'_> {
    /// Describes a name that a `promote` has made: the buffer of an operand or of a result.
    pub fn describe_promoted(&self, name: &str) -> Option<&'static str> {
        let is_staged = |buffer: &DraftBuffer| buffer.is_staged && buffer.buffer.name == name;
        let accumulates = |statement: &Statement| {
            statement.accumulator.as_ref().is_some_and(|accumulator| accumulator.name == name)
        };
        let copy = self.buffers.iter().any(is_staged).then_some("a staged copy");
        copy.or_else(|| self.statements.iter().any(accumulates).then_some("the buffer of a result"))
    }
}
