//! Checks sizes that must be equal: the extents that calls require to be equal, and the extents of
//! dimensions that the same variable indexes.

use tilewright_ir::precondition::Consequences;
use tilewright_ir::prove::can_prove_nonnegative;
use tilewright_ir::unchecked::UncheckedProgram;
use tilewright_ir::{IndexExpr, print};

use super::model::{MixedSizes, Model};
use crate::diagnostic::{Code, Diagnostic};

/// Reports extents that a call requires to be equal and that are not. `requirements` are
/// expressions that are never negative.
pub(super) fn check_calls(model: &mut Model, unchecked: &UncheckedProgram, requirements: &[IndexExpr]) {
    let mut found = Vec::new();
    let known = unchecked.consequences();
    for equal in &model.equal_sizes {
        let (Some(left), Some(right)) = (model.with_extents(&equal.left), model.with_extents(&equal.right))
        else {
            continue;
        };
        let (left, right) =
            (unchecked.substitute_given_sizes(&left), unchecked.substitute_given_sizes(&right));
        if !are_equal(&left, &right, &known, requirements) {
            let (left, right) = (print::index(&left, unchecked), print::index(&right, unchecked));
            let message = format!("sizes differ: {left} and {right}");
            found.push(
                Diagnostic::error(Code::SizeMismatch, equal.span, message)
                    .label(format!("{} is {left}, but must be {right}", equal.description)),
            );
        }
    }
    found.into_iter().for_each(|diagnostic| model.report(diagnostic));
}

/// Refuses variables that run over two different numbers. Warns of variables whose range was cut to
/// the smaller of two sizes.
pub(super) fn check_variables(model: &mut Model, unchecked: &UncheckedProgram, requirements: &[IndexExpr]) {
    let mut found: Vec<(Option<usize>, Diagnostic)> = Vec::new();
    let known = unchecked.consequences();
    for mixed in &model.mixed_sizes {
        let (left, right) = (
            unchecked.substitute_given_sizes(&mixed.left.extent),
            unchecked.substitute_given_sizes(&mixed.right.extent),
        );
        let same = are_equal(&left, &right, &known, requirements);
        if !same && !found.iter().any(|(_, other)| other.primary.0 == mixed.right.span) {
            let at = model.statements.iter().position(|statement| statement.vars.contains(&mixed.var));
            let sizes = [print::index(&left, unchecked), print::index(&right, unchecked)];
            found.push((at, mixed_sizes(model, mixed, sizes)));
        }
    }
    for (at, diagnostic) in found {
        match at {
            Some(at) => model.report_in(at, diagnostic),
            None => model.report(diagnostic),
        }
    }
}

fn are_equal(left: &IndexExpr, right: &IndexExpr, known: &Consequences, requirements: &[IndexExpr]) -> bool {
    let difference = left.sub(right);
    can_prove_nonnegative(&difference, requirements, known)
        && can_prove_nonnegative(&difference.scale(-1), requirements, known)
}

/// The message about a variable that runs over two sizes, which are given as text.
fn mixed_sizes(model: &Model, mixed: &MixedSizes, [one, other]: [String; 2]) -> Diagnostic {
    let MixedSizes { var, left, right, certain } = mixed;
    let name = &model.var(*var).name;
    let message = format!(
        "`{name}` runs over two sizes: {one} from `{}`, but {other} from `{}`",
        left.access, right.access
    );
    let diagnostic = match certain {
        true => Diagnostic::error(Code::SizeMismatch, right.span, message),
        false => Diagnostic::warning(Code::SizeMismatch, right.span, message)
            .note("its range ends at the smaller of the two"),
    };
    diagnostic
        .label(format!("{other} here"))
        .secondary_label(left.span, format!("{one} here"))
        .help("if they must be equal, give both dimensions one name; if not, use `where` for the range")
}
