//! Random programs as text: one to four stages over a few small tensors.
//!
//! Every range is written out and every subscript is made to fit it, so that the checker accepts
//! most programs. Programs that it refuses are left out. Numbers stay so small that every order of
//! a reduction gives the same result.

use super::rng::Rng;
use super::source::Source;
use super::subscript::{Extent, Scope, Var};
use super::value::{Value, clamped, is_float, limit};

const SIZES: [(i64, usize); 11] =
    [(1, 4), (2, 8), (3, 12), (4, 14), (5, 14), (7, 10), (8, 12), (12, 6), (13, 8), (16, 6), (17, 6)];

const TYPES: [(&str, usize); 10] = [
    ("float32", 46),
    ("float64", 8),
    ("float16", 12),
    ("bfloat16", 8),
    ("int32", 10),
    ("int8", 4),
    ("uint8", 4),
    ("int16", 3),
    ("int64", 3),
    ("uint32", 2),
];

/// The role of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A parameter.
    Input,
    /// A parameter whose elements are subscripts.
    Index,
    /// Defined by the program.
    Made,
    /// Read by the program before it is written, so that it is always a result.
    InOut,
}

/// A tensor that exists already.
pub struct Known {
    /// Its name.
    pub name: String,
    /// Its type.
    pub dtype: &'static str,
    /// Its shape.
    pub shape: Vec<Extent>,
    /// The largest magnitude of its elements.
    pub magnitude: f64,
    /// Its role.
    pub kind: Kind,
    /// Whether a statement reads it.
    pub read: bool,
}

/// A program under construction.
pub struct Builder<'r> {
    /// The source of random choices.
    pub rng: &'r mut Rng,
    /// The text so far.
    pub source: Source,
    /// Its tensors, in order.
    pub tensors: Vec<Known>,
    /// The type of most of its tensors.
    dtype: &'static str,
    /// A tensor that must not be read at the moment.
    hidden: Option<usize>,
}

/// A random program.
pub fn program(rng: &mut Rng) -> Source {
    let dtype = rng.weighted(&TYPES);
    let mut builder = Builder { rng, source: Source::default(), tensors: Vec::new(), dtype, hidden: None };
    builder.inputs();
    for _ in 0..builder.rng.weighted(&[(1, 25), (2, 35), (3, 25), (4, 15)]) {
        builder.stage();
    }
    builder.finish()
}

/// A left-hand side.
struct Target {
    text: String,
    shape: Vec<Extent>,
    /// Whether each point has its own element.
    each_once: bool,
    vars: Vec<Var>,
}

impl Target {
    fn ranges(&self) -> String {
        ranges(&self.vars)
    }
}

/// ` where …`, without the variable of an ordered loop.
fn ranges(vars: &[Var]) -> String {
    let clauses: Vec<String> = vars.iter().filter(|var| var.name != "t").map(Var::clause).collect();
    if clauses.is_empty() { String::new() } else { format!(" where {}", clauses.join(", ")) }
}

/// A subscript that lays rows end to end, for ranges that do not begin at 0.
fn rows_end_to_end(left: &Var, right: &Var) -> (String, Extent) {
    let (rows, columns) = (left.to.plus(-left.from), right.to.plus(-right.from));
    let (row, column) =
        (format!("({} - {})", left.name, left.from), format!("{} - {}", right.name, right.from));
    (format!("({})*{row} + {column}", columns.text), rows.times(&columns))
}

impl Builder<'_> {
    fn inputs(&mut self) {
        let sizes: Vec<(String, i64)> =
            ["M", "N", "K"].iter().map(|name| (name.to_string(), self.rng.weighted(&SIZES))).collect();
        self.source.sizes = sizes;
        for name in ["A", "B", "C"].iter().take(self.rng.weighted(&[(1, 20), (2, 60), (3, 20)])) {
            let rank = self.rng.weighted(&[(0, 3), (1, 32), (2, 45), (3, 15), (4, 5)]);
            let dtype = if self.rng.chance(85) { self.dtype } else { self.rng.weighted(&TYPES) };
            self.input(name, dtype, rank, Kind::Input);
        }
        if self.rng.chance(50) {
            let dtype = if self.rng.chance(70) { "uint8" } else { "int32" };
            let rank = self.rng.weighted(&[(1, 60), (2, 40)]);
            self.input("I", dtype, rank, Kind::Index);
        }
        let params = self.source.params.join(" ");
        self.source.sizes.retain(|(name, _)| params.contains(name));
    }

    fn input(&mut self, name: &str, dtype: &'static str, rank: usize, kind: Kind) {
        let mut shape: Vec<Extent> = Vec::new();
        for _ in 0..rank {
            let dim = if self.rng.chance(75) {
                let (name, value) = self.rng.pick(&self.source.sizes).clone();
                Extent { text: name, value }
            } else {
                Extent::number(self.rng.weighted(&SIZES))
            };
            let room = shape.iter().map(|dim| dim.value).product::<i64>() * dim.value <= 1000;
            shape.push(if room { dim } else { Extent::number(2) });
        }
        let extents: Vec<&str> = shape.iter().map(|dim| dim.text.as_str()).collect();
        let constant = if self.rng.chance(30) { "const " } else { "" };
        self.source.params.push(format!("{constant}{dtype}({}) {name}", extents.join(", ")));
        let name = name.to_string();
        self.tensors.push(Known { name, dtype, shape, magnitude: 3.0, kind, read: false });
    }

    /// The name of the scalar parameter, which is added on first use.
    pub fn scalar(&mut self) -> &'static str {
        if !self.source.params.iter().any(|param| param.ends_with(" s")) {
            let dtype = if self.rng.chance(50) { "float32" } else { "int32" };
            self.source.params.push(format!("{dtype} s"));
            if dtype == "int32" {
                self.source.sizes.push(("s".to_string(), 2));
            }
        }
        "s"
    }

    /// Returns true when a statement may read the tensor.
    pub fn may_read(&self, at: usize) -> bool {
        self.tensors[at].kind != Kind::Index && self.hidden != Some(at)
    }

    fn stage(&mut self) {
        match self.rng.weighted(&[(0, 60), (1, 8), (2, 10), (3, 8), (4, 14), (5, 10)]) {
            0 => self.comprehension(),
            1 => self.scatter(),
            2 => self.recurrence(),
            3 => self.states(),
            4 => self.update(),
            _ => self.pieces(),
        }
    }

    fn next_name(&self) -> String {
        let made =
            self.tensors.iter().filter(|tensor| matches!(tensor.kind, Kind::Made | Kind::InOut)).count();
        format!("T{made}")
    }

    fn stage_type(&mut self) -> &'static str {
        if self.rng.chance(85) { self.dtype } else { self.rng.weighted(&TYPES) }
    }

    fn add(&mut self, dtype: &'static str, shape: Vec<Extent>, magnitude: f64, kind: Kind) {
        let name = self.next_name();
        self.tensors.push(Known {
            name,
            dtype,
            shape,
            magnitude: magnitude.min(limit(dtype)),
            kind,
            read: false,
        });
    }

    /// Adds one statement over a box, perhaps after a statement that sets its elements.
    fn comprehension(&mut self) {
        let mut scope = Scope::default();
        let dtype = self.stage_type();
        let value = self.value(&mut scope, dtype, 85);
        let reduces = scope.vars.len() > 3 || self.rng.chance(55);
        let target = self.target(&scope, reduces);
        let (name, text) = (self.next_name(), target.text.clone());
        let all = ranges(&scope.vars);
        if !reduces {
            let in_out = self.rng.chance(7);
            let old = if in_out { format!("{name}({text}) + ") } else { String::new() };
            self.source.body.push(format!("{name}({text}) = {old}{}{all}", value.text));
            let kind = if in_out { Kind::InOut } else { Kind::Made };
            return self.add(dtype, target.shape, value.magnitude + 3.0, kind);
        }
        let (op, value) = self.reduced(value, dtype, scope.points());
        let form = self.rng.weighted(&[(0, 70), (1, 20), (2, 10)]);
        let (reset, kind) = match form {
            1 if target.each_once => {
                self.source.body.push(format!("{name}({text}) = 1{}", target.ranges()));
                ("", Kind::Made)
            }
            2 => ("", Kind::InOut),
            _ => ("!", Kind::Made),
        };
        self.source.body.push(format!("{name}({text}) {op}{reset} {}{all}", value.text));
        self.add(dtype, target.shape, value.magnitude + 3.0, kind);
    }

    /// Chooses an operator, and a value whose size suits it.
    fn reduced(&mut self, value: Value, dtype: &str, points: i64) -> (&'static str, Value) {
        let points = points as f64;
        let sum = |value: Value| Value { magnitude: value.magnitude * points, ..value };
        match self.rng.weighted(&[("+=", 70), ("max=", 12), ("min=", 10), ("*=", 8)]) {
            "+=" if !is_float(dtype) || value.magnitude * points + 3.0 <= limit(dtype) => ("+=", sum(value)),
            "+=" if 2.0 * points + 3.0 <= limit(dtype) => ("+=", sum(clamped(&value.text, dtype))),
            "*=" if is_float(dtype) => {
                let text = format!("({} > 0 ? -1 : 1)", value.text);
                ("*=", Value { text, magnitude: 3.0 })
            }
            "*=" => ("*=", Value { magnitude: limit(dtype), ..value }),
            "min=" => ("min=", value),
            _ => ("max=", value),
        }
    }

    /// A left-hand side with some or all of the variables.
    fn target(&mut self, scope: &Scope, reduces: bool) -> Target {
        let mut vars: Vec<Var> = scope.vars.iter().filter(|var| var.name != "t").cloned().collect();
        if self.rng.chance(60) {
            self.rng.shuffle(&mut vars);
        }
        if reduces {
            let dropped = self.rng.weighted(&[(0, 10), (1, 60), (2, 30)]);
            vars.truncate(vars.len().saturating_sub(dropped).min(4));
        }
        let mut target =
            Target { text: String::new(), shape: Vec::new(), each_once: true, vars: vars.clone() };
        let mut texts = Vec::new();
        let mut at = 0;
        while at < vars.len() {
            let joined = at + 1 < vars.len() && self.rng.chance(12);
            let (text, dim) = if joined {
                at += 1;
                self.joined(&vars[at - 1], &vars[at], reduces, &mut target.each_once)
            } else {
                self.single(&vars[at], reduces, &mut target.each_once)
            };
            texts.push(text);
            target.shape.push(dim);
            at += 1;
        }
        target.text = texts.join(", ");
        target
    }

    /// A subscript with one variable, on the left-hand side.
    fn single(&mut self, var: &Var, reduces: bool, each_once: &mut bool) -> (String, Extent) {
        let dim = var.to.plus(-var.from);
        if var.from != 0 {
            return (format!("{} - {}", var.name, var.from), dim);
        }
        match self.rng.below(20) {
            0 => (format!("{} - 1 - {}", dim.text, var.name), dim),
            1 if reduces => {
                *each_once = false;
                (format!("{}/2", var.name), dim.plus(1).over(2))
            }
            _ => (var.name.to_string(), dim),
        }
    }

    /// A subscript with two variables, on the left-hand side.
    fn joined(&mut self, left: &Var, right: &Var, reduces: bool, each_once: &mut bool) -> (String, Extent) {
        if left.from != 0 || right.from != 0 {
            return rows_end_to_end(left, right);
        }
        if reduces && self.rng.chance(50) {
            *each_once = false;
            let dim = Extent {
                text: format!("{} + {} - 1", left.to.text, right.to.text),
                value: left.to.value + right.to.value - 1,
            };
            return (format!("{} + {}", left.name, right.name), dim);
        }
        (format!("({})*{} + {}", right.to.text, left.name, right.name), left.to.times(&right.to))
    }

    /// Adds a reduction into elements that data chooses.
    fn scatter(&mut self) {
        let mut scope = Scope::default();
        let dtype = self.stage_type();
        let dim = Extent::number(self.rng.between(4, 6));
        let Some(index) = self.data_subscript(&mut scope, &dim, 100) else { return self.comprehension() };
        let value = self.value(&mut scope, dtype, 40);
        let (op, value) = self.reduced(value, dtype, scope.points());
        let mut indices = vec![index];
        let mut shape = vec![dim];
        let kept = self.rng.below(scope.vars.len().min(2) + 1);
        for var in scope.vars.iter().filter(|var| var.from == 0).take(kept) {
            indices.push(var.name.to_string());
            shape.push(var.to.clone());
        }
        let name = self.next_name();
        let extents: Vec<&str> = shape.iter().map(|dim| dim.text.as_str()).collect();
        self.source.body.push(format!("{dtype}({}) {name}", extents.join(", ")));
        let statement = format!("{name}({}) {op}! {}{}", indices.join(", "), value.text, ranges(&scope.vars));
        self.source.body.push(statement);
        self.add(dtype, shape, value.magnitude, Kind::Made);
    }

    /// A scope that holds the variable of an ordered loop.
    fn ordered(&mut self, from: i64) -> Scope {
        let short =
            self.source.sizes.iter().filter(|(name, value)| name != "s" && *value > from && *value < 9);
        let mut extents: Vec<Extent> =
            short.map(|(name, value)| Extent { text: name.clone(), value: *value }).collect();
        extents.push(Extent::number(self.rng.between(2, 4)));
        let to = self.rng.pick(&extents).clone();
        Scope { vars: vec![Var { name: "t", from, to }], taken: Vec::new() }
    }

    /// Adds a recurrence: `T(t, …)` from `T(t - 1, …)`.
    fn recurrence(&mut self) {
        let mut scope = self.ordered(1);
        let dtype = self.stage_type();
        let value = self.value(&mut scope, dtype, 75);
        let target = self.target(&scope, false);
        if target.vars.len() > 3 {
            return self.comprehension();
        }
        let (name, turns) = (self.next_name(), scope.vars[0].to.clone());
        let at = |turn: &str| {
            let comma = if target.text.is_empty() { "" } else { ", " };
            format!("{name}({turn}{comma}{})", target.text)
        };
        self.source.body.push(format!("{} = 1{}", at("0"), target.ranges()));
        let next = self.next_of_recurrence(&at("t - 1"), value.settled(dtype), dtype, turns.value);
        let statement = format!("{} = {}{}", at("t"), next.text, target.ranges());
        self.source.body.push(format!("for t in 1:{} {{ {statement} }}", turns.text));
        let shape = std::iter::once(turns).chain(target.shape.clone()).collect();
        self.add(dtype, shape, next.magnitude, Kind::Made);
    }

    /// The next value of a recurrence. Many forms can be computed in parts.
    fn next_of_recurrence(&mut self, before: &str, value: Value, dtype: &str, turns: i64) -> Value {
        let Value { text, magnitude } = &value;
        let sum = 1.0 + turns as f64 * magnitude;
        let form = self.rng.weighted(&[(0, 20), (1, 25), (2, 30), (3, 25)]);
        match form {
            1 => {
                let function = *self.rng.pick(&["min", "max"]);
                Value { text: format!("{function}({before}, {text})"), magnitude: magnitude.max(1.0) }
            }
            2 if sum <= limit(dtype) => Value { text: format!("{before} + {text}"), magnitude: sum },
            3 if sum <= limit(dtype) && !dtype.starts_with('u') => {
                Value { text: format!("{text} - {before}"), magnitude: sum }
            }
            _ => clamped(&format!("{before} + {text}"), dtype),
        }
    }

    /// Adds an ordered loop over two tensors, one of which is the state.
    fn states(&mut self) {
        let mut scope = self.ordered(0);
        let dtype = self.stage_type();
        let value = self.value(&mut scope, dtype, 80);
        let target = self.target(&scope, true);
        if !target.each_once {
            return self.comprehension();
        }
        let value = clamped(&value.text, dtype);
        let state = self.next_name();
        self.add(dtype, target.shape.clone(), 2.0, Kind::Made);
        let part = self.next_name();
        self.add(dtype, target.shape.clone(), limit(dtype), Kind::Made);
        let (text, own, all) = (&target.text, target.ranges(), ranges(&scope.vars));
        let op = *self.rng.pick(&["max=!", "min=!", "max=!"]);
        let first = format!("{part}({text}) {op} {}{all}", value.text);
        let next = clamped(&format!("{part}({text}) + {state}({text})"), dtype);
        let second = format!("{state}({text}) = {}{own}", next.text);
        self.source.body.push(format!("{state}({text}) = 1{own}"));
        let turns = scope.vars[0].to.text.clone();
        self.source.body.push(format!("for t in 0:{turns} {{ {first}; {second} }}"));
        let read = self.tensors.len() - 1;
        self.tensors[read].read = true;
    }

    /// Adds another statement that writes an existing tensor.
    fn update(&mut self) {
        let made: Vec<usize> = (0..self.tensors.len())
            .filter(|at| matches!(self.tensors[*at].kind, Kind::Made | Kind::InOut))
            .collect();
        if made.is_empty() {
            return self.comprehension();
        }
        let at = *self.rng.pick(&made);
        let (name, dtype) = (self.tensors[at].name.clone(), self.tensors[at].dtype);
        let mut scope = Scope::default();
        let mut indices = Vec::new();
        for dim in self.tensors[at].shape.clone() {
            let from = i64::from(dim.value > 1 && self.rng.chance(15));
            let var = if self.rng.chance(90) { scope.fresh(from, &dim) } else { None };
            indices.push(var.map_or_else(|| "0".to_string(), str::to_string));
        }
        let own = scope.vars.len();
        self.hidden = Some(at);
        let value = self.value(&mut scope, dtype, if own == 0 { 60 } else { 10 });
        self.hidden = None;
        let element = format!("{name}({})", indices.join(", "));
        let all = ranges(&scope.vars);
        if scope.vars.len() > own || self.rng.chance(40) {
            let (op, value) = self.reduced(value, dtype, scope.points());
            self.source.body.push(format!("{element} {op} {}{all}", value.text));
            self.tensors[at].magnitude += value.magnitude;
        } else {
            let value = clamped(&value.text, dtype);
            let form = self.rng.below(3);
            let text = match form {
                0 => value.text,
                1 => format!("max({element}, {})", value.text),
                _ => format!("{element} + {}", value.text),
            };
            self.source.body.push(format!("{element} = {text}{all}"));
            self.tensors[at].magnitude += 2.0;
        }
        let exact = self.tensors[at].magnitude.min(limit(dtype));
        self.tensors[at].magnitude = exact;
    }

    /// Adds a tensor that two statements define, each a part of it.
    fn pieces(&mut self) {
        let mut scope = Scope::default();
        let dtype = self.stage_type();
        let value = self.value(&mut scope, dtype, 85);
        let Some(first) = scope.vars.iter().find(|var| var.from == 0).cloned() else {
            return self.comprehension();
        };
        if scope.vars.len() > 4 || scope.vars.iter().any(|var| var.from != 0) {
            return self.comprehension();
        }
        let name = self.next_name();
        let rest: Vec<&Var> = scope.vars.iter().filter(|var| var.name != first.name).collect();
        let element = |index: &str| {
            let names: Vec<&str> = std::iter::once(index).chain(rest.iter().map(|var| var.name)).collect();
            format!("{name}({})", names.join(", "))
        };
        let interleaved = self.rng.chance(50);
        let (one, two, dim) = if interleaved {
            let (one, two) = (format!("2*{}", first.name), format!("2*{} + 1", first.name));
            (one, two, first.to.times(&Extent::number(2)))
        } else {
            ("0".to_string(), format!("{} + 1", first.name), first.to.plus(1))
        };
        let all = ranges(&scope.vars);
        let others: Vec<Var> = rest.iter().map(|var| (*var).clone()).collect();
        let (other, others) = if interleaved {
            (clamped(&value.text, dtype).text, all.clone())
        } else {
            ("1".to_string(), ranges(&others))
        };
        let (one, two) = (element(&one), element(&two));
        self.source.body.push(format!("{one} = {other}{others}"));
        self.source.body.push(format!("{two} = {}{all}", value.text));
        let shape = std::iter::once(dim).chain(rest.iter().map(|var| var.to.clone())).collect();
        self.add(dtype, shape, value.magnitude.max(2.0), Kind::Made);
    }

    /// Names the results: tensors that nothing reads, tensors that the caller supplies, and some
    /// others.
    fn finish(mut self) -> Source {
        for tensor in &self.tensors {
            let result = match tensor.kind {
                Kind::Input | Kind::Index => false,
                Kind::InOut => true,
                Kind::Made => !tensor.read || self.rng.chance(20),
            };
            if result {
                self.source.results.push(tensor.name.clone());
            }
        }
        self.source
    }
}
