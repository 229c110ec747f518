//! Lays out one level of a diagram: items of given sizes in ranks, and the links between them.
//!
//! The method is that of Sugiyama, Tagawa and Toda, in the form of Gansner, Koutsofios, North and
//! Vo, "A Technique for Drawing Directed Graphs" (1993): ranks (`rank.rs`), virtual vertices where
//! a link passes a rank, an order in each rank with few crossings (`order.rs`), and coordinates
//! (`coordinates.rs`). Two departures: all links that leave an item at one point share their
//! virtual vertices, so that a tensor with many readers has one trunk; and links may end beside the
//! centre of an item, because an item can be a frame with its own content.

use std::collections::BTreeMap;

use super::coordinates::centres;
use super::order::reduce_crossings;
use super::rank::ranks;

/// The free space between two ranks.
const RANK_GAP: f64 = 30.0;
/// The same beside a rank of items without a height.
const PORT_GAP: f64 = 14.0;
/// How much more space a long link asks for, and the most that there is.
const GAP_PER_DISTANCE: f64 = 0.06;
const MOST_RANK_GAP: f64 = 84.0;

/// Whether an item stands in the first or in the last rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// The links decide.
    None,
    /// The first rank, alone with other items of this kind.
    First,
    /// The last rank.
    Last,
}

/// A rectangle to place.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
    /// Whether its rank is fixed.
    pub pin: Pin,
}

/// A line from one item down to another.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The upper item.
    pub from: usize,
    /// The lower item.
    pub to: usize,
    /// Where the link leaves the upper item, from its centre to the right.
    pub from_offset: f64,
    /// Where the link enters the lower item, from its centre to the right.
    pub to_offset: f64,
}

/// A vertical piece of a link. Between two of them a link bends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// The horizontal position.
    pub x: f64,
    /// The upper end.
    pub top: f64,
    /// The lower end, which is not above `top`.
    pub bottom: f64,
}

/// Where the items and links of a level are. The upper left corner is the origin.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// The centre of each item.
    pub centre: Vec<f64>,
    /// The upper side of each item.
    pub top: Vec<f64>,
    /// The vertical pieces of each link, from top to bottom.
    pub links: Vec<Vec<Station>>,
    /// The width of the level.
    pub width: f64,
    /// The height of the level.
    pub height: f64,
}

/// An item, or a place where links pass a rank.
#[derive(Clone, Copy, Debug)]
pub struct Vertex {
    /// The width.
    pub width: f64,
    /// Whether the vertex is a place where links pass.
    pub is_virtual: bool,
}

/// The part of a link between two neighbouring ranks.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The vertex in the upper rank.
    pub from: usize,
    /// The vertex in the lower rank.
    pub to: usize,
    /// Where the segment leaves the upper vertex, from its centre.
    pub from_offset: f64,
    /// Where the segment enters the lower vertex, from its centre.
    pub to_offset: f64,
}

/// The vertices of all ranks with the segments between them. The first vertices are the items.
pub struct Layers {
    /// Every vertex.
    pub vertices: Vec<Vertex>,
    /// The vertices of each rank, from left to right.
    pub layers: Vec<Vec<usize>>,
    /// The segments below each rank.
    pub segments: Vec<Vec<Segment>>,
    /// The virtual vertices of each link, from top to bottom.
    passes: Vec<Vec<usize>>,
}

/// Places items and links. The links must not form a cycle, and none joins an item to itself.
pub fn place(items: &[Item], links: &[Link]) -> Placed {
    let ranks = ranks(items, links);
    let mut layers = Layers::new(items, links, &ranks);
    reduce_crossings(&mut layers);
    let centre = centres(&layers);
    let rows = rows(items, &ranks, &layers, &centre);
    let width = (0..centre.len()).map(|at| centre[at] + layers.vertices[at].width / 2.0);
    let top = |item: usize| rows[ranks[item]].0;
    Placed {
        top: (0..items.len()).map(top).collect(),
        links: stations(items, links, &layers, &centre, &ranks, &rows),
        width: width.fold(0.0, f64::max),
        height: rows.last().map_or(0.0, |(_, bottom)| *bottom),
        centre: centre[..items.len()].to_vec(),
    }
}

impl Layers {
    fn new(items: &[Item], links: &[Link], ranks: &[usize]) -> Layers {
        let count = ranks.iter().map(|rank| rank + 1).max().unwrap_or(0);
        let mut own = Layers {
            vertices: items.iter().map(|item| Vertex { width: item.width, is_virtual: false }).collect(),
            layers: vec![Vec::new(); count],
            segments: vec![Vec::new(); count],
            passes: Vec::new(),
        };
        for (item, rank) in ranks.iter().enumerate() {
            own.layers[*rank].push(item);
        }
        let mut trunks = BTreeMap::new();
        for link in links {
            own.add_link(link, ranks, &mut trunks);
        }
        own
    }

    /// Adds the segments of a link. `trunks` has the virtual vertices by the point where their
    /// links begin, and by rank.
    fn add_link(&mut self, link: &Link, ranks: &[usize], trunks: &mut BTreeMap<(usize, u64, usize), usize>) {
        let (mut from, mut from_offset, mut passes) = (link.from, link.from_offset, Vec::new());
        for rank in ranks[link.from] + 1..ranks[link.to] {
            let next = self.vertices.len();
            let pass = *trunks.entry((link.from, link.from_offset.to_bits(), rank)).or_insert(next);
            if pass == next {
                self.vertices.push(Vertex { width: 0.0, is_virtual: true });
                self.layers[rank].push(pass);
                self.segments[rank - 1].push(Segment { from, to: pass, from_offset, to_offset: 0.0 });
            }
            passes.push(pass);
            (from, from_offset) = (pass, 0.0);
        }
        let last = Segment { from, to: link.to, from_offset, to_offset: link.to_offset };
        self.segments[ranks[link.to] - 1].push(last);
        self.passes.push(passes);
    }
}

/// The upper and the lower side of each rank. Ranks with long links between them are further apart,
/// so that the links are not too flat.
fn rows(items: &[Item], ranks: &[usize], layers: &Layers, centre: &[f64]) -> Vec<(f64, f64)> {
    let mut heights = vec![0.0f64; layers.layers.len()];
    for (item, rank) in items.iter().zip(ranks) {
        heights[*rank] = heights[*rank].max(item.height);
    }
    let distance = |at: &Segment| (centre[at.to] + at.to_offset - centre[at.from] - at.from_offset).abs();
    let mut top = 0.0;
    let row = |(rank, height): (usize, f64)| {
        let row = (top, top + height);
        let longest = layers.segments[rank].iter().map(distance).fold(0.0, f64::max);
        let next = heights.get(rank + 1).copied().unwrap_or(0.0);
        let least = if height == 0.0 || next == 0.0 { PORT_GAP } else { RANK_GAP };
        top += height + (least + GAP_PER_DISTANCE * longest).min(MOST_RANK_GAP);
        row
    };
    heights.iter().copied().enumerate().map(row).collect()
}

fn stations(
    items: &[Item],
    links: &[Link],
    layers: &Layers,
    centre: &[f64],
    ranks: &[usize],
    rows: &[(f64, f64)],
) -> Vec<Vec<Station>> {
    let path = |(link, passes): (&Link, &Vec<usize>)| {
        let (start, end) = (rows[ranks[link.from]], rows[ranks[link.to]]);
        let leaves = start.0 + items[link.from].height;
        let first = Station { x: centre[link.from] + link.from_offset, top: leaves, bottom: start.1 };
        let last = Station { x: centre[link.to] + link.to_offset, top: end.0, bottom: end.0 };
        let passed = passes.iter().zip(ranks[link.from] + 1..);
        let between = passed.map(|(pass, rank)| {
            let (top, bottom) = rows[rank];
            Station { x: centre[*pass], top, bottom }
        });
        std::iter::once(first).chain(between).chain([last]).collect()
    };
    links.iter().zip(&layers.passes).map(path).collect()
}
