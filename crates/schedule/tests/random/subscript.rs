//! Subscripts that stay inside a dimension, or state the condition under which they do.

use super::rng::Rng;

/// Names for the variables of a statement.
const NAMES: [&str; 7] = ["i", "j", "k", "l", "m", "p", "q"];

/// A number of values, as text and as a number.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The number in terms of sizes.
    pub text: String,
    /// The number for the given sizes.
    pub value: i64,
}

impl Extent {
    /// An extent that is a number.
    pub fn number(value: i64) -> Extent {
        Extent { text: value.to_string(), value }
    }

    /// The extent plus a number.
    pub fn plus(&self, by: i64) -> Extent {
        match by {
            0 => self.clone(),
            1.. => Extent { text: format!("{} + {by}", self.text), value: self.value + by },
            _ => Extent { text: format!("{} - {}", self.text, -by), value: self.value + by },
        }
    }

    /// The extent times another.
    pub fn times(&self, by: &Extent) -> Extent {
        Extent { text: format!("({})*({})", self.text, by.text), value: self.value * by.value }
    }

    /// The quotient, rounded down.
    pub fn over(&self, by: i64) -> Extent {
        Extent { text: format!("({})/{by}", self.text), value: self.value / by }
    }
}

/// A variable and its range.
#[derive(Clone, Debug)]
pub struct Var {
    /// Its name.
    pub name: &'static str,
    /// Its first value.
    pub from: i64,
    /// One past its last.
    pub to: Extent,
}

impl Var {
    /// The number of its values.
    pub fn count(&self) -> i64 {
        self.to.value - self.from
    }

    /// Its range as a `where` clause states it.
    pub fn clause(&self) -> String {
        format!("{} in {}:{}", self.name, self.from, self.to.text)
    }
}

/// The variables of a statement under construction.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Its variables.
    pub vars: Vec<Var>,
    /// Names that the loops around it have.
    pub taken: Vec<&'static str>,
}

impl Scope {
    /// The most points that one statement may have.
    const MOST_POINTS: i64 = 1500;

    /// The number of points so far.
    pub fn points(&self) -> i64 {
        self.vars.iter().map(Var::count).product()
    }

    /// A new variable, if it does not make the statement too large.
    pub fn fresh(&mut self, from: i64, to: &Extent) -> Option<&'static str> {
        let count = to.value - from;
        if count < 1 || self.points() * count > Scope::MOST_POINTS {
            return None;
        }
        let free =
            |name: &&&str| !self.taken.contains(name) && self.vars.iter().all(|var| var.name != **name);
        let name = NAMES.iter().find(free)?;
        self.vars.push(Var { name, from, to: to.clone() });
        Some(name)
    }
}

/// One subscript.
pub struct Subscript {
    /// Its text.
    pub text: String,
    /// The condition that keeps it inside, where its text alone does not.
    pub guard: Option<String>,
}

impl Subscript {
    fn plain(text: String) -> Subscript {
        Subscript { text, guard: None }
    }

    fn guarded(text: String, dim: &Extent) -> Subscript {
        let guard = format!("0 <= {text} && {text} < {}", dim.text);
        Subscript { text, guard: Some(guard) }
    }
}

/// A subscript for a dimension. In `new` of a hundred cases it has a new variable.
pub fn subscript(rng: &mut Rng, scope: &mut Scope, dim: &Extent, new: usize) -> Subscript {
    let made = if scope.vars.is_empty() || rng.chance(new) { with_new(rng, scope, dim) } else { None };
    made.unwrap_or_else(|| with_old(rng, scope, dim))
}

/// A subscript that adds one or two variables.
fn with_new(rng: &mut Rng, scope: &mut Scope, dim: &Extent) -> Option<Subscript> {
    let form = rng.weighted(&[
        (0, 50),
        (1, 7),
        (2, 8),
        (3, 5),
        (4, 6),
        (5, 4),
        (6, 4),
        (7, 4),
        (8, 10),
        (9, 4),
        (10, 5),
    ]);
    let text = match form {
        1 => {
            let by = rng.between(1, 2);
            format!("{} + {by}", scope.fresh(0, &dim.plus(-by))?)
        }
        2 => window(rng, scope, dim, 1)?,
        3 => {
            let by = rng.between(0, 1);
            format!("2*{} + {by}", scope.fresh(0, &dim.over(2))?)
        }
        4 => window(rng, scope, dim, 2)?,
        5 => format!("{}/2", scope.fresh(0, &dim.times(&Extent::number(2)))?),
        6 => format!("{} % ({})", scope.fresh(0, &dim.plus(3))?, dim.text),
        7 => format!("{} - 1 - {}", dim.text, scope.fresh(0, dim)?),
        8 => return padded(rng, scope, dim),
        9 => scope.fresh(1, dim)?.to_string(),
        10 => return transposed(rng, scope, dim),
        _ => scope.fresh(0, dim)?.to_string(),
    };
    Some(Subscript::plain(text))
}

/// `stride*i + k`.
fn window(rng: &mut Rng, scope: &mut Scope, dim: &Extent, stride: i64) -> Option<String> {
    let taps = rng.between(2, 3);
    let outer = if stride == 1 { dim.plus(1 - taps) } else { dim.plus(stride - taps).over(stride) };
    let (outer, inner) = (scope.fresh(0, &outer)?, scope.fresh(0, &Extent::number(taps))?);
    Some(if stride == 1 { format!("{outer} + {inner}") } else { format!("{stride}*{outer} + {inner}") })
}

/// `i + k - 1`, guarded by its condition.
fn padded(rng: &mut Rng, scope: &mut Scope, dim: &Extent) -> Option<Subscript> {
    let (outer, inner) = (scope.fresh(0, dim)?, scope.fresh(0, &Extent::number(rng.between(2, 3)))?);
    Some(Subscript::guarded(format!("{outer} + {inner} - 1"), dim))
}

/// `(i + 1 - k)/2` where there is no remainder.
fn transposed(rng: &mut Rng, scope: &mut Scope, dim: &Extent) -> Option<Subscript> {
    let (by, stride) = (rng.between(0, 2), rng.between(2, 3));
    let outer = scope.fresh(0, &dim.times(&Extent::number(stride)))?;
    let inner = scope.fresh(0, &Extent::number(rng.between(2, 4)))?;
    let number = format!("({outer} + {by} - {inner})");
    let inside = Subscript::guarded(format!("{number}/{stride}"), dim);
    let guard = inside.guard.map(|guard| format!("{number} % {stride} == 0 && {guard}"));
    Some(Subscript { guard, ..inside })
}

/// A subscript made of existing variables.
fn with_old(rng: &mut Rng, scope: &Scope, dim: &Extent) -> Subscript {
    if scope.vars.is_empty() || rng.chance(4) {
        return Subscript::plain(if rng.chance(50) { "0".to_string() } else { format!("{} - 1", dim.text) });
    }
    let var = rng.pick(&scope.vars).clone();
    let slack = dim.value - var.to.value;
    if slack >= 0 && rng.chance(80) {
        let by = rng.between(0, slack.min(2));
        return Subscript::plain(if by == 0 { var.name.to_string() } else { format!("{} + {by}", var.name) });
    }
    let other = rng.pick(&scope.vars);
    match rng.below(6) {
        0 => Subscript::plain(format!("clamp({} - 1, 0, {} - 1)", var.name, dim.text)),
        1 => Subscript::plain(format!("({} + {}) % ({})", var.name, other.name, dim.text)),
        2 => Subscript::plain(format!("min({}, {} - 1)", var.name, dim.text)),
        3 if var.to.value <= 2 * dim.value => Subscript::plain(format!("{}/2", var.name)),
        4 => Subscript::guarded(format!("{} - {}", var.name, other.name), dim),
        _ => Subscript::guarded(format!("{} - {}", var.name, rng.between(0, 2)), dim),
    }
}
