//! Makes ordered loops over a tensor that keeps its history: rows that depend on the previous row,
//! double buffers, and windows that move over a tensor and change it in place.

use super::builder::{Builder, MAX_ITERATIONS, tensor_type};
use super::element::most;
use super::scope::{Extent, Kind, Scope};
use super::source::Node;

impl Builder<'_> {
    /// Makes `x(t, i) = … x(t - 1, …)`.
    pub fn recurrence(&mut self, body: &mut Vec<Node>) {
        let fits = |own: &&Extent| own.value > 1 && own.value <= MAX_ITERATIONS / self.iterations();
        let turns: Vec<Extent> = self.pool.iter().filter(fits).cloned().collect();
        if turns.is_empty() {
            return self.update(body);
        }
        let turns = self.rng.pick(&turns).clone();
        let reversed = self.rng.chance(20);
        let at = self.history(turns.clone(), body);
        let first = if reversed { format!("{} - 1", turns.text) } else { "0".to_string() };
        self.row(at, &first, &[], body);
        let node = self.in_loop(1, turns.clone(), |builder, inner| {
            let turn = builder.loops[builder.loops.len() - 1].name.clone();
            let (now, before) = match reversed {
                true => (format!("{} - 1 - {turn}", turns.text), format!("{} - {turn}", turns.text)),
                false => (turn.clone(), format!("{turn} - 1")),
            };
            builder.next_row(at, &now, before, inner);
        });
        body.push(node);
    }

    /// Makes `x((t + 1) % 2, i) = … x(t % 2, …)`.
    pub fn double_buffer(&mut self, body: &mut Vec<Node>) {
        let turns = Extent::number(self.rng.between(2, 4));
        if self.iterations() * turns.value > MAX_ITERATIONS {
            return self.update(body);
        }
        let at = self.history(Extent::number(2), body);
        self.row(at, "0", &[], body);
        self.row(at, "1", &[], body);
        let node = self.in_loop(0, turns, |builder, inner| {
            let turn = builder.loops[builder.loops.len() - 1].name.clone();
            let (now, before) = (format!("({turn} + 1) % 2"), format!("{turn} % 2"));
            builder.next_row(at, &now, before, inner);
        });
        body.push(node);
    }

    /// Makes `x(i + t, …) = … x(i + t, …)`, where the iterations of `t` overlap.
    pub fn moving_window(&mut self, body: &mut Vec<Node>) {
        let turns = self.rng.between(2, 4);
        let (width, step) = (self.rng.between(2, 5), self.rng.between(1, 3));
        if self.iterations() * turns > MAX_ITERATIONS {
            return self.update(body);
        }
        let at = self.history(Extent::number(width + step * (turns - 1)), body);
        let whole = self.tensors[at].shape[0].clone();
        self.window(at, &whole, None, body);
        let node = self.in_loop(0, Extent::number(turns), |builder, inner| {
            let turn = builder.loops[builder.loops.len() - 1].name.clone();
            let offset = if step == 1 { turn } else { format!("{step}*{turn}") };
            builder.window(at, &Extent::number(width), Some(offset), inner);
        });
        body.push(node);
    }

    /// Makes one window of a tensor, from its elements before if it has an offset.
    fn window(&mut self, at: usize, rows: &Extent, offset: Option<String>, body: &mut Vec<Node>) {
        let mut scope = Scope { target: Some(at), ..self.scope() };
        let (name, shape) = (self.tensors[at].name.clone(), self.tensors[at].shape.clone());
        let mut indices = Vec::new();
        for dim in [rows].into_iter().chain(&shape[1..]) {
            let Some(index) = scope.fresh(0, dim, Kind::Left) else { return };
            indices.push(index);
        }
        if let Some(offset) = offset {
            indices[0] = format!("{} + {offset}", indices[0]);
            scope.own.push(format!("{name}({})", indices.join(", ")));
        }
        self.assign(at, &mut scope, &indices, body);
    }

    /// Makes the next row, perhaps with statements about other tensors before and after it. The
    /// tensor is hidden from them, because not all of its rows are defined yet.
    fn next_row(&mut self, at: usize, now: &str, before: String, inner: &mut Vec<Node>) {
        self.tensors[at].hidden = true;
        if self.rng.chance(40) {
            self.update(inner);
        }
        self.row(at, now, &[before], inner);
        if self.rng.chance(40) {
            self.update(inner);
        }
        self.tensors[at].hidden = false;
    }

    /// Adds a new tensor with a number of rows, and declares it.
    fn history(&mut self, rows: Extent, body: &mut Vec<Node>) -> usize {
        let element = self.element();
        let mut shape = vec![rows];
        shape.extend(self.shape().into_iter().take(2));
        let at = self.add(element, shape.clone());
        let name = self.tensors[at].name.clone();
        if self.loops.is_empty() && !self.is_called {
            self.tensors[at].declared = true;
            body.push(Node::Line(format!("{} {name}", tensor_type(element, &shape))));
        }
        at
    }

    /// Makes one row from other rows and from other tensors.
    fn row(&mut self, at: usize, row: &str, before: &[String], body: &mut Vec<Node>) {
        let mut scope = Scope { target: Some(at), ..self.scope() };
        let (name, shape) = (self.tensors[at].name.clone(), self.tensors[at].shape.clone());
        let mut indices = vec![row.to_string()];
        for dim in &shape[1..] {
            let Some(index) = scope.fresh(0, dim, Kind::Left) else { return };
            indices.push(index);
        }
        for row in before {
            let mut own = vec![row.clone()];
            for dim in &shape[1..] {
                let made = self.subscript(&mut scope, dim);
                own.push(if made.guard.is_none() { made.text } else { "0".to_string() });
            }
            scope.own.push(format!("{name}({})", own.join(", ")));
        }
        self.assign(at, &mut scope, &indices, body);
    }

    /// Assigns a random value to an element.
    fn assign(&mut self, at: usize, scope: &mut Scope, indices: &[String], body: &mut Vec<Node>) {
        let (name, element) = (self.tensors[at].name.clone(), self.tensors[at].element);
        let value = self.value(scope, element, 2);
        let value = self.narrowed(value, most(element) / 2.0);
        let line = format!("{name}({}) = {}{}", indices.join(", "), value.text, scope.ranges());
        body.push(Node::Line(line));
    }
}
