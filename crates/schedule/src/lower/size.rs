//! Measures the code that a draft becomes, and checks whether the draft can be lowered. Without
//! blocks of threads, only `emit` and this measurement refuse anything.
//!
//! For each statement, the refusals of `emit` and the emitted code depend only on the statement and
//! the loops around it. So after a change to a measured draft, only the statements that the change
//! affects are measured again, each on its own.

use std::collections::BTreeSet;

use super::effort::Effort;
use super::emit;
use crate::draft::{Draft, Legal, StatementId};

/// Refuses a draft that cannot be lowered.
pub(crate) fn check(draft: &Draft) -> Legal<()> {
    MeasuredDraft::new(draft).map(|_| ())
}

/// A draft that can be lowered, and the effort to compile it.
pub(crate) struct MeasuredDraft<'a> {
    draft: Draft<'a>,
    effort: Effort,
}

impl<'a> MeasuredDraft<'a> {
    /// Measures all of a draft.
    pub fn new(draft: &Draft<'a>) -> Legal<MeasuredDraft<'a>> {
        let all = (0..draft.statements.len()).map(StatementId).collect();
        MeasuredDraft::checked(draft, effort_of(draft, &all)?)
    }

    /// Measures the statements of another draft, made from this one, that the two do not share.
    pub fn after_changes(&self, draft: &Draft<'a>) -> Legal<MeasuredDraft<'a>> {
        let mut reached = draft.statements_changed_since(&self.draft);
        reached.extend(self.draft.statements_changed_since(draft));
        let kept = self.effort.minus(effort_of(&self.draft, &reached)?);
        MeasuredDraft::checked(draft, kept.plus(effort_of(draft, &reached)?))
    }

    fn checked(draft: &Draft<'a>, effort: Effort) -> Legal<MeasuredDraft<'a>> {
        effort.check()?;
        Ok(MeasuredDraft { draft: draft.clone(), effort })
    }
}

/// The effort of those of the statements that the draft has.
fn effort_of(draft: &Draft, statements: &BTreeSet<StatementId>) -> Legal<Effort> {
    let present =
        statements.iter().copied().filter(|id| id.0 < draft.statements.len() && draft.is_present(*id));
    let mut efforts =
        present.map(|id| Ok(Effort::measure(&emit::emit_alone(draft, id)?, draft.capabilities.vector_bytes)));
    efforts.try_fold(Effort::default(), |sum, effort: Legal<Effort>| Ok(sum.plus(effort?)))
}

#[cfg(test)]
mod tests {
    use tilewright_ir::Program;
    use tilewright_syntax::{Bindings, check, parse};
    use tilewright_target::{Cpu, VectorInstructions};

    use super::*;
    use crate::illegal::Illegal;
    use crate::{schedule_by_rules, steps};

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
        Cpu { cores: 4, vectors: VectorInstructions::Avx2, caches: vec![32 << 10, 1 << 20] }
    }

    fn program(source: &str) -> Program {
        let parsed = parse(source);
        let bindings: Bindings = [("N", 130), ("M", 70)].into_iter().collect();
        let checked = check(&parsed.ast, "f", &bindings);
        checked.program.unwrap_or_else(|| panic!("{source}\nis refused: {:?}", checked.diagnostics))
    }

    #[test]
    fn measured_after_every_step_as_if_from_the_beginning() {
        for source in PROGRAMS {
            let (program, cpu) = (program(source), cpu());
            let mut draft = Draft::new(&program, (&cpu).into()).unwrap();
            let mut measured = MeasuredDraft::new(&draft).unwrap();
            for step in &schedule_by_rules(&program, &cpu).steps {
                steps::apply(&mut draft, step).unwrap();
                let found = measured.after_changes(&draft);
                let effort = found.as_ref().map(|found| found.effort).map_err(Illegal::to_string);
                let whole = MeasuredDraft::new(&draft).map(|whole| whole.effort);
                assert_eq!(effort, whole.map_err(|illegal| illegal.to_string()), "{source}\n{step}");
                // Reasons that refuse single statements must also refuse the whole draft.
                let refused = emit::emit(&draft).map(|_| ()).map_err(|illegal| illegal.to_string());
                assert_eq!(effort.map(|_| ()), refused, "{source}\n{step}");
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
        let mut draft = Draft::new(&program, (&cpu).into()).unwrap();
        let steps = schedule_by_rules(&program, &cpu).steps;
        assert!(steps.len() > 400, "{steps:?}");
        for step in &steps {
            let before = draft.clone();
            steps::apply(&mut draft, step).unwrap();
            let reached = draft.statements_changed_since(&before);
            // One statement that exists, and one that `rfactor` adds.
            assert!(reached.len() <= 2, "{step} reaches {reached:?}");
        }
    }
}
