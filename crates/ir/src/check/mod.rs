//! Checks the meaning of an [`UncheckedProgram`], before it becomes a [`Program`](crate::Program).
//! The passes, in order:
//!
//! | pass | file | finds |
//! |---|---|---|
//! | preconditions | `preconditions` | preconditions that fail, or that no sizes satisfy |
//! | numbers | `numbers` | indices too large for 64 bits |
//! | ranges and shapes | `emptiness` | ranges and tensors without any value |
//! | bounds | `bounds` | accesses out of bounds |
//! | left-hand sides | `writes` | missing reductions, repeated writes, in-place updates, resets of tensors that are read |
//! | definedness | `definedness`, `regions`, `trial` | elements read before they are written, or never written |
//!
//! A check proves its claim for all sizes, or refutes it by a counterexample, or leaves it open. A
//! [`Finding`] says which statement and access of the unchecked program is at fault, with the
//! values of the counterexample. It contains neither positions in a text nor advice: front ends add
//! both, and [`describe`] has a sentence for each finding.
//!
//! An error about a tensor marks the tensor as suspect: later passes report no consequences of the
//! same mistake. `facts` extracts facts from conditions, `size_facts` from ranges and shapes, and
//! `witness` finds counterexamples where a proof fails.

mod bounds;
mod definedness;
mod description;
mod emptiness;
mod facts;
mod finding;
mod numbers;
mod preconditions;
mod regions;
mod size_facts;
mod trial;
mod witness;
mod writes;

pub use definedness::Definedness;
pub use description::describe;
pub(crate) use description::describe_failure;
pub use facts::{Facts, fact_alternatives};
pub use finding::{AccessId, Finding, LargeNumber, Undefined};
pub use witness::Witness;

use crate::index::IndexExpr;
use crate::interval::Knowledge;
use crate::precondition::Consequences;
use crate::program::{Range, SymbolId, TensorId, VarId};
use crate::unchecked::{Parts, UncheckedProgram};

/// The result of all checks.
#[derive(Clone, Debug)]
pub struct Report {
    /// Errors and warnings, in the order of the passes.
    pub findings: Vec<Finding>,
    /// How the content of each tensor is defined.
    pub definedness: Vec<Definedness>,
    /// Expressions of the sizes that must not be negative. The program is refused at sizes where
    /// one is negative.
    pub requirements: Vec<IndexExpr>,
}

/// Checks an unchecked program. The ids of the unchecked program must point into their tables.
pub fn check(unchecked: &UncheckedProgram) -> Report {
    let mut checker = Checker::new(unchecked);
    if preconditions::check(&mut checker) {
        // Every claim follows from preconditions that never hold.
        let definedness = vec![Definedness::Proved; unchecked.tensors.len()];
        return Report { findings: checker.findings, definedness, requirements: Vec::new() };
    }
    numbers::check(&mut checker);
    emptiness::check_ranges(&mut checker);
    emptiness::check_tensors(&mut checker);
    bounds::check(&mut checker);
    writes::check(&mut checker);
    let definedness = definedness::check(&mut checker);
    Report { findings: checker.findings, definedness, requirements: checker.size_facts }
}

/// The state of a check.
struct Checker<'d> {
    unchecked: &'d UncheckedProgram,
    /// Expressions that are never negative for sizes that the program accepts.
    size_facts: Vec<IndexExpr>,
    /// What follows from the preconditions.
    consequences: Consequences,
    /// For each tensor, whether a mistake about it is known.
    suspect: Vec<bool>,
    /// For each statement, whether it never runs, so that nothing is found about it.
    discarded: Vec<bool>,
    findings: Vec<Finding>,
}

impl<'d> Checker<'d> {
    fn new(unchecked: &'d UncheckedProgram) -> Checker<'d> {
        let mut checker = Checker {
            unchecked,
            size_facts: Vec::new(),
            consequences: unchecked.consequences(),
            suspect: unchecked.tensors.iter().map(|tensor| tensor.is_suspect).collect(),
            discarded: vec![false; unchecked.statements.len()],
            findings: Vec::new(),
        };
        checker.size_facts = size_facts::collect(&checker);
        checker
    }

    /// The parts of the statement at a position, unless it has a gap or never runs.
    fn parts(&self, at: usize) -> Option<&'d Parts> {
        self.unchecked.statements[at].parts.as_ref().filter(|_| !self.discarded[at])
    }

    fn is_suspect(&self, tensor: TensorId) -> bool {
        self.suspect[tensor.index()]
    }

    fn mark_suspect(&mut self, tensor: TensorId) {
        self.suspect[tensor.index()] = true;
    }

    /// Returns true when later passes can check a tensor: no mistake about it is known, and its
    /// shape is.
    fn is_checkable(&self, tensor: TensorId) -> bool {
        !self.is_suspect(tensor) && self.unchecked.tensor(tensor).shape.is_some()
    }

    fn report(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

impl Knowledge for Checker<'_> {
    fn range(&self, var: VarId) -> Option<Range> {
        self.unchecked.var(var).range.clone()
    }
    fn least(&self, symbol: SymbolId) -> Option<i64> {
        self.consequences.least(symbol)
    }
    fn facts(&self) -> &[IndexExpr] {
        self.consequences.facts()
    }
}
