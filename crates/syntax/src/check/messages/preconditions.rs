//! Makes the messages about preconditions that fail, or that no sizes satisfy.

use std::collections::BTreeSet;

use tilewright_ir::check::Undefined;
use tilewright_ir::unchecked::add_symbols;

use super::MessageContext;
use crate::check::model::ModelPrecondition;
use crate::check::preconditions::{sides_text, values_text};
use crate::diagnostic::{Code, Diagnostic};

impl MessageContext<'_> {
    /// A precondition that fails at the given sizes, or that compares numbers.
    pub(super) fn precondition_fails(&self, at: usize) -> Diagnostic {
        let own = &self.model.preconditions[at];
        let general = own.in_program();
        let values = values_text(self.model, &general);
        if values.is_empty() {
            return self.unsatisfiable(at);
        }
        let message = format!("the sizes violate the precondition `{}`", general.text(self.model));
        let sides = sides_text(self.model, &general, &self.unchecked.preconditions[at]);
        let label = match sides.is_empty() {
            true => format!("here {values}"),
            false => format!("here {values}, and {sides}"),
        };
        with_call(own, Diagnostic::error(Code::Precondition, own.span, message).label(label))
    }

    /// A precondition that has no value at the given sizes.
    pub(super) fn precondition_undefined(&self, at: usize, reason: Undefined) -> Diagnostic {
        let own = &self.model.preconditions[at];
        let general = own.in_program();
        let message = match reason {
            Undefined::DivisionByZero => {
                format!("the precondition `{}` divides by 0", general.text(self.model))
            }
            Undefined::TooLarge => {
                format!("a number in the precondition `{}` is too large", general.text(self.model))
            }
        };
        let diagnostic = Diagnostic::error(Code::Precondition, own.span, message);
        let values = values_text(self.model, &general);
        let diagnostic = match values.is_empty() {
            true => diagnostic,
            false => diagnostic.label(format!("here {values}")),
        };
        with_call(
            own,
            match reason {
                Undefined::DivisionByZero => diagnostic.help("require before it that the divisor is not 0"),
                Undefined::TooLarge => diagnostic.note("sizes are 64-bit integers"),
            },
        )
    }

    /// A precondition that never holds.
    pub(super) fn unsatisfiable(&self, at: usize) -> Diagnostic {
        let own = &self.model.preconditions[at];
        let text = self.unchecked.preconditions[at].text(self.unchecked);
        let message = match (&own.call, at) {
            (Some(call), _) => format!("`{}` requires `{}`, which never holds here", call.callee, call.text),
            (None, _) if !own.statics.is_empty() => format!("the precondition `{text}` does not hold"),
            (None, 0) => format!("no sizes satisfy the precondition `{text}`"),
            (None, _) => format!("no sizes satisfy the precondition `{text}` and those before it"),
        };
        let diagnostic = with_call(own, Diagnostic::error(Code::Precondition, own.span, message));
        let statics: Vec<String> =
            own.statics.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let diagnostic = match statics.is_empty() {
            true => diagnostic,
            false => diagnostic.label(format!("here {}", statics.join(", "))),
        };
        let mut sizes = BTreeSet::new();
        [&own.left, &own.right].into_iter().for_each(|side| add_symbols(side, &mut sizes));
        if !sizes.is_empty() { diagnostic.note("every size is at least 1") } else { diagnostic }
    }

    /// Adds the preconditions that sizes of a counterexample satisfy.
    pub(super) fn with_preconditions(&self, diagnostic: Diagnostic) -> Diagnostic {
        let all = self.unchecked.preconditions.iter().filter(|own| own.holds().is_none());
        let text: Vec<String> = all.map(|own| format!("`{}`", own.text(self.unchecked))).collect();
        match text.is_empty() {
            true => diagnostic,
            false => diagnostic.note(format!("these sizes satisfy {}", text.join(" and "))),
        }
    }
}

/// Adds the position of the call whose function has the precondition.
fn with_call(precondition: &ModelPrecondition, diagnostic: Diagnostic) -> Diagnostic {
    match &precondition.call {
        Some(call) => diagnostic.secondary_label(call.span, format!("`{}` is called here", call.callee)),
        None => diagnostic,
    }
}
