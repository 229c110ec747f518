//! Tells which steps of a partial schedule concern one nest.

use std::collections::{HashMap, HashSet};

use tilewright_ir::Program;

use super::{NestId, PartialSchedule};
use crate::step::{StatementName, Step};

/// For each tensor that a program computes, the tensors that its statements read.
#[derive(Debug)]
pub(super) struct Operands(HashMap<String, HashSet<String>>);

impl Operands {
    pub fn new(program: &Program) -> Operands {
        let mut all: HashMap<String, HashSet<String>> = HashMap::new();
        for (statement, _) in program.statements() {
            let own = all.entry(program.tensor(statement.target).name.clone()).or_default();
            let mut add = |tensor| {
                own.insert(program.tensor(tensor).name.clone());
            };
            statement.value.visit_reads(&mut |read| add(read.tensor));
            statement.indices.iter().for_each(|index| index.visit_reads(&mut |read| add(read.tensor)));
        }
        Operands(all)
    }
}

impl PartialSchedule<'_> {
    /// The steps that have made a nest what it is. Nests with the same statements and the same
    /// steps are equal.
    pub fn steps_of(&self, nest: NestId) -> Vec<&Step> {
        let statements = self.statements_in(nest);
        let inlined = self.inlined_into(&statements);
        let concerns = |step: &&Step| match step {
            Step::Inline { tensor } => {
                inlined.as_ref().is_none_or(|inlined| inlined.contains(tensor.as_str()))
            }
            _ => is_about(step, &statements),
        };
        self.steps.iter().filter(concerns).collect()
    }

    /// The tensors whose values are parts of the values of these statements; none if that is not
    /// known, because a step has added one of the statements.
    fn inlined_into<'s>(&'s self, statements: &'s [StatementName]) -> Option<HashSet<&'s str>> {
        let inlines = self.steps.iter().filter_map(|step| match step {
            Step::Inline { tensor } => Some(tensor.as_str()),
            _ => None,
        });
        let inlined: HashSet<&str> = inlines.collect();
        let mut found = HashSet::new();
        let mut open: Vec<&str> = statements.iter().map(|own| own.tensor.as_str()).collect();
        while let Some(tensor) = open.pop() {
            let operands = self.operands.0.get(tensor)?.iter().map(String::as_str);
            open.extend(operands.filter(|own| inlined.contains(own) && found.insert(*own)));
        }
        Some(found)
    }
}

/// Whether a step changes loops of these statements, or places one of them.
fn is_about(step: &Step, statements: &[StatementName]) -> bool {
    let loops = step.loops();
    loops.is_empty()
        || loops.iter().any(|name| statements.contains(&name.statement))
        || statements.iter().any(|own| step.placed_tensor() == Some(&own.tensor))
}
