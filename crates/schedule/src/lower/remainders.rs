//! Handles remainders, which are the partial tiles at the end of a loop, in a loop nest.
//!
//! The rule depends on the kind of the loop whose number of iterations varies:
//! - A serial or parallel loop is clipped: it runs `min(f, rest)` times.
//! - A vector loop always has all its lanes, and a mask disables those past the end.
//! - An unrolled loop is written out whole, with a condition before each iteration.
//! - Where a vector or unrolled loop has either all its iterations or none, one condition before
//!   the loop decides.
//! - A loop over blocks or threads has the largest number of them that is ever needed, and a
//!   condition for those past the end.
//! - Whole tiles should pay for none of this. So everything inside the loops that decide whether
//!   the tile is whole exists in two versions: one for whole tiles, without masks and conditions,
//!   and one for the rest. In the latter the number of iterations is most often a constant again,
//!   since only one tile is partial.
//!
//! Versions are made from the outside in, as long as the code size stays within bounds. Masks and
//! conditions handle the rest. On a GPU, versions are made inside thread loops only: the code that
//! the threads of a block run together, with barriers in between, is the same for all blocks.

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Atom, Buffer, For, If, IndexExpr, LoopKind, Stmt};
use tilewright_ir::walk::{self, any_loop, map_indices};

use super::stmts::{count_stores, duplicate, insert_choice};
use crate::draft::simplify::Ranges;

/// The stores that the code may have with versions: this many, or this many times the number
/// before.
const MOST_STORES: usize = 400;
const MOST_TIMES: usize = 5;

/// Adds conditions for the iterations past the end to loops that cannot be clipped.
pub(super) fn guard_ends(nest: &mut LoopNest) {
    for stmts in [&mut nest.setup, &mut nest.body] {
        guard_fixed_loops(stmts, &Ranges::default());
    }
}

/// Makes versions for whole and partial tiles. Masks and conditions handle the rest.
pub(super) fn version(nest: &mut LoopNest) {
    for stmts in [&mut nest.setup, &mut nest.body] {
        let budget = MOST_TIMES.saturating_mul(count_stores(stmts)).max(MOST_STORES);
        let mut versions = Versions {
            buffers: &mut nest.buffers,
            stores: count_stores(stmts),
            budget,
            is_whole_block: has_blocks(stmts),
        };
        *stmts = versions.body(std::mem::take(stmts), &Ranges::default());
    }
}

/// Gives vector and unrolled loops, and loops over blocks and threads, a fixed number of
/// iterations, with a condition for those past the end.
fn guard_fixed_loops(stmts: &mut [Stmt], ranges: &Ranges) {
    for stmt in stmts {
        match stmt {
            Stmt::For(own) => {
                let mut inside = ranges.clone();
                inside.add_loop(own.var, &own.extent);
                guard_fixed_loops(&mut own.body, &inside);
                guard(own, ranges);
                let agreed = extract_uniform_conditions(own);
                if !agreed.is_empty() {
                    guard_with(stmt, agreed);
                }
            }
            other => other.bodies_mut().for_each(|body| guard_fixed_loops(body, ranges)),
        }
    }
}

fn guard(own: &mut For, ranges: &Ranges) {
    let most = match own.kind {
        LoopKind::Serial | LoopKind::Parallel => return,
        LoopKind::Unrolled | LoopKind::Block(_) | LoopKind::Thread(_) => ranges.greatest_value(&own.extent),
        LoopKind::Vector => ranges.greatest_value(&own.extent).map(whole_lanes),
    };
    let Some(most) = most else {
        own.kind = LoopKind::Serial;
        return;
    };
    let inside = own.extent.sub(&IndexExpr::var(own.var)).offset(-1);
    if own.extent != IndexExpr::constant(most) {
        own.extent = IndexExpr::constant(most);
        let then = std::mem::take(&mut own.body);
        own.body = vec![Stmt::If(If { conditions: vec![inside], then, otherwise: Vec::new() })];
    }
}

/// Takes those conditions out of a vector or unrolled loop that have the same value in all of its
/// iterations: `4*t + v <= 447` for four `v` is `4*t <= 447`. The vector then needs no mask.
fn extract_uniform_conditions(own: &mut For) -> Vec<IndexExpr> {
    let has_fixed_count = matches!(own.kind, LoopKind::Vector | LoopKind::Unrolled);
    let (Some(count), [Stmt::If(guard)], true) =
        (own.extent.as_constant(), own.body.as_mut_slice(), has_fixed_count)
    else {
        return Vec::new();
    };
    if !guard.otherwise.is_empty() {
        return Vec::new();
    }
    let var = IndexExpr::var(own.var);
    let agreed = |condition: &IndexExpr| {
        let limit = condition.add(&var).offset(1);
        (!limit.mentions(own.var) && limit.is_multiple_of(count)).then(|| limit.offset(-1))
    };
    let taken = guard.conditions.extract_if(.., |condition| agreed(condition).is_some()).collect::<Vec<_>>();
    if guard.conditions.is_empty() {
        own.body = std::mem::take(&mut guard.then);
    }
    taken.iter().filter_map(agreed).collect()
}

/// Runs a statement only where conditions hold.
fn guard_with(stmt: &mut Stmt, conditions: Vec<IndexExpr>) {
    let own = std::mem::replace(stmt, Stmt::If(If { conditions, then: Vec::new(), otherwise: Vec::new() }));
    if let Stmt::If(guard) = stmt {
        guard.then.push(own);
    }
}

/// The number of lanes that the hardware uses for this many: a power of two, or a number of whole
/// registers.
fn whole_lanes(lanes: i64) -> i64 {
    const REGISTER: i64 = 16;
    if lanes <= REGISTER {
        (lanes.max(1) as u64).next_power_of_two() as i64
    } else {
        (lanes + REGISTER - 1) / REGISTER * REGISTER
    }
}

struct Versions<'a> {
    buffers: &'a mut Vec<Buffer>,
    stores: usize,
    budget: usize,
    /// Whether the current statements belong to a whole block, outside its thread loops.
    is_whole_block: bool,
}

fn has_blocks(stmts: &[Stmt]) -> bool {
    any_loop(stmts, |own| matches!(own.kind, LoopKind::Block(_)))
}

impl Versions<'_> {
    /// Adds a version for whole tiles wherever the ranges known here decide whether a tile inside
    /// is whole.
    fn body(&mut self, mut stmts: Vec<Stmt>, ranges: &Ranges) -> Vec<Stmt> {
        let mut next = if self.is_whole_block { None } else { partial_tile(&stmts, ranges) };
        while let Some(tile) = &next {
            let before = count_stores(&stmts);
            if self.stores + before > self.budget {
                break;
            }
            let minimum = tile.minimum.clone();
            let concerns = |stmt: &Stmt| mentions(stmt, &minimum);
            stmts = insert_choice(stmts, &concerns, &mut |stmts| self.versions(stmts, tile, ranges));
            self.stores += count_stores(&stmts) - before.min(count_stores(&stmts));
            next = partial_tile(&stmts, ranges);
        }
        for stmt in &mut stmts {
            self.inside(stmt, ranges, next.is_none());
        }
        stmts
    }

    /// Makes one version for the whole tile and one for the rest.
    fn versions(&mut self, mut then: Vec<Stmt>, tile: &Tile, ranges: &Ranges) -> Stmt {
        let Tile { minimum, whole, rest } = tile;
        let mut otherwise = duplicate(&then, self.buffers);
        replace_minimum(&mut then, minimum, &IndexExpr::constant(*whole));
        replace_minimum(&mut otherwise, minimum, &remainder(rest, *whole, ranges));
        Stmt::If(If { conditions: vec![rest.offset(-whole)], then, otherwise })
    }

    /// Makes versions further inside. `all_decided` means that the ranges known here decide no more
    /// tiles.
    fn inside(&mut self, stmt: &mut Stmt, ranges: &Ranges, all_decided: bool) {
        match stmt {
            // All threads must take the same path to the statement that combines them.
            Stmt::For(own) if own.combine_nest().is_some() => {}
            Stmt::For(own) => {
                let mut inside = ranges.clone();
                inside.add_loop(own.var, &own.extent);
                let together = self.is_whole_block;
                self.is_whole_block &= !matches!(own.kind, LoopKind::Thread(_));
                own.body = self.body(std::mem::take(&mut own.body), &inside);
                self.is_whole_block = together;
            }
            Stmt::If(own) => {
                let (holding, failing) = ranges.under_conditions(&own.conditions);
                own.then = self.body(std::mem::take(&mut own.then), &holding);
                own.otherwise = self.body(std::mem::take(&mut own.otherwise), &failing);
            }
            Stmt::Allocate(own) if all_decided => {
                own.body.iter_mut().for_each(|stmt| self.inside(stmt, ranges, all_decided));
            }
            other => {
                other.bodies_mut().for_each(|body| *body = self.body(std::mem::take(body), ranges));
            }
        }
    }
}

/// Returns true when an index expression inside a statement contains the atom.
fn mentions(stmt: &Stmt, atom: &Atom) -> bool {
    walk::any(std::slice::from_ref(stmt), &mut |stmt| {
        stmt.any_own_index(&mut |index| index.any_atom(&mut |own| own == atom))
    })
}

/// A tile whose number of iterations is `minimum`, the smaller of `whole` and `rest`.
struct Tile {
    minimum: Atom,
    whole: i64,
    rest: IndexExpr,
}

/// Finds a tile that a condition inside a vector or unrolled loop depends on, if the open loops
/// decide it.
fn partial_tile(stmts: &[Stmt], open: &Ranges) -> Option<Tile> {
    let mut found = None;
    visit_guards(stmts, &mut |condition| {
        condition.visit_atoms(&mut |atom| {
            if found.is_none() {
                found = as_tile(atom, open);
            }
        });
    });
    found
}

fn as_tile(atom: &Atom, open: &Ranges) -> Option<Tile> {
    let Atom::Min(pair) = atom else { return None };
    let (whole, rest) = match (pair.0.as_constant(), pair.1.as_constant()) {
        (Some(whole), None) => (whole, &pair.1),
        (None, Some(whole)) => (whole, &pair.0),
        _ => return None,
    };
    let plain =
        !rest.has_data() && !rest.vars().is_empty() && rest.vars().iter().all(|var| open.has_range(*var));
    let decided = open.never_negative(&rest.offset(-whole)) || open.always_negative(&rest.offset(-whole));
    (plain && !decided).then(|| Tile { minimum: atom.clone(), whole, rest: rest.clone() })
}

/// Calls `visit` on the conditions directly inside loops with a fixed number of iterations, and on
/// conditions directly around such a loop.
fn visit_guards(stmts: &[Stmt], visit: &mut dyn FnMut(&IndexExpr)) {
    walk::visit(stmts, &mut |stmt| match stmt {
        Stmt::For(own) => {
            if let ([Stmt::If(guard)], true) = (own.body.as_slice(), has_fixed_trip_count(own)) {
                guard.conditions.iter().for_each(&mut *visit);
            }
        }
        Stmt::If(own) => {
            if matches!(own.then.as_slice(), [Stmt::For(inner)] if has_fixed_trip_count(inner)) {
                own.conditions.iter().for_each(&mut *visit);
            }
        }
        _ => {}
    });
}

fn has_fixed_trip_count(own: &For) -> bool {
    !matches!(own.kind, LoopKind::Serial | LoopKind::Parallel)
}

fn replace_minimum(stmts: &mut [Stmt], minimum: &Atom, value: &IndexExpr) {
    map_indices(stmts, &mut |index| index.substitute(&mut |atom| (atom == minimum).then(|| value.clone())));
}

/// The number of iterations left where a whole tile does not fit: `rest`. The number is a constant
/// if all variables in `rest` change it by whole tiles and only the last tile is left.
fn remainder(rest: &IndexExpr, whole: i64, ranges: &Ranges) -> IndexExpr {
    let varies_by_tiles = rest.terms().iter().all(|term| term.coefficient % whole == 0);
    let left = rest.constant_part().rem_euclid(whole);
    let is_last = || ranges.never_negative(&rest.offset(whole - left - 1));
    if varies_by_tiles && is_last() { IndexExpr::constant(left) } else { rest.clone() }
}
