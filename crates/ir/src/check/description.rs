//! Describes a [`Finding`] in a sentence, for callers that have no source text to point into.

use std::collections::BTreeSet;

use super::finding::{AccessId, Finding, LargeNumber, Undefined};
use super::witness::Witness;
use crate::expr::Access;
use crate::precondition::Precondition;
use crate::print;
use crate::program::TensorId;
use crate::unchecked::{UncheckedProgram, add_symbols};

/// A precondition, for all sizes, that fails at the sizes of a program.
pub(crate) fn describe_failure(general: &Precondition, at_sizes: &UncheckedProgram) -> String {
    let mut symbols = BTreeSet::new();
    [&general.left, &general.right].into_iter().for_each(|side| add_symbols(side, &mut symbols));
    let values = symbols.iter().filter_map(|symbol| {
        let symbol = &at_sizes.symbols[symbol.index()];
        Some(format!("{} = {}", symbol.name, symbol.value?))
    });
    let values: Vec<String> = values.collect();
    format!("the precondition {} fails with {}", general.text(at_sizes), values.join(", "))
}

/// The finding as a sentence, in the names of its unchecked program.
pub fn describe(finding: &Finding, unchecked: &UncheckedProgram) -> String {
    let names = FindingText { unchecked };
    match finding {
        Finding::PreconditionFails(at) => {
            let precondition = &unchecked.preconditions[*at];
            format!("the precondition {} fails at these sizes", precondition.text(unchecked))
        }
        Finding::PreconditionUndefined(at, reason) => {
            let precondition = &unchecked.preconditions[*at];
            let reason = match reason {
                Undefined::DivisionByZero => "it divides by 0",
                Undefined::TooLarge => "a number in it exceeds 64 bits",
            };
            format!("the precondition {} has no value at these sizes: {reason}", precondition.text(unchecked))
        }
        Finding::Unsatisfiable(at) => {
            let precondition = &unchecked.preconditions[*at];
            format!("no sizes satisfy the precondition {}", precondition.text(unchecked))
        }
        Finding::TooLarge(large) => format!("{} is too large for an index", names.large(*large)),
        Finding::EmptyRange(var) => {
            let var = unchecked.var(*var);
            let range = var.range.as_ref().map(|range| print::range(range, unchecked)).unwrap_or_default();
            format!("the range of `{}` is empty: {range}", var.name)
        }
        Finding::EmptyTensor { tensor, dimension, extent } => {
            format!("{} would have {extent} elements in dimension {dimension}", names.tensor(*tensor))
        }
        Finding::OutOfBounds { access, dimension, index, extent, witness } => format!(
            "{} leaves its tensor: the index of dimension {dimension} is {index} and the extent is {extent}{}",
            names.access(*access),
            names.witness_text(witness)
        ),
        Finding::MaybeOutOfBounds { access, dimension } => {
            let access = names.access(*access);
            format!("{access} could not be proved to stay within its tensor in dimension {dimension}")
        }
        Finding::MissingReduction { statement, var } => format!(
            "the assignment to {} needs a reduction: its subscripts do not contain `{}`",
            names.target(*statement),
            unchecked.var(*var).name
        ),
        Finding::ComputedWrite { statement, dimension } => format!(
            "the assignment to {} may name one element twice: index {dimension} depends on data",
            names.target(*statement)
        ),
        Finding::RepeatedWrite { statement, element, first, second } => format!(
            "the assignment to {} writes the element {element:?} twice: {} and{}",
            names.target(*statement),
            names.witness_text(first).trim_start(),
            names.witness_text(second)
        ),
        Finding::MaybeRepeatedWrite { statement } => {
            format!("the assignment to {} may write one element twice", names.target(*statement))
        }
        Finding::ResetInPlace { statement, read, .. } => format!(
            "the reduction into {} resets the tensor and reads {}",
            names.target(*statement),
            names.access(AccessId { statement: *statement, read: Some(*read) })
        ),
        Finding::InPlace { statement, read, .. } => format!(
            "the statement of {} reads {} while it overwrites the tensor",
            names.target(*statement),
            names.access(AccessId { statement: *statement, read: Some(*read) })
        ),
        Finding::ReadBeforeWrite { tensor, statement, .. } => format!(
            "the statement of {} reads {} before any statement defines it",
            names.target(*statement),
            names.tensor(*tensor)
        ),
        Finding::UninitializedReduction { tensor, .. } => {
            format!("no statement initialises {}, so the caller must supply it", names.tensor(*tensor))
        }
        Finding::UndefinedRead { element, access, witness, .. } => format!(
            "{} reads the element {element:?}, which no earlier statement defines{}",
            names.access(*access),
            names.witness_text(witness)
        ),
        Finding::UndefinedResult { tensor, element, witness } => format!(
            "no statement defines the element {element:?} of the result {}{}",
            names.tensor(*tensor),
            names.witness_text(witness)
        ),
        Finding::MaybeUndefined(tensor) => {
            format!("could not prove that every element of {} is defined", names.tensor(*tensor))
        }
    }
}

struct FindingText<'a> {
    unchecked: &'a UncheckedProgram,
}

impl FindingText<'_> {
    fn large(&self, large: LargeNumber) -> String {
        match large {
            LargeNumber::Range(var) => format!("the range of `{}`", self.unchecked.var(var).name),
            LargeNumber::Extent(tensor) => format!("an extent of {}", self.tensor(tensor)),
            LargeNumber::Subscript(access) => format!("a subscript of {}", self.access(access)),
            LargeNumber::Statement(at) => format!("a number in the statement of {}", self.target(at)),
        }
    }

    fn tensor(&self, id: TensorId) -> String {
        format!("`{}`", self.unchecked.tensor(id).name)
    }

    /// The element that a statement writes.
    fn target(&self, statement: usize) -> String {
        self.access(AccessId { statement, read: None })
    }

    fn access(&self, id: AccessId) -> String {
        let statement = &self.unchecked.statements[id.statement];
        let Some(parts) = &statement.parts else { return self.tensor(statement.target) };
        let target =
            || Access { tensor: statement.target, indices: parts.indices.clone(), origin: statement.origin };
        let access = id.read.map_or_else(target, |read| parts.reads[read].access.clone());
        format!("`{}`", print::access(&access, self.unchecked))
    }

    /// ` at i = 3, with N = 4`
    fn witness_text(&self, witness: &Witness) -> String {
        let values = |pairs: Vec<(&str, i64)>| {
            pairs.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
        };
        let vars = witness.vars.iter().map(|(id, value)| (self.unchecked.var(*id).name.as_str(), *value));
        let sizes = witness
            .sizes
            .iter()
            .map(|(id, value)| (self.unchecked.symbols[id.index()].name.as_str(), *value));
        let (vars, sizes) = (values(vars.collect()), values(sizes.collect()));
        match (vars.is_empty(), sizes.is_empty()) {
            (true, true) => String::new(),
            (true, false) => format!(" with {sizes}"),
            (false, true) => format!(" at {vars}"),
            (false, false) => format!(" at {vars} with {sizes}"),
        }
    }
}
