//! Turns each [`Finding`] of `tilewright_ir::check` into a [`Diagnostic`]. The diagnostic adds the
//! position in the text, the origin of inferred ranges, and advice on the text to write instead.

mod bounds;
mod definedness;
mod nonnegative;
mod preconditions;
mod writes;

use tilewright_ir::check::{AccessId, Finding, LargeNumber, Witness};
use tilewright_ir::print::Names;
use tilewright_ir::unchecked::{Parts, Read, UncheckedProgram};
use tilewright_ir::{Access, Atom, IndexExpr, ScalarId, SymbolId, TensorId, VarId};

use super::model::{self, Model};
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;
use nonnegative::RepairedAccesses;

/// Reports the findings of the checks.
pub(super) fn report(model: &mut Model, unchecked: &UncheckedProgram, findings: &[Finding]) {
    let repaired = RepairedAccesses::find(unchecked, findings);
    for finding in findings {
        let words = MessageContext { model, unchecked, repaired: &repaired };
        let diagnostic = words.message(finding);
        match statement_of(finding) {
            Some(at) => model.report_in(at, diagnostic),
            None => model.report(diagnostic),
        }
    }
}

/// The statement that a finding is about, if it is about one.
fn statement_of(finding: &Finding) -> Option<usize> {
    match finding {
        Finding::OutOfBounds { access, .. } | Finding::MaybeOutOfBounds { access, .. } => {
            Some(access.statement)
        }
        Finding::UndefinedRead { access, .. } => Some(access.statement),
        Finding::MissingReduction { statement, .. }
        | Finding::ComputedWrite { statement, .. }
        | Finding::RepeatedWrite { statement, .. }
        | Finding::MaybeRepeatedWrite { statement }
        | Finding::ResetInPlace { statement, .. }
        | Finding::InPlace { statement, .. }
        | Finding::ReadBeforeWrite { statement, .. }
        | Finding::UninitializedReduction { statement, .. } => Some(*statement),
        _ => None,
    }
}
/// A function and its unchecked program. The model has the positions; the unchecked program has the
/// expressions, at the given sizes.
struct MessageContext<'a> {
    model: &'a Model,
    unchecked: &'a UncheckedProgram,
    repaired: &'a RepairedAccesses,
}

impl MessageContext<'_> {
    fn message(&self, finding: &Finding) -> Diagnostic {
        match finding {
            Finding::PreconditionFails(at) => self.precondition_fails(*at),
            Finding::PreconditionUndefined(at, reason) => self.precondition_undefined(*at, *reason),
            Finding::Unsatisfiable(at) => self.unsatisfiable(*at),
            Finding::TooLarge(large) => self.too_large(*large),
            Finding::EmptyRange(var) => self.empty_range(*var),
            Finding::EmptyTensor { tensor, dimension, extent } => {
                self.empty_tensor(*tensor, *dimension, *extent)
            }
            Finding::OutOfBounds { access, dimension, index, extent, witness } => {
                self.out_of_bounds(*access, *dimension, (*index, *extent), witness)
            }
            Finding::MaybeOutOfBounds { access, .. } => self.unproved_bounds(*access),
            Finding::MissingReduction { statement, var } => self.missing_reduction(*statement, *var),
            Finding::ComputedWrite { statement, dimension } => self.computed_write(*statement, *dimension),
            Finding::RepeatedWrite { statement, element, first, second } => {
                self.repeated_write(*statement, element, first, second)
            }
            Finding::MaybeRepeatedWrite { statement } => self.unproved_writes(*statement),
            Finding::ResetInPlace { statement, read, is_update } => {
                self.reset_in_place(*statement, *read, *is_update)
            }
            Finding::InPlace { statement, read, is_same } => self.in_place(*statement, *read, *is_same),
            Finding::ReadBeforeWrite { tensor, statement, read } => {
                self.read_before_write(*tensor, *statement, *read)
            }
            Finding::UninitializedReduction { tensor, statement } => {
                self.uninitialized_reduction(*tensor, *statement)
            }
            Finding::UndefinedRead { tensor, element, access, witness } => {
                self.undefined_read(*tensor, element, *access, witness)
            }
            Finding::UndefinedResult { tensor, element, witness } => {
                self.undefined_result(*tensor, element, witness)
            }
            Finding::MaybeUndefined(tensor) => self.unproved_definedness(*tensor),
        }
    }

    fn statement(&self, at: usize) -> &model::Statement {
        &self.model.statements[at]
    }

    fn parts(&self, at: usize) -> &Parts {
        self.unchecked.statements[at].parts.as_ref().expect("the checks skip statements without parts")
    }

    fn read(&self, at: usize, read: usize) -> &Read {
        &self.parts(at).reads[read]
    }

    /// The name of the tensor that a statement writes.
    fn target_name(&self, at: usize) -> &str {
        &self.model.tensor(self.statement(at).target).text
    }

    fn too_large(&self, large: LargeNumber) -> Diagnostic {
        let error = |span: Span, what: String| {
            Diagnostic::error(Code::TooComplex, span, format!("{what} is too large"))
        };
        let limit = "numbers in an index are below 2^62";
        match large {
            LargeNumber::Range(var) => {
                let var = self.model.var(var);
                error(var.span, format!("the range of `{}`", var.name))
            }
            LargeNumber::Extent(tensor) => {
                let tensor = self.model.tensor(tensor);
                error(tensor.span, format!("`{}`", tensor.text))
            }
            LargeNumber::Subscript(AccessId { statement, read: Some(read) }) => {
                let access = &self.read(statement, read).access;
                let name = &self.model.tensor(access.tensor).text;
                error(access.origin.into(), format!("a subscript of `{name}`")).note(limit)
            }
            LargeNumber::Subscript(AccessId { statement, .. }) | LargeNumber::Statement(statement) => {
                let what = format!("an index in the statement of `{}`", self.target_name(statement));
                error(self.statement(statement).target_span, what).note(limit)
            }
        }
    }

    /// The values of an element's indices, or the extents of a tensor, in the order of the text.
    fn in_text_order<T: Clone>(&self, tensor: TensorId, items: &[T]) -> Vec<T> {
        match &self.model.tensor(tensor).stored {
            Some(stored) => stored.to_subscripts(items),
            None => items.to_vec(),
        }
    }

    fn empty_tensor(&self, tensor: TensorId, dimension: usize, extent: i64) -> Diagnostic {
        let dimension = self.place_of(tensor, dimension);
        let tensor = self.model.tensor(tensor);
        let message = format!("`{}` would have {extent} elements in dimension {dimension}", tensor.text);
        Diagnostic::error(Code::InvalidSize, tensor.span, message).label("an extent is at least 1")
    }

    /// `with N = 1, M = 2`, or an empty text where the sizes are given.
    fn sizes_text(&self, witness: &Witness) -> String {
        let name = |at: usize| &self.unchecked.symbols[at].name;
        let sizes: Vec<String> = witness
            .sizes
            .iter()
            .map(|(symbol, value)| format!("{} = {value}", name(symbol.index())))
            .collect();
        if sizes.is_empty() { String::new() } else { format!("with {}", sizes.join(", ")) }
    }

    /// Adds the sizes of the witness to the message, unless they are given.
    fn with_sizes(&self, witness: &Witness, diagnostic: Diagnostic) -> Diagnostic {
        let sizes = self.sizes_text(witness);
        if sizes.is_empty() {
            return diagnostic;
        }
        self.with_preconditions(diagnostic.note(format!("this happens, for example, {sizes}")))
    }

    /// `i = 3, j = 0`
    fn vars_text(&self, witness: &Witness) -> String {
        let name = |var: &VarId| &self.unchecked.var(*var).name;
        let vars: Vec<String> =
            witness.vars.iter().map(|(var, value)| format!("{} = {value}", name(var))).collect();
        vars.join(", ")
    }
}

impl MessageContext<'_> {
    /// The coordinate of a tensor's first element in the text.
    fn symbolic_origin(&self, tensor: TensorId, dimension: usize) -> IndexExpr {
        let origin = self.model.tensor(tensor).origin.as_ref();
        origin.and_then(|origin| origin.get(dimension)).cloned().unwrap_or_default()
    }

    /// The coordinate of a tensor's first element, at the sizes of the witness.
    fn origin(&self, tensor: TensorId, dimension: usize, witness: &Witness) -> i64 {
        let given = |symbol: SymbolId| self.model.symbols[symbol.index()].value;
        let origin = self.symbolic_origin(tensor, dimension).substitute(&mut |atom| match atom {
            Atom::Symbol(symbol) => given(*symbol).map(IndexExpr::constant),
            _ => None,
        });
        witness.eval(&origin).unwrap_or(0)
    }

    /// The access in the coordinates of the text.
    fn with_origin(&self, mut access: Access) -> Access {
        for (dimension, index) in access.indices.iter_mut().enumerate() {
            *index = index.add(&self.symbolic_origin(access.tensor, dimension));
        }
        access
    }

    /// `t(3, 0)`, for an element that is counted from the first of the tensor.
    fn element_text(&self, tensor: TensorId, element: &[i64], witness: &Witness) -> String {
        let element: Vec<String> = element
            .iter()
            .enumerate()
            .map(|(dimension, index)| (index + self.origin(tensor, dimension, witness)).to_string())
            .collect();
        let element = self.in_text_order(tensor, &element);
        format!("{}({})", self.model.tensor(tensor).text, element.join(", "))
    }
}

/// The names in messages. Subscripts are in the order of the text.
impl Names for MessageContext<'_> {
    fn var(&self, id: VarId) -> &str {
        Names::var(self.unchecked, id)
    }
    fn symbol(&self, id: SymbolId) -> &str {
        Names::symbol(self.unchecked, id)
    }
    fn tensor(&self, id: TensorId) -> &str {
        Names::tensor(self.model, id)
    }
    fn scalar(&self, id: ScalarId) -> &str {
        Names::scalar(self.unchecked, id)
    }
    fn place_of(&self, id: TensorId, dimension: usize) -> usize {
        Names::place_of(self.model, id, dimension)
    }
}
