//! What somebody may have meant who writes as in other languages, or mistypes.

use crate::ast::type_names;
use crate::diagnostic::similar;

/// What to write in the place of a word that stands where only a new statement could begin.
pub(super) fn of_word(word: &str) -> Option<String> {
    let known = match word {
        "and" => "logical and is `&&`",
        "or" => "logical or is `||`",
        "not" => "logical not is `!`",
        "if" | "else" | "then" => "a choice is written `condition ? value : other`",
        _ => return similar(word, ["where"]).map(|close| format!("did you mean `{close}`?")),
    };
    Some(known.to_owned())
}

/// What to write in the place of a word that is no type.
pub(super) fn of_type(word: &str) -> Option<String> {
    similar(word, type_names()).map(|close| format!("did you mean `{close}`?"))
}

/// What to write in the place of two symbols in a row.
pub(super) fn of_symbols(before: &str, found: &str) -> Option<String> {
    match (before, found) {
        ("*", "*") => Some("powers are written pow(x, y)".to_owned()),
        ("+", "+") | ("-", "-") => Some("there is no counting up or down: write `+ 1`".to_owned()),
        _ => None,
    }
}
