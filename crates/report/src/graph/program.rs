//! Makes the [`Graph`] of a program: a node for each input and each statement, an edge for each
//! tensor that a statement reads, and a frame for each ordered loop.
//!
//! A statement that reads a tensor gets an edge from the last statement before it that writes the
//! tensor. Several statements that write one tensor are joined in order, so the last one stands for
//! all of them. In an ordered loop, a statement also reads what a later statement of the loop has
//! written in an earlier iteration; that edge is [`Relation::Carried`].

use std::collections::BTreeMap;

use tilewright_ir::print;
use tilewright_ir::{Access, ForLoop, Program, Role, Statement, TensorId, Update, VarKind};
use tilewright_ir::{Node as ProgramNode, VarId};

use super::model::{Edge, Frame, Graph, Kind, Node, Relation};
use super::window::window;

/// The most lines of a box about what a statement reads.
const MOST_WINDOWS: usize = 3;

/// The graph of a program.
pub fn graph(program: &Program) -> Graph {
    let mut builder = Builder::new(program);
    for stage in &program.stages {
        builder.nodes(&stage.body, None);
    }
    builder.add_edges();
    builder.graph
}

struct Builder<'p> {
    program: &'p Program,
    graph: Graph,
    /// The node of each supplied tensor.
    inputs: BTreeMap<TensorId, usize>,
    /// The statements in order, with the ordered loops around each.
    statements: Vec<(&'p Statement, Vec<VarId>)>,
    /// The node of the first statement; those of the others follow.
    first: usize,
}

impl<'p> Builder<'p> {
    fn new(program: &'p Program) -> Builder<'p> {
        let mut graph = Graph { name: program.name.clone(), details: details(program), ..Graph::default() };
        let mut inputs = BTreeMap::new();
        for (id, tensor) in program.tensors_with(Role::is_supplied) {
            let is_constant = tensor.role == Role::Input { constant: true };
            let kind = if is_constant { Kind::Constant } else { Kind::Input };
            inputs.insert(id, graph.nodes.len());
            graph.nodes.push(Node {
                name: tensor.name.clone(),
                kind,
                lines: vec![print::tensor_type(program, id)],
                tooltip: format!("{} {}: {}", kind.name(), tensor.name, print::tensor_type(program, id)),
                frame: None,
                reads_itself: false,
                is_inlined: false,
            });
        }
        let first = graph.nodes.len();
        Builder { program, graph, inputs, statements: program.statements(), first }
    }

    /// Adds the nodes of statements, and the frames of ordered loops.
    fn nodes(&mut self, body: &[ProgramNode], frame: Option<usize>) {
        for node in body {
            match node {
                ProgramNode::Statement(own) => self.statement(own, frame),
                ProgramNode::For(own) => {
                    self.graph.frames.push(loop_frame(self.program, own, frame));
                    let inner = self.graph.frames.len() - 1;
                    self.nodes(&own.body, Some(inner));
                }
            }
        }
    }

    fn statement(&mut self, statement: &Statement, frame: Option<usize>) {
        let at = self.graph.nodes.len() - self.first;
        let earlier = self.statements[..at].iter().filter(|(own, _)| own.target == statement.target).count();
        let tensor = self.program.tensor(statement.target);
        let ordinal = if earlier == 0 { String::new() } else { format!("[{}]", earlier + 1) };
        let is_result = tensor.role.is_result();
        let mut lines = vec![print::tensor_type(self.program, statement.target)];
        lines.extend(reading_lines(self.program, statement));
        self.graph.nodes.push(Node {
            name: format!("{}{ordinal}", tensor.name),
            kind: if is_result { Kind::Result } else { Kind::Temporary },
            lines,
            tooltip: describe(self.program, statement),
            frame,
            reads_itself: false,
            is_inlined: false,
        });
    }

    fn add_edges(&mut self) {
        for at in 0..self.statements.len() {
            let statement = self.statements[at].0;
            for (tensor, accesses) in reads(statement) {
                let read = window(self.program, statement, &accesses);
                let read = read.unwrap_or_else(|| print::access(accesses[0], self.program));
                self.add_read(at, tensor, &read);
            }
            self.add_continuation(at);
        }
    }

    /// Adds the edges to a statement from those that define a tensor that it reads.
    fn add_read(&mut self, reader: usize, tensor: TensorId, read: &str) {
        if let Some(from) = self.definition_before(reader, tensor) {
            self.add_edge(from, reader, Relation::Reads, read);
        }
        let carried = (reader..self.statements.len())
            .rev()
            .find(|at| self.statements[*at].0.target == tensor && self.share_loop(*at, reader));
        match carried {
            Some(at) if at == reader => self.graph.nodes[self.first + reader].reads_itself = true,
            Some(at) => self.add_edge(self.first + at, reader, Relation::Carried, read),
            None => {}
        }
    }

    /// Adds the edge from the definition that a statement changes or completes, unless the
    /// statement already reads it.
    fn add_continuation(&mut self, at: usize) {
        let statement = self.statements[at].0;
        let keeps_content = statement.update != Update::Assign;
        let earlier = self.definition_before(at, statement.target);
        // An assignment does not depend on the content that the caller supplies.
        let Some(from) = earlier.filter(|from| *from >= self.first || keeps_content) else { return };
        let is_known = |edge: &Edge| edge.from == from && edge.to == self.first + at;
        if !self.graph.edges.iter().rev().any(is_known) {
            let name = self.program.tensor(statement.target).name.clone();
            self.add_edge(from, at, Relation::Continues, &name);
        }
    }

    /// The node that defines a tensor before a statement: another statement or the input.
    fn definition_before(&self, reader: usize, tensor: TensorId) -> Option<usize> {
        let earlier = (0..reader).rev().find(|at| self.statements[*at].0.target == tensor);
        earlier.map(|at| self.first + at).or_else(|| self.inputs.get(&tensor).copied())
    }

    fn share_loop(&self, one: usize, other: usize) -> bool {
        let [one, other] = [one, other].map(|at| self.statements[at].1.first());
        one.is_some() && one == other
    }

    fn add_edge(&mut self, from: usize, reader: usize, relation: Relation, read: &str) {
        let to = self.first + reader;
        let name = &self.graph.nodes[to].name;
        let tooltip = match relation {
            Relation::Reads => format!("{name} reads {read}"),
            Relation::Carried => format!("{name} reads {read} of an earlier iteration"),
            Relation::Continues => format!("{name} changes or completes {read}"),
        };
        self.graph.edges.push(Edge { from, to, relation, tooltip });
    }
}

/// The sizes and scalars of a program, with their values where they are known.
fn details(program: &Program) -> String {
    let symbol = |name: &str, value: Option<i64>| match value {
        Some(value) => format!("{name} = {value}"),
        None => name.to_owned(),
    };
    let sizes = program.symbols.iter().map(|own| symbol(&own.name, own.value));
    let is_symbol = |name: &str| program.symbols.iter().any(|own| own.name == name);
    let scalars = program.scalars.iter().filter(|own| !is_symbol(&own.name));
    let scalars = scalars.map(|own| format!("{} {}", own.dtype, own.name));
    sizes.chain(scalars).collect::<Vec<_>>().join(", ")
}

fn loop_frame(program: &Program, own: &ForLoop, parent: Option<usize>) -> Frame {
    let var = program.var(own.var);
    let title = format!("for {} in {}", var.name, print::range(&var.range, program));
    Frame { tooltip: format!("{title}: an ordered loop"), title, parent }
}

/// The accesses of a statement by tensor, in the order of the first access to each.
fn reads<'p>(statement: &'p Statement) -> Vec<(TensorId, Vec<&'p Access>)> {
    let mut found: Vec<(TensorId, Vec<&Access>)> = Vec::new();
    let mut add = |access: &'p Access| match found.iter_mut().find(|(tensor, _)| *tensor == access.tensor) {
        Some((_, accesses)) => accesses.push(access),
        None => found.push((access.tensor, vec![access])),
    };
    statement.value.visit_reads(&mut add);
    statement.indices.iter().for_each(|index| index.visit_reads(&mut add));
    found
}

/// A line for each tensor of which a statement reads other elements than it writes.
fn reading_lines(program: &Program, statement: &Statement) -> Vec<String> {
    let windows = reads(statement).into_iter();
    let mut lines: Vec<String> =
        windows.filter_map(|(_, accesses)| window(program, statement, &accesses)).collect();
    if lines.len() > MOST_WINDOWS {
        let left_out = lines.len() - (MOST_WINDOWS - 1);
        lines.truncate(MOST_WINDOWS - 1);
        lines.push(format!("and {left_out} more tensors"));
    }
    lines.into_iter().map(|line| format!("← {line}")).collect()
}

/// A statement with its ranges.
fn describe(program: &Program, statement: &Statement) -> String {
    let var = |id: &VarId| {
        let var = program.var(*id);
        let reduced = if var.kind == VarKind::Reduction { " (reduced)" } else { "" };
        format!("{} in {}{reduced}", var.name, print::range(&var.range, program))
    };
    let vars: Vec<String> = statement.vars.iter().map(var).collect();
    let filler = if statement.is_filler { "\nfills elements that may stay undefined" } else { "" };
    let over = if vars.is_empty() { String::new() } else { format!("\nover {}", vars.join(", ")) };
    format!("{}{over}{filler}", print::statement(statement, program))
}

#[cfg(test)]
mod tests {
    use tilewright_syntax::{Bindings, check, parse};

    use super::*;

    fn graph_of(source: &str) -> Graph {
        let ast = parse(source).ast;
        let checked = check(&ast, &ast.functions.last().unwrap().name.text, &Bindings::default());
        graph(&checked.program.unwrap_or_else(|| panic!("{:?}", checked.diagnostics)))
    }

    fn edges(graph: &Graph) -> Vec<String> {
        let name = |at: usize| graph.nodes[at].name.as_str();
        let text = |edge: &Edge| format!("{} {:?} {}", name(edge.from), edge.relation, name(edge.to));
        graph.edges.iter().map(text).collect()
    }

    fn lines(graph: &Graph, name: &str) -> Vec<String> {
        graph.nodes.iter().rfind(|node| node.name == name).unwrap().lines.clone()
    }

    #[test]
    fn statements_read_the_last_definition_before_them() {
        let graph = graph_of(
            "def f(float(N) A, const float(N) B, float s) -> (C, D) {
               C(i) = A(i) * s
               D(i) = C(i) + B(i)
               C(i) += D(i)
               E(i) = C(i) + D(i)
               C(i) += E(i)
             }",
        );
        assert_eq!(graph.details, "N, float32 s");
        let kinds: Vec<(&str, Kind)> =
            graph.nodes.iter().map(|node| (node.name.as_str(), node.kind)).collect();
        let (input, constant, result) = (Kind::Input, Kind::Constant, Kind::Result);
        assert_eq!(
            kinds,
            [
                ("A", input),
                ("B", constant),
                ("C", result),
                ("D", result),
                ("C[2]", result),
                ("E", Kind::Temporary),
                ("C[3]", result)
            ]
        );
        assert_eq!(
            edges(&graph),
            [
                "A Reads C",
                "C Reads D",
                "B Reads D",
                "D Reads C[2]",
                "C Continues C[2]",
                "C[2] Reads E",
                "D Reads E",
                "E Reads C[3]",
                "C[2] Continues C[3]"
            ]
        );
    }

    #[test]
    fn a_tensor_of_the_caller_that_changes_is_an_input_too() {
        let graph = graph_of(
            "def f(float b, float(N, M) A) -> (C) {
               C(i, j) = b * C(i, j)
               C(i, j) += A(i, j)
             }",
        );
        assert_eq!(edges(&graph), ["C Reads C", "A Reads C[2]", "C Continues C[2]"]);
        let kinds: Vec<Kind> = graph.nodes.iter().map(|node| node.kind).collect();
        assert_eq!(kinds, [Kind::Input, Kind::Input, Kind::Result, Kind::Result]);
    }

    #[test]
    fn ordered_loops_are_frames_with_carried_reads() {
        let graph = graph_of(
            "def f(float(N) A, float(T, N) B) -> (u, v) {
               u(0, i) = A(i)
               v(0, i) = A(i)
               for t in 1:T {
                 u(t, i) = v(t - 1, i) + B(t, i)
                 v(t, i) = u(t, i) + v(t - 1, i)
               }
             }",
        );
        let titles: Vec<&str> = graph.frames.iter().map(|frame| frame.title.as_str()).collect();
        assert_eq!(titles, ["for t in 1:T"]);
        let in_loop: Vec<&str> =
            graph.nodes.iter().filter(|node| node.frame == Some(0)).map(|node| node.name.as_str()).collect();
        assert_eq!(in_loop, ["u[2]", "v[2]"]);
        let of_loop: Vec<String> = edges(&graph).into_iter().filter(|edge| edge.ends_with("[2]")).collect();
        assert_eq!(
            of_loop,
            [
                "v Reads u[2]",
                "v[2] Carried u[2]",
                "B Reads u[2]",
                "u Continues u[2]",
                "u[2] Reads v[2]",
                "v Reads v[2]"
            ]
        );
        let own: Vec<bool> = graph.nodes[4..].iter().map(|node| node.reads_itself).collect();
        assert_eq!(own, [false, true]);
    }

    #[test]
    fn windows_are_what_one_point_reads() {
        let graph = graph_of(
            "def f(float(H, W) A, const float(3, 3) K, int(H) at) -> (blur, down, rows, all, picked, same) {
               blur(y, x) +=! A(y + r, x + s) * K(r, s)
               down(y, x) = A(max(2*y - 1, 0), x) + A(min(2*y + 1, H - 1), x) where y in 0:H/2, x in 0:W
               rows(y) +=! A(y, x)
               all() max=! A(y, x)
               picked(y) = A(at(y), 0) where y in 0:H
               same(y, x) = A(y, x)
             }",
        );
        assert_eq!(lines(&graph, "blur")[1..], ["← A(y..y + 2, x..x + 2)", "← K(:, :)"]);
        assert_eq!(lines(&graph, "down")[1..], ["← A(2*y - 1..2*y + 1, x)"]);
        assert_eq!(lines(&graph, "rows")[1..], ["← A(y, :)"]);
        assert_eq!(lines(&graph, "all")[1..], ["← A(:, :)"]);
        assert_eq!(lines(&graph, "picked")[1..], ["← A(…, 0)"]);
        assert_eq!(lines(&graph, "same"), ["float32(H, W)"]);
    }

    #[test]
    fn a_box_names_only_a_few_windows() {
        let names: Vec<String> = (0..6).map(|at| format!("t{at}")).collect();
        let inputs: Vec<String> = names.iter().map(|name| format!("float(N) {name}")).collect();
        let sum: Vec<String> = names.iter().map(|name| format!("{name}(i + 1)")).collect();
        let source = format!("def f({}) -> (o) {{ o(i) = {} }}", inputs.join(", "), sum.join(" + "));
        assert_eq!(
            lines(&graph_of(&source), "o")[1..],
            ["← t0(i + 1)", "← t1(i + 1)", "← and 4 more tensors"]
        );
    }
}
