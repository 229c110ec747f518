//! Makes subscripts within their dimension: plain, shifted, strided, reversed, clamped, guarded, or
//! from data.

use super::builder::Builder;
use super::element::is_float;
use super::scope::{Extent, Kind, Scope, Var};

/// A subscript, and the condition under which it is within its dimension.
pub struct Subscript {
    pub text: String,
    pub guard: Option<String>,
}

impl Subscript {
    pub fn plain(text: impl Into<String>) -> Subscript {
        Subscript { text: text.into(), guard: None }
    }

    fn guarded(text: String, dim: &Extent) -> Subscript {
        let guard = format!("0 <= {text} && {text} < {}", dim.text);
        Subscript { text, guard: Some(guard) }
    }
}

/// Formats the extent minus one.
pub fn last(dim: &Extent) -> String {
    match dim.text.parse::<i64>() {
        Ok(value) => (value - 1).to_string(),
        Err(_) => format!("{} - 1", dim.text),
    }
}

impl Builder<'_> {
    /// Makes a subscript of a dimension.
    pub fn subscript(&mut self, scope: &mut Scope, dim: &Extent) -> Subscript {
        if scope.open
            && self.rng.chance(40)
            && let Some(made) = self.by_new_variable(scope, dim)
        {
            return made;
        }
        if self.rng.chance(12)
            && let Some(text) = self.by_data(scope, dim)
        {
            return Subscript::plain(text);
        }
        self.by_old_variable(scope, dim)
    }

    /// Makes a subscript that introduces a variable, or a window of two variables.
    fn by_new_variable(&mut self, scope: &mut Scope, dim: &Extent) -> Option<Subscript> {
        let taps = Extent::number(self.rng.between(2, 3));
        let window = if scope.vars.is_empty() { 0 } else { 11 };
        Some(match self.rng.weighted(&[(0, 60), (1, window), (2, 8), (3, window), (4, 10)]) {
            1 => {
                let outer = self.rng.pick(&scope.vars.clone()).name.clone();
                let inner = scope.fresh(0, &taps, Kind::Reduced)?;
                Subscript::guarded(format!("{outer} + {inner} - 1"), dim)
            }
            2 => Subscript::plain(format!("{} - {}", last(dim), scope.fresh(0, dim, Kind::Reduced)?)),
            3 => {
                let outer = self.rng.pick(&scope.vars.clone()).name.clone();
                let inner = scope.fresh(0, &taps, Kind::Reduced)?;
                Subscript::plain(format!("clamp({outer} + {inner} - 1, 0, {})", last(dim)))
            }
            4 => {
                let wide = self.rng.pick(&self.pool).clone();
                Subscript::plain(format!("{} % {}", scope.fresh(0, &wide, Kind::Reduced)?, dim.text))
            }
            _ => Subscript::plain(scope.fresh(0, dim, Kind::Reduced)?),
        })
    }

    /// Makes a subscript of existing variables, or a constant.
    fn by_old_variable(&mut self, scope: &Scope, dim: &Extent) -> Subscript {
        if scope.vars.is_empty() || self.rng.chance(5) {
            return self.constant(dim);
        }
        let fits = |var: &&Var| var.from >= 0 && var.to.text == dim.text;
        let fitting: Vec<&Var> = scope.vars.iter().filter(fits).collect();
        if !fitting.is_empty() && self.rng.chance(55) {
            return Subscript::plain(self.rng.pick(&fitting).name.clone());
        }
        let var = self.rng.pick(&scope.vars).clone();
        let other = self.rng.pick(&scope.vars).name.clone();
        self.of_variable(&var, &other, dim)
    }

    pub fn constant(&mut self, dim: &Extent) -> Subscript {
        match self.rng.below(3) {
            0 => Subscript::plain(last(dim)),
            1 => Subscript::plain(self.rng.between(0, dim.value - 1).min(2).to_string()),
            _ => Subscript::plain("0"),
        }
    }

    /// Makes a subscript of one variable, and perhaps another.
    fn of_variable(&mut self, var: &Var, other: &str, dim: &Extent) -> Subscript {
        let (name, low, high) = (&var.name, var.from, var.to.value - 1);
        let top = dim.value - 1;
        match self.rng.below(17) {
            0 if low >= 0 && high < top => {
                Subscript::plain(format!("{name} + {}", self.rng.between(1, top - high)))
            }
            1 if low >= 1 && high - 1 <= top => Subscript::plain(format!("{name} - 1")),
            2 if low >= 0 && high <= top => Subscript::plain(format!("{} - {name}", last(dim))),
            3 if low >= 0 && 2 * high < top => Subscript::plain(format!("2*{name} + 1")),
            4 if low >= 0 && high / 2 <= top => Subscript::plain(format!("{name}/2")),
            5 => Subscript::plain(format!("({name} + {other}) % {}", dim.text)),
            6 if low >= 0 => Subscript::plain(format!("min({name}, {})", last(dim))),
            7 => Subscript::plain(format!("clamp({name} - 1, 0, {})", last(dim))),
            8 => Subscript::plain(format!("clamp({name} - {other} + 1, 0, {})", last(dim))),
            9 => Subscript::guarded(format!("{name} - {other}"), dim),
            10 => Subscript::guarded(format!("{name} + {}", self.rng.between(-2, 2)), dim),
            11 => Subscript::plain(format!("({name} + 1) % {}", dim.text)),
            12 if low >= 0 && high / 2 <= top => Subscript::plain(format!("{name} >> 1")),
            13 if low >= 0 && 2 * high <= top => Subscript::plain(format!("{name} << 1")),
            14 if top >= 3 => Subscript::plain(format!("{name} & 3")),
            15 => Subscript::plain(format!("min(2 ** {name}, {})", last(dim))),
            16 => Subscript::plain(format!("clamp({name} ^ 1, 0, {})", last(dim))),
            _ if low >= 0 && high <= top => Subscript::plain(name.clone()),
            _ => Subscript::plain(format!("clamp({name}, 0, {})", last(dim))),
        }
    }

    /// Makes a subscript that is read from an integer tensor.
    pub fn by_data(&mut self, scope: &mut Scope, dim: &Extent) -> Option<String> {
        let usable = |at: &usize| {
            let known = &self.tensors[*at];
            !known.hidden && !is_float(known.element) && scope.target != Some(*at)
        };
        let usable: Vec<usize> = (0..self.tensors.len()).filter(usable).collect();
        if usable.is_empty() {
            return None;
        }
        let at = *self.rng.pick(&usable);
        let shape = self.tensors[at].shape.clone();
        let mut inner = Vec::new();
        for dim in &shape {
            inner.push(self.of_data(scope, dim));
        }
        self.tensors[at].read = true;
        let known = &self.tensors[at];
        let (is_index, text) = (known.is_index, format!("{}({})", known.name, inner.join(", ")));
        Some(self.kept_inside(scope, text, is_index, dim))
    }

    /// Makes the subscript of a tensor that itself provides subscripts. It needs no guard.
    fn of_data(&mut self, scope: &mut Scope, dim: &Extent) -> String {
        if scope.open
            && self.rng.chance(40)
            && let Some(name) = scope.fresh(0, dim, Kind::Reduced)
        {
            return name;
        }
        let made = self.by_old_variable(scope, dim);
        if made.guard.is_none() { made.text } else { "0".to_string() }
    }

    /// Restricts a number from data to a dimension.
    fn kept_inside(&mut self, scope: &mut Scope, text: String, is_index: bool, dim: &Extent) -> String {
        if is_index && dim.value >= 3 && self.rng.chance(60) {
            if self.rng.chance(30) && scope.clauses.is_empty() {
                scope.clauses.push(format!("at = {text}, at in 0:{}", dim.text));
                return "at".to_string();
            }
            return text;
        }
        let var = if scope.vars.is_empty() { "1" } else { &self.rng.pick(&scope.vars).name.clone() };
        match self.rng.below(7) {
            0 => format!("{text} % {}", dim.text),
            1 => format!("min(max({text} + {var}, 0), {})", last(dim)),
            2 => format!("clamp({text}/2 - {var}, 0, {})", last(dim)),
            3 => format!("({text} + {var}) % {}", dim.text),
            _ => format!("clamp({text}, 0, {})", last(dim)),
        }
    }
}
