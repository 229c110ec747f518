//! Memory that is asked for ahead of its use, as far as the loops are known now.

use tilewright_ir::nest::LoopKind;
use tilewright_ir::{Access, Atom, IndexExpr, TensorId, VarId};

use super::region::Interval;
use super::{Draft, Legal, Parent, StatementId};
use crate::illegal::Illegal;

/// One iteration asks for so many cache lines at most: more would only wait for each other.
const MOST_LINES: i64 = 256;
/// The bytes of a cache line, on every machine that there is code for.
const LINE_BYTES: i64 = 64;

/// An iteration of the loop `at` asks for what it touches when `of` is `ahead` iterations further.
#[derive(Clone, Debug)]
pub(crate) struct Prefetch {
    pub tensor: TensorId,
    pub at: VarId,
    pub ahead: i64,
    pub of: VarId,
}

/// The cache lines of a box of a tensor: `run` elements that follow each other, for every row of the box.
pub(crate) struct Lines {
    /// The box's first element, in the loops up to the one that asks. It may be outside of the tensor.
    pub first: Vec<IndexExpr>,
    /// How many rows there are along each dimension.
    pub rows: Vec<i64>,
    /// How many lines there are in a row.
    pub lines: i64,
    /// How many elements a line has.
    pub line: i64,
    /// Whether the elements are written.
    pub write: bool,
}

impl Lines {
    /// All of them.
    pub fn count(&self) -> i64 {
        self.rows.iter().fold(self.lines, |product, rows| product.saturating_mul(*rows))
    }
}

impl Draft<'_> {
    /// What a prefetch asks for, or why it cannot.
    pub fn asked_for(&self, prefetch: &Prefetch) -> Legal<Lines> {
        let refuse = |why: String| Illegal::Prefetch {
            tensor: self.buffers[prefetch.tensor.index()].buffer.name.clone(),
            at: self.loop_text(prefetch.at),
            why,
        };
        let around = self.loops_up_to(prefetch.at);
        if !around.contains(&prefetch.of) {
            return Err(refuse(format!("`{}` is not a loop around it", self.loop_text(prefetch.of))));
        }
        if let Some(vector) = around.iter().find(|var| self.loop_of(**var).kind == LoopKind::Vector) {
            return Err(refuse(format!("`{}` is vectorised", self.loop_text(*vector))));
        }
        let room = self.buffers[prefetch.tensor.index()].room;
        if room.is_some_and(|room| !around.contains(&room)) {
            return Err(refuse("the buffer is made inside that loop".to_string()));
        }
        let (accesses, write) = self.accesses_inside(prefetch);
        if accesses.is_empty() {
            return Err(refuse("nothing there uses it".to_string()));
        }
        if accesses.iter().any(|(_, access)| access.indices.iter().any(IndexExpr::has_data)) {
            return Err(refuse("which elements are used depends on data".to_string()));
        }
        let region = self.footprint(prefetch.tensor, &accesses, Some(prefetch.at));
        let lines = self.lines_of(prefetch, &region, write);
        if lines.count() > MOST_LINES {
            return Err(refuse(format!(
                "an iteration uses {} cache lines, and {MOST_LINES} is the most: prefetch at an inner loop",
                lines.count()
            )));
        }
        Ok(lines)
    }

    /// How the tensor is used in an iteration, and whether it is written.
    fn accesses_inside(&self, prefetch: &Prefetch) -> (Vec<(StatementId, Access)>, bool) {
        let inside = Parent::Loop(prefetch.at);
        let mut accesses = self.readers(inside, prefetch.tensor);
        let writers = self.writers(inside, prefetch.tensor);
        accesses.extend(writers.iter().map(|id| (*id, self.statement(*id).target.clone())));
        (accesses, !writers.is_empty())
    }

    fn lines_of(&self, prefetch: &Prefetch, region: &[Interval], write: bool) -> Lines {
        let buffer = &self.buffers[prefetch.tensor.index()].buffer;
        let further = IndexExpr::var(prefetch.of).offset(prefetch.ahead);
        let ahead = |index: &IndexExpr| {
            index.substitute(&mut |atom| (*atom == Atom::Var(prefetch.of)).then(|| further.clone()))
        };
        let first = region.iter().map(|interval| ahead(&interval.low)).collect();
        // A dimension that is taken whole continues the rows of the one before it.
        let mut rows: Vec<i64> = region.iter().map(|interval| interval.extent).collect();
        let mut run = 1;
        for (at, extent) in buffer.shape.iter().enumerate().rev() {
            run *= std::mem::replace(&mut rows[at], 1);
            if !region[at].is_whole(*extent) {
                break;
            }
        }
        let line = LINE_BYTES / buffer.dtype.bytes() as i64;
        Lines { first, rows, lines: (run + line - 1) / line, line, write }
    }
}
