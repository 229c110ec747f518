//! Holds the text of a generated program in parts, so that a failing program can be made smaller
//! part by part.

use std::fmt::{self, Display, Formatter};

/// A statement, or an ordered loop around statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A statement or a declaration, as it is written.
    Line(String),
    /// `for VAR in FROM:TO { … }`.
    For { var: String, from: i64, to: String, body: Vec<Node> },
}

/// One function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Parameters with their types.
    pub params: Vec<String>,
    /// Results, with or without a type.
    pub results: Vec<String>,
    pub body: Vec<Node>,
}

/// A source file. The program is its last function, [`MAIN`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub functions: Vec<Function>,
    /// The sizes and integer scalars of the program, with their values.
    pub sizes: Vec<(String, i64)>,
}

/// The name of the function that is compiled.
pub const MAIN: &str = "f";

/// Replaces a word in a text.
pub fn with_word(text: &str, old: &str, new: &str) -> String {
    let mut made = String::new();
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
    let mut rest = text;
    while let Some(at) = rest.find(is_part) {
        let end = rest[at..].find(|letter| !is_part(letter)).map_or(rest.len(), |own| at + own);
        made.push_str(&rest[..at]);
        made.push_str(if &rest[at..end] == old { new } else { &rest[at..end] });
        rest = &rest[end..];
    }
    made + rest
}

impl Node {
    /// Replaces a word in the node.
    pub fn with_word(&self, old: &str, new: &str) -> Node {
        match self {
            Node::Line(text) => Node::Line(with_word(text, old, new)),
            Node::For { var, from, to, body } => Node::For {
                var: var.clone(),
                from: *from,
                to: with_word(to, old, new),
                body: body.iter().map(|node| node.with_word(old, new)).collect(),
            },
        }
    }

    /// Whether the node mentions a name.
    pub fn names(&self, name: &str) -> bool {
        match self {
            Node::Line(text) => text.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == name),
            Node::For { body, .. } => body.iter().any(|node| node.names(name)),
        }
    }

    fn write(&self, f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
        let margin = "  ".repeat(depth);
        match self {
            Node::Line(text) => writeln!(f, "{margin}{text}"),
            Node::For { var, from, to, body } => {
                writeln!(f, "{margin}for {var} in {from}:{to} {{")?;
                body.iter().try_for_each(|node| node.write(f, depth + 1))?;
                writeln!(f, "{margin}}}")
            }
        }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for function in &self.functions {
            let (params, results) = (function.params.join(", "), function.results.join(", "));
            writeln!(f, "def {}({params}) -> ({results}) {{", function.name)?;
            function.body.iter().try_for_each(|node| node.write(f, 1))?;
            writeln!(f, "}}")?;
        }
        Ok(())
    }
}

impl Source {
    /// Formats the sizes for the option `--sizes`.
    pub fn size_list(&self) -> String {
        let pairs: Vec<String> = self.sizes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join(",")
    }
}
