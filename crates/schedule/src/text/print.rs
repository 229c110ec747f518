//! Writes schedules, steps and the names in them as the text that [`super::parse`] reads.

use std::fmt::{self, Display, Formatter};

use super::keyword::Keyword;
use crate::step::{
    LayoutDim, LoopLevel, LoopName, ParallelUnit, PromoteScope, Schedule, StatementName, Step,
};

/// One step a line.
impl Display for Schedule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", Keyword::of_step(self).name())?;
        match self {
            Step::Split { target, outer, inner } => {
                write!(f, "{target} -> {outer}")?;
                inner.iter().try_for_each(|(name, iterations)| write!(f, ", {name}:{iterations}"))
            }
            Step::Fuse { loops, name } => {
                list(f, loops)?;
                write!(f, " -> {name}")
            }
            Step::Reorder { loops } => list(f, loops),
            Step::Unroll(target) | Step::Vectorize(target) | Step::Parallel(target) => target.fmt(f),
            Step::Bind { target, to } => write!(f, "{target} -> {to}"),
            Step::Inline { tensor } => f.write_str(tensor),
            Step::Clone { tensor, name, readers } => {
                write!(f, "{tensor} -> {name} for ")?;
                list(f, readers)
            }
            Step::ComputeAt { tensor, at, storage } => {
                write!(f, "{tensor}, {at}")?;
                let Some(storage) = storage else { return Ok(()) };
                write!(f, " store_at {}", storage.at)?;
                storage.fold.map_or(Ok(()), |rows| write!(f, " fold {rows}"))
            }
            Step::ComputeWith { target, with, ahead } => {
                write!(f, "{target}, {with}")?;
                if *ahead == 0 { Ok(()) } else { write!(f, " ahead {ahead}") }
            }
            Step::Promote { tensor, at, name, scope, gathered, layout, pad } => {
                write!(f, "{tensor} at {at} -> {name} {scope}")?;
                f.write_str(if *gathered { " gathered" } else { "" })?;
                if !layout.is_empty() {
                    f.write_str(" (")?;
                    list(f, layout)?;
                    f.write_str(")")?;
                }
                if *pad == 0 { Ok(()) } else { write!(f, " pad {pad}") }
            }
            Step::Rfactor { target, name } | Step::Scan { target, name } => write!(f, "{target} -> {name}"),
            Step::Pipeline { target, stages } => write!(f, "{target} stages {stages}"),
            Step::Prefetch { tensor, at, ahead, of } => {
                write!(f, "{tensor} at {at} ahead {ahead}")?;
                if of == at { Ok(()) } else { write!(f, " of {of}") }
            }
        }
    }
}

fn list(f: &mut Formatter<'_>, items: &[impl Display]) -> fmt::Result {
    items.iter().enumerate().try_for_each(|(at, item)| {
        f.write_str(if at == 0 { "" } else { ", " })?;
        item.fmt(f)
    })
}

/// `C`, or `C[2]` for the second statement that writes it.
impl Display for StatementName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.ordinal {
            1 => f.write_str(&self.tensor),
            ordinal => write!(f, "{}[{ordinal}]", self.tensor),
        }
    }
}

/// `C.i`, or `C[2].i`.
impl Display for LoopName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.statement, self.name)
    }
}

/// A loop, or `root`.
impl Display for LoopLevel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LoopLevel::Root => f.write_str("root"),
            LoopLevel::Loop(name) => name.fmt(f),
        }
    }
}

/// `block.x` or `thread.y`.
impl Display for ParallelUnit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ParallelUnit::Block(axis) => write!(f, "block.{}", axis.name()),
            ParallelUnit::Thread(axis) => write!(f, "thread.{}", axis.name()),
        }
    }
}

/// `packed`, `shared` or `registers`.
impl Display for PromoteScope {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PromoteScope::Packed => "packed",
            PromoteScope::Shared => "shared",
            PromoteScope::Registers => "registers",
        })
    }
}

/// `d1`, `d1/32`, `d1%32` or `d1%64/8`.
impl Display for LayoutDim {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "d{}", self.dimension)?;
        self.modulo.iter().try_for_each(|modulo| write!(f, "%{modulo}"))?;
        self.divide.iter().try_for_each(|divide| write!(f, "/{divide}"))
    }
}
