//! Adds nodes for the buffers that a schedule adds: copies of tensors, and partial results. The
//! edges of statements that load such a buffer then go through its node: `A -> C` becomes
//! `A -> A_shared -> C`.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{BufferId, Scope};

use super::model::{Edge, Graph, Kind, Node, Relation};
use super::schedule::{buffer_text, wrap};
use super::sites::{Site, Sites, loop_texts};

/// Adds the nodes and moves the edges. The node of the first statement is `first`, and `results`
/// has the computation of each statement that gives its result.
pub fn add_staged(
    graph: &mut Graph,
    nest: &LoopNest,
    sites: &Sites,
    first: usize,
    results: &[Option<(usize, usize)>],
) {
    let mut staged = BTreeMap::new();
    for site in first_fills(nest, sites, results) {
        staged.insert(site.buffer(), graph.nodes.len());
        graph.nodes.push(node(nest, sites, site));
    }
    let flow = Flow::new(graph, nest, sites, first, &staged);
    for node in staged.values() {
        route(graph, &flow, *node);
    }
}

/// The first store to each buffer that is staged, in the order of the tensors that they come from.
fn first_fills<'a>(
    nest: &LoopNest,
    sites: &'a Sites,
    results: &[Option<(usize, usize)>],
) -> Vec<&'a Site<'a>> {
    let mut fills: Vec<&Site> = Vec::new();
    for site in &sites.sites {
        let is_result = site.computes().is_some_and(|own| results[own.0] == Some(own));
        let is_known = fills.iter().any(|own| own.buffer() == site.buffer());
        let is_argument = matches!(nest.buffer(site.buffer()).scope, Scope::Argument(_));
        if !(is_result || is_known || is_argument) {
            fills.push(site);
        }
    }
    fills.sort_by_key(|site| site.reads().into_iter().min());
    fills
}

fn node(nest: &LoopNest, sites: &Sites, site: &Site) -> Node {
    let buffer = nest.buffer(site.buffer());
    let inside = sites.shared_loops(site.region).len().min(site.loops.len());
    let memory = buffer_text(buffer).unwrap_or_default();
    let loops = wrap(&loop_texts(nest, &site.loops[inside..]));
    let what = if site.computes().is_some() { "partial results" } else { "a copy" };
    Node {
        name: buffer.name.clone(),
        kind: Kind::Staged,
        lines: std::iter::once(format!("{} {memory}", buffer.dtype)).chain(loops).collect(),
        tooltip: format!("{what}, added by the schedule"),
        frame: Some(site.region),
        reads_itself: false,
        is_inlined: false,
    }
}

/// Which nodes compute from which, as the stores say.
struct Flow {
    /// The nodes whose values the stores of each node load.
    sources: BTreeMap<usize, BTreeSet<usize>>,
    /// The node of the first staged buffer.
    first_staged: usize,
}

impl Flow {
    fn new(
        graph: &Graph,
        nest: &LoopNest,
        sites: &Sites,
        first: usize,
        staged: &BTreeMap<BufferId, usize>,
    ) -> Flow {
        let node_of = |site: &Site| {
            let statement = site.computes().map(|(statement, _)| first + statement);
            staged.get(&site.buffer()).copied().or(statement)
        };
        // A buffer that is read before it is written holds the values of an earlier iteration.
        let writes = sites.sites.iter().filter_map(|site| Some((site.buffer(), node_of(site)?)));
        let mut holds: BTreeMap<BufferId, usize> = writes.collect();
        holds.extend(inputs(graph, nest, first));
        let mut sources: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for site in &sites.sites {
            let Some(node) = node_of(site) else { continue };
            let read = site.reads().into_iter().filter_map(|buffer| holds.get(&buffer).copied());
            sources.entry(node).or_default().extend(read.filter(|source| *source != node));
            holds.insert(site.buffer(), node);
        }
        Flow { sources, first_staged: graph.nodes.len() - staged.len() }
    }

    fn sources(&self, node: usize) -> impl Iterator<Item = usize> {
        self.sources.get(&node).into_iter().flatten().copied()
    }

    /// The nodes that a staged buffer is filled from, through other staged buffers.
    fn origins(&self, node: usize) -> BTreeSet<usize> {
        let mut found: BTreeSet<usize> = self.sources(node).collect();
        let mut open: Vec<usize> = found.iter().copied().collect();
        while let Some(node) = open.pop() {
            if node >= self.first_staged {
                open.extend(self.sources(node).filter(|node| found.insert(*node)));
            }
        }
        found
    }
}

/// The buffers of the caller with the nodes of the inputs.
fn inputs(graph: &Graph, nest: &LoopNest, first: usize) -> BTreeMap<BufferId, usize> {
    let buffers = (0u32..).map(BufferId).zip(&nest.buffers);
    let supplied = buffers.filter(|(_, buffer)| matches!(buffer.scope, Scope::Argument(_)));
    let node = |name: &str| graph.nodes[..first].iter().position(|node| node.name == name);
    supplied.filter_map(|(id, buffer)| Some((id, node(&buffer.name)?))).collect()
}

/// Adds the edges of a staged node. The edges from its origins to its readers, or to what is
/// inlined in a reader, then begin at the staged node.
fn route(graph: &mut Graph, flow: &Flow, node: usize) {
    for source in flow.sources(node) {
        add_edge(graph, source, node);
    }
    let origins = flow.origins(node);
    let readers = flow.sources.iter().filter(|(_, sources)| sources.contains(&node));
    for (&reader, direct) in readers {
        let inside = with_inlined(graph, reader);
        let moves = |edge: &Edge| {
            edge.relation == Relation::Reads
                && inside.contains(&edge.to)
                && origins.contains(&edge.from)
                && !direct.contains(&edge.from)
        };
        let (moved, kept): (Vec<Edge>, Vec<Edge>) =
            std::mem::take(&mut graph.edges).into_iter().partition(moves);
        graph.edges = kept;
        moved.iter().for_each(|edge| add_edge(graph, node, edge.to));
        if moved.is_empty() {
            add_edge(graph, node, reader);
        }
    }
}

/// A node, and the inlined nodes that it computes.
fn with_inlined(graph: &Graph, node: usize) -> Vec<usize> {
    let mut found = vec![node];
    let mut at = 0;
    while let Some(&node) = found.get(at) {
        for edge in graph.edges.iter().filter(|edge| edge.to == node) {
            if graph.nodes[edge.from].is_inlined && !found.contains(&edge.from) {
                found.push(edge.from);
            }
        }
        at += 1;
    }
    found
}

fn add_edge(graph: &mut Graph, from: usize, to: usize) {
    if !graph.edges.iter().any(|edge| edge.from == from && edge.to == to) {
        let [source, reader] = [from, to].map(|node| &graph.nodes[node].name);
        let tooltip = format!("{reader} reads {source}");
        graph.edges.push(Edge { from, to, relation: Relation::Reads, tooltip });
    }
}
