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
//!   for j in 8                   →      for j_count in 8
//!     O[i, j] += a[i] * b[j]              j = i % 2 == 0 ? j_count : 7 - j_count
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
        let Some(loops) = self.accumulation_loops(outermost) else { return Ok(false) };
        let [first, .., innermost] = loops.as_slice() else { return Ok(false) };
        let mut taken = BTreeSet::new();
        // The counters of enclosing loops whose sum is even exactly when the next loop runs
        // forwards.
        let mut parity_counters: Vec<CExpr> = Vec::new();
        for current_loop in &loops {
            let (var, extent) =
                (self.unit.names.var(current_loop.var).to_owned(), self.index(&current_loop.extent)?);
            let most = current_loop.extent.as_constant().unwrap_or(1);
            self.ranges.enter(current_loop.var, &current_loop.extent);
            self.line(self.unit.dialect.unroll());
            let is_first = current_loop.var == first.var;
            let counter = match is_first {
                true => var.clone(),
                false => self.unit.names.new_local(&format!("{var}_count"), &mut taken),
            };
            let t = self.var_type(current_loop.var);
            let inside = CExpr::binary(BinaryOp::Less, &CExpr::atom(&counter), &extent);
            self.open(&format!("for ({t} {counter} = 0; {}; ++{counter}) ", inside.text()));
            let counter = CExpr::atom(counter);
            if !is_first {
                let value = serpentine_index(&parity_counters, &counter, &self.number(most - 1));
                self.line(&format!("const {t} {var} = {};", value.text()));
            }
            // With an even trip count, the counters further out no longer affect the parity.
            if most % 2 == 0 {
                parity_counters.clear();
            }
            parity_counters.push(counter);
        }
        self.stmts(&innermost.body)?;
        for current_loop in loops.iter().rev() {
            self.close();
            self.ranges.leave(current_loop.var);
        }
        Ok(true)
    }

    /// Returns perfectly nested unrolled loops whose innermost body accumulates into a register.
    fn accumulation_loops<'n>(&self, outermost: &'n For) -> Option<Vec<&'n For>> {
        let mut loops = vec![outermost];
        loop {
            let last_loop = *loops.last()?;
            let has_constant_extent = last_loop.extent.as_constant().is_some_and(|extent| extent > 0);
            if !has_constant_extent || !matches!(last_loop.kind, LoopKind::Unrolled | LoopKind::Vector) {
                return None;
            }
            match last_loop.body.as_slice() {
                [Stmt::For(inner)] => loops.push(inner),
                [Stmt::Store(store)] => {
                    let target = self.unit.nest.buffer(store.target.tensor);
                    let is_accumulation = store.reduce.is_some() && target.scope == Scope::Register;
                    return (is_accumulation && !self.has_profitable_wide_load(last_loop)).then_some(loops);
                }
                _ => return None,
            }
        }
    }
}

/// `counter` if the sum of `parity_counters` is even, and `last - counter` if the sum is odd.
fn serpentine_index(parity_counters: &[CExpr], counter: &CExpr, last: &CExpr) -> CExpr {
    let odd = CExpr::binary(BinaryOp::Mod, &CExpr::sum(parity_counters), &CExpr::atom("2"));
    let is_even = CExpr::binary(BinaryOp::Equal, &odd, &CExpr::atom("0"));
    CExpr::conditional(&is_even, counter, &CExpr::binary(BinaryOp::Sub, last, counter))
}
