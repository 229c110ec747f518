//! Makes the messages about elements that are read, or returned to the caller, and not defined.

use tilewright_ir::check::{AccessId, Witness};
use tilewright_ir::{TensorId, print};

use super::MessageContext;
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

impl MessageContext<'_> {
    pub(super) fn read_before_write(&self, tensor: TensorId, at: usize, read: Option<usize>) -> Diagnostic {
        let name = &self.model.tensor(tensor).text;
        match read {
            Some(read) => {
                let span: Span = self.read(at, read).access.origin.into();
                let message = format!("`{name}` is read before anything defines it");
                Diagnostic::error(Code::ReadBeforeWrite, span, message).help(
                    "define it in an earlier statement, or make it a result, which the caller then supplies",
                )
            }
            None => {
                let message = format!("nothing initialises `{name}` before this reduction");
                let diagnostic =
                    Diagnostic::error(Code::ReadBeforeWrite, self.statement(at).op_span, message);
                match self.model.tensor(tensor).is_of_iteration {
                    true => diagnostic
                        .note(format!("`{name}` is another tensor in each iteration of the loop over stages"))
                        .help(format!("to reduce over the iterations, define `{name}` before the loop"))
                        .help(format!("to reduce within an iteration, write `{}!`", self.operator(at))),
                    false => diagnostic.help(self.reset_help(at)),
                }
            }
        }
    }

    pub(super) fn uninitialized_reduction(&self, tensor: TensorId, at: usize) -> Diagnostic {
        let name = &self.model.tensor(tensor).text;
        let message =
            format!("nothing initialises `{name}` before this reduction, so the caller must supply it");
        Diagnostic::warning(Code::UninitializedReduction, self.statement(at).op_span, message)
            .help(self.reset_help(at))
    }

    fn reset_help(&self, at: usize) -> String {
        format!("to start from the neutral element write `{}!`", self.operator(at))
    }

    pub(super) fn undefined_read(
        &self,
        tensor: TensorId,
        element: &[i64],
        access: AccessId,
        witness: &Witness,
    ) -> Diagnostic {
        let name = &self.model.tensor(tensor).text;
        let (span, text): (Span, String) = match access.read {
            Some(read) => {
                let access = self.with_origin(self.read(access.statement, read).access.clone());
                (access.origin.into(), print::access(&access, self))
            }
            None => (self.statement(access.statement).target_span, name.clone()),
        };
        let message = format!("`{text}` needs elements that no earlier statement defines");
        let diagnostic = Diagnostic::error(Code::ReadBeforeWrite, span, message)
            .label(format!("`{}` is not defined yet", self.element_text(tensor, element, witness)));
        self.with_sizes(witness, diagnostic)
    }

    pub(super) fn undefined_result(
        &self,
        tensor: TensorId,
        element: &[i64],
        witness: &Witness,
    ) -> Diagnostic {
        let unchecked = self.unchecked.tensor(tensor);
        let name = &self.model.tensor(tensor).text;
        let message = format!("no statement defines every element of the result `{name}`");
        let shape: Vec<String> =
            unchecked.shape.iter().flatten().map(|extent| print::index(extent, self.unchecked)).collect();
        let shape = self.in_text_order(tensor, &shape);
        let diagnostic = Diagnostic::error(Code::UndefinedElement, self.model.tensor(tensor).span, message)
            .label(format!("`{}` is never defined", self.element_text(tensor, element, witness)))
            .note(format!("`{name}` has the shape ({})", shape.join(", ")))
            .help("add a statement that defines the rest, or begin the range at 0");
        self.with_sizes(witness, diagnostic)
    }

    pub(super) fn unproved_definedness(&self, tensor: TensorId) -> Diagnostic {
        let tensor = self.model.tensor(tensor);
        let message =
            format!("could not prove that every element of `{}` is defined before it is used", tensor.text);
        Diagnostic::warning(Code::UndefinedElement, tensor.span, message).note(
            "no counterexample was found; kernels read 0 from undefined elements, and \
             `run --target interp` stops at them",
        )
    }
}
