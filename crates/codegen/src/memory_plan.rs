//! Decides which scratch buffers share memory.
//!
//! In: the scratch buffers that exist while a list of statements runs, and these statements. Out:
//! blocks of memory, each with the buffers that use it one after the other. Two buffers may share a
//! block if no statement of the list uses a buffer between the first and the last use of the other.
//! A statement counts as a whole: buffers that are used inside the same loop never share memory.
//!
//! The content of a buffer is undefined where it is allocated, so nothing depends on what a block
//! held before. Both back ends use this plan: [`layout`](crate::llvm) for the memory of a CPU, and
//! [`c_family`](crate::c_family) for the memory of a device.
//!
//! Buffers are placed in order of size, largest first, each into the smallest block that is free
//! during its lifetime. This is the greedy-by-size heuristic of Pisarchyk and Lee ("Efficient
//! Memory Management for Deep Neural Net Inference", section 4), for whole blocks.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use tilewright_ir::nest::{BufferId, Stmt};
use tilewright_ir::walk;

/// Memory that several buffers use one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The size in bytes: that of the largest buffer.
    pub(crate) bytes: i64,
    /// The buffers, largest first.
    pub(crate) buffers: Vec<BufferId>,
}

/// Assigns buffers, given with their sizes in bytes, to blocks. `stmts` are the statements that may
/// use the buffers.
pub(crate) fn plan(buffers: &[(BufferId, i64)], stmts: &[Stmt]) -> Vec<Block> {
    if let [(id, bytes)] = buffers {
        return vec![Block { bytes: *bytes, buffers: vec![*id] }];
    }
    let uses: Vec<BTreeSet<BufferId>> =
        stmts.iter().map(|stmt| walk::buffers(std::slice::from_ref(stmt))).collect();
    let mut sorted = buffers.to_vec();
    sorted.sort_by_key(|(id, bytes)| (-bytes, *id));
    let mut blocks: Vec<(Block, Vec<RangeInclusive<usize>>)> = Vec::new();
    for (id, bytes) in sorted {
        let lifetime = lifetime(id, &uses);
        let is_free = |taken: &[RangeInclusive<usize>]| taken.iter().all(|own| !overlap(own, &lifetime));
        // Blocks are in order of size too, so the last one that is free is the smallest.
        match blocks.iter_mut().rfind(|(_, taken)| is_free(taken)) {
            Some((block, taken)) => {
                block.buffers.push(id);
                taken.push(lifetime);
            }
            None => blocks.push((Block { bytes, buffers: vec![id] }, vec![lifetime])),
        }
    }
    blocks.into_iter().map(|(block, _)| block).collect()
}

/// The statements inside directly nested allocations.
pub(crate) fn allocated_body(stmts: &[Stmt]) -> &[Stmt] {
    match stmts {
        [Stmt::Allocate(own)] => allocated_body(&own.body),
        _ => stmts,
    }
}

/// The positions of the statements from the first to the last that uses a buffer. A buffer that
/// none uses lives all the time.
fn lifetime(id: BufferId, uses: &[BTreeSet<BufferId>]) -> RangeInclusive<usize> {
    let is_used = |used: &BTreeSet<BufferId>| used.contains(&id);
    let all = uses.len().saturating_sub(1);
    let (first, last) = (uses.iter().position(is_used), uses.iter().rposition(is_used));
    first.unwrap_or(0)..=last.unwrap_or(all)
}

fn overlap(one: &RangeInclusive<usize>, other: &RangeInclusive<usize>) -> bool {
    one.start() <= other.end() && other.start() <= one.end()
}

#[cfg(test)]
mod tests {
    use tilewright_ir::nest::{Access, Expr, ExprKind, For, IndexExpr, LoopKind, LoopVarId, Store};
    use tilewright_ir::{DType, Origin};

    use super::*;

    fn element(buffer: u32) -> Access {
        Access { tensor: BufferId(buffer), indices: vec![IndexExpr::constant(0)], origin: Origin::default() }
    }

    fn copy(from: u32, to: u32) -> Stmt {
        let value = Expr { dtype: DType::Int32, kind: ExprKind::Load(element(from)) };
        Stmt::Store(Store {
            target: element(to),
            value,
            reduce: None,
            is_atomic: false,
            is_asynchronous: false,
            claim: None,
        })
    }

    fn repeat(body: Vec<Stmt>) -> Stmt {
        let extent = IndexExpr::constant(2);
        Stmt::For(For { var: LoopVarId(0), extent, kind: LoopKind::Serial, body })
    }

    fn blocks(sizes: &[(u32, i64)], stmts: &[Stmt]) -> Vec<(i64, Vec<u32>)> {
        let buffers: Vec<_> = sizes.iter().map(|(id, bytes)| (BufferId(*id), *bytes)).collect();
        let numbers = |block: Block| (block.bytes, block.buffers.iter().map(|id| id.0).collect());
        plan(&buffers, stmts).into_iter().map(numbers).collect()
    }

    #[test]
    fn stages_of_a_chain_take_turns() {
        let chain = [copy(9, 0), copy(0, 1), copy(1, 2), copy(2, 3), copy(3, 8)];
        let sizes = [(0, 40), (1, 30), (2, 20), (3, 10)];
        assert_eq!(blocks(&sizes, &chain), [(40, vec![0, 2]), (30, vec![1, 3])]);
    }

    #[test]
    fn a_buffer_that_is_used_again_later_keeps_its_memory() {
        let skip = [copy(9, 0), copy(0, 1), copy(1, 2), copy(0, 8), copy(2, 8)];
        assert_eq!(blocks(&[(0, 8), (1, 8), (2, 8)], &skip), [(8, vec![0]), (8, vec![1]), (8, vec![2])]);
    }

    #[test]
    fn buffers_of_one_loop_never_share_memory() {
        let stmts = [repeat(vec![copy(9, 0), copy(0, 1), copy(1, 2)]), copy(2, 8)];
        assert_eq!(blocks(&[(0, 8), (1, 8), (2, 8)], &stmts).len(), 3);
    }

    #[test]
    fn the_smallest_free_block_is_taken() {
        let stmts = [copy(9, 0), copy(9, 1), copy(0, 8), copy(1, 8), copy(9, 2), copy(2, 8)];
        assert_eq!(blocks(&[(0, 100), (1, 10), (2, 8)], &stmts), [(100, vec![0]), (10, vec![1, 2])]);
    }

    #[test]
    fn a_buffer_without_a_use_has_memory_of_its_own() {
        assert_eq!(blocks(&[(0, 8), (1, 8)], &[copy(9, 0), copy(0, 8)]).len(), 2);
    }
}
