//! Places the boxes, frames and edges of a diagram.
//!
//! A frame is a rectangle around boxes and other frames. The content of a frame is laid out first,
//! and the frame is then one item of the level around it. An edge that leaves a frame goes through
//! a port: an item without a size in the last rank of the frame's content, or in the first rank for
//! an edge that enters.
//!
//! | file | contents |
//! |---|---|
//! | `level.rs` | the layout of one level |
//! | `rank.rs` | which item is in which rank |
//! | `order.rs` | the order in each rank |
//! | `coordinates.rs`, `simplex.rs` | horizontal positions |
//!
//! Invariants, which the tests state for random diagrams: boxes do not overlap; a frame contains
//! its boxes and no others; edges point downwards, except for one edge at least of each cycle; no
//! edge runs through a box; the same diagram has the same layout.
//!
//! The crates for such layouts (`rust-sugiyama`, `layout-rs`, ports of dagre) place items without
//! frames around them, and most return no routes for the edges. Both are half of what is needed
//! here, so this is a layout of our own.

mod coordinates;
mod level;
mod order;
mod rank;
mod simplex;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use level::Station;
use level::{Item, Link, Pin, Placed, place};
use rank::topological_order;

/// The free space between a frame and its content.
const PADDING: f64 = 14.0;
/// The height of the title of a frame.
const TITLE: f64 = 20.0;

/// A box to place.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
    /// The innermost frame around the box.
    pub frame: Option<usize>,
}

/// A frame to place.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The frame around this one, which comes before this one.
    pub parent: Option<usize>,
    /// The least width, for the title.
    pub width: f64,
}

/// Boxes in order, frames and edges. An edge joins two different boxes.
#[derive(Clone, Debug, Default)]
pub struct Diagram {
    /// The boxes. Edges should lead from earlier to later ones; edges of cycles cannot.
    pub boxes: Vec<Leaf>,
    /// The frames.
    pub frames: Vec<Frame>,
    /// The edges, as pairs of boxes.
    pub edges: Vec<(usize, usize)>,
}

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rectangle {
    /// The left side.
    pub x: f64,
    /// The upper side.
    pub y: f64,
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
}

/// The route of an edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The vertical pieces, from top to bottom.
    pub stations: Vec<Station>,
    /// Whether the edge leads upwards: its end is the first piece.
    pub is_upward: bool,
}

/// A diagram with coordinates. The upper left corner is the origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The rectangle of each box.
    pub boxes: Vec<Rectangle>,
    /// The rectangle of each frame.
    pub frames: Vec<Rectangle>,
    /// The route of each edge.
    pub routes: Vec<Route>,
    /// The width of the whole.
    pub width: f64,
    /// The height of the whole.
    pub height: f64,
}

/// The whole diagram or a frame, as an index: 0 is the diagram, and 1 the first frame.
type Container = usize;

/// The upper end of edges that share their way: the box, and whether they lead upwards.
type Source = (usize, bool);

/// Something inside a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    Box(usize),
    Frame(Container),
    /// Where edges of a source enter the container.
    Entry(Source),
    /// Where edges of a source leave the container.
    Exit(Source),
}

/// An edge, as it is drawn from top to bottom.
#[derive(Clone, Copy, Debug)]
struct Edge {
    source: Source,
    to: usize,
}

/// The content of a container with coordinates.
#[derive(Default)]
struct Content {
    members: BTreeMap<Member, usize>,
    items: Vec<Item>,
    /// The links by source and ends.
    links: BTreeMap<(Source, Member, Member), usize>,
    placed: Placed,
    /// The size with title and padding, and where the content begins inside.
    width: f64,
    height: f64,
    origin: (f64, f64),
}

/// Places everything.
pub fn layout(diagram: &Diagram) -> Layout {
    let chains: Vec<Vec<Container>> = diagram.boxes.iter().map(|own| chain(diagram, own.frame)).collect();
    let edges = downward_edges(diagram, &chains);
    let mut contents: Vec<Content> = Vec::new();
    contents.resize_with(diagram.frames.len() + 1, Content::default);
    let members = members_by_container(diagram, &chains);
    let crossing = edges_by_container(&edges, &chains);
    for container in (0..contents.len()).rev() {
        let content = place_content(diagram, &chains, &contents, container, &members, &crossing);
        contents[container] = content;
    }
    let corners = corners(&contents, diagram);
    Layout {
        boxes: box_rectangles(diagram, &chains, &contents, &corners),
        frames: (1..contents.len()).map(|frame| frame_rectangle(&contents[frame], corners[frame])).collect(),
        routes: edges.iter().map(|edge| route(edge, &chains, &contents, &corners)).collect(),
        width: contents[0].width,
        height: contents[0].height,
    }
}

/// The containers around a box, outermost first.
fn chain(diagram: &Diagram, frame: Option<usize>) -> Vec<Container> {
    let around = std::iter::successors(frame, |at| diagram.frames[*at].parent);
    let mut chain: Vec<Container> = around.map(|at| at + 1).chain([0]).collect();
    chain.reverse();
    chain
}

/// The member of a container that a box is, or is inside of.
fn member_in(chains: &[Vec<Container>], container: Container, of: usize) -> Option<Member> {
    let at = chains[of].iter().position(|own| *own == container)?;
    Some(chains[of].get(at + 1).map_or(Member::Box(of), |frame| Member::Frame(*frame)))
}

/// The number of containers that two boxes share.
fn shared_depth(chains: &[Vec<Container>], one: usize, other: usize) -> usize {
    chains[one].iter().zip(&chains[other]).take_while(|(one, other)| one == other).count()
}

/// Decides which edges lead upwards, such that the other edges form no cycle of boxes or frames.
fn downward_edges(diagram: &Diagram, chains: &[Vec<Container>]) -> Vec<Edge> {
    let ends = |&(from, to): &(usize, usize)| {
        let container = chains[from][shared_depth(chains, from, to) - 1];
        let ends = [from, to].map(|end| member_in(chains, container, end).expect("the box is inside"));
        (container, ends)
    };
    let ends: Vec<(Container, [Member; 2])> = diagram.edges.iter().map(ends).collect();
    let mut orders: BTreeMap<Container, BTreeMap<Member, usize>> = BTreeMap::new();
    let members = members_by_container(diagram, chains);
    for (container, own) in members.iter().enumerate() {
        let index: BTreeMap<Member, usize> = own.iter().enumerate().map(|(at, own)| (*own, at)).collect();
        let inside = ends.iter().filter(|(other, _)| *other == container);
        let links = inside.map(|(_, [from, to])| (index[from], index[to]));
        let order = topological_order(own.len(), links);
        let places = order.into_iter().enumerate().map(|(place, member)| (own[member], place)).collect();
        orders.insert(container, places);
    }
    let edge = |(&(from, to), (container, [above, below])): (&(usize, usize), &(Container, [Member; 2]))| {
        let order = &orders[container];
        let is_upward = order[above] > order[below];
        let (top, bottom) = if is_upward { (to, from) } else { (from, to) };
        Edge { source: (top, is_upward), to: bottom }
    };
    diagram.edges.iter().zip(&ends).map(edge).collect()
}

/// The boxes and frames of each container, in the order of their first box.
fn members_by_container(diagram: &Diagram, chains: &[Vec<Container>]) -> Vec<Vec<Member>> {
    let mut members: Vec<Vec<Member>> = vec![Vec::new(); diagram.frames.len() + 1];
    for (own, chain) in chains.iter().enumerate() {
        for pair in chain.windows(2) {
            let frame = Member::Frame(pair[1]);
            if !members[pair[0]].contains(&frame) {
                members[pair[0]].push(frame);
            }
        }
        let innermost = *chain.last().expect("the diagram is around every box");
        members[innermost].push(Member::Box(own));
    }
    members
}

/// The edges with an end in each container.
fn edges_by_container(edges: &[Edge], chains: &[Vec<Container>]) -> Vec<Vec<Edge>> {
    let count = chains.iter().flatten().max().map_or(1, |most| most + 1);
    let mut found = vec![Vec::new(); count];
    for edge in edges {
        let shared = shared_depth(chains, edge.source.0, edge.to);
        let ends = [edge.source.0, edge.to].map(|end| &chains[end][shared..]);
        let inside = ends.into_iter().flatten().chain(&chains[edge.to][shared - 1..shared]);
        inside.for_each(|container| found[*container].push(*edge));
    }
    found
}

/// Lays out the content of a container. The frames inside are laid out already.
fn place_content(
    diagram: &Diagram,
    chains: &[Vec<Container>],
    contents: &[Content],
    container: Container,
    members: &[Vec<Member>],
    crossing: &[Vec<Edge>],
) -> Content {
    let mut own = Content::default();
    for member in &members[container] {
        own.add(*member, contents, diagram);
    }
    let mut links = Vec::new();
    for edge in crossing.get(container).into_iter().flatten() {
        let source = edge.source;
        let from = member_in(chains, container, source.0).unwrap_or(Member::Entry(source));
        let to = member_in(chains, container, edge.to).unwrap_or(Member::Exit(source));
        let next = links.len();
        if *own.links.entry((source, from, to)).or_insert(next) < next {
            continue;
        }
        let [from_item, to_item] = [from, to].map(|member| own.add(member, contents, diagram));
        links.push(Link {
            from: from_item,
            to: to_item,
            from_offset: port_offset(contents, from, Member::Exit(source)),
            to_offset: port_offset(contents, to, Member::Entry(source)),
        });
    }
    own.placed = place(&own.items, &links);
    own.add_border(container.checked_sub(1).map(|frame| diagram.frames[frame].width));
    own
}

/// How far right of the centre of a frame one of its ports is; 0 for boxes and ports themselves.
fn port_offset(contents: &[Content], member: Member, port: Member) -> f64 {
    let Member::Frame(frame) = member else { return 0.0 };
    let content = &contents[frame];
    content.origin.0 + content.placed.centre[content.members[&port]] - content.width / 2.0
}

impl Content {
    /// The item of a member, which is added if it is new.
    fn add(&mut self, member: Member, contents: &[Content], diagram: &Diagram) -> usize {
        if let Some(item) = self.members.get(&member) {
            return *item;
        }
        let (width, height, pin) = match member {
            Member::Box(own) => (diagram.boxes[own].width, diagram.boxes[own].height, Pin::None),
            Member::Frame(frame) => (contents[frame].width, contents[frame].height, Pin::None),
            Member::Entry(_) => (0.0, 0.0, Pin::First),
            Member::Exit(_) => (0.0, 0.0, Pin::Last),
        };
        self.items.push(Item { width, height, pin });
        self.members.insert(member, self.items.len() - 1);
        self.items.len() - 1
    }

    /// Adds the padding and the title of a frame, which needs a least width. The diagram has
    /// neither.
    fn add_border(&mut self, title_width: Option<f64>) {
        let Some(title_width) = title_width else {
            (self.width, self.height) = (self.placed.width, self.placed.height);
            return;
        };
        let content = self.placed.width + 2.0 * PADDING;
        self.width = content.max(title_width + 2.0 * PADDING);
        self.origin = (PADDING + (self.width - content) / 2.0, TITLE + PADDING / 2.0);
        self.height = self.origin.1 + self.placed.height + PADDING;
    }
}

/// The upper left corner of each container.
fn corners(contents: &[Content], diagram: &Diagram) -> Vec<(f64, f64)> {
    let mut corners = vec![(0.0, 0.0); contents.len()];
    for container in 1..contents.len() {
        let parent = diagram.frames[container - 1].parent.map_or(0, |frame| frame + 1);
        let outer = &contents[parent];
        // A frame without a box is in no container.
        let Some(item) = outer.members.get(&Member::Frame(container)) else { continue };
        let (x, y) = outer.origin_in(corners[parent]);
        let left = x + outer.placed.centre[*item] - contents[container].width / 2.0;
        corners[container] = (left, y + outer.placed.top[*item]);
    }
    corners
}

impl Content {
    /// Where the content begins, if the container has this corner.
    fn origin_in(&self, corner: (f64, f64)) -> (f64, f64) {
        (corner.0 + self.origin.0, corner.1 + self.origin.1)
    }
}

/// The rectangle of a frame, which has no size if nothing is inside.
fn frame_rectangle(content: &Content, (x, y): (f64, f64)) -> Rectangle {
    match content.items.is_empty() {
        true => Rectangle::default(),
        false => Rectangle { x, y, width: content.width, height: content.height },
    }
}

fn box_rectangles(
    diagram: &Diagram,
    chains: &[Vec<Container>],
    contents: &[Content],
    corners: &[(f64, f64)],
) -> Vec<Rectangle> {
    let rectangle = |(at, own): (usize, &Leaf)| {
        let container = *chains[at].last().expect("the diagram is around every box");
        let content = &contents[container];
        let item = content.members[&Member::Box(at)];
        let (x, y) = content.origin_in(corners[container]);
        let left = x + content.placed.centre[item] - own.width / 2.0;
        Rectangle { x: left, y: y + content.placed.top[item], width: own.width, height: own.height }
    };
    diagram.boxes.iter().enumerate().map(rectangle).collect()
}

/// Joins the links of an edge: out of the frames of its source, and into the frames of its end.
fn route(edge: &Edge, chains: &[Vec<Container>], contents: &[Content], corners: &[(f64, f64)]) -> Route {
    let (top, is_upward) = edge.source;
    let shared = shared_depth(chains, top, edge.to);
    let outwards = chains[top][shared..].iter().rev();
    let way = outwards.chain(&chains[top][shared - 1..shared]).chain(&chains[edge.to][shared..]);
    let mut stations = Vec::new();
    for container in way {
        let content = &contents[*container];
        let from = member_in(chains, *container, top).unwrap_or(Member::Entry(edge.source));
        let to = member_in(chains, *container, edge.to).unwrap_or(Member::Exit(edge.source));
        let (x, y) = content.origin_in(corners[*container]);
        let link = &content.placed.links[content.links[&(edge.source, from, to)]];
        stations.extend(link.iter().map(|at| Station {
            x: x + at.x,
            top: y + at.top,
            bottom: y + at.bottom,
        }));
    }
    Route { stations, is_upward }
}
