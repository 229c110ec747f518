//! Emits the prefetches that steps recorded in the draft: one prefetch statement for each cache
//! line, in loops over the rows of the region and over the lines of a row.

use tilewright_ir::nest::{BufferId, For, IndexExpr, LoopKind, LoopVarId, Prefetch, Stmt};

use super::emit::Emitter;
use crate::draft::{CacheLines, Legal, access};

/// The most prefetches that are unrolled.
const MOST_UNROLLED: i64 = 16;

impl Emitter<'_> {
    /// The prefetches at the start of every iteration of a loop.
    pub fn prefetches(&mut self, at: LoopVarId) -> Legal<Vec<Stmt>> {
        let draft = self.draft;
        let here = draft.prefetches.iter().filter(|prefetch| prefetch.at == at);
        here.map(|prefetch| Ok(self.prefetch_lines(prefetch.tensor, draft.prefetched_lines(prefetch)?)))
            .collect()
    }

    /// One prefetch for each cache line, in loops over the rows and over the lines of a row.
    fn prefetch_lines(&mut self, tensor: BufferId, cache_lines: CacheLines) -> Stmt {
        let kind = if cache_lines.count() <= MOST_UNROLLED { LoopKind::Unrolled } else { LoopKind::Serial };
        let mut indices = cache_lines.first;
        let mut loops = Vec::new();
        for (index, rows) in indices.iter_mut().zip(&cache_lines.rows) {
            let row = self.new_var("row");
            *index = index.add(&IndexExpr::var(row));
            loops.push((row, *rows));
        }
        if let Some(last) = indices.last_mut() {
            let line = self.new_var("line");
            *last = last.add(&IndexExpr::var(line).scale(cache_lines.line_elements));
            loops.push((line, cache_lines.lines_per_row));
        }
        let hint =
            Stmt::Prefetch(Prefetch { element: access(tensor, indices), write: cache_lines.is_written });
        loops.into_iter().rev().fold(hint, |inner, (var, extent)| {
            let extent = IndexExpr::constant(extent);
            Stmt::For(For { var, extent, kind, body: vec![inner] })
        })
    }
}
