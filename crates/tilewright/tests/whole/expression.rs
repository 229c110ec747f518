//! Makes the values of statements: trees of loads, variables and numbers of mixed types.
//!
//! Floats are integers so small that every order of a sum gives the same bits. Each [`Value`] has a
//! bound of its magnitude, and is reduced to a smaller range where it would get too large. Integers
//! may wrap.

use super::builder::Builder;
use super::element::{Element, any, any_integer, common_integer, is_float, is_unsigned, most};
use super::scope::Scope;

/// An expression with its type, and a bound of its magnitude.
#[derive(Clone, Debug)]
pub struct Value {
    pub text: String,
    pub element: Element,
    pub most: f64,
}

/// Integers up to this bound are exact while an expression is computed.
fn exact(element: Element) -> f64 {
    match element {
        "float64" => (1u64 << 53) as f64,
        _ if is_float(element) => f64::from(1 << 24),
        _ => f64::INFINITY,
    }
}

impl Builder<'_> {
    /// Makes a value of a type.
    pub fn value(&mut self, scope: &mut Scope, element: Element, depth: usize) -> Value {
        let value = self.tree(scope, element, depth);
        self.converted(value, element)
    }

    fn tree(&mut self, scope: &mut Scope, wanted: Element, depth: usize) -> Value {
        if depth == 0 || self.rng.chance(15) {
            return self.leaf(scope, wanted);
        }
        let forms = [(0, 32), (1, 12), (2, 12), (3, 12), (4, 8), (5, 8), (6, 6), (7, 3), (8, 14)];
        match self.rng.weighted(&forms) {
            0 => self.sum(scope, wanted, depth),
            1 => self.product(scope, wanted, depth),
            2 => self.extreme(scope, wanted, depth),
            3 => self.choice(scope, wanted, depth),
            4 => self.cast(scope, wanted, depth),
            5 => self.quotient(scope, wanted, depth),
            6 => {
                let value = self.tree(scope, wanted, depth - 1);
                let value = self.narrowed(value, 50_000.0);
                Value { text: format!("({}*2 + 1)", value.text), most: 2.0 * value.most + 1.0, ..value }
            }
            7 => {
                let value = self.tree(scope, wanted, depth - 1);
                Value { text: format!("abs({})", value.text), ..value }
            }
            _ => self.bits(scope, wanted, depth),
        }
    }

    /// Makes two values whose types have a common type, and returns that type too.
    fn pair(&mut self, scope: &mut Scope, wanted: Element, depth: usize) -> (Value, Value, Element) {
        let (left, right) = (self.tree(scope, wanted, depth - 1), self.tree(scope, wanted, depth - 1));
        if left.element == right.element {
            let element = left.element;
            return (left, right, element);
        }
        let integers = !is_float(left.element) && !is_float(right.element);
        if let Some(common) = common_integer(left.element, right.element)
            && integers
            && self.rng.chance(70)
        {
            return (left, right, common);
        }
        (self.converted(left, wanted), self.converted(right, wanted), wanted)
    }

    fn sum(&mut self, scope: &mut Scope, wanted: Element, depth: usize) -> Value {
        let (left, right, element) = self.pair(scope, wanted, depth);
        let (left, right) =
            (self.narrowed(left, exact(element) / 4.0), self.narrowed(right, exact(element) / 4.0));
        let operator = if self.rng.chance(70) { "+" } else { "-" };
        let text = format!("({} {operator} {})", left.text, right.text);
        Value { text, element, most: left.most + right.most }
    }

    fn product(&mut self, scope: &mut Scope, wanted: Element, depth: usize) -> Value {
        let (left, right, element) = self.pair(scope, wanted, depth);
        let (left, right) = (self.narrowed(left, 1000.0), self.narrowed(right, 1000.0));
        let text = format!("({} * {})", left.text, right.text);
        Value { text, element, most: left.most * right.most }
    }

    fn extreme(&mut self, scope: &mut Scope, wanted: Element, depth: usize) -> Value {
        let (left, right, element) = self.pair(scope, wanted, depth);
        let name = if self.rng.chance(50) { "min" } else { "max" };
        let text = format!("{name}({}, {})", left.text, right.text);
        Value { text, element, most: left.most.max(right.most) }
    }

    fn choice(&mut self, scope: &mut Scope, wanted: Element, depth: usize) -> Value {
        let condition = self.condition(scope, wanted);
        let (left, right, element) = self.pair(scope, wanted, depth);
        let text = format!("({condition} ? {} : {})", left.text, right.text);
        Value { text, element, most: left.most.max(right.most) }
    }

    /// Makes an operation on the bits of integers.
    fn bits(&mut self, scope: &mut Scope, wanted: Element, depth: usize) -> Value {
        let wanted = if is_float(wanted) { any_integer(self.rng) } else { wanted };
        let value = self.value(scope, wanted, depth - 1);
        match self.rng.weighted(&[(0, 34), (1, 26), (2, 10), (3, 10), (4, 8), (5, 8), (6, 4)]) {
            0 => {
                let other = self.value(scope, wanted, depth - 1);
                let operator = *self.rng.pick(&["&", "|", "^"]);
                Value { text: format!("({} {operator} {})", value.text, other.text), ..value }
            }
            1 => {
                let operator = *self.rng.pick(&["<<", ">>"]);
                // A count from data may be negative, or exceed the width.
                let count = match self.rng.chance(60) {
                    true => self.rng.between(0, 9).to_string(),
                    false => {
                        let of = any_integer(self.rng);
                        format!("({} % 70)", self.value(scope, of, 0).text)
                    }
                };
                Value { text: format!("({} {operator} {count})", value.text), ..value }
            }
            2 => Value { text: format!("(~{})", value.text), ..value },
            3 => {
                let exponent = match self.rng.chance(70) {
                    true => self.rng.between(0, 6).to_string(),
                    false => self.value(scope, wanted, 0).text,
                };
                Value { text: format!("(({}) ** {exponent})", value.text), ..value }
            }
            4 => {
                let name = *self.rng.pick(&["popcount", "clz", "ctz"]);
                Value { text: format!("{name}({})", value.text), ..value }
            }
            5 => {
                let other = self.value(scope, wanted, depth - 1);
                let name = *self.rng.pick(&["avg_up", "avg_down"]);
                Value { text: format!("{name}({}, {})", value.text, other.text), ..value }
            }
            _ => {
                let text = format!("random_bits({}, {})", self.rng.between(-3, 3), value.text);
                Value { text, element: "uint32", most: f64::INFINITY }
            }
        }
    }

    /// Converts a value to another type and perhaps back.
    fn cast(&mut self, scope: &mut Scope, wanted: Element, depth: usize) -> Value {
        let value = self.tree(scope, wanted, depth - 1);
        let through = any(self.rng);
        let there = self.converted(value, through);
        if self.rng.chance(50) { there } else { self.converted(there, wanted) }
    }

    /// Makes a quotient that is rounded down, or a remainder.
    fn quotient(&mut self, scope: &mut Scope, wanted: Element, depth: usize) -> Value {
        let value = self.tree(scope, wanted, depth - 1);
        let by = self.rng.between(2, 5);
        if is_float(value.element) {
            let halved = format!("floor({} / 2)", value.text);
            return Value { text: halved, ..value };
        }
        let operator = if self.rng.chance(50) { "/" } else { "%" };
        let by = if self.rng.chance(20) && !is_unsigned(value.element) { -by } else { by };
        let by = if by < 0 { format!("({by})") } else { by.to_string() };
        Value { text: format!("({} {operator} {by})", value.text), ..value }
    }

    /// Converts a value to another type. An integer that becomes a float is reduced to a small
    /// range first.
    pub fn converted(&mut self, value: Value, to: Element) -> Value {
        if value.element == to {
            return value;
        }
        let value = if is_float(to) { self.small(value, most(to) / 4.0) } else { value };
        let most = if is_float(to) { value.most } else { f64::INFINITY };
        Value { text: format!("{to}({})", value.text), element: to, most }
    }

    /// Reduces a float to a range within a bound. Integers stay as they are.
    pub fn narrowed(&mut self, value: Value, bound: f64) -> Value {
        if is_float(value.element) { self.small(value, bound) } else { value }
    }

    /// Reduces a value to a range within a bound.
    pub fn small(&mut self, value: Value, bound: f64) -> Value {
        if value.most <= bound {
            return value;
        }
        let bound = bound.min(if self.rng.chance(50) { 9.0 } else { 40.0 }).max(1.0) as i64;
        let text = match self.rng.below(2) {
            0 if bound > 1 => format!("({} % {bound})", value.text),
            _ => {
                let low = if is_unsigned(value.element) { 0 } else { -bound };
                format!("clamp({}, {low}, {bound})", value.text)
            }
        };
        Value { text, most: bound as f64, ..value }
    }

    fn leaf(&mut self, scope: &mut Scope, wanted: Element) -> Value {
        if !scope.own.is_empty()
            && self.rng.chance(45)
            && let Some(at) = scope.target
        {
            let known = &self.tensors[at];
            let text = self.rng.pick(&scope.own).clone();
            return Value { text, element: known.element, most: most(known.element) };
        }
        match self.rng.weighted(&[(0, 78), (1, 13), (2, 6), (3, 3)]) {
            1 => self.index_value(scope, wanted),
            2 => {
                let number = self.rng.between(0, 5);
                Value { text: format!("{wanted}({number})"), element: wanted, most: 5.0 }
            }
            3 => match self.scalars.is_empty() {
                true => self.index_value(scope, wanted),
                false => {
                    let (name, element) = self.rng.pick(&self.scalars).clone();
                    Value { text: name, element, most: if is_float(element) { 2.0 } else { f64::INFINITY } }
                }
            },
            _ => self.load(scope),
        }
    }

    /// Makes a value of a variable, or of a sum of two variables.
    fn index_value(&mut self, scope: &Scope, wanted: Element) -> Value {
        if scope.vars.is_empty() {
            return Value { text: format!("{wanted}(3)"), element: wanted, most: 3.0 };
        }
        let (one, two) = (self.rng.pick(&scope.vars).clone(), self.rng.pick(&scope.vars).clone());
        let high = one.to.value as f64;
        let (text, high) = match self.rng.below(6) {
            0 => (format!("({} + {})", one.name, two.name), high + two.to.value as f64),
            1 => (format!("({} * {})", one.name, two.name), high * two.to.value as f64),
            2 => (format!("({} - {})", one.name, two.name), high + two.to.value as f64),
            3 => (format!("({} % 3)", one.name), 3.0),
            _ => (one.name, high),
        };
        if self.rng.chance(50) {
            return Value { text: format!("{wanted}({text})"), element: wanted, most: high };
        }
        Value { text, element: "int32", most: high }
    }

    /// Loads an element of a tensor, with a preference for the favourite and the latest tensors.
    fn load(&mut self, scope: &mut Scope) -> Value {
        let readable = |at: &usize| !self.tensors[*at].hidden && scope.target != Some(*at);
        let readable: Vec<usize> = (0..self.tensors.len()).filter(readable).collect();
        if readable.is_empty() {
            return Value { text: "int32(1)".to_string(), element: "int32", most: 1.0 };
        }
        let favourite = self.preferred.filter(|at| readable.contains(at));
        let at = if let Some(at) = favourite.filter(|_| self.rng.chance(60)) {
            at
        } else if self.rng.chance(45) {
            readable[readable.len() - 1 - self.rng.below(readable.len().min(3))]
        } else {
            *self.rng.pick(&readable)
        };
        let shape = self.tensors[at].shape.clone();
        let made: Vec<_> = shape.iter().map(|dim| self.subscript(scope, dim)).collect();
        self.tensors[at].read = true;
        let known = &self.tensors[at];
        let (element, name) = (known.element, known.name.clone());
        let indices: Vec<&str> = made.iter().map(|own| own.text.as_str()).collect();
        let guards: Vec<&str> = made.iter().filter_map(|own| own.guard.as_deref()).collect();
        let mut text = format!("{name}({})", indices.join(", "));
        if !guards.is_empty() {
            text = format!("({} ? {text} : {})", guards.join(" && "), self.rng.between(0, 1));
        }
        Value { text, element, most: most(element) }
    }

    /// Makes a condition on variables or on data.
    fn condition(&mut self, scope: &mut Scope, wanted: Element) -> String {
        if scope.vars.is_empty() || self.rng.chance(35) {
            let value = self.leaf(scope, wanted);
            let operator = *self.rng.pick(&[">", "<=", "==", "!="]);
            return format!("{} {operator} {}", value.text, self.rng.between(0, 2));
        }
        let (one, two) = (self.rng.pick(&scope.vars).clone(), self.rng.pick(&scope.vars).clone());
        let at = self.rng.between(one.from, one.to.value);
        match self.rng.below(5) {
            0 => format!("{} <= {}", one.name, two.name),
            1 => format!("{} % 2 == 0", one.name),
            2 => format!("{} >= 1 && {} < {at}", one.name, two.name),
            3 => format!("{} < 1 || {} > {at}", one.name, two.name),
            _ => format!("{} < {at}", one.name),
        }
    }
}
