//! The way of an operand to the threads: read where it is, or through shared memory, which all threads of a block fill
//! together.

use tilewright_ir::nest::Axis;
use tilewright_schedule::analysis::Stride;
use tilewright_schedule::{LayoutDim, LoopName, Place, PromoteScope, StatementName, Step, Unit};

use super::tile::{Kernel, Tile};
use crate::knob::{Knob, Point};
use crate::space::names::Names;
use crate::space::rejection::Rejection;
use crate::space::stage::{Operand, Stage};
use crate::space::{Builder, KnobId};

/// Elements that are left free behind a row of shared memory: as many as one access takes, so that all rows begin where
/// such an access may.
const PAD: i64 = 4;
/// Elements that a thread copies at once.
const WIDE: i64 = 4;
/// The same of rows that do not begin where the tile does, from the most.
const GROUPS: [i64; 2] = [4, 2];
/// Copies of a thread that are written out.
const MOST_TURNS: i64 = 8;

/// The knob of one operand.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// The operand, as it is staged.
    pub(super) operand: Operand,
    /// Whether data chooses what is staged of it.
    pub(super) gathered: bool,
    pub(super) knob: KnobId,
    choices: Vec<Choice>,
}

/// What becomes of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Read where it is.
    InPlace,
    /// Through shared memory, its dimensions as they are, or those that threads differ in last; with room behind rows or
    /// without.
    Shared(Layout, Pad),
    /// Through shared memory that has rows of whole groups of elements, each of which is copied at once.
    Groups,
    /// A constant is brought into the order of use once, before any call, and goes through shared memory then.
    Packed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// As the tensor is.
    Plain,
    /// Dimensions of the result last.
    ResultLast,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pad {
    No,
    Yes,
}

impl Choice {
    fn name(self) -> &'static str {
        match self {
            Choice::InPlace => "in-place",
            Choice::Shared(Layout::Plain, Pad::No) => "shared",
            Choice::Shared(Layout::Plain, Pad::Yes) => "shared-padded",
            Choice::Shared(Layout::ResultLast, Pad::No) => "turned",
            Choice::Shared(Layout::ResultLast, Pad::Yes) => "turned-padded",
            Choice::Groups => "groups",
            Choice::Packed => "packed",
        }
    }
}

impl Way {
    /// Adds a knob for every operand that several threads use, or that data chooses from: threads that look rows up together
    /// read them whole, and before they need them.
    pub fn all(stage: &Stage, builder: &mut Builder) -> Vec<Way> {
        let points: f64 = stage.loops.iter().map(|own| own.trips as f64).product();
        let reused = |operand: &Operand| points >= 2.0 * operand.elements && !operand.dimensions.is_empty();
        let mut ways = Vec::new();
        for operand in &stage.operands {
            match operand.gathered(&stage.loops) {
                Some(gathered) => ways.push(Way::new(stage, (gathered, true), builder)),
                None if reused(operand) => ways.push(Way::new(stage, (operand.clone(), false), builder)),
                None => {}
            }
        }
        ways
    }

    fn new(stage: &Stage, (operand, gathered): (Operand, bool), builder: &mut Builder) -> Way {
        let own = &operand;
        let mut choices = vec![Choice::InPlace];
        let pads = [Pad::No, Pad::Yes];
        choices.extend(pads.map(|pad| Choice::Shared(Layout::Plain, pad)));
        choices.extend((!gathered && has_groups(own)).then_some(Choice::Groups));
        if !result_last(own, stage).is_empty() {
            choices.extend(pads.map(|pad| Choice::Shared(Layout::ResultLast, pad)));
            choices.extend(own.constant.then_some(Choice::Packed));
        }
        let name = format!("{}.{}", stage.name, own.tensor);
        let knob = builder.add(Knob::categorical(name, choices.iter().map(|choice| choice.name())));
        Way { operand, gathered, knob, choices }
    }

    /// What was chosen.
    pub fn choice(&self, point: &Point) -> Choice {
        self.choices.get(point.choice(self.knob.0)).copied().unwrap_or(Choice::InPlace)
    }

    /// Sets the knob to the first of these that is a choice.
    pub fn set(&self, wanted: &[Choice], point: &mut Point) {
        let at = wanted.iter().find_map(|choice| self.choices.iter().position(|own| own == choice));
        point.set_choice(self.knob.0, at.unwrap_or(0));
    }

    /// The largest groups that rows of the tensor are made of, and distances from tile to tile.
    pub fn groups(&self, tile: &Tile, stage: &Stage, point: &Point) -> Option<i64> {
        let Operand { strides, dimensions, shape, .. } = &self.operand;
        let (row, loops) = shape.last().zip(dimensions.last())?;
        // A loop that is whole in every tile does not move it.
        let moves = |at: usize| match stage.loops[at].reduced {
            true => tile.steps_of(point, at).share * tile.steps_of(point, at).outer > 1,
            false => tile.parts(point, at).block > 1,
        };
        let is_whole = |at: &usize, size: i64| match strides[*at] {
            _ if !moves(*at) => true,
            Stride::Elements(step) => step * tile.width(stage, point, *at) % size == 0,
            Stride::Irregular => false,
        };
        GROUPS.into_iter().find(|size| row % size == 0 && loops.iter().all(|at| is_whole(at, *size)))
    }

    /// The elements that are in shared memory at a time.
    pub fn shared_elements(&self, tile: &Tile, stage: &Stage, point: &Point) -> i64 {
        if self.choice(point) == Choice::InPlace {
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

/// Adds the steps that bring operands to shared memory, of those that are in memory; the statements that copy.
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
    for way in &tile.ways {
        let operand = &way.operand;
        if !in_memory(&operand.tensor) {
            continue;
        }
        let turned = result_last(operand, stage);
        let order = (0..operand.dimensions.len()).collect();
        let elements = way.shared_elements(tile, stage, point);
        let gathered = way.gathered;
        let mut copy = Copy { operand, gathered, order, elements, tile, stage, kernel, point, names, steps };
        match way.choice(point) {
            Choice::InPlace => continue,
            Choice::Groups => {
                copies.push(copy.share_groups(way.groups(tile, stage, point).ok_or(Rejection::Groups)?))
            }
            Choice::Shared(layout, pad) => {
                let layout = if layout == Layout::Plain { Vec::new() } else { turned };
                copies.push(copy.share(operand.tensor.clone(), layout, pad));
            }
            Choice::Packed => {
                let order = turned.iter().map(|own| own.dimension).collect();
                let packed = copy.packed(turned);
                copy.order = order;
                copies.push(copy.share(packed, Vec::new(), Pad::No));
            }
        }
    }
    Ok(copies)
}

/// The dimensions with those that the result has as well last; empty if they are already.
fn result_last(operand: &Operand, stage: &Stage) -> Vec<LayoutDim> {
    let of_result =
        |dimension: &usize| operand.dimensions[*dimension].iter().any(|at| !stage.loops[*at].reduced);
    let mut order: Vec<usize> = (0..operand.dimensions.len()).collect();
    order.sort_by_key(of_result);
    let whole = |dimension: usize| LayoutDim { dimension, modulo: None, divide: None };
    match order.is_sorted() {
        true => Vec::new(),
        false => order.into_iter().map(whole).collect(),
    }
}

/// Whether rows of a tensor are made of groups, and a tile can begin inside of one, as windows with padding do.
fn has_groups(operand: &Operand) -> bool {
    let Some(last) = operand.dimensions.len().checked_sub(1) else { return false };
    operand.shape.last().is_some_and(|row| row % GROUPS[1] == 0) && operand.dimensions[last].len() > 1
}

/// What a thread copies at once.
enum Side {
    /// One element.
    None,
    /// A part of the loop over all elements.
    OfAll,
    /// The iterations of this loop, so many.
    Loop(LoopName, i64),
}

/// Writes the steps of one copy.
struct Copy<'a> {
    operand: &'a Operand,
    gathered: bool,
    /// The operand's dimensions as they are in memory.
    order: Vec<usize>,
    /// How many elements are copied together.
    elements: i64,
    tile: &'a Tile,
    stage: &'a Stage,
    kernel: &'a Kernel,
    point: &'a Point,
    names: &'a Names,
    steps: &'a mut Vec<Step>,
}

impl Copy<'_> {
    fn packed(&mut self, layout: Vec<LayoutDim>) -> String {
        let name = self.names.buffer(&self.stage.name, &format!("{}p", self.operand.tensor));
        self.steps.push(Step::Promote {
            tensor: self.operand.tensor.clone(),
            at: Place::Root,
            name: name.clone(),
            scope: PromoteScope::Packed,
            gathered: false,
            layout,
            pad: 0,
        });
        name
    }

    /// The copy, with its threads along the tensor's own last dimension.
    fn share(&mut self, tensor: String, layout: Vec<LayoutDim>, pad: Pad) -> StatementName {
        let dimensions: Vec<usize> = match layout.is_empty() {
            true => (0..self.operand.dimensions.len()).collect(),
            false => layout.iter().map(|own| own.dimension).collect(),
        };
        let is_plain = layout.is_empty();
        let own = self.promote(tensor, layout, pad);
        // The loops of the copy, in the order of the tensor's dimensions.
        let place = |dimension: usize| dimensions.iter().position(|own| *own == dimension).unwrap_or(0);
        let loops: Vec<LoopName> =
            (0..dimensions.len()).map(|dimension| own.at(format!("l{}", place(dimension)))).collect();
        if !is_plain {
            self.steps.push(Step::Reorder { loops: loops.clone() });
        }
        let side = match is_plain && self.rows_are_whole() {
            true => Side::OfAll,
            false => Side::None,
        };
        self.spread(&own, loops, side);
        own
    }

    /// The same with the last dimension in groups, as large as rows and tiles are made of.
    fn share_groups(&mut self, size: i64) -> StatementName {
        let last = self.operand.dimensions.len() - 1;
        let whole = |dimension: usize| LayoutDim { dimension, modulo: None, divide: None };
        let groups = LayoutDim { divide: Some(size), ..whole(last) };
        let elements = LayoutDim { modulo: Some(size), ..whole(last) };
        let layout = (0..last).map(whole).chain([groups, elements]).collect();
        let own = self.promote(self.operand.tensor.clone(), layout, Pad::No);
        let loops: Vec<LoopName> = (0..=last).map(|at| own.at(format!("l{at}"))).collect();
        let side = own.at(format!("l{}", last + 1));
        self.spread(&own, loops, Side::Loop(side, size));
        own
    }

    fn promote(&mut self, tensor: String, layout: Vec<LayoutDim>, pad: Pad) -> StatementName {
        let name = self.names.buffer(&self.stage.name, &format!("{}s", self.operand.tensor));
        self.steps.push(Step::Promote {
            tensor,
            at: Place::Loop(self.kernel.stage_at.clone()),
            name: name.clone(),
            scope: PromoteScope::Shared,
            gathered: self.gathered,
            layout,
            pad: if pad == Pad::Yes { PAD } else { 0 },
        });
        StatementName::first(name)
    }

    /// Every thread copies elements as far apart as there are threads, or several side by side.
    fn spread(&mut self, own: &StatementName, loops: Vec<LoopName>, side: Side) {
        let part = |part: &str| self.names.part(&own.tensor, part);
        let (all, turn, thread, of_all) = (part("all"), part("o"), part("t"), part("v"));
        let target = match loops.as_slice() {
            [one] => one.clone(),
            _ => {
                self.steps.push(Step::Fuse { loops, name: all.clone() });
                own.at(all)
            }
        };
        let mut inner = vec![(thread.clone(), self.kernel.threads)];
        let (side, wide) = match side {
            Side::None => (None, 1),
            Side::Loop(own, size) => (Some(own), size),
            Side::OfAll => {
                inner.push((of_all.clone(), WIDE));
                (Some(own.at(of_all)), WIDE)
            }
        };
        self.steps.push(Step::Split { target, outer: turn.clone(), inner });
        let order = [own.at(thread.clone()), own.at(turn.clone())].into_iter().chain(side.clone());
        self.steps.push(Step::Reorder { loops: order.collect() });
        self.steps.push(Step::Bind { target: own.at(thread), to: Unit::Thread(Axis::X) });
        if self.elements <= MOST_TURNS * self.kernel.threads * wide {
            self.steps.push(Step::Unroll(own.at(turn)));
        }
        self.steps.extend(side.map(Step::Vectorize));
    }

    /// Whether every row of the copy is made of whole groups of elements, in the tensor too.
    fn rows_are_whole(&self) -> bool {
        let Some(last) = self.order.last() else { return false };
        let [at] = self.operand.dimensions[*last].as_slice() else { return false };
        let whole = |count: i64| count % WIDE == 0;
        // A dimension that one loop walks alone, not in jumps.
        let inner: i64 = self.operand.inner_elements(*last);
        self.operand.strides[*at] == Stride::Elements(inner)
            && whole(self.tile.width(self.stage, self.point, *at))
            && whole(self.stage.loops[*at].trips)
    }
}
