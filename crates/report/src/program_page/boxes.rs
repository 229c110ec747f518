//! Draws the picture of a loop nest as SVG: boxes inside each other, with the loops as labels along
//! the top of their box.

use std::fmt::Write;

use super::picture::{LoopLabel, Part};
use crate::page::html::escape;
use crate::page::text::{line, shorten};

const WIDTH: f64 = 1000.0;
/// The space between the edge of a box and what is inside, and between neighbours.
const PADDING: f64 = 8.0;
const GAP: f64 = 6.0;
/// The height of a label, and the width of a character of the fixed-width font.
const LABEL: f64 = 22.0;
const CHARACTER: f64 = 7.4;
/// The space beside the text of a label.
const BESIDE: f64 = 8.0;

/// The kinds of loops, as an explanation of the colours.
pub fn legend() -> String {
    let kinds = [
        ("serial", "serial loop"),
        ("parallel", "parallel loop, or blocks of a grid"),
        ("thread", "threads of a block"),
        ("vector", "vector"),
        ("unroll", "unrolled"),
        ("partial", "other code runs partial tiles"),
    ];
    let sample = |(class, name): (&str, &str)| {
        format!(
            "<svg class=\"loops\" viewBox=\"0 0 16 12\" width=\"16\" height=\"12\" style=\"display:inline\" aria-hidden=\"true\">\
             <rect class=\"chip {class}\" x=\"1\" y=\"1\" width=\"14\" height=\"10\" rx=\"3\"/></svg> {name}"
        )
    };
    let samples: Vec<String> = kinds.into_iter().map(sample).collect();
    format!(
        "<p class=\"faint\">Each box is one or several nested loops, outermost first, with the numbers of their \
         iterations. Inside are the buffers that exist in an iteration (dashed), and the statements that it \
         computes.</p>\n<p class=\"faint\">{}</p>\n",
        samples.join(" &#160; ")
    )
}

/// Draws the parts of a nest.
pub fn draw(name: &str, parts: &[Part]) -> String {
    let (content, height) = column(parts, 1.0, 1.0, WIDTH - 2.0);
    let described = escape(&described(parts));
    format!(
        "<svg class=\"loops\" viewBox=\"0 0 {WIDTH} {0:.0}\" width=\"{WIDTH}\" height=\"{0:.0}\" role=\"img\" \
         aria-label=\"{1}: {described}\">\n{content}</svg>\n",
        height + 2.0,
        escape(name)
    )
}

/// The loops and statements in a sentence, for those who do not see the drawing.
fn described(parts: &[Part]) -> String {
    let of_part = |part: &Part| match part {
        Part::Loops(loops, inside) => {
            let loops: Vec<&str> = loops.iter().map(|own| own.text.as_str()).collect();
            format!("loops {} with ({})", loops.join(", "), described(inside))
        }
        Part::Buffer(text) => format!("buffer {text}"),
        Part::Statement(text) | Part::Copy(text) | Part::Note(text) => text.clone(),
    };
    parts.iter().map(of_part).collect::<Vec<_>>().join("; ")
}

/// Draws parts below each other, and returns their height.
fn column(parts: &[Part], x: f64, y: f64, width: f64) -> (String, f64) {
    let mut row = Row::new(x, y, width);
    let out = row.parts(parts);
    row.end();
    (out, (row.y - GAP - y).max(LABEL))
}

/// Draws a box: its loops as labels, and what is inside.
fn nest_box(loops: &[LoopLabel], inside: &[Part], x: f64, y: f64, width: f64) -> (String, f64) {
    let mut row = Row::new(x + PADDING, y + PADDING, width - 2.0 * PADDING);
    let labels: String = loops.iter().map(|own| row.label(own.class, &own.text)).collect();
    // Statements alone need no rows of their own.
    if inside.iter().any(|part| matches!(part, Part::Loops(..))) {
        row.end();
    }
    let content = row.parts(inside);
    row.end();
    let whole = row.y - GAP + PADDING - y;
    let outline = format!(
        "<rect class=\"body\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{whole:.1}\" rx=\"6\"/>\n"
    );
    (outline + &labels + &content, whole)
}

/// A row of labels.
struct Row {
    left: f64,
    right: f64,
    /// Where the next label begins, and the top of the row.
    x: f64,
    y: f64,
}

impl Row {
    fn new(left: f64, y: f64, width: f64) -> Row {
        Row { left, right: left + width, x: left, y }
    }

    /// Draws parts: loops below each other, and what stands between them in rows.
    fn parts(&mut self, parts: &[Part]) -> String {
        let mut out = String::new();
        for part in parts {
            match part {
                Part::Loops(loops, inside) => {
                    self.end();
                    let (drawn, height) = nest_box(loops, inside, self.left, self.y, self.right - self.left);
                    out += &drawn;
                    self.y += height + GAP;
                }
                Part::Buffer(text) => out += &self.label("buffer", text),
                Part::Statement(text) => out += &self.label("statement", text),
                Part::Copy(text) => out += &self.label("copy", text),
                Part::Note(text) => out += &self.label("note", text),
            }
        }
        out
    }

    /// Draws a label, in the next row if there is no room.
    fn label(&mut self, class: &str, text: &str) -> String {
        let most = ((self.right - self.left - 2.0 * BESIDE) / CHARACTER).max(4.0) as usize;
        let shown = shorten(text, most);
        let width = shown.chars().count() as f64 * CHARACTER + 2.0 * BESIDE;
        if self.x > self.left && self.x + width > self.right {
            self.end();
        }
        let (x, y) = (self.x, self.y);
        self.x += width + GAP;
        let mut out = String::new();
        let _ = writeln!(
            out,
            "<g><title>{}</title><rect class=\"chip {class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{LABEL}\" rx=\"4\"/>{}</g>",
            escape(text),
            line("name", "start", (x + BESIDE, y + 15.0), &shown).trim_end()
        );
        out
    }

    /// Begins a new row, unless the row is empty.
    fn end(&mut self) {
        if self.x > self.left {
            (self.x, self.y) = (self.left, self.y + LABEL + GAP);
        }
    }
}
