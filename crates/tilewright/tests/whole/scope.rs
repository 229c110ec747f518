//! Records the names that a generated statement can use: its variables, and the elements of its own
//! target that it may read.

use super::element::Element;

/// An extent as text, and its value.
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

/// The role of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The variable is on the left-hand side.
    Left,
    /// The variable is reduced.
    Reduced,
    /// The variable belongs to an ordered loop around the statement.
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
pub struct TensorInfo {
    pub name: String,
    pub element: Element,
    pub shape: Vec<Extent>,
    /// Whether statements may write it.
    pub writable: bool,
    /// Whether the elements are 0, 1 or 2, so that they can be subscripts without a clamp.
    pub is_index: bool,
    /// The amount that sums may still add to an element so that it stays exact.
    pub headroom: f64,
    /// Whether the tensor cannot be used, because it was defined in a loop that has ended.
    pub hidden: bool,
    /// Whether a statement reads the tensor.
    pub read: bool,
    /// The declaration of the tensor in the list of results, where it has one.
    pub result: Option<String>,
    /// Whether the type is declared, so that the shape does not depend on statements.
    pub declared: bool,
    /// Whether the caller supplies the tensor, so that it must be a result.
    pub in_out: bool,
}

const NAMES: [&str; 8] = ["i", "j", "k", "l", "m", "n", "o", "p"];

/// The variables of one statement.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub vars: Vec<Var>,
    /// Clauses of `where` besides the ranges.
    pub clauses: Vec<String>,
    /// Whether the statement may introduce new variables that are reduced.
    pub open: bool,
    /// The tensor that the statement writes.
    pub target: Option<usize>,
    /// Elements of the target that the statement may read.
    pub own: Vec<String>,
}

impl Scope {
    /// The maximum number of points of a statement.
    const MOST_POINTS: i64 = 300;

    /// The number of points so far.
    pub fn points(&self) -> i64 {
        self.vars.iter().filter(|var| var.kind != Kind::Loop).map(Var::count).product()
    }

    /// Introduces a variable, unless it makes the statement too large.
    pub fn fresh(&mut self, from: i64, to: &Extent, kind: Kind) -> Option<String> {
        let count = to.value - from;
        if count < 1 || self.points() * count > Scope::MOST_POINTS {
            return None;
        }
        let name = NAMES.iter().find(|name| self.vars.iter().all(|var| var.name != **name))?;
        self.vars.push(Var { name: name.to_string(), from, to: to.clone(), kind });
        Some(name.to_string())
    }

    /// Formats ` where …` with all ranges.
    pub fn ranges(&self) -> String {
        let own = self.vars.iter().filter(|var| var.kind != Kind::Loop);
        let mut clauses: Vec<String> =
            own.map(|var| format!("{} in {}:{}", var.name, var.from, var.to.text)).collect();
        clauses.extend(self.clauses.iter().cloned());
        if clauses.is_empty() { String::new() } else { format!(" where {}", clauses.join(", ")) }
    }
}
