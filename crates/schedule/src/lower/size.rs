//! How much code a draft becomes, and whether it can be lowered at all: only `emit` and this refuse anything.
//!
//! What `emit` refuses of a statement, and the stores it gives it, depend on that statement and the loops around it
//! alone. So when a draft that was measured is changed, only the statements that the change reaches are measured anew,
//! each on its own.

use std::collections::BTreeSet;

use super::{emit, stmts};
use crate::draft::{Draft, Legal, StatementId};
use crate::illegal::Illegal;

/// Stores of one kernel, with unrolled loops written out: compiling this many takes seconds.
const MOST_CODE: usize = 10_000;

/// Refuses more code than can be compiled in a reasonable time.
pub(super) fn check(stores: usize) -> Legal<()> {
    match stores > MOST_CODE {
        true => Err(Illegal::TooMuchCode { stores, most: MOST_CODE }),
        false => Ok(()),
    }
}

/// A draft that can be lowered, and the stores that it becomes.
pub(crate) struct Measured<'a> {
    draft: Draft<'a>,
    stores: usize,
}

impl<'a> Measured<'a> {
    /// Measures all of a draft.
    pub fn new(draft: &Draft<'a>) -> Legal<Measured<'a>> {
        let all = (0..draft.statements.len()).map(StatementId).collect();
        Measured::checked(draft, stores_of(draft, &all)?)
    }

    /// Measures what another draft, made from this one, does not share with it.
    pub fn after_changes(&self, draft: &Draft<'a>) -> Legal<Measured<'a>> {
        let mut reached = draft.statements_changed_since(&self.draft);
        reached.extend(self.draft.statements_changed_since(draft));
        let kept = self.stores.saturating_sub(stores_of(&self.draft, &reached)?);
        Measured::checked(draft, kept.saturating_add(stores_of(draft, &reached)?))
    }

    fn checked(draft: &Draft<'a>, stores: usize) -> Legal<Measured<'a>> {
        check(stores)?;
        Ok(Measured { draft: draft.clone(), stores })
    }
}

/// The stores of those of the statements that a draft has.
fn stores_of(draft: &Draft, statements: &BTreeSet<StatementId>) -> Legal<usize> {
    let present =
        statements.iter().copied().filter(|id| id.0 < draft.statements.len() && draft.is_present(*id));
    present
        .map(|id| Ok(stmts::stores(&emit::emit_alone(draft, id)?)))
        .try_fold(0usize, |sum, stores: Legal<usize>| Ok(sum.saturating_add(stores?)))
}

#[cfg(test)]
mod tests {
    use tilewright_ir::Program;
    use tilewright_syntax::{Bindings, check, parse};
    use tilewright_target::{Cpu, Vectors};

    use super::*;
    use crate::{default_schedule, steps};

    const PROGRAMS: [&str; 4] = [
        "def f(half(N, M) A) -> (O) {
           m(i) +=! A(i, j)
           c(i, j) = A(i, j) - m(i) / 50
           v(i) +=! c(i, j) * c(i, j)
           O(i, j) = c(i, j) * v(i)
         }",
        "def f(float(N, M) A, const float(M, N) B, float(N, M) C) -> (O) {
           T(i, j) +=! A(i, k) * B(k, j)
           S(i, j) +=! T(i, k) * C(k, j)
           O(i, j) = S(i, j) + 1
         }",
        "def f(float(N, M) I) -> (O) {
           a(y, x) = I(clamp(y-1, 0, N-1), x) + I(clamp(y+1, 0, N-1), x) where y in 0:N
           b(y, x) = a(y, clamp(x-1, 0, M-1)) + a(y, clamp(x+1, 0, M-1)) where x in 0:M
           O(y, x) max=! b(y, x) * a(y, k) + exp(b(y, k))
         }",
        "def f(float(N, M) I, float(3, 3) K) -> (O) {
           O(y, x) +=! (y+p >= 1 && y+p <= N && x+q >= 1 && x+q <= M ? I(y+p-1, x+q-1) : 0) * K(p, q)
             where y in 0:N, x in 0:M
         }",
    ];

    fn cpu() -> Cpu {
        Cpu { cores: 4, vectors: Vectors::Avx2, caches: vec![32 << 10, 1 << 20] }
    }

    fn program(source: &str) -> Program {
        let parsed = parse(source);
        let bindings: Bindings = [("N", 130), ("M", 70)].into_iter().collect();
        let checked = check(&parsed.ast, "f", &bindings);
        checked.program.unwrap_or_else(|| panic!("{source}\nis refused: {:?}", checked.diagnostics))
    }

    /// What `emit` gives for all of a draft.
    fn whole(draft: &Draft) -> Legal<usize> {
        let nest = emit::emit(draft)?;
        Ok(stmts::stores(&nest.setup) + stmts::stores(&nest.body))
    }

    #[test]
    fn measured_after_every_step_as_if_all_were_lowered() {
        for source in PROGRAMS {
            let (program, cpu) = (program(source), cpu());
            let mut draft = Draft::new(&program, &cpu).unwrap();
            let mut measured = Measured::new(&draft).unwrap();
            for step in &default_schedule(&program, &cpu).steps {
                steps::apply(&mut draft, step).unwrap();
                let found = measured.after_changes(&draft);
                let stores = found.as_ref().map(|found| found.stores).map_err(Illegal::to_string);
                assert_eq!(stores, whole(&draft).map_err(|illegal| illegal.to_string()), "{source}\n{step}");
                measured = found.unwrap_or(measured);
            }
        }
    }

    #[test]
    fn a_step_is_measured_by_the_stage_that_it_changes() {
        let stages: String = (1..100).map(|at| format!("m{at}(i) +=! A(i, j) * {at}\n")).collect();
        let outputs: Vec<String> = (1..100).map(|at| format!("m{at}")).collect();
        let program = program(&format!("def f(float(N, M) A) -> ({}) {{ {stages} }}", outputs.join(", ")));
        let cpu = cpu();
        let mut draft = Draft::new(&program, &cpu).unwrap();
        let steps = default_schedule(&program, &cpu).steps;
        assert!(steps.len() > 400, "{steps:?}");
        for step in &steps {
            let before = draft.clone();
            steps::apply(&mut draft, step).unwrap();
            let reached = draft.statements_changed_since(&before);
            // One that is there, and one that `rfactor` adds.
            assert!(reached.len() <= 2, "{step} reaches {reached:?}");
        }
    }
}
