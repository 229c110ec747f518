//! Makes random programs of several statements, as text.
//!
//! A program is a list of statements inside and outside of ordered loops. The statements define,
//! reduce, scatter and update a few small tensors repeatedly, and call functions that are made in
//! the same way. Ranges and shapes are explicit and subscripts are made to fit them, so that the
//! checker accepts most programs. [`Builder::statement`] chooses the kind of a statement.
//! `statement.rs`, `recurrence.rs` and `call.rs` make statements; `expression.rs` and
//! `subscript.rs` make their parts.

use super::call::Helper;
use super::element::{self, Element, is_float, most};
use super::scope::{Extent, Kind, Scope, TensorInfo, Var};
use super::source::{Function, MAIN, Node, Source};
use crate::random::rng::Rng;

const EXTENTS: [(i64, usize); 9] =
    [(1, 4), (2, 10), (3, 18), (4, 18), (5, 16), (6, 8), (7, 8), (8, 10), (9, 8)];

/// The maximum product of the trip counts of the loops around a statement.
pub const MAX_ITERATIONS: i64 = 16;

/// A function under construction.
pub struct Builder<'r> {
    pub rng: &'r mut Rng,
    pub tensors: Vec<TensorInfo>,
    /// The extents that tensors can have: those of the parameters, and numbers.
    pub pool: Vec<Extent>,
    /// Scalar parameters.
    pub scalars: Vec<(String, Element)>,
    /// The loops around the next statement.
    pub loops: Vec<Var>,
    /// Functions that can be called.
    pub helpers: Vec<Helper>,
    /// The type of most tensors.
    pub main: Element,
    /// The tensor that is read most often at the moment.
    pub preferred: Option<usize>,
    /// Whether another function calls this one. The body of such a function must not declare its
    /// results.
    pub is_called: bool,
    /// The prefix of the names of new tensors.
    prefix: &'static str,
    /// The names of loop variables, from the outermost loop.
    pub loop_names: [String; 3],
    made: usize,
}

/// Makes a random program.
pub fn program(rng: &mut Rng) -> Source {
    let sizes: Vec<(String, i64)> =
        ["N", "M"].iter().map(|name| (name.to_string(), rng.weighted(&EXTENTS))).collect();
    let mut pool: Vec<Extent> =
        sizes.iter().map(|(text, value)| Extent { text: text.clone(), value: *value }).collect();
    pool.push(Extent::number(rng.weighted(&EXTENTS)));
    let main = element::any(rng);
    let mut builder = Builder::new(rng, main, pool, "x");
    let mut params = builder.inputs();
    builder.keep_extents(&params);
    let mut helpers = Vec::new();
    for number in 0..builder.rng.weighted(&[(0, 60), (1, 28), (2, 12)]) {
        helpers.push(builder.helper(number, &helpers));
    }
    builder.helpers = helpers;
    builder.in_out();
    let mut sizes: Vec<(String, i64)> =
        sizes.into_iter().filter(|(name, _)| builder.pool.iter().any(|own| own.text == *name)).collect();
    params.extend(builder.scalar_params(&mut sizes));
    let count = builder.rng.weighted(&[(2, 15), (3, 20), (4, 25), (5, 20), (6, 12), (8, 8)]);
    let body = builder.statements(count);
    let results = builder.results(&body);
    let main = Function { name: MAIN.to_string(), params, results, body };
    let functions = builder.helpers.into_iter().map(|helper| helper.function).chain([main]).collect();
    Source { functions, sizes }
}

impl<'r> Builder<'r> {
    pub fn new(rng: &'r mut Rng, main: Element, pool: Vec<Extent>, prefix: &'static str) -> Builder<'r> {
        let (tensors, scalars, loops, helpers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let turn_names = ["t", "u", "v"].map(str::to_string);
        Builder {
            rng,
            tensors,
            pool,
            scalars,
            loops,
            helpers,
            main,
            preferred: None,
            is_called: false,
            prefix,
            loop_names: turn_names,
            made: 0,
        }
    }

    /// Returns an element type, most often that of most tensors.
    pub fn element(&mut self) -> Element {
        if self.rng.chance(65) { self.main } else { element::any(self.rng) }
    }

    /// Returns a shape with so few elements that statements over it stay small.
    pub fn shape(&mut self) -> Vec<Extent> {
        let rank = self.rng.weighted(&[(0, 4), (1, 40), (2, 42), (3, 14)]);
        self.shape_of(rank)
    }

    /// Returns a shape with at least one dimension, because a parameter without dimensions is a
    /// scalar.
    fn input_shape(&mut self) -> Vec<Extent> {
        let rank = self.rng.weighted(&[(1, 42), (2, 44), (3, 14)]);
        self.shape_of(rank)
    }

    fn shape_of(&mut self, rank: usize) -> Vec<Extent> {
        let mut shape: Vec<Extent> = Vec::new();
        for _ in 0..rank {
            let dim = self.rng.pick(&self.pool).clone();
            let room = shape.iter().map(|dim| dim.value).product::<i64>() * dim.value <= 100;
            shape.push(if room { dim } else { Extent::number(2) });
        }
        shape
    }

    /// Makes parameters, and returns their declarations.
    fn inputs(&mut self) -> Vec<String> {
        let mut params = Vec::new();
        for name in ["a", "b", "c"].iter().take(self.rng.weighted(&[(1, 30), (2, 55), (3, 15)])) {
            let (element, shape) = (self.element(), self.input_shape());
            params.push(self.input(name, element, shape, false));
        }
        if self.rng.chance(45) {
            let (element, shape) = (element::any_integer(self.rng), self.input_shape());
            params.push(self.input("q", element, shape, true));
        }
        params
    }

    fn input(&mut self, name: &str, element: Element, shape: Vec<Extent>, is_index: bool) -> String {
        let constant = if self.rng.chance(20) { "const " } else { "" };
        let text = format!("{constant}{} {name}", tensor_type(element, &shape));
        let known = TensorInfo { is_index, writable: false, ..tensor_info(name, element, shape) };
        self.tensors.push(known);
        text
    }

    /// Keeps only the extents that parameters introduce, and numbers.
    fn keep_extents(&mut self, params: &[String]) {
        let introduced = |own: &Extent| {
            let stands = |param: &String| {
                param.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == own.text)
            };
            own.text.parse::<i64>().is_ok() || params.iter().any(stands)
        };
        self.pool.retain(introduced);
        self.pool.push(Extent::number(self.rng.weighted(&EXTENTS)));
    }

    /// Makes a result that the caller supplies, with some probability.
    fn in_out(&mut self) {
        if !self.rng.chance(25) {
            return;
        }
        let (element, shape) = (self.element(), self.shape());
        let result = Some(format!("{} y", tensor_type(element, &shape)));
        self.tensors.push(TensorInfo {
            result,
            in_out: true,
            declared: true,
            ..tensor_info("y", element, shape)
        });
    }

    fn scalar_params(&mut self, sizes: &mut Vec<(String, i64)>) -> Vec<String> {
        if !self.rng.chance(20) {
            return Vec::new();
        }
        let element = if self.rng.chance(50) { "float32" } else { "int32" };
        if element == "int32" {
            sizes.push(("s".to_string(), 2));
        }
        self.scalars.push(("s".to_string(), element));
        vec![format!("{element} s")]
    }

    /// Adds a new tensor that statements define.
    pub fn add(&mut self, element: Element, shape: Vec<Extent>) -> usize {
        let name = format!("{}{}", self.prefix, self.made);
        self.made += 1;
        self.tensors.push(tensor_info(&name, element, shape));
        self.tensors.len() - 1
    }

    /// Makes several statements in sequence.
    pub fn statements(&mut self, count: usize) -> Vec<Node> {
        let mut body = Vec::new();
        for _ in 0..count {
            self.statement(&mut body);
        }
        body
    }

    fn statement(&mut self, body: &mut Vec<Node>) {
        let loops = if self.loops.len() < 2 { 22 } else { 0 };
        let calls = if self.helpers.is_empty() { 0 } else { 22 };
        match self.rng.weighted(&[
            (0, 22),
            (1, 14),
            (2, 34),
            (3, 12),
            (4, loops),
            (5, loops / 4),
            (6, loops / 20),
            (7, calls),
            (8, 14),
            (9, 8),
            (10, loops / 20),
        ]) {
            0 => self.define(body),
            1 => self.reduce(body),
            2 => self.update(body),
            3 => self.scatter(body),
            4 => self.ordered(body),
            5 => self.recurrence(body),
            6 => self.double_buffer(body),
            7 => self.call(body),
            8 => self.read_after_change(body),
            10 => self.moving_window(body),
            _ => match self.writable() {
                Some(at) => self.reduce_dimensions(at, body),
                None => self.reduce(body),
            },
        }
    }

    /// Makes a tensor from another one, which changes before the first is read. The change may be
    /// in a loop.
    fn read_after_change(&mut self, body: &mut Vec<Node>) {
        let Some(source) = self.writable() else { return self.define(body) };
        let count = self.tensors.len();
        self.preferred = Some(source);
        self.define(body);
        let made = (self.tensors.len() > count).then(|| self.tensors.len() - 1);
        let read_first = self.rng.chance(40);
        let then = |builder: &mut Builder<'r>, inner: &mut Vec<Node>| {
            for reads in [read_first, !read_first] {
                builder.preferred = made.filter(|_| reads);
                match reads {
                    true if builder.rng.chance(50) => builder.update(inner),
                    true if builder.rng.chance(50) => {
                        if let Some(made) = made {
                            builder.reduce_dimensions(made, inner);
                        }
                    }
                    true => builder.define(inner),
                    false => builder.update_of(source, inner),
                }
            }
        };
        let turns = self.rng.between(2, 3);
        if self.loops.len() < 2 && self.iterations() * turns <= MAX_ITERATIONS && self.rng.chance(55) {
            let node = self.in_loop(0, Extent::number(turns), then);
            body.push(node);
        } else {
            then(self, body);
        }
        self.preferred = None;
    }

    /// The scope of a statement in the current loops.
    pub fn scope(&self) -> Scope {
        Scope { vars: self.loops.clone(), ..Scope::default() }
    }

    /// The number of times that the next statement runs.
    pub fn iterations(&self) -> i64 {
        self.loops.iter().map(Var::count).product()
    }

    /// Makes an ordered loop around one to three statements.
    fn ordered(&mut self, body: &mut Vec<Node>) {
        let from = self.rng.weighted(&[(0, 65), (1, 35)]);
        let mut ends = vec![Extent::number(from + self.rng.between(2, 3))];
        ends.extend(self.pool.iter().filter(|end| end.value > from && end.value < 6).cloned());
        let to = self.rng.pick(&ends).clone();
        if self.iterations() * (to.value - from) > MAX_ITERATIONS {
            return self.update(body);
        }
        let count = self.rng.weighted(&[(1, 25), (2, 45), (3, 30)]);
        let node = self.in_loop(from, to, |builder, inner| {
            for _ in 0..count {
                builder.statement(inner);
            }
        });
        body.push(node);
    }

    /// Makes a loop around the statements of `make`. Most tensors that are defined inside cannot be
    /// used afterwards.
    pub fn in_loop(
        &mut self,
        from: i64,
        to: Extent,
        make: impl FnOnce(&mut Builder<'r>, &mut Vec<Node>),
    ) -> Node {
        let name = self.loop_names[self.loops.len()].clone();
        let before = self.tensors.len();
        self.loops.push(Var { name: name.clone(), from, to: to.clone(), kind: Kind::Loop });
        let mut inner = Vec::new();
        make(self, &mut inner);
        self.loops.pop();
        for known in &mut self.tensors[before..] {
            known.hidden |= self.rng.chance(60);
        }
        Node::For { var: name, from, to: to.text, body: inner }
    }

    /// Chooses the results: tensors that nothing reads, tensors that the caller supplies, and some
    /// others.
    pub fn results(&mut self, body: &[Node]) -> Vec<String> {
        let mut results = Vec::new();
        let used = |known: &&TensorInfo| known.writable && body.iter().any(|node| node.names(&known.name));
        for known in self.tensors.iter().filter(used) {
            if known.in_out || !known.read || self.rng.chance(25) {
                results.push(known.result.clone().unwrap_or_else(|| known.name.clone()));
            }
        }
        results
    }
}

/// Describes a tensor that the function defines.
pub fn tensor_info(name: &str, element: Element, shape: Vec<Extent>) -> TensorInfo {
    let spare = if is_float(element) { most(element) / 2.0 } else { f64::INFINITY };
    TensorInfo {
        name: name.to_string(),
        element,
        shape,
        writable: true,
        is_index: false,
        headroom: spare,
        hidden: false,
        read: false,
        result: None,
        declared: false,
        in_out: false,
    }
}

/// Formats a type in the syntax of the language.
pub fn tensor_type(element: Element, shape: &[Extent]) -> String {
    let extents: Vec<&str> = shape.iter().map(|dim| dim.text.as_str()).collect();
    format!("{element}({})", extents.join(", "))
}
