//! Makes the message about variables of a statement whose ranges no access or clause determines.

use tilewright_ir::{VarId, print};

use super::model::Model;
use super::triangles::open_bounds;
use crate::diagnostic::{Code, Diagnostic, most_similar};

/// Reports a variable that occurs in no subscript, which is most likely a misspelt name.
fn mistyped_name(model: &Model, at: usize, open: &[VarId]) -> Option<Diagnostic> {
    let lowered = model.statements[at].lowered.as_ref()?;
    let mut indices =
        lowered.indices.iter().chain(lowered.reads.iter().flat_map(|read| &read.access.indices));
    let indexes_nothing = |var: &&VarId| !indices.any(|index| index.mentions(**var));
    let var = model.var(*open.iter().find(indexes_nothing)?);
    if var.name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let message = format!("there is no size or scalar `{}`", var.name);
    let symbols = model.symbols.iter().map(|symbol| symbol.name.as_str());
    let scalars = model.scalars.iter().map(|scalar| scalar.name.as_str());
    let tensors =
        model.tensors.iter().filter(|tensor| tensor.rank == Some(0)).map(|tensor| tensor.name.as_str());
    if model.tensors.iter().any(|tensor| tensor.text.starts_with(&format!("{}[", var.name))) {
        let message = format!("`{}` is a list of tensors, and not a value", var.name);
        let help = format!("name one of its tensors, as in `{}[0](…)`", var.name);
        return Some(Diagnostic::error(Code::UndefinedName, var.span, message).help(help));
    }
    let close = most_similar(&var.name, symbols.chain(scalars).chain(tensors));
    let diagnostic = Diagnostic::error(Code::UndefinedName, var.span, message)
        .label("nothing defines it, and no subscript contains it");
    Some(match close {
        Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
        None => diagnostic.help(format!(
            "if it is meant to be an index variable, give its range: `where {} in 0:…`",
            var.name
        )),
    })
}

/// The message about the variables of a statement that stay open: the reason, and what to write.
pub(super) fn ambiguous_variables(model: &Model, at: usize, open: &[VarId]) -> Diagnostic {
    if let Some(diagnostic) = open_bounds(model, open) {
        return diagnostic;
    }
    if let Some(diagnostic) = mistyped_name(model, at, open) {
        return diagnostic;
    }
    let statement = &model.statements[at];
    let names: Vec<String> = open.iter().map(|var| format!("`{}`", model.var(*var).name)).collect();
    let message = match names.split_last() {
        Some((last, [])) => format!("the range of {last} is ambiguous"),
        Some((last, others)) => format!("the ranges of {} and {last} are ambiguous", others.join(", ")),
        None => "a range is ambiguous".to_owned(),
    };
    let mut diagnostic = Diagnostic::error(Code::AmbiguousRange, model.var(open[0]).span, message)
        .label("no subscript or `where` clause determines its end");
    let together = statement.lowered.iter().flat_map(|lowered| &lowered.reads).find(|read| {
        read.access.indices.iter().any(|index| open.iter().filter(|var| index.mentions(**var)).count() > 1)
    });
    if let Some(read) = together {
        let text = print::access(&read.access, model);
        diagnostic = diagnostic.note(format!("a subscript of `{text}` contains several of these variables"));
    }
    let names = statement.vars.iter().map(|var| model.var(*var).name.as_str());
    let digits = names.into_iter().find(|name| name.starts_with(|c: char| c.is_ascii_digit()));
    if let Some(name) = digits {
        let digits = name.chars().take_while(char::is_ascii_digit).count();
        diagnostic = diagnostic.note(format!(
            "`{name}` is one name; a product is `{}*{}`",
            &name[..digits],
            &name[digits..]
        ));
    }
    // Once the variables of the right-hand side have ranges, those of the left-hand side often
    // follow.
    let on_left = |var: &VarId| {
        statement.lowered.iter().flat_map(|lowered| &lowered.indices).any(|index| index.mentions(*var))
    };
    let mut wanted: Vec<VarId> = open.iter().copied().filter(|var| !on_left(var)).collect();
    if wanted.is_empty() {
        wanted = open.to_vec();
    }
    let clauses: Vec<String> = wanted.iter().map(|var| format!("{} in 0:…", model.var(*var).name)).collect();
    diagnostic.help(format!("write `where {}`", clauses.join(", ")))
}
