//! Values: expressions of loads whose numbers stay so small that floats represent them exactly.

use super::program::{Builder, Kind};
use super::subscript::{Extent, Scope, subscript};

/// An expression, and a bound of its magnitude.
pub struct Value {
    /// Its text.
    pub text: String,
    /// The largest absolute value.
    pub magnitude: f64,
}

/// The largest number up to which a type represents all integers, or after which it wraps.
pub fn limit(dtype: &str) -> f64 {
    match dtype {
        "float16" => 2048.0,
        "bfloat16" => 256.0,
        "float32" => (1 << 24) as f64,
        "float64" => (1u64 << 53) as f64,
        "int8" => 128.0,
        "uint8" => 255.0,
        "int16" => 32768.0,
        "int32" => (1u64 << 31) as f64,
        "uint32" => (1u64 << 32) as f64,
        _ => (1u64 << 63) as f64,
    }
}

/// Returns true when a type is a floating-point type.
pub fn is_float(dtype: &str) -> bool {
    dtype.contains("float")
}

/// The value clamped to -2..2, or to 0..2 for unsigned types.
pub fn clamped(text: &str, dtype: &str) -> Value {
    let low = if dtype.starts_with('u') { "0" } else { "-2" };
    Value { text: format!("clamp({text}, {low}, 2)"), magnitude: 2.0 }
}

impl Value {
    /// The value as a type represents it: integers wrap, and floats are kept small.
    pub fn settled(self, dtype: &str) -> Value {
        if self.magnitude <= limit(dtype) {
            self
        } else if is_float(dtype) {
            clamped(&self.text, dtype)
        } else {
            Value { magnitude: limit(dtype), ..self }
        }
    }
}

impl Builder<'_> {
    /// A value made of some loads, the first of which adds variables.
    pub fn value(&mut self, scope: &mut Scope, dtype: &str, new: usize) -> Value {
        let mut value = self.load(scope, dtype, new);
        for _ in 0..self.rng.weighted(&[(0, 35), (1, 45), (2, 20)]) {
            value = self.combined(scope, dtype, value).settled(dtype);
        }
        value
    }

    fn combined(&mut self, scope: &mut Scope, dtype: &str, left: Value) -> Value {
        let (text, size) = (left.text, left.magnitude);
        let forms = [(0, 35), (1, 20), (2, 8), (3, 8), (4, 14), (5, 6), (6, 5), (7, 4), (8, 16)];
        let form = self.rng.weighted(&forms);
        if form == 5 {
            let index = self.index_value(scope, dtype);
            return Value { text: format!("{text} + {}", index.text), magnitude: size + index.magnitude };
        }
        if form == 7 {
            return Value { text: format!("2*({text}) + 1"), magnitude: 2.0 * size + 1.0 };
        }
        if form == 8 {
            let condition = self.triangle(scope);
            return Value { text: format!("({condition} ? {text} : 0)"), magnitude: size };
        }
        let right = self.load(scope, dtype, 35);
        let (other, more) = (right.text, right.magnitude);
        match form {
            0 => Value { text: format!("({text}) * {other}"), magnitude: size * more },
            1 => Value { text: format!("{text} + {other}"), magnitude: size + more },
            2 if dtype.starts_with('u') => Value { text: format!("{text} - {other}"), magnitude: f64::MAX },
            2 => Value { text: format!("{text} - ({other})"), magnitude: size + more },
            3 => Value { text: format!("max({text}, {other})"), magnitude: size.max(more) },
            6 => Value { text: format!("({other} > 1 ? {text} : {other})"), magnitude: size.max(more) },
            _ => {
                let condition = self.condition(scope);
                Value { text: format!("({condition} ? {text} : {other})"), magnitude: size.max(more) }
            }
        }
    }

    /// A variable, or the scalar of the program, as a value.
    fn index_value(&mut self, scope: &Scope, dtype: &str) -> Value {
        if scope.vars.is_empty() || self.rng.chance(30) {
            let scalar = self.scalar();
            return Value { text: format!("{dtype}({scalar})"), magnitude: 10.0 };
        }
        let var = self.rng.pick(&scope.vars);
        Value { text: format!("{dtype}({})", var.name), magnitude: var.to.value as f64 }
    }

    /// A condition on variables.
    fn condition(&mut self, scope: &Scope) -> String {
        if scope.vars.is_empty() {
            return "1 < 2".to_string();
        }
        let var = self.rng.pick(&scope.vars);
        let other = self.rng.pick(&scope.vars).name;
        let (name, at) = (var.name, self.rng.between(0, var.to.value));
        match self.rng.below(6) {
            0 => format!("{name} <= {other}"),
            1 => format!("{name} + {other} < {at}"),
            2 => format!("{name} % 2 == 0"),
            3 => format!("{name} >= 1 && {other} < {at}"),
            4 => format!("{name} < 1 || {other} > {at}"),
            _ => format!("{name} < {at}"),
        }
    }

    /// A condition on two variables that holds on one side of a diagonal, next to it, or on every
    /// n-th diagonal.
    fn triangle(&mut self, scope: &Scope) -> String {
        if scope.vars.len() < 2 {
            return self.condition(scope);
        }
        let at = self.rng.below(scope.vars.len());
        let next = (at + 1 + self.rng.below(scope.vars.len() - 1)) % scope.vars.len();
        let (one, other, by) = (scope.vars[at].name, scope.vars[next].name, self.rng.between(0, 3));
        match self.rng.below(9) {
            0 | 1 => format!("{one} <= {other}"),
            2 => format!("{one} < {other}"),
            3 => format!("{one} <= {other} + {by}"),
            4 => format!("{one} - {other} >= {by}"),
            5 => format!("2*{one} <= {other} + {by}"),
            6 => format!("({one} - {other} + {by}) % 2 == 0"),
            7 => format!("({one} + {other} + {by}) % 3 == 0 && {one} < 4"),
            _ => format!("{one} <= {other} && {other} <= {one} + {by}"),
        }
    }

    /// An element of some tensor, converted to the type.
    fn load(&mut self, scope: &mut Scope, dtype: &str, new: usize) -> Value {
        let candidates: Vec<usize> = (0..self.tensors.len()).filter(|at| self.may_read(*at)).collect();
        // Later tensors are chosen more often, because they make chains.
        let at = if self.rng.chance(45) {
            candidates[candidates.len() - 1 - self.rng.below(candidates.len().min(2))]
        } else {
            *self.rng.pick(&candidates)
        };
        let mut indices = Vec::new();
        let mut guards = Vec::new();
        for dim in self.tensors[at].shape.clone() {
            if let Some(index) = self.data_subscript(scope, &dim, 14) {
                indices.push(index);
                continue;
            }
            let made = subscript(self.rng, scope, &dim, new);
            indices.push(made.text);
            guards.extend(made.guard);
        }
        self.tensors[at].read = true;
        let tensor = &self.tensors[at];
        let access = format!("{}({})", tensor.name, indices.join(", "));
        let from = tensor.dtype;
        let value = Value { text: access, magnitude: tensor.magnitude };
        let value = if value.magnitude > limit(dtype) { clamped(&value.text, from) } else { value };
        let text = if from == dtype { value.text } else { format!("{dtype}({})", value.text) };
        let text = if guards.is_empty() { text } else { format!("({} ? {text} : 0)", guards.join(" && ")) };
        Value { text, ..value }
    }

    /// A subscript that depends on data, in `percent` of a hundred cases.
    pub fn data_subscript(&mut self, scope: &mut Scope, dim: &Extent, percent: usize) -> Option<String> {
        if !self.rng.chance(percent) {
            return None;
        }
        let indices: Vec<usize> =
            (0..self.tensors.len()).filter(|at| self.tensors[*at].kind == Kind::Index).collect();
        if indices.is_empty() {
            return None;
        }
        let at = *self.rng.pick(&indices);
        let mut trial = scope.clone();
        let mut subscripts = Vec::new();
        for dim in self.tensors[at].shape.clone() {
            let made = subscript(self.rng, &mut trial, &dim, 40);
            if made.guard.is_some() {
                return None;
            }
            subscripts.push(made.text);
        }
        *scope = trial;
        self.tensors[at].read = true;
        let tensor = &self.tensors[at];
        let access = format!("{}({})", tensor.name, subscripts.join(", "));
        let values = if tensor.dtype.starts_with('u') { 4 } else { i64::MAX };
        Some(if dim.value >= values && self.rng.chance(70) {
            access
        } else {
            format!("clamp({access}, 0, {} - 1)", dim.text)
        })
    }
}
