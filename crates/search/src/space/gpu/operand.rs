//! Adds the knobs that select how operands reach the threads, and makes the steps of the selected
//! values. An operand is read in place, or it is staged: all threads of a block copy it to shared
//! memory together.

use tilewright_ir::nest::Axis;
use tilewright_schedule::analysis::Stride;
use tilewright_schedule::{LayoutDim, LoopLevel, LoopName, ParallelUnit, PromoteScope, StatementName, Step};

use super::tile::{Kernel, Tile};
use crate::knob::{Knob, Point};
use crate::space::names::Names;
use crate::space::rejection::Rejection;
use crate::space::stage::{Operand, Stage};
use crate::space::{Builder, KnobId};

/// The padding of a row of shared memory, in elements. It equals the size of one vector access, so
/// that all rows are aligned for such accesses.
const PAD: i64 = 4;
/// The number of elements that a thread copies at once.
const COPY_WIDTH: i64 = 4;
/// The group sizes for rows that need not begin where the tile begins, largest first.
const GROUPS: [i64; 2] = [4, 2];
/// The largest number of copies per thread that are unrolled.
const MAX_UNROLLED_COPIES: i64 = 8;

/// The knob that selects how one operand reaches the threads.
#[derive(Clone, Debug)]
pub(super) struct OperandKnob {
    /// The operand in the form in which it is staged.
    pub(super) operand: Operand,
    /// True if data-dependent subscripts select the staged elements.
    pub(super) gathered: bool,
    pub(super) knob: KnobId,
    choices: Vec<Staging>,
}

/// How an operand is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Staging {
    /// From its original place.
    InPlace,
    /// Through shared memory. The layout is that of the tensor, or it has the dimensions last in
    /// which threads differ. Rows are padded or not.
    Shared(Layout, Pad),
    /// Through shared memory with rows of whole groups of elements, each of which is copied at
    /// once.
    Groups,
    /// A constant is first packed into the order of use, once and before any call. The packed copy
    /// then goes through shared memory.
    Packed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// The layout of the tensor.
    Plain,
    /// The dimensions of the result last.
    ResultLast,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pad {
    No,
    Yes,
}

impl Staging {
    fn name(self) -> &'static str {
        match self {
            Staging::InPlace => "in-place",
            Staging::Shared(Layout::Plain, Pad::No) => "shared",
            Staging::Shared(Layout::Plain, Pad::Yes) => "shared-padded",
            Staging::Shared(Layout::ResultLast, Pad::No) => "transposed",
            Staging::Shared(Layout::ResultLast, Pad::Yes) => "transposed-padded",
            Staging::Groups => "groups",
            Staging::Packed => "packed",
        }
    }
}

impl OperandKnob {
    /// Adds a knob for every operand that several threads use, and for every operand with
    /// data-dependent subscripts. Threads that gather rows together read whole rows, and read them
    /// before they need them.
    pub fn all(stage: &Stage, builder: &mut Builder) -> Vec<OperandKnob> {
        let points: f64 = stage.loops.iter().map(|own| own.trips as f64).product();
        let reused = |operand: &Operand| points >= 2.0 * operand.elements && !operand.dimensions.is_empty();
        let mut knobs = Vec::new();
        for operand in &stage.operands {
            match operand.gathered(&stage.loops) {
                Some(gathered) => knobs.push(OperandKnob::new(stage, (gathered, true), builder)),
                None if reused(operand) => {
                    knobs.push(OperandKnob::new(stage, (operand.clone(), false), builder))
                }
                None => {}
            }
        }
        knobs
    }

    fn new(stage: &Stage, (operand, gathered): (Operand, bool), builder: &mut Builder) -> OperandKnob {
        let own = &operand;
        let mut choices = vec![Staging::InPlace];
        let pads = [Pad::No, Pad::Yes];
        choices.extend(pads.map(|pad| Staging::Shared(Layout::Plain, pad)));
        choices.extend((!gathered && has_groups(own)).then_some(Staging::Groups));
        if !result_last(own, stage).is_empty() {
            choices.extend(pads.map(|pad| Staging::Shared(Layout::ResultLast, pad)));
            choices.extend(own.is_constant.then_some(Staging::Packed));
        }
        let name = format!("{}.{}", stage.name, own.tensor);
        let knob = builder.add(Knob::categorical(name, choices.iter().map(|choice| choice.name())));
        OperandKnob { operand, gathered, knob, choices }
    }

    /// How the point selects to read the operand.
    pub fn choice(&self, point: &Point) -> Staging {
        self.choices.get(point.choice(self.knob.0)).copied().unwrap_or(Staging::InPlace)
    }

    /// Sets the knob to the first of `wanted` that the knob has.
    pub fn set(&self, wanted: &[Staging], point: &mut Point) {
        let at = wanted.iter().find_map(|choice| self.choices.iter().position(|own| own == choice));
        point.set_choice(self.knob.0, at.unwrap_or(0));
    }

    /// Returns the largest group size that divides the rows of the tensor and all distances between
    /// successive tiles.
    pub fn group_size(&self, tile: &Tile, stage: &Stage, point: &Point) -> Option<i64> {
        let Operand { strides, dimensions, shape, .. } = &self.operand;
        let (row, loops) = shape.last().zip(dimensions.last())?;
        // A loop that every tile covers completely does not move the tile.
        let moves = |at: usize| match stage.loops[at].is_reduced {
            true => tile.reduced_parts(point, at).share * tile.reduced_parts(point, at).outer > 1,
            false => tile.parts(point, at).block > 1,
        };
        let is_whole = |at: &usize, size: i64| match strides[*at] {
            _ if !moves(*at) => true,
            Stride::Elements(step) => step * tile.width(stage, point, *at) % size == 0,
            Stride::Irregular => false,
        };
        GROUPS.into_iter().find(|size| row % size == 0 && loops.iter().all(|at| is_whole(at, *size)))
    }

    /// The number of elements that are in shared memory at the same time.
    pub fn shared_elements(&self, tile: &Tile, stage: &Stage, point: &Point) -> i64 {
        if self.choice(point) == Staging::InPlace {
            return 0;
        }
        let widths = self.operand.dimensions.iter().map(|loops| {
            let mut once: Vec<usize> = loops.clone();
            once.dedup();
            1 + once.iter().map(|at| tile.width(stage, point, *at) - 1).sum::<i64>()
        });
        widths.product()
    }
}

/// Adds the steps that copy operands to shared memory, for those operands that are in global
/// memory. Returns the statements that copy.
pub(super) fn steps(
    tile: &Tile,
    stage: &Stage,
    kernel: &Kernel,
    point: &Point,
    names: &Names,
    in_memory: &dyn Fn(&str) -> bool,
    steps: &mut Vec<Step>,
) -> Result<Vec<StatementName>, Rejection> {
    let mut copies = Vec::new();
    for knob in &tile.operand_knobs {
        let operand = &knob.operand;
        if !in_memory(&operand.tensor) {
            continue;
        }
        let transposed = result_last(operand, stage);
        let order = (0..operand.dimensions.len()).collect();
        let elements = knob.shared_elements(tile, stage, point);
        let gathered = knob.gathered;
        let mut copy =
            SharedCopy { operand, gathered, order, elements, tile, stage, kernel, point, names, steps };
        match knob.choice(point) {
            Staging::InPlace => continue,
            Staging::Groups => {
                copies.push(copy.copy_groups(knob.group_size(tile, stage, point).ok_or(Rejection::Groups)?))
            }
            Staging::Shared(layout, pad) => {
                let layout = if layout == Layout::Plain { Vec::new() } else { transposed };
                copies.push(copy.copy_to_shared(operand.tensor.clone(), layout, pad));
            }
            Staging::Packed => {
                let order = transposed.iter().map(|own| own.dimension).collect();
                let packed = copy.pack(transposed);
                copy.order = order;
                copies.push(copy.copy_to_shared(packed, Vec::new(), Pad::No));
            }
        }
    }
    Ok(copies)
}

/// Returns the dimensions with those of the result last; empty if they are in this order already.
fn result_last(operand: &Operand, stage: &Stage) -> Vec<LayoutDim> {
    let of_result =
        |dimension: &usize| operand.dimensions[*dimension].iter().any(|at| !stage.loops[*at].is_reduced);
    let mut order: Vec<usize> = (0..operand.dimensions.len()).collect();
    order.sort_by_key(of_result);
    let whole = |dimension: usize| LayoutDim { dimension, modulo: None, divide: None };
    match order.is_sorted() {
        true => Vec::new(),
        false => order.into_iter().map(whole).collect(),
    }
}

/// Returns true when the rows of a tensor consist of whole groups and a tile can begin inside a
/// group, as windows with padding do.
fn has_groups(operand: &Operand) -> bool {
    let Some(last) = operand.dimensions.len().checked_sub(1) else { return false };
    operand.shape.last().is_some_and(|row| row % GROUPS[1] == 0) && operand.dimensions[last].len() > 1
}

/// What a thread copies at once.
enum CopyVector {
    /// One element.
    None,
    /// A vector along the fused loop over all elements.
    Fused,
    /// All iterations of this loop, which has this trip count.
    Loop(LoopName, i64),
}

/// Writes the steps of one copy to shared memory.
struct SharedCopy<'a> {
    operand: &'a Operand,
    gathered: bool,
    /// The operand's dimensions in their order in memory.
    order: Vec<usize>,
    /// The number of elements that are copied together.
    elements: i64,
    tile: &'a Tile,
    stage: &'a Stage,
    kernel: &'a Kernel,
    point: &'a Point,
    names: &'a Names,
    steps: &'a mut Vec<Step>,
}

impl SharedCopy<'_> {
    fn pack(&mut self, layout: Vec<LayoutDim>) -> String {
        let name = self.names.buffer(&self.stage.name, &format!("{}p", self.operand.tensor));
        let tensor = &self.operand.tensor;
        self.steps.push(Step::promote(tensor, LoopLevel::Root, &name, PromoteScope::Packed, layout));
        name
    }

    /// Adds a copy whose threads run along the last dimension of the tensor.
    fn copy_to_shared(&mut self, tensor: String, layout: Vec<LayoutDim>, pad: Pad) -> StatementName {
        let dimensions: Vec<usize> = match layout.is_empty() {
            true => (0..self.operand.dimensions.len()).collect(),
            false => layout.iter().map(|own| own.dimension).collect(),
        };
        let is_plain = layout.is_empty();
        let own = self.promote(tensor, layout, pad);
        // The loops of the copy, in the order of the tensor's dimensions.
        let place = |dimension: usize| dimensions.iter().position(|own| *own == dimension).unwrap_or(0);
        let loops: Vec<LoopName> =
            (0..dimensions.len()).map(|dimension| own.loop_named(format!("l{}", place(dimension)))).collect();
        if !is_plain {
            self.steps.push(Step::Reorder { loops: loops.clone() });
        }
        let side = match is_plain && self.rows_are_whole() {
            true => CopyVector::Fused,
            false => CopyVector::None,
        };
        self.spread(&own, loops, side);
        own
    }

    /// Adds a copy whose last dimension is divided into groups of `size` elements. `size` divides
    /// the rows and the distances between tiles.
    fn copy_groups(&mut self, size: i64) -> StatementName {
        let last = self.operand.dimensions.len() - 1;
        let whole = |dimension: usize| LayoutDim { dimension, modulo: None, divide: None };
        let groups = LayoutDim { divide: Some(size), ..whole(last) };
        let elements = LayoutDim { modulo: Some(size), ..whole(last) };
        let layout = (0..last).map(whole).chain([groups, elements]).collect();
        let own = self.promote(self.operand.tensor.clone(), layout, Pad::No);
        let loops: Vec<LoopName> = (0..=last).map(|at| own.loop_named(format!("l{at}"))).collect();
        let side = own.loop_named(format!("l{}", last + 1));
        self.spread(&own, loops, CopyVector::Loop(side, size));
        own
    }

    fn promote(&mut self, tensor: String, layout: Vec<LayoutDim>, pad: Pad) -> StatementName {
        let name = self.names.buffer(&self.stage.name, &format!("{}s", self.operand.tensor));
        self.steps.push(Step::Promote {
            tensor,
            at: LoopLevel::Loop(self.kernel.staging_loop.clone()),
            name: name.clone(),
            scope: PromoteScope::Shared,
            gathered: self.gathered,
            layout,
            pad: if pad == Pad::Yes { PAD } else { 0 },
        });
        StatementName::first(name)
    }

    /// Spreads a copy over the threads: each thread copies elements whose distance is the number of
    /// threads, either single ones or several adjacent ones.
    fn spread(&mut self, own: &StatementName, loops: Vec<LoopName>, side: CopyVector) {
        let part = |part: &str| self.names.part(&own.tensor, part);
        let (all, turn, thread, of_all) = (part("all"), part("o"), part("t"), part("v"));
        let target = match loops.as_slice() {
            [one] => one.clone(),
            _ => {
                self.steps.push(Step::Fuse { loops, name: all.clone() });
                own.loop_named(all)
            }
        };
        let mut inner = vec![(thread.clone(), self.kernel.threads)];
        let (side, wide) = match side {
            CopyVector::None => (None, 1),
            CopyVector::Loop(own, size) => (Some(own), size),
            CopyVector::Fused => {
                inner.push((of_all.clone(), COPY_WIDTH));
                (Some(own.loop_named(of_all)), COPY_WIDTH)
            }
        };
        self.steps.push(Step::Split { target, outer: turn.clone(), inner });
        let order =
            [own.loop_named(thread.clone()), own.loop_named(turn.clone())].into_iter().chain(side.clone());
        self.steps.push(Step::Reorder { loops: order.collect() });
        self.steps.push(Step::Bind { target: own.loop_named(thread), to: ParallelUnit::Thread(Axis::X) });
        if self.elements <= MAX_UNROLLED_COPIES * self.kernel.threads * wide {
            self.steps.push(Step::Unroll(own.loop_named(turn)));
        }
        self.steps.extend(side.map(Step::Vectorize));
    }

    /// Returns true when every row consists of whole vectors of elements, both in the copy and in
    /// the tensor.
    fn rows_are_whole(&self) -> bool {
        let Some(last) = self.order.last() else { return false };
        let [at] = self.operand.dimensions[*last].as_slice() else { return false };
        let whole = |count: i64| count % COPY_WIDTH == 0;
        // A single loop must walk this dimension without gaps.
        let inner: i64 = self.operand.inner_elements(*last);
        self.operand.strides[*at] == Stride::Elements(inner)
            && whole(self.tile.width(self.stage, self.point, *at))
            && whole(self.stage.loops[*at].trips)
    }
}
