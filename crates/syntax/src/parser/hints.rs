//! Chooses the hint in the help text of a syntax error, from the words or symbols at the error.
//! Hints cover habits from other languages and misspellings.

use crate::ast::type_names;
use crate::diagnostic::most_similar;

/// The hint for a word in a position where only a new statement could begin.
pub(super) fn word_hint(word: &str) -> Option<String> {
    let known = match word {
        "and" => "logical and is `&&`",
        "or" => "logical or is `||`",
        "not" => "logical not is `!`",
        "if" | "else" | "then" => "a choice is written `condition ? value : other`",
        "let" | "var" | "val" | "auto" | "const" => {
            "a statement defines a tensor without a word before it: `a = 3`, or `a(i) = …`"
        }
        "while" | "loop" | "foreach" => "an ordered loop is `for t in 0:T { … }`",
        "return" => "results are listed after the arrow: `-> (y)`, and statements define them",
        _ => return most_similar(word, ["where"]).map(|close| format!("did you mean `{close}`?")),
    };
    Some(known.to_owned())
}

/// The hint for a word that is not a type.
pub(super) fn type_hint(word: &str) -> Option<String> {
    most_similar(word, type_names()).map(|close| format!("did you mean `{close}`?"))
}

/// The hint for two symbols in a row.
pub(super) fn symbols_hint(before: &str, found: &str) -> Option<String> {
    match (before, found) {
        ("*", "*") => Some("a power is written `x ** y`, without a space in the operator".to_owned()),
        ("&", "&") => Some("logical and is `&&`, without a space".to_owned()),
        ("|", "|") => Some("logical or is `||`, without a space".to_owned()),
        ("+", "+") | ("-", "-") => Some("there is no `++` and no `--`: write `+ 1` or `- 1`".to_owned()),
        _ => None,
    }
}
