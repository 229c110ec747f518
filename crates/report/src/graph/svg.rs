//! Writes a [`Graph`] as SVG: measures the boxes, asks for the layout, and draws.
//!
//! All text is in a fixed-width font, because its width can then be bounded without knowing the
//! font. A text with characters that such fonts may lack is fitted to its width by the viewer.

use std::fmt::Write;

use super::layout::{Diagram, Frame as LayoutFrame, Layout, Leaf, Rectangle, Route, Station, layout};
use super::model::{Edge, Frame, Graph, Kind, Node, Relation};
use crate::page::STYLE;
use crate::page::colours::for_both_schemes;
use crate::page::html::escape;
use crate::page::text::{line, shorten};

const GRAPH_STYLE: &str = include_str!("graph.css");

/// The width of a character, relative to the size of the font. Fixed-width fonts have 0.55 to 0.61;
/// some viewers round a width up to whole pixels, as from 6.6 to 7.
const RELATIVE_WIDTH: f64 = 0.64;
/// The sizes of fonts, as in the style sheet.
const SMALL: f64 = 11.0;
const NAME: f64 = 12.0;
const HEADING: f64 = 14.0;

/// The most characters of a line.
const MOST_CHARACTERS: usize = 36;
const MOST_TITLE_CHARACTERS: usize = 60;
const MOST_HEADING_CHARACTERS: usize = 80;
/// The most characters of a tooltip.
const MOST_TOOLTIP_CHARACTERS: usize = 1500;

/// The space around texts in a box, and the heights of its lines.
const PADDING: f64 = 10.0;
const NAME_HEIGHT: f64 = 16.0;
const LINE_HEIGHT: f64 = 14.0;
/// The space beside a box for an edge to itself.
const SELF_EDGE: f64 = 20.0;

/// The horizontal distance of two lines that count as one.
const STRAIGHT: f64 = 0.05;

/// The space around the drawing.
const MARGIN: f64 = 16.0;
/// The height of the heading with the details and the legend.
const HEADER: f64 = 74.0;
/// The width of a sample in the legend.
const SAMPLE: f64 = 26.0;

/// Draws a graph as an SVG file.
pub fn draw(graph: &Graph) -> String {
    let sheet = format!("{STYLE}\n{GRAPH_STYLE}");
    let style = for_both_schemes(&rules(), &sheet);
    drawing(
        graph,
        &format!("<style>\n{style}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"),
    )
}

/// Draws a graph for a page with [`page_style`].
pub fn draw_inline(graph: &Graph) -> String {
    drawing(graph, "")
}

/// The style of graphs on a page. Its rules apply to nothing outside of the element `.graph`.
pub fn page_style() -> String {
    let colours = GRAPH_STYLE.lines().take_while(|line| !line.starts_with("text"));
    let rules = rules();
    let scoped = rules.lines().map(|rule| format!(".graph {rule}"));
    colours.map(str::to_owned).chain(scoped).map(|line| line + "\n").collect()
}

/// The rules of the style sheet, without its colours.
fn rules() -> String {
    let rules = GRAPH_STYLE.lines().skip_while(|line| !line.starts_with("text"));
    rules.collect::<Vec<_>>().join("\n")
}

/// Draws a graph. `background` is the first content of the drawing.
fn drawing(graph: &Graph, background: &str) -> String {
    let placed = layout(&diagram(graph));
    let (header, header_width) = header(graph);
    let width = placed.width.max(header_width) + 2.0 * MARGIN;
    let height = placed.height + HEADER + 2.0 * MARGIN;
    // A drawing that is narrower than its heading stands in the middle.
    let left = (width - placed.width) / 2.0;
    let mut out = open(graph, width, height) + background;
    out += &header;
    let _ = writeln!(out, "<g transform=\"translate({left:.1} {:.1})\">", HEADER + MARGIN);
    draw_content(&mut out, graph, &placed);
    out + "</g>\n</svg>\n"
}

fn draw_content(out: &mut String, graph: &Graph, placed: &Layout) {
    for (frame, place) in graph.frames.iter().zip(&placed.frames) {
        draw_frame(out, frame, place);
    }
    for (edge, route) in graph.edges.iter().zip(&placed.routes) {
        draw_edge(out, edge, route);
    }
    for (node, place) in graph.nodes.iter().zip(&placed.boxes) {
        draw_node(out, node, place);
    }
    // Titles come last, because edges into a frame may pass them.
    for (frame, place) in graph.frames.iter().zip(&placed.frames) {
        draw_title(out, frame, place);
    }
}

/// The sizes of boxes and frames.
fn diagram(graph: &Graph) -> Diagram {
    let leaf = |node: &Node| {
        let (width, height) = box_size(node);
        let beside = if node.reads_itself { 2.0 * SELF_EDGE } else { 0.0 };
        Leaf { width: width + beside, height, frame: node.frame }
    };
    let frame = |frame: &Frame| LayoutFrame {
        parent: frame.parent,
        width: text_width(&shorten(&frame.title, MOST_TITLE_CHARACTERS), SMALL),
    };
    Diagram {
        boxes: graph.nodes.iter().map(leaf).collect(),
        frames: graph.frames.iter().map(frame).collect(),
        edges: graph.edges.iter().map(|edge| (edge.from, edge.to)).collect(),
    }
}

fn box_size(node: &Node) -> (f64, f64) {
    let [name, lines @ ..] = &box_lines(node)[..] else { return (0.0, 0.0) };
    let widths = lines.iter().map(|line| text_width(line, SMALL));
    let width = widths.fold(text_width(name, NAME), f64::max);
    (width + 2.0 * PADDING, NAME_HEIGHT + LINE_HEIGHT * lines.len() as f64 + PADDING)
}

/// The name and the other lines of a box, as far as they fit.
fn box_lines(node: &Node) -> Vec<String> {
    std::iter::once(&node.name).chain(&node.lines).map(|line| shorten(line, MOST_CHARACTERS)).collect()
}

/// An upper bound of the width of a text.
fn text_width(text: &str, size: f64) -> f64 {
    let cells: usize = text.chars().map(|own| if own.is_ascii() || is_own_mark(own) { 1 } else { 2 }).sum();
    cells as f64 * RELATIVE_WIDTH * size
}

/// Marks that drawings add to names. Fixed-width fonts have them.
fn is_own_mark(own: char) -> bool {
    matches!(own, '←' | '…' | '×' | '·')
}

/// A text that starts at a place. The viewer fits characters of unknown width.
fn text(class: &str, place: (f64, f64), size: f64, text: &str) -> String {
    let written = line(class, "start", place, text);
    match text.chars().all(|own| own.is_ascii() || is_own_mark(own)) {
        true => written,
        false => {
            let width = text_width(text, size);
            let fitted = format!("<text textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" ");
            written.replacen("<text ", &fitted, 1)
        }
    }
}

fn tooltip(text: &str) -> String {
    format!("<title>{}</title>", escape(&shorten(text, MOST_TOOLTIP_CHARACTERS)))
}

fn open(graph: &Graph, width: f64, height: f64) -> String {
    let count = |test: fn(Kind) -> bool| graph.nodes.iter().filter(|node| test(node.kind)).count();
    let inputs = count(|kind| matches!(kind, Kind::Input | Kind::Constant));
    let others = graph.nodes.len() - inputs;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n\
         <title>{name}: its statements and what they read</title>\n\
         <desc>Boxes for {inputs} inputs and {others} statements. An arrow leads from a tensor to a \
         statement that reads it. There are {edges} arrows.</desc>\n",
        name = escape(&graph.name),
        edges = graph.edges.len(),
    )
}

/// The heading, the details and the legend, with their width.
fn header(graph: &Graph) -> (String, f64) {
    let name = shorten(&graph.name, MOST_HEADING_CHARACTERS);
    let details = shorten(&graph.details, MOST_HEADING_CHARACTERS);
    let mut out = text("heading", (MARGIN, MARGIN + 14.0), HEADING, &name);
    if !details.is_empty() {
        let written = text("faint", (MARGIN, MARGIN + 32.0), SMALL, &details);
        let _ = writeln!(out, "<g>{}{written}</g>", tooltip(&graph.details));
    }
    let legend = legend(graph, &mut out);
    (out, legend.max(text_width(&name, HEADING)).max(text_width(&details, SMALL)))
}

/// Writes the kinds and relations that occur, and returns the width.
fn legend(graph: &Graph, out: &mut String) -> f64 {
    let (mut x, y) = (MARGIN, MARGIN + 44.0);
    let mut entry = |class: &str, sample: String, name: &str| {
        let label = text("faint", (x + SAMPLE + 6.0, y + 12.0), SMALL, name);
        let _ = writeln!(out, "<g class=\"{class}\" transform=\"translate({x:.1} {y:.1})\">{sample}</g>");
        *out += &label;
        x += SAMPLE + 6.0 + text_width(name, SMALL) + 18.0;
    };
    for kind in Kind::ALL.into_iter().filter(|kind| graph.nodes.iter().any(|node| node.kind == *kind)) {
        let sample = format!("<rect width=\"{SAMPLE}\" height=\"16\" rx=\"{}\"/>", radius(kind).min(8.0));
        entry(kind.name(), sample, label(kind));
    }
    if graph.nodes.iter().any(|node| node.is_inlined) {
        let sample = format!("<rect width=\"{SAMPLE}\" height=\"16\" rx=\"4\"/>");
        entry("temporary inlined", sample, "inlined");
    }
    for relation in [Relation::Reads, Relation::Carried, Relation::Continues] {
        let by_itself = relation == Relation::Carried && graph.nodes.iter().any(|node| node.reads_itself);
        if by_itself || graph.edges.iter().any(|edge| edge.relation == relation) {
            let sample = format!("<path d=\"M0 8H{SAMPLE}\"/>");
            entry(&format!("edge {}", relation_class(relation)), sample, relation_name(relation));
        }
    }
    x - MARGIN
}

fn label(kind: Kind) -> &'static str {
    match kind {
        Kind::Staged => "staged by the schedule",
        other => other.name(),
    }
}

fn relation_class(relation: Relation) -> &'static str {
    match relation {
        Relation::Reads => "reads",
        Relation::Carried => "carried",
        Relation::Continues => "continues",
    }
}

fn relation_name(relation: Relation) -> &'static str {
    match relation {
        Relation::Reads => "read by",
        Relation::Carried => "read in a later iteration by",
        Relation::Continues => "changed or completed by",
    }
}

/// The radius of the corners of a box.
fn radius(kind: Kind) -> f64 {
    match kind {
        Kind::Input | Kind::Constant => 14.0,
        Kind::Temporary | Kind::Result => 4.0,
        Kind::Staged => 0.0,
    }
}

fn draw_frame(out: &mut String, frame: &Frame, place: &Rectangle) {
    let class = if frame.parent.is_some() { "frame nested" } else { "frame" };
    let rectangle = rectangle(place, &format!(" class=\"{class}\" rx=\"6\""));
    let _ = writeln!(out, "<g>{}{rectangle}</g>", tooltip(&frame.tooltip));
}

/// Draws the title of a frame over the edges that pass it.
fn draw_title(out: &mut String, frame: &Frame, place: &Rectangle) {
    let title = shorten(&frame.title, MOST_TITLE_CHARACTERS);
    let (x, y) = (place.x + PADDING - 2.0, place.y + 4.0);
    let behind = Rectangle { x, y, width: text_width(&title, SMALL) + 4.0, height: LINE_HEIGHT };
    let _ = writeln!(out, "{}", rectangle(&behind, " class=\"behind\""));
    *out += &text("faint", (place.x + PADDING, place.y + 15.0), SMALL, &title);
}

fn rectangle(place: &Rectangle, attributes: &str) -> String {
    let Rectangle { x, y, width, height } = place;
    format!("<rect{attributes} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>")
}

fn draw_node(out: &mut String, node: &Node, place: &Rectangle) {
    let beside = if node.reads_itself { SELF_EDGE } else { 0.0 };
    let place = Rectangle { x: place.x + beside, width: place.width - 2.0 * beside, ..*place };
    if node.reads_itself {
        draw_self_edge(out, node, &place);
    }
    let inlined = if node.is_inlined { " inlined" } else { "" };
    let _ = writeln!(out, "<g class=\"{}{inlined}\">{}", node.kind.name(), tooltip(&full_text(node)));
    let corners = format!(" rx=\"{}\"", radius(node.kind));
    let _ = writeln!(out, "{}", rectangle(&place, &corners));
    let mut y = place.y + NAME_HEIGHT + 1.0;
    for (at, own) in box_lines(node).iter().enumerate() {
        let (class, size) = if at == 0 { ("name", NAME) } else { ("faint", SMALL) };
        *out += &text(class, (place.x + PADDING, y), size, own);
        y += LINE_HEIGHT;
    }
    *out += "</g>\n";
}

/// All that is known about a node.
fn full_text(node: &Node) -> String {
    let lines: Vec<&str> = std::iter::once(&node.name).chain(&node.lines).map(String::as_str).collect();
    format!("{}\n{}", lines.join("\n"), node.tooltip)
}

/// An edge on the right side of a box, from its lower to its upper half.
fn draw_self_edge(out: &mut String, node: &Node, place: &Rectangle) {
    let (x, low) = (place.x + place.width, place.y + 0.72 * place.height);
    let high = place.y + 0.28 * place.height;
    let far = x + SELF_EDGE - 2.0;
    let title = tooltip(&format!("{} reads its own result of an earlier iteration", node.name));
    let _ = writeln!(
        out,
        "<g class=\"edge carried\">{title}<path d=\"M{x:.1} {low:.1}C{far:.1} {low:.1} {far:.1} {high:.1} \
         {:.1} {high:.1}\"/><path class=\"head\" d=\"M{x:.1} {high:.1}l7 -4v8z\"/></g>",
        x + 6.0
    );
}

fn draw_edge(out: &mut String, edge: &Edge, route: &Route) {
    let (Some(first), Some(last)) = (route.stations.first(), route.stations.last()) else { return };
    let head = match route.is_upward {
        true => format!("M{:.1} {:.1}l-4 8h8z", first.x, first.top),
        false => format!("M{:.1} {:.1}l-4 -8h8z", last.x, last.bottom),
    };
    let class = relation_class(edge.relation);
    let _ = writeln!(
        out,
        "<g class=\"edge {class}\">{}<path d=\"{}\"/><path class=\"head\" d=\"{head}\"/></g>",
        tooltip(&edge.tooltip),
        path(route)
    );
}

/// A route as a path: vertical lines, joined by curves. Lines that continue each other are one.
fn path(route: &Route) -> String {
    let mut pieces: Vec<Station> = Vec::new();
    for at in &route.stations {
        match pieces.last_mut() {
            Some(last) if (last.x - at.x).abs() < STRAIGHT => last.bottom = at.bottom,
            _ => pieces.push(*at),
        }
    }
    let mut out = String::new();
    for (at, own) in pieces.iter().enumerate() {
        let Station { x, top, bottom } = *own;
        let _ = match at.checked_sub(1).map(|before| pieces[before]) {
            None => write!(out, "M{x:.1} {top:.1}"),
            Some(before) => {
                let middle = (before.bottom + top) / 2.0;
                write!(out, "C{:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {top:.1}", before.x)
            }
        };
        if bottom > top {
            let _ = write!(out, "V{bottom:.1}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use resvg::usvg::roxmltree::{self, Document};

    use super::*;

    fn node(name: &str) -> Node {
        Node {
            name: name.to_owned(),
            kind: Kind::Temporary,
            lines: vec!["float32()".to_owned()],
            tooltip: String::new(),
            frame: None,
            reads_itself: false,
            is_inlined: false,
        }
    }

    fn drawn(nodes: Vec<Node>, edges: Vec<Edge>) -> String {
        draw(&Graph { name: "f".to_owned(), nodes, edges, ..Graph::default() })
    }

    fn edge(from: usize, to: usize, relation: Relation) -> Edge {
        Edge { from, to, relation, tooltip: "<a> & b".to_owned() }
    }

    #[test]
    fn hostile_names_are_text() {
        let names = ["<script>", "a\"b'c&amp;", "]]>\u{0}\u{1b}[31m", "f_2.t"];
        let svg = drawn(names.iter().map(|name| node(name)).collect(), Vec::new());
        let document = Document::parse(&svg).unwrap();
        let texts: Vec<&str> = document
            .descendants()
            .filter(|own| own.attribute("class") == Some("name"))
            .filter_map(|own| own.text())
            .collect();
        assert_eq!(texts, ["<script>", "a\"b'c&amp;", "]]>\u{fffd}\u{fffd}[31m", "f_2.t"]);
    }

    #[test]
    fn long_names_are_cut_and_told_in_full() {
        let name = format!("begin{}end", "_and_so_on".repeat(40));
        let svg = drawn(vec![node(&name)], Vec::new());
        assert!(svg.contains(&format!("<title>{name}\n")), "{svg}");
        let cut = shorten(&name, MOST_CHARACTERS);
        assert!(svg.contains(&format!(">{cut}</text>")) && cut.ends_with("end"), "{svg}");
    }

    #[test]
    fn characters_of_unknown_width_are_fitted() {
        let svg = drawn(vec![node("größe"), node("画像"), node("plain")], Vec::new());
        assert_eq!(svg.matches("textLength=").count(), 2, "{svg}");
        let document = Document::parse(&svg).unwrap();
        for text in document.descendants().filter(|own| own.has_attribute("textLength")) {
            let rectangle = text.parent().unwrap().children().find(|own| own.tag_name().name() == "rect");
            let width =
                |own: roxmltree::Node, name: &str| own.attribute(name).unwrap().parse::<f64>().unwrap();
            assert!(width(text, "textLength") + 2.0 * PADDING <= width(rectangle.unwrap(), "width") + 0.1);
        }
    }

    #[test]
    fn the_legend_has_what_occurs() {
        let legend = |svg: &str, name: &str| svg.contains(&format!(">{name}</text>"));
        let plain = drawn(vec![node("a"), node("b")], vec![edge(0, 1, Relation::Reads)]);
        assert!(legend(&plain, "temporary") && legend(&plain, "read by"), "{plain}");
        for name in ["input", "inlined", "read in a later iteration by", "changed or completed by"] {
            assert!(!legend(&plain, name), "{plain}");
        }
        let own = Node { reads_itself: true, is_inlined: true, ..node("a") };
        let more = drawn(vec![own, node("b")], vec![edge(0, 1, Relation::Continues)]);
        for name in ["inlined", "read in a later iteration by", "changed or completed by"] {
            assert!(legend(&more, name), "{more}");
        }
    }

    #[test]
    fn an_edge_of_a_cycle_points_up() {
        let edges = vec![edge(0, 1, Relation::Reads), edge(1, 0, Relation::Carried)];
        let svg = drawn(vec![node("a"), node("b")], edges);
        assert_eq!((svg.matches("l-4 -8h8z").count(), svg.matches("l-4 8h8z").count()), (1, 1), "{svg}");
        assert!(svg.contains("<title>&lt;a&gt; &amp; b</title>"), "{svg}");
    }

    #[test]
    fn nothing_can_be_drawn() {
        assert!(Document::parse(&drawn(Vec::new(), Vec::new())).is_ok());
    }
}
