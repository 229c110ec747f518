//! Makes functions that a generated program calls, and the statements that call them.

use super::builder::{Builder, tensor_info, tensor_type};
use super::element::{Element, is_float, most};
use super::scope::{Extent, TensorInfo};
use super::source::{Function, Node};

/// A function, with the types of its parameters and results in terms of the caller's extents.
#[derive(Clone, Debug)]
pub struct Helper {
    pub function: Function,
    params: Vec<(Element, Vec<Extent>)>,
    takes_scalar: bool,
    results: Vec<HelperResult>,
}

#[derive(Clone, Debug)]
struct HelperResult {
    element: Element,
    shape: Vec<Extent>,
    in_out: bool,
}

/// The caller's extents, each with its name in the called function.
struct Renamed(Vec<(Extent, Extent)>);

impl Renamed {
    fn inner(&self, outer: &Extent) -> Extent {
        self.0.iter().find(|(own, _)| own == outer).map_or_else(|| outer.clone(), |(_, inner)| inner.clone())
    }

    fn outer(&self, shape: &[Extent]) -> Vec<Extent> {
        let outer = |inner: &Extent| {
            let pair = self.0.iter().find(|(_, own)| own == inner);
            pair.map_or_else(|| inner.clone(), |(outer, _)| outer.clone())
        };
        shape.iter().map(outer).collect()
    }
}

/// The maximum that a function may add to an element that its caller supplies.
fn added(element: Element) -> f64 {
    if is_float(element) { most(element) / 100.0 } else { f64::INFINITY }
}

impl Builder<'_> {
    /// Makes a function that takes some of the caller's tensors. It may call earlier functions.
    pub fn helper(&mut self, number: usize, earlier: &[Helper]) -> Helper {
        let count = self.rng.between(1, self.tensors.len().min(2) as i64) as usize;
        let given: Vec<TensorInfo> = (0..count).map(|_| self.rng.pick(&self.tensors).clone()).collect();
        let renamed = self.renamed(&given);
        let pool = renamed.0.iter().map(|(_, inner)| inner.clone()).chain([Extent::number(3)]).collect();
        let main = self.main;
        let mut inside = Builder::new(self.rng, main, pool, "w");
        inside.is_called = inside.rng.chance(95);
        if inside.rng.chance(95) {
            inside.loop_names = ["t", "u", "v"].map(|name| format!("{name}{number}"));
        }
        // A nested call sees the parameters under their own names, so its extents must be those of
        // the caller.
        let same = renamed.0.iter().all(|(outer, inner)| outer == inner);
        inside.helpers = if same { earlier.to_vec() } else { Vec::new() };
        let mut params = inside.given(&given, &renamed);
        let takes_scalar = inside.rng.chance(25);
        if takes_scalar {
            params.push("int32 z".to_string());
            inside.scalars.push(("z".to_string(), "int32"));
        }
        let (body, names) = inside.called_body();
        let results = inside.results_for_caller(&names, &renamed);
        let function = Function { name: format!("g{number}"), params, results: names, body };
        let params = given.into_iter().map(|own| (own.element, own.shape)).collect();
        Helper { function, params, takes_scalar, results }
    }

    /// Makes parameters that take the caller's tensors.
    fn given(&mut self, given: &[TensorInfo], renamed: &Renamed) -> Vec<String> {
        let mut params = Vec::new();
        for (at, outer) in given.iter().enumerate() {
            let shape: Vec<Extent> = outer.shape.iter().map(|dim| renamed.inner(dim)).collect();
            let name = format!("p{at}");
            params.push(format!("{} {name}", tensor_type(outer.element, &shape)));
            self.tensors.push(TensorInfo { writable: false, ..tensor_info(&name, outer.element, shape) });
        }
        params
    }

    /// Makes the statements of a called function, perhaps with a result that its caller supplies.
    /// Returns the statements and the results.
    fn called_body(&mut self) -> (Vec<Node>, Vec<String>) {
        if self.rng.chance(25) {
            let (element, shape) = (self.element(), self.shape());
            let result = Some(format!("{} r", tensor_type(element, &shape)));
            let plain = tensor_info("r", element, shape);
            self.tensors.push(TensorInfo {
                result,
                in_out: true,
                declared: true,
                headroom: added(element),
                ..plain
            });
        }
        let count = self.rng.weighted(&[(1, 35), (2, 40), (3, 25)]);
        let mut body = self.statements(count);
        let mut names = self.results(&body);
        if names.is_empty() {
            self.define(&mut body);
            names = self.results(&body);
        }
        (body, names)
    }

    /// The results in terms of the caller's extents.
    fn results_for_caller(&self, names: &[String], renamed: &Renamed) -> Vec<HelperResult> {
        let listed =
            |own: &&TensorInfo| names.iter().any(|name| name.rsplit(' ').next() == Some(own.name.as_str()));
        let made = |own: &TensorInfo| HelperResult {
            element: own.element,
            shape: renamed.outer(&own.shape),
            in_out: own.in_out,
        };
        self.tensors.iter().filter(|own| own.writable).filter(listed).map(made).collect()
    }

    /// Chooses names for the extents of some tensors: new sizes of the function, or the caller's
    /// names.
    fn renamed(&mut self, given: &[TensorInfo]) -> Renamed {
        let mut pairs: Vec<(Extent, Extent)> = Vec::new();
        let keep = self.rng.chance(40);
        for dim in given.iter().flat_map(|own| &own.shape) {
            if pairs.iter().any(|(outer, _)| outer == dim) {
                continue;
            }
            let number = dim.text.parse::<i64>().is_ok();
            let letter = ["A", "B", "C", "D", "E", "F", "G", "H"].get(pairs.len()).copied().unwrap_or("Z");
            let inner = match keep || (number && self.rng.chance(40)) {
                true => dim.clone(),
                false => Extent { text: letter.to_string(), value: dim.value },
            };
            pairs.push((dim.clone(), inner));
        }
        Renamed(pairs)
    }

    /// Makes a call whose results go to new or existing tensors.
    pub fn call(&mut self, body: &mut Vec<Node>) {
        let helper = self.rng.pick(&self.helpers).clone();
        let mut used = Vec::new();
        let mut arguments = Vec::new();
        for (element, shape) in &helper.params {
            let Some(at) = self.matching(element, shape, &[], false) else { return self.define(body) };
            used.push(at);
            arguments.push(self.tensors[at].name.clone());
        }
        if helper.takes_scalar {
            let number = self.rng.between(1, 4).to_string();
            let turn = self.loops.last().map(|turn| turn.name.clone());
            arguments.push(turn.filter(|_| self.rng.chance(30)).unwrap_or(number));
        }
        let mut results = Vec::new();
        for made in &helper.results {
            let again = made.in_out || self.rng.chance(35);
            let there = if again { self.matching(made.element, &made.shape, &used, true) } else { None };
            let at = match there {
                Some(at) => at,
                None if made.in_out => return self.define(body),
                None => self.add(made.element, made.shape.clone()),
            };
            used.push(at);
            let spare = self.tensors[at].headroom - added(made.element) * self.iterations() as f64;
            if made.in_out && spare < 0.0 {
                return self.define(body);
            }
            // The results of the function may have the maximum magnitude.
            let full = if is_float(made.element) { 0.0 } else { f64::INFINITY };
            self.tensors[at].headroom = if made.in_out && is_float(made.element) { spare } else { full };
            results.push(self.tensors[at].name.clone());
        }
        for at in &used[..helper.params.len()] {
            self.tensors[*at].read = true;
        }
        let line = format!("{} = {}({})", results.join(", "), helper.function.name, arguments.join(", "));
        body.push(Node::Line(line));
    }

    /// Finds a tensor of a type and shape that is not in use yet.
    fn matching(
        &mut self,
        element: Element,
        shape: &[Extent],
        used: &[usize],
        to_write: bool,
    ) -> Option<usize> {
        let matches = |at: &usize| {
            let own = &self.tensors[*at];
            let free = !own.hidden && !used.contains(at) && (own.writable || !to_write);
            free && own.element == element && own.shape == shape
        };
        let found: Vec<usize> = (0..self.tensors.len()).filter(matches).collect();
        if found.is_empty() { None } else { Some(*self.rng.pick(&found)) }
    }
}
