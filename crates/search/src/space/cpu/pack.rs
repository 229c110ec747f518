//! Adds the knobs that select how a statement reads each operand, and makes the steps of the
//! selected values. An operand is read in place, or from a packed copy, which can have the order in
//! which the statement uses the elements.

use tilewright_schedule::analysis::Stride;
use tilewright_schedule::{LayoutDim, LoopLevel, PromoteScope, Step};
use tilewright_target::Cpu;

use super::prefetch::Prefetch;
use super::tile::Levels;
use crate::knob::{Knob, Point};
use crate::space::names::Names;
use crate::space::stage::{Operand, Stage};
use crate::space::{Builder, KnobId};

/// The largest stride of a vector for which it pays to bring its elements together.
const MAX_VECTOR_STRIDE: i64 = 8;

/// The knob that selects how one operand is read.
#[derive(Clone, Debug)]
pub(crate) struct Pack {
    operand: usize,
    knob: KnobId,
    choices: Vec<OperandSource>,
    prefetch: Option<Prefetch>,
}

/// How an operand is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperandSource {
    /// From its original place.
    InPlace,
    /// From a packed copy, with or without the elements of a tile next to each other.
    Copied(CopyLevel, Layout),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyLevel {
    /// The whole operand. A constant operand is copied only once, before any call.
    Root,
    /// The part that one iteration of the innermost outer loop needs.
    Outer,
    /// The part that one iteration of the innermost block loop needs.
    Block,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// The layout of the tensor.
    Plain,
    /// The order of use: the dimensions follow the loops, and the elements of a tile are
    /// contiguous.
    Tiles,
}

impl OperandSource {
    fn name(self) -> &'static str {
        match self {
            OperandSource::InPlace => "in-place",
            OperandSource::Copied(CopyLevel::Root, Layout::Plain) => "copied",
            OperandSource::Copied(CopyLevel::Root, Layout::Tiles) => "tiles",
            OperandSource::Copied(CopyLevel::Outer, Layout::Plain) => "copied-at-outer",
            OperandSource::Copied(CopyLevel::Outer, Layout::Tiles) => "tiles-at-outer",
            OperandSource::Copied(CopyLevel::Block, Layout::Plain) => "copied-at-block",
            OperandSource::Copied(CopyLevel::Block, Layout::Tiles) => "tiles-at-block",
        }
    }
}

impl Pack {
    /// Adds a knob for every operand whose elements are used four times or more on average.
    pub fn all(stage: &Stage, builder: &mut Builder) -> Vec<Pack> {
        let points: f64 = stage.loops.iter().map(|own| own.trips as f64).product();
        let reused = |operand: &Operand| points >= 4.0 * operand.elements && !operand.dimensions.is_empty();
        let candidates = (0..stage.operands.len()).filter(|at| reused(&stage.operands[*at]));
        candidates.map(|operand| Pack::new(stage, operand, builder)).collect()
    }

    fn new(stage: &Stage, operand: usize, builder: &mut Builder) -> Pack {
        let own = &stage.operands[operand];
        let places: &[CopyLevel] = match (own.is_computed, own.is_constant) {
            (true, _) => &[CopyLevel::Outer, CopyLevel::Block],
            // A constant is copied once before any call, which is always better than a copy in
            // every call.
            (false, true) => &[CopyLevel::Root],
            (false, false) => &[CopyLevel::Root, CopyLevel::Outer, CopyLevel::Block],
        };
        let layouts = [Layout::Plain, Layout::Tiles];
        let copied =
            places.iter().flat_map(|place| layouts.map(|layout| OperandSource::Copied(*place, layout)));
        let choices: Vec<OperandSource> = std::iter::once(OperandSource::InPlace).chain(copied).collect();
        let names: Vec<&str> = choices.iter().map(|choice| choice.name()).collect();
        let name = format!("{}.{}", stage.name, own.tensor);
        let knob = builder.add(Knob::categorical(name, names));
        Pack { operand, knob, choices, prefetch: Prefetch::new(stage, operand, builder) }
    }

    /// Returns the steps of the chosen values: a promotion and a prefetch, if any.
    pub fn steps(&self, stage: &Stage, levels: &Levels, point: &Point, names: &Names) -> Vec<Step> {
        let promote = self.promote(stage, levels, point, names);
        let ahead = self.prefetch.as_ref().and_then(|own| own.step(stage, levels, self, point, names));
        promote.into_iter().chain(ahead).collect()
    }

    /// The name of the packed copy, if there is one.
    pub fn buffer(&self, stage: &Stage, point: &Point, names: &Names) -> Option<String> {
        let choice = self.choices.get(point.choice(self.knob.0))?;
        (*choice != OperandSource::InPlace)
            .then(|| names.buffer(&stage.name, &stage.operands[self.operand].tensor))
    }

    fn promote(&self, stage: &Stage, levels: &Levels, point: &Point, names: &Names) -> Option<Step> {
        let OperandSource::Copied(place, layout) = *self.choices.get(point.choice(self.knob.0))? else {
            return None;
        };
        let operand = &stage.operands[self.operand];
        let at = match place {
            CopyLevel::Root => LoopLevel::Root,
            CopyLevel::Outer => LoopLevel::Loop(levels.outer.last()?.clone()),
            CopyLevel::Block => LoopLevel::Loop(levels.around_reduction()?.clone()),
        };
        let layout = match layout {
            Layout::Plain => Vec::new(),
            Layout::Tiles => tiled_layout(operand, stage, levels),
        };
        let buffer = self.buffer(stage, point, names)?;
        Some(Step::promote(&operand.tensor, at, buffer, PromoteScope::Packed, layout))
    }

    /// Sets the knob to the choice that usually pays. Constants that move along the vector are
    /// packed into tiles, and so are operands that vectors cannot load contiguously or broadcast.
    pub fn initial(&self, stage: &Stage, target: &Cpu, vector: Option<usize>, point: &mut Point) {
        let operand = &stage.operands[self.operand];
        let scattered = vector.is_some_and(|at| !matches!(operand.strides[at], Stride::Elements(0 | 1)));
        let wanted =
            if operand.is_constant && vector.is_some_and(|at| operand.strides[at] != Stride::Elements(0)) {
                Some(OperandSource::Copied(CopyLevel::Root, Layout::Tiles))
            } else if scattered {
                Some(OperandSource::Copied(CopyLevel::Outer, Layout::Tiles))
            } else {
                None
            };
        let choice = wanted.and_then(|wanted| self.choices.iter().position(|own| *own == wanted));
        point.set_choice(self.knob.0, choice.unwrap_or(0));
        if let Some(ahead) = &self.prefetch {
            ahead.initial(stage, target, point);
        }
    }
}

/// Returns a layout with the dimensions in the order of the loops, and with the elements of a tile
/// contiguous at the end. Where the vector has a stride, the layout brings its elements together:
/// for a stride of 2, first the even elements and then the odd ones.
fn tiled_layout(operand: &Operand, stage: &Stage, levels: &Levels) -> Vec<LayoutDim> {
    let depth = |dimension: usize| {
        let loops = operand.dimensions[dimension].iter();
        loops.filter_map(|at| levels.nesting.iter().position(|own| own == at)).min().unwrap_or(usize::MAX)
    };
    let width = |dimension: usize| match operand.dimensions[dimension].as_slice() {
        [at] if !stage.loops[*at].is_reduced => levels.widths[*at],
        _ => 1,
    };
    let side_by_side = |dimension: usize| {
        operand.dimensions[dimension].iter().any(|at| operand.strides[*at] == Stride::Elements(1))
    };
    let mut order: Vec<usize> = (0..operand.dimensions.len()).collect();
    order.sort_by_key(|dimension| depth(*dimension));
    let whole = |dimension: usize| LayoutDim { dimension, modulo: None, divide: None };
    let skipped = strided_dimension(operand, levels);
    order.sort_by_key(|dimension| skipped.is_some_and(|(own, _)| own == *dimension));
    let mut layout: Vec<LayoutDim> = order
        .iter()
        .flat_map(|dimension| match (width(*dimension), skipped) {
            (_, Some((own, step))) if own == *dimension => vec![
                LayoutDim { modulo: Some(step), ..whole(own) },
                LayoutDim { divide: Some(step), ..whole(own) },
            ],
            (1, _) => vec![whole(*dimension)],
            (width, _) => vec![LayoutDim { divide: Some(width), ..whole(*dimension) }],
        })
        .collect();
    let mut tiled: Vec<usize> = order.into_iter().filter(|dimension| width(*dimension) > 1).collect();
    tiled.sort_by_key(|dimension| side_by_side(*dimension));
    layout.extend(
        tiled.into_iter().map(|dimension| LayoutDim { modulo: Some(width(dimension)), ..whole(dimension) }),
    );
    layout
}

/// Returns the dimension along which the vector has a stride greater than 1, and this stride.
fn strided_dimension(operand: &Operand, levels: &Levels) -> Option<(usize, i64)> {
    let along = levels.vector_loop?;
    let Stride::Elements(step @ 2..=MAX_VECTOR_STRIDE) = operand.strides[along] else { return None };
    let last = operand.dimensions.len().checked_sub(1)?;
    // A dimension that depends on one loop only is tiled on its own.
    (operand.dimensions[last].len() > 1 && operand.dimensions[last].contains(&along)).then_some((last, step))
}
