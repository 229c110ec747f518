//! Computes the cache lines that a prefetch asks for from the current loops of a draft, or the
//! reason why the prefetch is illegal.

use tilewright_ir::nest::{Access, Atom, BufferId, IndexExpr, LoopKind, LoopVarId};

use super::region::Interval;
use super::{Draft, Legal, Parent, StatementId};
use crate::illegal::Illegal;

/// The most cache lines that one iteration may prefetch. More would only wait for each other.
const MOST_LINES: i64 = 256;
/// The bytes of a cache line, on every machine that code is generated for.
const LINE_BYTES: i64 = 64;

/// A prefetch: an iteration of the loop `at` prefetches the elements that it touches when `of` is
/// `ahead` iterations further.
#[derive(Clone, Debug)]
pub(crate) struct Prefetch {
    pub tensor: BufferId,
    pub at: LoopVarId,
    pub ahead: i64,
    pub of: LoopVarId,
}

/// The cache lines of a box of a tensor: a run of consecutive elements for every row of the box.
pub(crate) struct CacheLines {
    /// The first element of the box, in terms of the loops up to the prefetching one. It may lie
    /// outside the tensor.
    pub first: Vec<IndexExpr>,
    /// The number of rows along each dimension.
    pub rows: Vec<i64>,
    /// The number of cache lines in a row.
    pub lines_per_row: i64,
    /// The number of elements in a cache line.
    pub line_elements: i64,
    /// Whether the loop writes the elements.
    pub is_written: bool,
}

impl CacheLines {
    /// The total number of cache lines.
    pub fn count(&self) -> i64 {
        self.rows.iter().fold(self.lines_per_row, |product, rows| product.saturating_mul(*rows))
    }
}

impl Draft<'_> {
    /// Returns the cache lines that a prefetch asks for, or the reason why it is illegal.
    pub fn prefetched_lines(&self, prefetch: &Prefetch) -> Legal<CacheLines> {
        let refuse = |why: String| Illegal::Prefetch {
            tensor: self.buffers[prefetch.tensor.index()].buffer.name.clone(),
            at: self.qualified_loop_name(prefetch.at),
            why,
        };
        let around = self.loops_up_to(prefetch.at);
        if !around.contains(&prefetch.of) {
            return Err(refuse(format!(
                "`{}` is not a loop around it",
                self.qualified_loop_name(prefetch.of)
            )));
        }
        if let Some(vector) = around.iter().find(|var| self.loop_of(**var).kind == LoopKind::Vector) {
            return Err(refuse(format!("`{}` is vectorised", self.qualified_loop_name(*vector))));
        }
        let allocated_at = self.buffers[prefetch.tensor.index()].allocated_at;
        if allocated_at.is_some_and(|room| !around.contains(&room)) {
            return Err(refuse("the buffer is allocated inside that loop".to_string()));
        }
        let (accesses, write) = self.accesses_inside(prefetch);
        if accesses.is_empty() {
            return Err(refuse("no statement there uses it".to_string()));
        }
        if accesses.iter().any(|(_, access)| access.indices.iter().any(IndexExpr::has_data)) {
            return Err(refuse("the choice of the elements that are used depends on data".to_string()));
        }
        let region = self.footprint(prefetch.tensor, &accesses, Some(prefetch.at));
        let lines = self.lines_of(prefetch, &region, write);
        if lines.count() > MOST_LINES {
            return Err(refuse(format!(
                "an iteration uses {} cache lines, and the limit is {MOST_LINES}: \
                 prefetch at an inner loop",
                lines.count()
            )));
        }
        Ok(lines)
    }

    /// The accesses to the tensor in one iteration, and whether the tensor is written.
    fn accesses_inside(&self, prefetch: &Prefetch) -> (Vec<(StatementId, Access)>, bool) {
        let inside = Parent::Loop(prefetch.at);
        let mut accesses = self.readers(inside, prefetch.tensor);
        let writers = self.writers(inside, prefetch.tensor);
        accesses.extend(writers.iter().map(|id| (*id, self.statement(*id).target.clone())));
        (accesses, !writers.is_empty())
    }

    fn lines_of(&self, prefetch: &Prefetch, region: &[Interval], write: bool) -> CacheLines {
        let buffer = &self.buffers[prefetch.tensor.index()].buffer;
        let further = IndexExpr::var(prefetch.of).offset(prefetch.ahead);
        let ahead = |index: &IndexExpr| {
            index.substitute(&mut |atom| (*atom == Atom::Var(prefetch.of)).then(|| further.clone()))
        };
        let first = region.iter().map(|interval| ahead(&interval.low)).collect();
        // Where a dimension is covered whole, consecutive indices of the dimension before it
        // continue the same run.
        let mut rows: Vec<i64> = region.iter().map(|interval| interval.extent).collect();
        let mut run = 1;
        for (at, extent) in buffer.shape.iter().enumerate().rev() {
            run *= std::mem::replace(&mut rows[at], 1);
            if !region[at].is_whole(*extent) {
                break;
            }
        }
        let line = LINE_BYTES / buffer.dtype.bytes() as i64;
        CacheLines {
            first,
            rows,
            lines_per_row: (run + line - 1) / line,
            line_elements: line,
            is_written: write,
        }
    }
}
