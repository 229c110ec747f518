//! The results of a thread, in an order in which each shares an operand with the one before.
//!
//! A multiprocessor keeps an operand that the next multiplication of the same thread needs again, and most tiles were faster
//! where there is one (docs/benchmarks.md). With `for i: for j: O[i, j] += a[i] * b[j]` that is `a[i]`, except where a row
//! ends and both operands change. So every other row goes backwards: the last `b[j]` of one is the first of the next. With more
//! loops, one goes backwards wherever those around it have made an odd number of turns, so that from one result to the next
//! only one loop moves, by one.
//!
//! ```text
//! for i in 8                          for i in 8
//!   for j in 8                   →      for j_turn in 8
//!     O[i, j] += a[i] * b[j]              j = i % 2 == 0 ? j_turn : 7 - j_turn
//!                                         O[i, j] += a[i] * b[j]
//! ```
//!
//! All of that is known once loops are unrolled, and costs nothing.

use std::collections::BTreeSet;

use tilewright_ir::BinaryOp;
use tilewright_ir::nest::{For, LoopKind, Scope, Stmt};

use super::c_expr::CExpr;
use super::dialect;
use super::stmt::{Emit, Emitter};

impl Emitter<'_> {
    /// Writes unrolled loops around the sums of a thread in turns, if that is what this loop begins.
    pub(super) fn serpentine(&mut self, outermost: &For) -> Emit<bool> {
        let Some(loops) = self.loops_around_sums(outermost) else { return Ok(false) };
        let [first, .., innermost] = loops.as_slice() else { return Ok(false) };
        let mut taken = BTreeSet::new();
        // What the loops so far have made turns of, all of which tells odd from even.
        let mut turns: Vec<CExpr> = Vec::new();
        for own in &loops {
            let (var, extent) = (self.unit.names.var(own.var).to_owned(), self.index(&own.extent)?);
            let most = own.extent.as_constant().unwrap_or(1);
            self.ranges.enter(own.var, &own.extent);
            self.line(dialect::unroll(self.unit.api));
            let is_first = own.var == first.var;
            let turn = match is_first {
                true => var.clone(),
                false => self.unit.names.local(&format!("{var}_turn"), &mut taken),
            };
            let t = self.var_type(own.var);
            let inside = CExpr::binary(BinaryOp::Less, &CExpr::atom(&turn), &extent);
            self.open(&format!("for ({t} {turn} = 0; {}; ++{turn}) ", inside.whole()));
            let turn = CExpr::atom(turn);
            if !is_first {
                let there = in_turn(&turns, &turn, &self.number(most - 1));
                self.line(&format!("const {t} {var} = {};", there.whole()));
            }
            // An even number of turns further inside leaves odd and even as they were.
            if most % 2 == 0 {
                turns.clear();
            }
            turns.push(turn);
        }
        self.stmts(&innermost.body)?;
        for own in loops.iter().rev() {
            self.close();
            self.ranges.leave(own.var);
        }
        Ok(true)
    }

    /// Unrolled loops directly inside each other, of which the innermost adds to a register.
    fn loops_around_sums<'n>(&self, outermost: &'n For) -> Option<Vec<&'n For>> {
        let mut loops = vec![outermost];
        loop {
            let own = *loops.last()?;
            let fixed = own.extent.as_constant().is_some_and(|extent| extent > 0);
            if !fixed || !matches!(own.kind, LoopKind::Unrolled | LoopKind::Vector) {
                return None;
            }
            match own.body.as_slice() {
                [Stmt::For(inner)] => loops.push(inner),
                [Stmt::Store(store)] => {
                    let target = self.unit.nest.buffer(store.target.tensor);
                    let sums = store.reduce.is_some() && target.scope == Scope::Register;
                    return (sums && !self.gains_by_lanes(own)).then_some(loops);
                }
                _ => return None,
            }
        }
    }
}

/// `turn` after an even number of turns, and backwards from `last` after an odd one.
fn in_turn(turns: &[CExpr], turn: &CExpr, last: &CExpr) -> CExpr {
    let odd = CExpr::binary(BinaryOp::Mod, &CExpr::sum(turns), &CExpr::atom("2"));
    let is_even = CExpr::binary(BinaryOp::Equal, &odd, &CExpr::atom("0"));
    CExpr::choice(&is_even, turn, &CExpr::binary(BinaryOp::Sub, last, turn))
}
