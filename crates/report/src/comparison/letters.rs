//! Replaces the texts of a drawing by the outlines of their letters.
//!
//! The renderer of pictures then needs no fonts. Servers may have none, and pictures look the same
//! everywhere. Texts are those that `drawing/text.rs` writes: one line, from left to right.

use std::fmt::Write;

use epaint_default_fonts::UBUNTU_LIGHT;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use crate::page::html::unescape;

/// The class of outlines, which has the style of texts.
pub const CLASS: &str = "letters";

/// The sizes of texts and of headings, as in the style sheets.
const SIZE: f32 = 12.5;
const HEADING: f32 = 14.0;

/// Replaces all texts of a drawing.
pub fn outline_texts(svg: &str) -> Result<String, String> {
    let font = Face::parse(UBUNTU_LIGHT, 0).map_err(|error| error.to_string())?;
    let (mut out, mut rest) = (String::new(), svg);
    while let Some((before, from)) = rest.split_once("<text ") {
        let (text, after) = from.split_once("</text>").ok_or("a <text> element has no end tag")?;
        let text = Text::parse(text).ok_or_else(|| format!("a text cannot be read: {text}"))?;
        out += before;
        out += &text.path(&font);
        rest = after;
    }
    Ok(out + rest)
}

/// A text of a drawing.
struct Text<'a> {
    class: &'a str,
    anchor: &'a str,
    x: f32,
    y: f32,
    letters: String,
}

impl<'a> Text<'a> {
    /// Reads the attributes and the letters of a text.
    fn parse(svg: &'a str) -> Option<Text<'a>> {
        let (attributes, letters) = svg.split_once('>')?;
        let value = |name: &str| {
            let (_, from) = attributes.split_once(&format!("{name}=\""))?;
            Some(from.split_once('"')?.0)
        };
        Some(Text {
            class: value("class")?,
            anchor: value("text-anchor")?,
            x: value("x")?.parse().ok()?,
            y: value("y")?.parse().ok()?,
            letters: unescape(letters),
        })
    }

    /// The outlines of the letters as one path.
    fn path(&self, font: &Face<'_>) -> String {
        let size = if self.class == "heading" { HEADING } else { SIZE };
        let scale = size / f32::from(font.units_per_em());
        let glyphs: Vec<GlyphId> =
            self.letters.chars().map(|letter| font.glyph_index(letter).unwrap_or_default()).collect();
        let advance = |glyph: &GlyphId| scale * f32::from(font.glyph_hor_advance(*glyph).unwrap_or(0));
        let width: f32 = glyphs.iter().map(advance).sum();
        let before = match self.anchor {
            "end" => width,
            "middle" => width / 2.0,
            _ => 0.0,
        };
        let mut outline = Outline { path: String::new(), x: self.x - before, y: self.y, scale };
        for glyph in &glyphs {
            font.outline_glyph(*glyph, &mut outline);
            outline.x += advance(glyph);
        }
        format!("<path class=\"{CLASS} {}\" d=\"{}\"/>", self.class, outline.path)
    }
}

/// The outlines of letters as the path of a drawing, in which y grows downwards.
struct Outline {
    path: String,
    /// The left end of the current letter, and the line that it stands on.
    x: f32,
    y: f32,
    /// The size of a unit of the font.
    scale: f32,
}

impl Outline {
    fn add<const N: usize>(&mut self, command: char, places: [(f32, f32); N]) {
        self.path.push(command);
        for (x, y) in places {
            let (x, y) = (self.x + self.scale * x, self.y - self.scale * y);
            let _ = write!(self.path, "{x:.2} {y:.2} ");
        }
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.add('M', [(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.add('L', [(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.add('Q', [(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.add('C', [(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.path.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::style::light_style;

    /// The horizontal places of the first points of all outlines.
    fn starts(svg: &str) -> Vec<f32> {
        svg.split('M').skip(1).map(|from| from.split(' ').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn letters_stand_where_their_text_is_anchored() {
        let text = |anchor: &str| {
            outline_texts(&format!(
                "<text class=\"up\" text-anchor=\"{anchor}\" x=\"100\" y=\"20\">lll</text>"
            ))
        };
        let [start, middle, end] = ["start", "middle", "end"].map(|anchor| starts(&text(anchor).unwrap()));
        assert!(start.len() == 3 && start.is_sorted() && start[0] >= 100.0, "{start:?}");
        assert!(end.iter().all(|at| *at <= 100.0) && end.is_sorted(), "{end:?}");
        assert!(middle[0] < 100.0 && middle[2] > 99.0, "{middle:?}");
    }

    #[test]
    fn all_but_texts_stays() {
        let svg = "<svg>\n<text class=\"a\" text-anchor=\"end\" x=\"1\" y=\"2\">&lt;</text>\n<rect/></svg>";
        let drawn = outline_texts(svg).unwrap();
        assert!(drawn.starts_with("<svg>\n<path class=\"letters a\" d=\"M"), "{drawn}");
        assert!(drawn.ends_with("\"/>\n<rect/></svg>"), "{drawn}");
        assert!(
            outline_texts("<text class=\"a\">").is_err() && outline_texts("<text x=\"1\">a</text>").is_err()
        );
    }

    #[test]
    fn sizes_are_those_of_the_style_sheets() {
        let style = light_style();
        assert!(style.contains(&format!("font: {SIZE}px")), "{style}");
        assert!(style.contains(&format!(".heading {{ font-size: {HEADING}px")), "{style}");
    }
}
