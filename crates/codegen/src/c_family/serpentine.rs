//! Orders the accumulations of a thread so that consecutive ones share an operand.
//!
//! A multiprocessor can keep an operand that the thread's next multiplication needs again. Most
//! tiles were faster where such an operand exists (docs/benchmarks.md). In `for i: for j: O[i, j]
//! += a[i] * b[j]` this operand is `a[i]`, except at the end of a row, where both operands change.
//! So every other row runs backwards: the last `b[j]` of one row is the first of the next. With
//! more loops, a loop runs backwards whenever the number of passes so far is odd. From one
//! accumulation to the next, only one loop variable changes, and it changes by one.
//!
//! ```text
//! for i in 8                          for i in 8
//!   for j in 8                   →      for j_turn in 8
//!     O[i, j] += a[i] * b[j]              j = i % 2 == 0 ? j_turn : 7 - j_turn
//!                                         O[i, j] += a[i] * b[j]
//! ```
//!
//! Once the loops are unrolled, all these indices are constants and cost nothing.

use std::collections::BTreeSet;

use tilewright_ir::BinaryOp;
use tilewright_ir::nest::{For, LoopKind, Scope, Stmt};

use super::c_expr::CExpr;
use super::stmt::{Emit, Emitter};

impl Emitter<'_> {
    /// Writes nested unrolled loops around an accumulation in serpentine order. Returns false, and
    /// writes nothing, if `outermost` does not begin such loops.
    pub(super) fn serpentine(&mut self, outermost: &For) -> Emit<bool> {
        let Some(loops) = self.loops_around_sums(outermost) else { return Ok(false) };
        let [first, .., innermost] = loops.as_slice() else { return Ok(false) };
        let mut taken = BTreeSet::new();
        // The counters of enclosing loops whose sum is even exactly when the next loop runs
        // forwards.
        let mut turns: Vec<CExpr> = Vec::new();
        for own in &loops {
            let (var, extent) = (self.unit.names.var(own.var).to_owned(), self.index(&own.extent)?);
            let most = own.extent.as_constant().unwrap_or(1);
            self.ranges.enter(own.var, &own.extent);
            self.line(self.unit.dialect.unroll());
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
            // With an even trip count, the counters further out no longer affect the parity.
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

    /// Returns perfectly nested unrolled loops whose innermost body accumulates into a register.
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

/// `turn` if the sum of `turns` is even, and `last - turn` if the sum is odd.
fn in_turn(turns: &[CExpr], turn: &CExpr, last: &CExpr) -> CExpr {
    let odd = CExpr::binary(BinaryOp::Mod, &CExpr::sum(turns), &CExpr::atom("2"));
    let is_even = CExpr::binary(BinaryOp::Equal, &odd, &CExpr::atom("0"));
    CExpr::choice(&is_even, turn, &CExpr::binary(BinaryOp::Sub, last, turn))
}
