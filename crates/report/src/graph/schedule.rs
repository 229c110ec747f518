//! Adds to the graph of a program what a schedule has decided.
//!
//! - A frame for each loop nest, or for each kernel on a GPU, with the loops that all inside share.
//!   It takes the place of the frames of ordered loops.
//! - Lines in each box: where the statement is computed, what it is stored in, and its own loops. A
//!   statement without stores is inlined; it stands in the frame of its first reader.
//! - Nodes for what the schedule adds: copies of tensors, and partial results.
//!
//! All of this is read off the loop nest. The claim of a store says which statement it computes; a
//! store without a claim makes a copy.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::nest::{Buffer, BufferId, Scope};
use tilewright_ir::{LoopNest, Program};

use super::model::{Edge, Frame, Graph, Kind, Node, Relation};
use super::program;
use super::sites::{RegionKind, Site, Sites, loop_text, loops_text, shared_prefix, variables};

/// The graph of a program that a loop nest computes.
pub fn graph(program: &Program, nest: &LoopNest) -> Graph {
    let mut graph = program::graph(program);
    let statements = program.statements().len();
    let first = graph.nodes.len() - statements;
    // What a statement reads is left to the tooltips of edges: boxes have enough lines.
    graph.nodes[first..].iter_mut().for_each(|node| node.lines.truncate(1));
    let sites = Sites::new(nest);
    graph.frames = (0..sites.regions.len()).map(|region| frame(nest, &sites, region)).collect();
    let mut builder = Builder { nest, sites: &sites, graph, first, statements };
    builder.place_statements(program);
    builder.place_inlined();
    let staged = builder.add_staged();
    builder.route_through_staged(&staged);
    builder.remove_empty_frames();
    builder.graph
}

/// The title of a region: its number among those of its kind, and its shared loops.
fn frame(nest: &LoopNest, sites: &Sites, region: usize) -> Frame {
    let own = &sites.regions[region];
    let earlier = |test: fn(RegionKind) -> bool| {
        1 + sites.regions[..region].iter().filter(|other| test(other.kind)).count()
    };
    let loops = loops_text(nest, &sites.shared_loops(region));
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
    /// The node of the first statement, and the number of statements.
    first: usize,
    statements: usize,
}

/// A node that the schedule adds: its buffer, and the nodes that compute something from it.
struct Staged {
    node: usize,
    buffer: BufferId,
}

impl<'a> Builder<'a> {
    /// The stores of the last computation of a statement, which gives its result.
    fn result_sites(&self, statement: usize) -> Vec<&'a Site<'a>> {
        let own = self.sites.sites.iter().filter(|site| site.computes().is_some_and(|own| own.0 == statement));
        let last = own.clone().filter(|site| site.has_values()).filter_map(Site::computes).next_back();
        own.filter(|site| site.computes() == last).collect()
    }

    /// Gives each statement that has stores its frame and its lines.
    fn place_statements(&mut self, program: &Program) {
        let ranges: Vec<bool> = program.statements().iter().map(|(own, _)| has_points(program, own)).collect();
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
        let around = readers.map(|reader| shared_prefix(&main.loops, &reader.loops)).min_by_key(Vec::len);
        let around = around.unwrap_or_default();
        let buffers = self.buffers_text(sites);
        let at = around.last().map(|own| format!("at {}", self.nest.var_name(own.var)));
        let place: Vec<String> = at.into_iter().chain(buffers).collect();
        let shown = self.sites.shared_loops(main.region).len().max(around.len());
        let own = loops_text(self.nest, &main.loops[shown.min(main.loops.len())..]);
        [place.join(", "), own].into_iter().filter(|line| !line.is_empty()).collect()
    }

    /// The buffers that stores write, other than tensors of the caller: `scratch(1, 32)`.
    fn buffers_text(&self, sites: &[&Site]) -> Option<String> {
        let mut buffers: Vec<BufferId> = Vec::new();
        for site in sites {
            if !buffers.contains(&site.buffer()) {
                buffers.push(site.buffer());
            }
        }
        let texts = buffers.into_iter().filter_map(|buffer| buffer_text(self.nest.buffer(buffer)));
        let texts: Vec<String> = texts.collect();
        (!texts.is_empty()).then(|| texts.join(", "))
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

    /// Adds a node for each buffer that holds a copy or a partial result.
    fn add_staged(&mut self) -> Vec<Staged> {
        let mut staged: Vec<Staged> = Vec::new();
        let results: Vec<Option<(usize, usize)>> =
            (0..self.statements).map(|at| self.result_sites(at).first().and_then(|site| site.computes())).collect();
        for site in &self.sites.sites {
            let is_result = site.computes().is_some_and(|own| results[own.0] == Some(own));
            let is_known = staged.iter().any(|own| own.buffer == site.buffer());
            let is_argument = matches!(self.nest.buffer(site.buffer()).scope, Scope::Argument(_));
            if is_result || is_known || is_argument {
                continue;
            }
            staged.push(Staged { node: self.graph.nodes.len(), buffer: site.buffer() });
            let node = self.staged_node(site);
            self.graph.nodes.push(node);
        }
        staged
    }

    fn staged_node(&self, site: &Site<'a>) -> Node {
        let buffer = self.nest.buffer(site.buffer());
        let shared = self.sites.shared_loops(site.region);
        let inside = variables(&shared).len().min(site.loops.len());
        let text = buffer_text(buffer).unwrap_or_default();
        let loops = loops_text(self.nest, &site.loops[inside..]);
        let what = if site.computes().is_some() { "partial results" } else { "a copy" };
        Node {
            name: buffer.name.clone(),
            kind: Kind::Staged,
            lines: [format!("{} {text}", buffer.dtype), loops].into_iter().filter(|line| !line.is_empty()).collect(),
            tooltip: format!("{what}, added by the schedule"),
            frame: Some(site.region),
            reads_itself: false,
            is_inlined: false,
        }
    }

    /// Lets the edges of readers that load a staged buffer go through its node.
    fn route_through_staged(&mut self, staged: &[Staged]) {
        let writers = self.writers(staged);
        for own in staged {
            for source in self.sources(own, &writers) {
                self.add_edge(source, own.node);
            }
            let origins = self.origins(own, staged, &writers);
            for reader in self.readers(own, staged) {
                self.route(own, &origins, reader, &writers);
            }
        }
    }

    /// Moves the edges from the origins of a staged buffer to a reader, or to what is inlined in
    /// the reader, so that they begin at the buffer's node.
    fn route(&mut self, own: &Staged, origins: &BTreeSet<usize>, reader: usize, writers: &BTreeMap<BufferId, usize>) {
        let direct = self.direct_reads(reader, writers);
        let inside = self.with_inlined(reader);
        let moves = |edge: &Edge| {
            edge.relation == Relation::Reads
                && inside.contains(&edge.to)
                && origins.contains(&edge.from)
                && !direct.contains(&edge.from)
        };
        let (moved, kept) = std::mem::take(&mut self.graph.edges).into_iter().partition(moves);
        self.graph.edges = kept;
        for Edge { to, .. } in &moved {
            self.add_edge(own.node, *to);
        }
        if moved.is_empty() {
            self.add_edge(own.node, reader);
        }
    }

    /// The nodes whose buffers a statement loads from.
    fn direct_reads(&self, node: usize, writers: &BTreeMap<BufferId, usize>) -> BTreeSet<usize> {
        let is_own = |site: &&Site| site.computes().is_some_and(|(at, _)| self.first + at == node);
        let reads = self.sites.sites.iter().filter(is_own).flat_map(Site::reads);
        reads.filter_map(|buffer| writers.get(&buffer).copied()).collect()
    }

    /// The nodes that a staged buffer is filled from, through other staged buffers.
    fn origins(&self, own: &Staged, staged: &[Staged], writers: &BTreeMap<BufferId, usize>) -> BTreeSet<usize> {
        let mut found = self.sources(own, writers);
        let mut open: Vec<usize> = found.iter().copied().collect();
        while let Some(node) = open.pop() {
            let further = staged.iter().find(|other| other.node == node);
            let further = further.map(|other| self.sources(other, writers)).unwrap_or_default();
            open.extend(further.into_iter().filter(|node| found.insert(*node)));
        }
        found
    }

    /// The node that each buffer holds the values of.
    fn writers(&self, staged: &[Staged]) -> BTreeMap<BufferId, usize> {
        let mut writers = BTreeMap::new();
        let inputs = self.graph.nodes[..self.first].iter().enumerate();
        for (node, input) in inputs {
            let named = |buffer: &&(BufferId, &Buffer)| {
                buffer.1.name == input.name && matches!(buffer.1.scope, Scope::Argument(_))
            };
            let buffers: Vec<(BufferId, &Buffer)> =
                (0u32..).map(BufferId).zip(&self.nest.buffers).collect();
            writers.extend(buffers.iter().find(named).map(|(id, _)| (*id, node)));
        }
        for site in &self.sites.sites {
            writers.extend(site.computes().map(|(statement, _)| (site.buffer(), self.first + statement)));
        }
        writers.extend(staged.iter().map(|own| (own.buffer, own.node)));
        writers
    }

    /// The nodes whose values stores move or reduce into a staged buffer.
    fn sources(&self, own: &Staged, writers: &BTreeMap<BufferId, usize>) -> BTreeSet<usize> {
        let fills = self.sites.sites.iter().filter(|site| site.buffer() == own.buffer);
        let reads = fills.flat_map(Site::reads).filter_map(|buffer| writers.get(&buffer).copied());
        reads.filter(|source| *source != own.node).collect()
    }

    /// The nodes that load from a staged buffer.
    fn readers(&self, own: &Staged, staged: &[Staged]) -> BTreeSet<usize> {
        let loads = self.sites.sites.iter().filter(|site| site.reads().contains(&own.buffer));
        let reader = |site: &Site| {
            let other = staged.iter().find(|other| other.buffer == site.buffer());
            other.map(|other| other.node).or_else(|| site.computes().map(|(at, _)| self.first + at))
        };
        loads.filter_map(reader).filter(|reader| *reader != own.node).collect()
    }

    /// A node, and the inlined nodes that it computes.
    fn with_inlined(&self, node: usize) -> Vec<usize> {
        let mut found = vec![node];
        let mut at = 0;
        while let Some(&node) = found.get(at) {
            let reads = self.graph.edges.iter().filter(|edge| edge.to == node).map(|edge| edge.from);
            let inlined: Vec<usize> =
                reads.filter(|from| self.graph.nodes[*from].is_inlined && !found.contains(from)).collect();
            found.extend(inlined);
            at += 1;
        }
        found
    }

    fn add_edge(&mut self, from: usize, to: usize) {
        if !self.graph.edges.iter().any(|edge| edge.from == from && edge.to == to) {
            let [source, reader] = [from, to].map(|node| &self.graph.nodes[node].name);
            let tooltip = format!("{reader} reads {source}");
            self.graph.edges.push(Edge { from, to, relation: Relation::Reads, tooltip });
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

/// Returns true when a statement has a point at which it runs, as far as its ranges are known.
fn has_points(program: &Program, statement: &tilewright_ir::Statement) -> bool {
    let is_empty = |extent: Option<i64>| extent.is_some_and(|extent| extent < 1);
    !statement.vars.iter().any(|var| is_empty(program.var(*var).range.extent().as_constant()))
}

/// A buffer's memory and shape, as the loops are printed; none for tensors of the caller.
fn buffer_text(buffer: &Buffer) -> Option<String> {
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
