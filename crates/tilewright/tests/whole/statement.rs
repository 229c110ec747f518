//! Makes statements that define, reduce, update or scatter into one tensor.

use super::builder::{Builder, tensor_type};
use super::element::{is_float, most};
use super::expression::Value;
use super::scope::{Extent, Kind, Scope};
use super::source::Node;
use super::subscript::last;

/// A left-hand side under construction.
struct Target {
    at: usize,
    indices: Vec<String>,
    /// For dimensions with a constant subscript in each iteration, a subscript that differs from
    /// it.
    other_subscripts: Vec<(usize, String)>,
}

impl Builder<'_> {
    /// Makes `x(i, j) = …` over all of a new tensor.
    pub fn define(&mut self, body: &mut Vec<Node>) {
        let (element, shape) = (self.element(), self.shape());
        let mut scope = self.scope();
        let Some(indices) = self.whole(&mut scope, &shape) else { return };
        let deep = if self.preferred.is_some() { 0 } else { 30 };
        let depth = self.rng.weighted(&[(0, 15), (1, 30), (2, deep), (3, deep / 2)]);
        let value = self.value(&mut scope, element, depth);
        let value = self.narrowed(value, most(element) / 2.0);
        let at = self.add(element, shape);
        self.declare(at, body);
        let name = &self.tensors[at].name;
        body.push(Node::Line(format!("{name}({indices}) = {}{}", value.text, scope.ranges())));
    }

    /// Makes `x(i) +=! …` over all of a new tensor.
    pub fn reduce(&mut self, body: &mut Vec<Node>) {
        let (element, shape) = (self.element(), self.shape());
        let mut scope = self.scope();
        let Some(indices) = self.whole(&mut scope, &shape) else { return };
        scope.open = true;
        let depth = self.rng.weighted(&[(0, 25), (1, 45), (2, 30)]);
        let value = self.value(&mut scope, element, depth);
        let at = self.add(element, shape);
        self.declare(at, body);
        let (operator, value) = self.reduction(at, &scope, value);
        let name = &self.tensors[at].name;
        body.push(Node::Line(format!("{name}({indices}) {operator}! {}{}", value.text, scope.ranges())));
    }

    /// Makes `x(i) +=! h(i, j)`: a tensor reduced along some of its dimensions, perhaps with
    /// another value.
    pub fn reduce_dimensions(&mut self, from: usize, body: &mut Vec<Node>) {
        let mut scope = self.scope();
        let (mut shape, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
        for dim in self.tensors[from].shape.clone() {
            let kept = self.rng.chance(60);
            let kind = if kept { Kind::Left } else { Kind::Reduced };
            let Some(name) = scope.fresh(0, &dim, kind) else { return };
            if kept {
                left.push(name.clone());
                shape.push(dim);
            }
            right.push(name);
        }
        let element = self.tensors[from].element;
        let text = format!("{}({})", self.tensors[from].name, right.join(", "));
        let mut value = Value { text, element, most: most(element) };
        if self.rng.chance(30) {
            let other = self.value(&mut scope, element, 1);
            let (one, two) = (self.narrowed(value, 1000.0), self.narrowed(other, 1000.0));
            value =
                Value { text: format!("{} * {}", one.text, two.text), element, most: one.most * two.most };
        }
        self.tensors[from].read = true;
        let at = self.add(element, shape);
        self.declare(at, body);
        let (operator, value) = self.reduction(at, &scope, value);
        let (name, left) = (&self.tensors[at].name, left.join(", "));
        body.push(Node::Line(format!("{name}({left}) {operator}! {}{}", value.text, scope.ranges())));
    }

    /// Makes subscripts that name every element of a shape once.
    fn whole(&mut self, scope: &mut Scope, shape: &[Extent]) -> Option<String> {
        let mut indices = Vec::new();
        for dim in shape {
            let name = scope.fresh(0, dim, Kind::Left)?;
            indices.push(if self.rng.chance(6) { format!("{} - {name}", last(dim)) } else { name });
        }
        Some(indices.join(", "))
    }

    /// Perhaps declares the type of a tensor, in a line or among the results.
    fn declare(&mut self, at: usize, body: &mut Vec<Node>) {
        let known = &self.tensors[at];
        let text = format!("{} {}", tensor_type(known.element, &known.shape), known.name);
        match self.rng.weighted(&[(0, 50), (1, 25), (2, 25)]) {
            0 if self.loops.is_empty() && !self.is_called => {
                self.tensors[at].declared = true;
                body.push(Node::Line(text));
            }
            1 => self.tensors[at].result = Some(text),
            _ => {}
        }
    }

    /// Chooses a reduction operator, and makes the value so small that floats stay exact.
    pub fn reduction(&mut self, at: usize, scope: &Scope, value: Value) -> (&'static str, Value) {
        let element = self.tensors[at].element;
        let often = (scope.points() * self.iterations()) as f64;
        let operator = self.rng.weighted(&[("+=", 55), ("max=", 17), ("min=", 14), ("*=", 14)]);
        if !is_float(element) {
            return (operator, value);
        }
        match operator {
            "+=" if 2.0 * often <= self.tensors[at].headroom => {
                let most = self.tensors[at].headroom / (2.0 * often);
                let value = self.narrowed(value, most.max(2.0));
                self.tensors[at].headroom -= value.most.min(most.max(2.0)) * often;
                ("+=", value)
            }
            "*=" => ("*=", Value { text: format!("({} > 1 ? -1 : 1)", value.text), ..value }),
            operator => {
                let operator = if operator == "+=" { "max=" } else { operator };
                (operator, self.narrowed(value, most(element) / 2.0))
            }
        }
    }

    /// Makes another statement that writes an existing tensor.
    pub fn update(&mut self, body: &mut Vec<Node>) {
        match self.writable() {
            Some(at) => self.update_of(at, body),
            None => self.define(body),
        }
    }

    /// Makes another statement that writes this tensor.
    pub fn update_of(&mut self, at: usize, body: &mut Vec<Node>) {
        let mut scope = Scope { target: Some(at), ..self.scope() };
        let target = self.part(&mut scope, at);
        let element = self.tensors[at].element;
        let name = self.tensors[at].name.clone();
        let reduces = self.rng.chance(55);
        let resets = reduces && self.rng.chance(25);
        scope.open = reduces && self.rng.chance(65);
        if !resets {
            scope.own = self.own_elements(&scope, &target);
        }
        let depth = self.rng.weighted(&[(0, 15), (1, 45), (2, 30), (3, 10)]);
        let value = self.value(&mut scope, element, depth);
        let (operator, value) = if reduces {
            let (operator, value) = self.reduction(at, &scope, value);
            (format!("{operator}{}", if resets { "!" } else { "" }), value)
        } else {
            ("=".to_string(), self.narrowed(value, most(element) / 2.0))
        };
        let indices = target.indices.join(", ");
        body.push(Node::Line(format!("{name}({indices}) {operator} {}{}", value.text, scope.ranges())));
    }

    /// Chooses a tensor to write again.
    pub fn writable(&mut self) -> Option<usize> {
        let writable = |at: &usize| self.tensors[*at].writable && !self.tensors[*at].hidden;
        let writable: Vec<usize> = (0..self.tensors.len()).filter(writable).collect();
        if writable.is_empty() { None } else { Some(*self.rng.pick(&writable)) }
    }

    /// Makes a left-hand side that names some elements, each once.
    fn part(&mut self, scope: &mut Scope, at: usize) -> Target {
        let shape = self.tensors[at].shape.clone();
        let mut target = Target { at, indices: Vec::new(), other_subscripts: Vec::new() };
        for (number, dim) in shape.iter().enumerate() {
            let index = self.left_index(scope, dim, number, &mut target.other_subscripts);
            target.indices.push(index);
        }
        target
    }

    fn left_index(
        &mut self,
        scope: &mut Scope,
        dim: &Extent,
        number: usize,
        apart: &mut Vec<(usize, String)>,
    ) -> String {
        let turn = self.loops.iter().rev().find(|turn| turn.to.value <= dim.value).cloned();
        if let Some(turn) = turn
            && self.rng.chance(35)
        {
            if turn.from > 0 {
                apart.push((number, format!("{} - 1", turn.name)));
            }
            if turn.to.value < dim.value {
                apart.push((number, format!("{} + 1", turn.name)));
            }
            return turn.name;
        }
        let form = self.rng.weighted(&[(0, 76), (1, 8), (2, 8), (3, 4), (4, 4)]);
        let plain = match form {
            1 if dim.value > 1 => scope.fresh(1, dim, Kind::Left),
            2 => {
                let own = self.rng.between(0, dim.value - 1).min(2);
                if dim.value > 1 {
                    apart.push((number, if own == 0 { "1" } else { "0" }.to_string()));
                }
                return own.to_string();
            }
            3 => {
                return match scope.fresh(0, dim, Kind::Left) {
                    Some(name) => format!("{} - {name}", last(dim)),
                    None => "0".to_string(),
                };
            }
            4 if dim.value > 2 => {
                let half = Extent::number((dim.value + 1) / 2);
                return scope
                    .fresh(0, &half, Kind::Left)
                    .map_or_else(|| "0".to_string(), |name| format!("2*{name}"));
            }
            _ => scope.fresh(0, dim, Kind::Left),
        };
        plain.unwrap_or_else(|| "0".to_string())
    }

    /// Returns elements of the target that a statement may read: the element that it writes, unless
    /// it reduces, and elements that it never writes.
    fn own_elements(&mut self, scope: &Scope, target: &Target) -> Vec<String> {
        let name = self.tensors[target.at].name.clone();
        let mut own = Vec::new();
        if !scope.open {
            own.push(format!("{name}({})", target.indices.join(", ")));
        }
        for (number, index) in &target.other_subscripts {
            let mut indices = target.indices.clone();
            for (other, place) in indices.iter_mut().enumerate() {
                let dim = self.tensors[target.at].shape[other].clone();
                if other == *number {
                    *place = index.clone();
                } else if self.rng.chance(50) {
                    *place = format!("clamp({place} + {}, 0, {})", self.rng.between(-1, 1), last(&dim));
                }
            }
            own.push(format!("{name}({})", indices.join(", ")));
        }
        own
    }

    /// Makes a reduction into elements that data or a quotient select, of a new or an existing
    /// tensor.
    pub fn scatter(&mut self, body: &mut Vec<Node>) {
        let fresh = self.rng.chance(50) && self.loops.is_empty() && !self.is_called;
        let at = if fresh {
            let (element, shape) = (self.element(), self.shape());
            self.add(element, shape)
        } else {
            match self.writable() {
                Some(at) if self.tensors[at].declared => at,
                _ => return self.update(body),
            }
        };
        let mut scope = Scope { target: Some(at), open: true, ..self.scope() };
        let (element, shape) = (self.tensors[at].element, self.tensors[at].shape.clone());
        let Some((indices, by_data)) = self.scattered_indices(&mut scope, &shape, fresh) else {
            return self.abandon(at, fresh, body);
        };
        let depth = self.rng.weighted(&[(0, 40), (1, 40), (2, 20)]);
        let value = self.value(&mut scope, element, depth);
        let (operator, value) = self.reduction(at, &scope, value);
        let name = self.tensors[at].name.clone();
        if fresh {
            self.tensors[at].declared = true;
            body.push(Node::Line(format!("{} {name}", tensor_type(element, &shape))));
        }
        let reset = if fresh || (by_data && self.rng.chance(25)) { "!" } else { "" };
        body.push(Node::Line(format!(
            "{name}({indices}) {operator}{reset} {}{}",
            value.text,
            scope.ranges()
        )));
        if self.rng.chance(50) {
            self.reduce_dimensions(at, body);
        }
    }

    /// Makes another statement instead of a scatter.
    fn abandon(&mut self, at: usize, fresh: bool, body: &mut Vec<Node>) {
        if fresh {
            self.tensors.truncate(at);
        }
        self.define(body);
    }

    /// Makes the left-hand side of a scatter, and returns whether it depends on data. For a new
    /// tensor it must.
    fn scattered_indices(
        &mut self,
        scope: &mut Scope,
        shape: &[Extent],
        fresh: bool,
    ) -> Option<(String, bool)> {
        if shape.is_empty() {
            return None;
        }
        let chosen = self.rng.below(shape.len());
        let by_data = fresh || self.rng.chance(60);
        let mut indices = Vec::new();
        for (number, dim) in shape.iter().enumerate() {
            indices.push(match number == chosen {
                true if by_data => self.by_data(scope, dim)?,
                true => self.repeated_subscript(scope, dim)?,
                false => scope.fresh(0, dim, Kind::Left)?,
            });
        }
        Some((indices.join(", "), by_data))
    }

    /// Makes a subscript on the left that names elements more than once.
    fn repeated_subscript(&mut self, scope: &mut Scope, dim: &Extent) -> Option<String> {
        let wide = self.rng.pick(&self.pool).clone();
        let one = scope.fresh(0, &wide, Kind::Left)?;
        let two = scope.fresh(0, &Extent::number(self.rng.between(2, 3)), Kind::Left)?;
        Some(match self.rng.below(4) {
            0 => format!("({one} + {two}) % {}", dim.text),
            1 => format!("min(({one} + {two})/2, {})", last(dim)),
            2 => format!("clamp(2*{one} - {two}, 0, {})", last(dim)),
            _ => format!("({one}*{two}) % {}", dim.text),
        })
    }
}
