//! Adds to the graph of a program what a schedule has decided.
//!
//! - A frame for each loop nest, or for each kernel on a GPU, with the loops that all inside share.
//!   It takes the place of the frames of ordered loops.
//! - Lines in each box: where the statement is computed, what it is stored in, and its own loops. A
//!   statement without stores is inlined; it stands in the frame of its first reader.
//! - Nodes for what the schedule adds: copies of tensors, and partial results (`staged.rs`).
//!
//! All of this is read off the loop nest. The claim of a store says which statement it computes; a
//! store without a claim makes a copy.

use std::collections::BTreeSet;

use tilewright_ir::nest::{Buffer, BufferId, Scope};
use tilewright_ir::{LoopNest, Program};

use super::model::{Frame, Graph};
use super::program;
use super::sites::{RegionKind, Site, Sites, loop_text, loop_texts, shared_prefix};
use super::staged::add_staged;

/// The number of characters after which a list continues on the next line of a box.
const LINE_CHARACTERS: usize = 32;

/// The graph of a program that a loop nest computes.
pub fn graph(program: &Program, nest: &LoopNest) -> Graph {
    let mut graph = program::graph(program);
    let statements = program.statements().len();
    let first = graph.nodes.len() - statements;
    // What a statement reads is left to the tooltips of edges: boxes have enough lines.
    graph.nodes[first..].iter_mut().for_each(|node| node.lines.truncate(1));
    let sites = Sites::new(nest);
    graph.frames = (0..sites.regions.len()).map(|region| frame(nest, &sites, region)).collect();
    let mut builder = Builder { nest, sites: &sites, graph, first };
    builder.place_statements(program);
    builder.place_inlined();
    let results: Vec<Option<(usize, usize)>> =
        (0..statements).map(|at| builder.result_sites(at).first().and_then(|site| site.computes())).collect();
    add_staged(&mut builder.graph, nest, &sites, first, &results);
    builder.remove_empty_frames();
    // The layout keeps sources in this order where nothing else decides.
    builder.graph.edges.sort_by_key(|edge| (edge.from, edge.to));
    builder.graph
}

/// The title of a region: its number among those of its kind, and its shared loops.
fn frame(nest: &LoopNest, sites: &Sites, region: usize) -> Frame {
    let own = &sites.regions[region];
    let earlier = |test: fn(RegionKind) -> bool| {
        1 + sites.regions[..region].iter().filter(|other| test(other.kind)).count()
    };
    let loops = loop_texts(nest, &sites.shared_loops(region)).join(", ");
    let title = match own.kind {
        RegionKind::Setup => "setup, once".to_owned(),
        RegionKind::Host(around) => format!("host: {}", loop_text(nest, around)),
        RegionKind::Kernel => {
            format!("kernel {}: {loops}", earlier(|kind| matches!(kind, RegionKind::Kernel)))
        }
        RegionKind::Loops => format!("{}: {loops}", earlier(|kind| matches!(kind, RegionKind::Loops))),
    };
    let title = title.trim_end_matches([':', ' ']).to_owned();
    Frame { tooltip: title.clone(), title, parent: own.parent }
}

struct Builder<'a> {
    nest: &'a LoopNest,
    sites: &'a Sites<'a>,
    graph: Graph,
    /// The node of the first statement; those of the others follow.
    first: usize,
}

impl<'a> Builder<'a> {
    /// The stores of the last computation of a statement, which gives its result.
    fn result_sites(&self, statement: usize) -> Vec<&'a Site<'a>> {
        let own =
            self.sites.sites.iter().filter(|site| site.computes().is_some_and(|own| own.0 == statement));
        let last = own.clone().filter(|site| site.has_values()).filter_map(Site::computes).next_back();
        own.filter(|site| site.computes() == last).collect()
    }

    /// Gives each statement that has stores its frame and its lines.
    fn place_statements(&mut self, program: &Program) {
        let ranges: Vec<bool> =
            program.statements().iter().map(|(own, _)| has_points(program, own)).collect();
        for (statement, has_points) in ranges.into_iter().enumerate() {
            let sites = self.result_sites(statement);
            let main = sites.iter().find(|site| site.has_values());
            let Some(main) = main else {
                let line = if has_points { "inlined" } else { "never runs" };
                self.graph.nodes[self.first + statement].lines.push(line.to_owned());
                self.graph.nodes[self.first + statement].is_inlined = has_points;
                continue;
            };
            let lines = self.site_lines(main, &sites, self.reader_loops(statement));
            let node = &mut self.graph.nodes[self.first + statement];
            node.frame = Some(main.region);
            node.lines.extend(lines);
        }
    }

    /// The loops around each store of the readers of a statement, through inlined readers too.
    fn reader_loops(&self, statement: usize) -> Vec<&'a Site<'a>> {
        let (mut open, mut seen, mut found) = (vec![self.first + statement], BTreeSet::new(), Vec::new());
        while let Some(node) = open.pop() {
            for edge in self.graph.edges.iter().filter(|edge| edge.from == node && edge.to >= self.first) {
                if !seen.insert(edge.to) {
                    continue;
                }
                let sites = self.result_sites(edge.to - self.first);
                if sites.is_empty() {
                    open.push(edge.to);
                }
                found.extend(sites);
            }
        }
        found
    }

    /// The lines of a box: the loop of the readers that the stores are in, the buffers, the own
    /// loops.
    fn site_lines(&self, main: &Site<'a>, sites: &[&Site<'a>], readers: Vec<&Site<'a>>) -> Vec<String> {
        let readers = readers.into_iter().filter(|reader| reader.region == main.region);
        let around = readers.map(|reader| (shared_prefix(&main.loops, &reader.loops), reader));
        let (around, at) =
            around.min_by_key(|(around, _)| around.len()).map_or((0, None), |(around, reader)| {
                let reader = reader.computes().map(|(at, _)| self.graph.nodes[self.first + at].name.as_str());
                let name = around.last().map(|own| self.nest.var_name(own.var));
                (around.len(), name.map(|name| format!("at {}.{name}", reader.unwrap_or_default())))
            });
        let place: Vec<String> = at.into_iter().chain(self.buffer_texts(sites)).collect();
        let shown = self.sites.shared_loops(main.region).len().max(around);
        let own = loop_texts(self.nest, &main.loops[shown.min(main.loops.len())..]);
        [place, own].iter().flat_map(|list| wrap(list)).collect()
    }

    /// The buffers that stores write, other than tensors of the caller: `scratch(1, 32)`.
    fn buffer_texts(&self, sites: &[&Site]) -> Vec<String> {
        let mut buffers: Vec<BufferId> = Vec::new();
        for site in sites {
            if !buffers.contains(&site.buffer()) {
                buffers.push(site.buffer());
            }
        }
        let texts = buffers.into_iter().filter_map(|buffer| buffer_text(self.nest.buffer(buffer)));
        let mut texts: Vec<String> = texts.collect();
        // Whole and partial tiles often have a buffer each.
        texts.dedup();
        texts
    }

    /// Puts inlined statements into the frame of their first reader. Readers come later in the
    /// program, so they have their frames already.
    fn place_inlined(&mut self) {
        for node in (self.first..self.graph.nodes.len()).rev() {
            if !self.graph.nodes[node].is_inlined {
                continue;
            }
            let readers = self.graph.edges.iter().filter(|edge| edge.from == node);
            self.graph.nodes[node].frame = readers.filter_map(|edge| self.graph.nodes[edge.to].frame).min();
        }
    }

    /// Removes frames without nodes.
    fn remove_empty_frames(&mut self) {
        let mut used = vec![false; self.graph.frames.len()];
        for node in &self.graph.nodes {
            let mut frame = node.frame;
            while let Some(at) = frame {
                used[at] = true;
                frame = self.graph.frames[at].parent;
            }
        }
        let place = |old: usize| used[..old].iter().filter(|used| **used).count();
        self.graph.nodes.iter_mut().for_each(|node| node.frame = node.frame.map(place));
        self.graph.frames.iter_mut().for_each(|frame| frame.parent = frame.parent.map(place));
        let mut keep = used.iter();
        self.graph.frames.retain(|_| keep.next().copied().unwrap_or(false));
    }
}

/// Writes a list with commas, in as many lines as it takes.
pub fn wrap(list: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for own in list {
        match lines.last_mut() {
            Some(last) if last.chars().count() + own.chars().count() + 2 <= LINE_CHARACTERS => {
                *last += &format!(", {own}");
            }
            Some(last) => {
                last.push(',');
                lines.push(own.clone());
            }
            None => lines.push(own.clone()),
        }
    }
    lines
}

/// Returns true when a statement has a point at which it runs, as far as its ranges are known.
fn has_points(program: &Program, statement: &tilewright_ir::Statement) -> bool {
    let is_empty = |extent: Option<i64>| extent.is_some_and(|extent| extent < 1);
    !statement.vars.iter().any(|var| is_empty(program.var(*var).range.extent().as_constant()))
}

/// A buffer's memory and shape, as the loops are printed; none for tensors of the caller.
pub fn buffer_text(buffer: &Buffer) -> Option<String> {
    let memory = match buffer.scope {
        Scope::Argument(_) => return None,
        Scope::Constant => "constant",
        Scope::Scratch => "scratch",
        Scope::Register => "register",
        Scope::Shared => "shared",
    };
    let shape: Vec<String> = buffer.shape.iter().map(i64::to_string).collect();
    Some(format!("{memory}({})", shape.join(", ")))
}

#[cfg(test)]
mod tests {
    use tilewright_schedule::{apply, text};
    use tilewright_syntax::{check, parse};
    use tilewright_target::{Cpu, Gpu, GpuApi, Target, VectorInstructions};

    use super::*;
    use crate::graph::model::{Kind, Node};

    /// The graph of the last function of a source with given steps, for a CPU or a GPU.
    fn scheduled(source: &str, sizes: &[(&str, i64)], steps: &str, gpu: bool) -> Graph {
        let ast = parse(source).ast;
        let function = &ast.functions.last().unwrap().name.text;
        let program = check(&ast, function, &sizes.iter().copied().collect()).program.unwrap();
        let cpu = Cpu { cores: 2, vectors: VectorInstructions::Avx512, caches: vec![32 << 10, 1 << 20] };
        let device = Gpu::typical(GpuApi::Cuda);
        let target = if gpu { Target::from(&device) } else { Target::from(&cpu) };
        let parsed = text::parse(steps);
        assert!(!parsed.has_errors(), "{:?}", parsed.diagnostics);
        let nest = apply(&program, &parsed.schedule, target).unwrap_or_else(|why| panic!("{why}"));
        graph(&program, &nest)
    }

    fn node<'g>(graph: &'g Graph, name: &str) -> &'g Node {
        graph.nodes.iter().find(|node| node.name == name).unwrap_or_else(|| panic!("no {name} in {graph:?}"))
    }

    /// The title of the frame around a node.
    fn around<'g>(graph: &'g Graph, name: &str) -> Option<&'g str> {
        node(graph, name).frame.map(|frame| graph.frames[frame].title.as_str())
    }

    fn edges(graph: &Graph) -> Vec<String> {
        let name = |at: usize| graph.nodes[at].name.as_str();
        graph.edges.iter().map(|edge| format!("{} -> {}", name(edge.from), name(edge.to))).collect()
    }

    const STAGES: &str = "def f(float(N, M) A) -> (d, e) {
      a(i, j) = A(i, j) * 2
      b(i, j) = a(i, j) + 1
      c(i, j) = b(i, j) * b(i, j)
      d(i, j) = c(i, j) + a(i, j)
      e(i, j) = b(i, j)
    }";

    #[test]
    fn fused_statements_share_a_frame() {
        let steps = "inline b\ncompute_at c, d.i\nparallel d.i\nvectorize c.j";
        let graph = scheduled(STAGES, &[("N", 8), ("M", 16)], steps, false);
        assert_eq!(around(&graph, "a"), Some("1: i:8, j:16"));
        assert_eq!(around(&graph, "c"), Some("2: parallel i:8"));
        assert_eq!(around(&graph, "d"), Some("2: parallel i:8"));
        assert_eq!(around(&graph, "e"), Some("3: i:8, j:16"));
        assert_eq!(around(&graph, "A"), None);
        // `e` also reads `b`, but `d` runs first.
        assert_eq!(around(&graph, "b"), Some("2: parallel i:8"));
        assert_eq!(node(&graph, "b").lines, ["float32(8, 16)", "inlined"]);
        assert!(node(&graph, "b").is_inlined && !node(&graph, "c").is_inlined);
        assert_eq!(node(&graph, "c").lines, ["float32(8, 16)", "at d.i, scratch(1, 16)", "vector j:16"]);
        assert_eq!(node(&graph, "a").lines, ["float32(8, 16)", "scratch(8, 16)"]);
        assert_eq!(node(&graph, "d").lines, ["float32(8, 16)", "j:16"]);
    }

    const PRODUCT: &str =
        "def mm(float(M, K) A, const float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
    const SIZES: [(&str, i64); 3] = [("M", 64), ("N", 64), ("K", 64)];

    #[test]
    fn copies_stand_between_a_tensor_and_its_reader() {
        let steps =
            "promote B at root -> Bp packed\npromote A at C.i -> Ap packed\npromote Ap at C.j -> Aq packed\n";
        let graph = scheduled(PRODUCT, &SIZES, steps, false);
        assert_eq!(edges(&graph), ["A -> Ap", "B -> Bp", "Ap -> Aq", "Bp -> C", "Aq -> C"]);
        assert_eq!(around(&graph, "Bp"), Some("setup, once"));
        assert_eq!(around(&graph, "Ap"), around(&graph, "C"));
        assert_eq!(node(&graph, "Bp").kind, Kind::Staged);
        assert_eq!(node(&graph, "Bp").lines[0], "float32 constant(64, 64)");
    }

    #[test]
    fn partial_results_stand_before_their_total() {
        let steps = "split C.k -> ko, ki:8\nrfactor C.ko -> Cp";
        let graph = scheduled(PRODUCT, &SIZES, steps, false);
        assert_eq!(edges(&graph), ["A -> Cp", "B -> Cp", "Cp -> C"]);
        assert!(node(&graph, "Cp").tooltip.contains("partial results"), "{graph:?}");
    }

    #[test]
    fn kernels_stand_inside_the_loops_of_the_host() {
        let source = "def f(float(T, N) A) -> (u) {
          u(0, i) = A(0, i) where i in 0:N
          for t in 1:T { u(t, i) = u(t - 1, i) + A(t, i) }
        }";
        let steps = "bind u.i -> block.x\nbind u[2].i -> block.x";
        let graph = scheduled(source, &[("T", 5), ("N", 32)], steps, true);
        assert_eq!(around(&graph, "u"), Some("kernel 1: block.x i:32"));
        assert_eq!(around(&graph, "u[2]"), Some("kernel 2: block.x i:32"));
        let host = graph.frames[node(&graph, "u[2]").frame.unwrap()].parent.unwrap();
        assert_eq!(graph.frames[host].title, "host: t:4");
        assert!(node(&graph, "u[2]").reads_itself);
    }

    #[test]
    fn a_copy_stands_between_the_right_statements_of_a_tensor() {
        let source = "def f(float(N, M) A, float(M) w) -> (C, D) {
          C(i, j) = A(i, j)
          D(i, j) +=! C(i, k) * w(k) where j in 0:M
          C(i, j) += D(i, j)
        }";
        let graph = scheduled(source, &[("N", 8), ("M", 16)], "promote C at D.i -> row packed", false);
        let expected = ["A -> C", "w -> D", "C -> C[2]", "C -> row", "D -> C[2]", "row -> D"];
        assert_eq!(edges(&graph), expected);
    }

    #[test]
    fn a_copy_for_an_inlined_statement_is_read_by_it() {
        let source =
            "def f(float(N, M) A) -> (c) { b(i, j) = A(i, j) * 2  c(i, j) +=! b(i, k) where j in 0:M }";
        let graph =
            scheduled(source, &[("N", 8), ("M", 16)], "inline b\npromote A at c.i -> row packed", false);
        assert_eq!(edges(&graph), ["A -> row", "b -> c", "row -> b"]);
        assert_eq!(around(&graph, "b"), around(&graph, "c"));
    }

    #[test]
    fn long_lists_continue_on_the_next_line() {
        assert_eq!(wrap(&[]), [""; 0]);
        assert_eq!(wrap(&["vector x:16".to_owned()]), ["vector x:16"]);
        let long = ["parallel y:2556", "xo:24", "unroll ii:12", "vector xv:64"].map(str::to_owned);
        assert_eq!(wrap(&long), ["parallel y:2556, xo:24,", "unroll ii:12, vector xv:64"]);
    }
}
