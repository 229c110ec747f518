//! What a statement can name while it is made: its variables, and the elements of its own target that it may read.

use super::element::Element;

/// An extent: how it is written, and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    pub text: String,
    pub value: i64,
}

impl Extent {
    pub fn number(value: i64) -> Extent {
        Extent { text: value.to_string(), value }
    }
}

/// What a variable is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It stands on the left.
    Left,
    /// It is reduced.
    Reduced,
    /// It belongs to an ordered loop around the statement.
    Loop,
}

/// A variable and its range.
#[derive(Clone, Debug)]
pub struct Var {
    pub name: String,
    pub from: i64,
    pub to: Extent,
    pub kind: Kind,
}

impl Var {
    pub fn count(&self) -> i64 {
        self.to.value - self.from
    }
}

/// A tensor that statements can read or update.
#[derive(Clone, Debug)]
pub struct Known {
    pub name: String,
    pub element: Element,
    pub shape: Vec<Extent>,
    /// Whether statements may write it.
    pub writable: bool,
    /// Whether its elements are 0, 1 or 2, so that they are subscripts without a clamp.
    pub is_index: bool,
    /// What sums may still add to an element, so that it stays exact.
    pub spare: f64,
    /// Whether it is out of reach: defined in a loop that has ended.
    pub hidden: bool,
    /// Whether a statement reads it.
    pub read: bool,
    /// How it stands among the results, where it must be one or can be.
    pub result: Option<String>,
    /// Whether its type is declared, so that its size does not depend on statements.
    pub declared: bool,
    /// Whether it must be a result: the caller supplies it.
    pub in_out: bool,
}

const NAMES: [&str; 8] = ["i", "j", "k", "l", "m", "n", "o", "p"];

/// The variables of one statement.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub vars: Vec<Var>,
    /// Clauses of the `where` beside the ranges.
    pub clauses: Vec<String>,
    /// Whether new variables may come in, to be reduced.
    pub open: bool,
    /// The tensor that is written.
    pub target: Option<usize>,
    /// Elements of the target that may be read.
    pub own: Vec<String>,
}

impl Scope {
    /// Points that one statement may have.
    const MOST_POINTS: i64 = 300;

    /// The number of points so far.
    pub fn points(&self) -> i64 {
        self.vars.iter().filter(|var| var.kind != Kind::Loop).map(Var::count).product()
    }

    /// A new variable, if it does not make the statement too large.
    pub fn fresh(&mut self, from: i64, to: &Extent, kind: Kind) -> Option<String> {
        let count = to.value - from;
        if count < 1 || self.points() * count > Scope::MOST_POINTS {
            return None;
        }
        let name = NAMES.iter().find(|name| self.vars.iter().all(|var| var.name != **name))?;
        self.vars.push(Var { name: name.to_string(), from, to: to.clone(), kind });
        Some(name.to_string())
    }

    /// ` where …` with all ranges.
    pub fn ranges(&self) -> String {
        let own = self.vars.iter().filter(|var| var.kind != Kind::Loop);
        let mut clauses: Vec<String> =
            own.map(|var| format!("{} in {}:{}", var.name, var.from, var.to.text)).collect();
        clauses.extend(self.clauses.iter().cloned());
        if clauses.is_empty() { String::new() } else { format!(" where {}", clauses.join(", ")) }
    }
}
