//! Makes the messages about left-hand sides: missing reductions, repeated writes, and statements
//! that read the tensor that they overwrite or reset.

use tilewright_ir::check::Witness;
use tilewright_ir::{VarId, print};

use super::MessageContext;
use crate::ast::AssignOp;
use crate::diagnostic::{Code, Diagnostic};

impl MessageContext<'_> {
    pub(super) fn missing_reduction(&self, at: usize, var: VarId) -> Diagnostic {
        let var = self.model.var(var);
        let name = &var.name;
        let message = format!("`{name}` is only on the right-hand side, and `=` does not reduce over it");
        let many = format!("`{name}` takes many values for one element of `{}`", self.target_name(at));
        Diagnostic::error(Code::MissingReduction, self.statement(at).op_span, message)
            .label("no reduction here")
            .secondary_label(var.span, many)
            .help("to add them up write `+=!`; there are `*=!`, `min=!` and `max=!` too")
    }

    pub(super) fn computed_write(&self, at: usize, dimension: usize) -> Diagnostic {
        let statement = self.statement(at);
        let index = statement.resolved.indices.get(dimension);
        let span = index.map_or(statement.target_span, |value| value.span);
        let message = "an index that depends on data may name one element twice";
        Diagnostic::error(Code::RepeatedWrite, span, message)
            .help("scatter with a reduction, which does not depend on the order: `+=`, `max=`, …")
    }

    pub(super) fn repeated_write(
        &self,
        at: usize,
        element: &[i64],
        first: &Witness,
        second: &Witness,
    ) -> Diagnostic {
        let name = self.target_name(at);
        let element = self.element_text(self.statement(at).target, element, second);
        let (one, other) = (self.vars_text(first), self.vars_text(second));
        let message = format!("this assigns some element of `{name}` more than once");
        let label = format!("`{element}` is assigned at {one} and at {other}");
        self.with_sizes(second, self.repeated(at, message).label(label))
    }

    pub(super) fn unproved_writes(&self, at: usize) -> Diagnostic {
        let message = format!("this may assign some element of `{}` more than once", self.target_name(at));
        let label = "could not prove that different values of the variables give different indices";
        self.repeated(at, message).label(label)
    }

    fn repeated(&self, at: usize, message: String) -> Diagnostic {
        Diagnostic::error(Code::RepeatedWrite, self.statement(at).target_span, message)
            .help("use a reduction, or an index that differs for different values of the variables")
    }

    pub(super) fn reset_in_place(&self, at: usize, read: usize, is_update: bool) -> Diagnostic {
        let (statement, name) = (self.statement(at), self.target_name(at));
        let access = &self.read(at, read).access;
        let operator = self.operator(at);
        let indices: Vec<String> =
            self.parts(at).indices.iter().map(|index| print::index(index, self.unchecked)).collect();
        let element = format!("{name}({})", indices.join(", "));
        let text = print::access(access, self);
        let message = format!("`{operator}!` resets `{name}`, and the same statement reads `{text}`");
        let diagnostic = Diagnostic::error(Code::ResetInPlace, access.origin.into(), message)
            .label("the target itself is read here")
            .secondary_label(statement.op_span, format!("`{element}` is set to the neutral element here"));
        diagnostic.help(match is_update {
            true => format!(
                "to compute the element from its old value write `{element} = …`; to go on from the old value write `{operator}` without `!`"
            ),
            false => format!(
                "reduce into another tensor, and assign that: `{element} = …`; or, to go on from the old values, write `{operator}` without `!`"
            ),
        })
    }

    /// The operator of a statement, without its exclamation mark.
    pub(super) fn operator(&self, at: usize) -> &'static str {
        match self.statement(at).op {
            AssignOp::Assign => "=",
            AssignOp::Reduce { op, .. } => op.symbol(),
        }
    }

    pub(super) fn in_place(&self, at: usize, read: usize, is_same: bool) -> Diagnostic {
        let access = &self.read(at, read).access;
        let text = print::access(access, self);
        let message = format!("this statement reads `{text}` while it overwrites `{}`", self.target_name(at));
        let diagnostic = Diagnostic::error(Code::InPlace, access.origin.into(), message)
            .secondary_label(self.statement(at).target_span, "written here");
        if is_same {
            return diagnostic
                .label("the element changes while values are reduced into it")
                .help("compute the right-hand side into another tensor first");
        }
        diagnostic.label("the value may already be overwritten").help(
            "write into another tensor; or, if the order matters, use an ordered loop: `for t in 1:T { … }`",
        )
    }
}
