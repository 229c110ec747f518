//! Settles the preconditions of called functions, once the extents of all tensors are known.
//!
//! A precondition that follows from the ranges of variables and from the preconditions before it is
//! dropped. Any other becomes a precondition of the program, so that its caller must satisfy it,
//! unless it mentions the variable of a loop: then it is refused.

use tilewright_ir::prove::can_prove_nonnegative;
use tilewright_ir::{BinaryOp, Precondition, print};

use super::model::{Model, ModelPrecondition};
use crate::diagnostic::{Code, Diagnostic};

/// Proves or keeps each precondition of a called function.
pub(super) fn settle_calls(model: &mut Model) {
    let all = std::mem::take(model.preconditions.edit());
    let (own, of_calls): (Vec<_>, Vec<_>) = all.into_iter().partition(|own| own.call.is_none());
    *model.preconditions.edit() = own;
    for mut precondition in of_calls {
        let sides = (model.with_extents(&precondition.left), model.with_extents(&precondition.right));
        // A mistake that hides an extent has been reported.
        let (Some(left), Some(right)) = sides else { continue };
        (precondition.left, precondition.right) = (left, right);
        if is_proved(model, &precondition) {
            continue;
        }
        match precondition.left.vars().is_empty() && precondition.right.vars().is_empty() {
            true => model.preconditions.edit().push(precondition),
            false => report_loop_variable(model, &precondition),
        }
    }
}

/// Returns true when the precondition follows from what is known without it.
fn is_proved(model: &Model, precondition: &ModelPrecondition) -> bool {
    let is_nonnegative = |expr: &_| can_prove_nonnegative(expr, &[], model);
    let precondition = precondition.in_program();
    if let Some(holds) = precondition.holds() {
        return holds;
    }
    if precondition.op == BinaryOp::NotEqual {
        let difference = precondition.left.sub(&precondition.right);
        return is_nonnegative(&difference.offset(-1)) || is_nonnegative(&difference.scale(-1).offset(-1));
    }
    precondition.inequalities().iter().all(is_nonnegative)
}

fn report_loop_variable(model: &mut Model, precondition: &ModelPrecondition) {
    let Some(call) = &precondition.call else { return };
    let message = format!("`{}` requires `{}`, which could not be proved here", call.callee, call.text);
    let diagnostic = Diagnostic::error(Code::Precondition, call.span, message)
        .secondary_label(precondition.span, "the precondition")
        .note("it depends on the variable of a loop, so the caller cannot require it of the sizes");
    model.report(diagnostic);
}

/// The preconditions of the program.
pub(super) fn of_program(model: &Model) -> Vec<Precondition> {
    model.preconditions.iter().map(ModelPrecondition::in_program).collect()
}

/// The values of the symbols in a precondition: `C = 7, G = 2`.
pub(super) fn values_text(model: &Model, precondition: &Precondition) -> String {
    let mut symbols = std::collections::BTreeSet::new();
    tilewright_ir::unchecked::add_symbols(&precondition.left, &mut symbols);
    tilewright_ir::unchecked::add_symbols(&precondition.right, &mut symbols);
    let known = symbols.iter().filter_map(|symbol| {
        let symbol = &model.symbols[symbol.index()];
        Some(format!("{} = {}", symbol.name, symbol.value?))
    });
    known.collect::<Vec<_>>().join(", ")
}

/// The values of the sides that are not numbers in the text: `C % G is 1`.
pub(super) fn sides_text(model: &Model, general: &Precondition, at_sizes: &Precondition) -> String {
    let sides = [(&general.left, &at_sizes.left), (&general.right, &at_sizes.right)];
    let computed = sides.into_iter().filter(|(general, _)| general.as_constant().is_none());
    let is_plain = |expr: &&tilewright_ir::IndexExpr| {
        expr.constant_part() == 0
            && matches!(expr.terms(), [term] if term.coefficient == 1
            && matches!(term.factors.as_slice(), [tilewright_ir::Atom::Symbol(_)]))
    };
    let text = computed.filter(|(general, _)| !is_plain(general)).map(|(general, value)| {
        format!("{} is {}", print::index(general, model), print::index(value, model))
    });
    text.collect::<Vec<_>>().join(" and ")
}
