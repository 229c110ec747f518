//! Renders a drawing as PNG, for viewers that cannot show SVG.

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::letters;
use super::style::light_style;

/// Twice the width of a drawing, so that the picture is sharp on most screens.
const WIDTH: u32 = 1720;

/// Renders a drawing on a white background as PNG.
pub fn render(svg: &str) -> Result<Vec<u8>, String> {
    let svg = letters::outline_texts(&standalone(svg))?;
    let tree = Tree::from_str(&svg, &Options::default()).map_err(|error| error.to_string())?;
    let scale = WIDTH as f32 / tree.size().width();
    let height = (tree.size().height() * scale).ceil() as u32;
    let mut picture =
        Pixmap::new(WIDTH, height).ok_or_else(|| format!("no picture can be {height} pixels high"))?;
    picture.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut picture.as_mut());
    picture.encode_png().map_err(|error| error.to_string())
}

/// Makes a drawing of the page a standalone file: adds its size and the light style, which the
/// outlines of letters have in place of texts.
fn standalone(svg: &str) -> String {
    let size = size(svg).map(|(width, height)| format!(" width=\"{width}\" height=\"{height}\""));
    let start = format!("<svg xmlns=\"http://www.w3.org/2000/svg\"{}", size.unwrap_or_default());
    let light = light_style().replace("svg text {", &format!("svg .{} {{", letters::CLASS));
    let style = format!(">\n<style>\n{light}\n</style>");
    svg.replacen("<svg", &start, 1).replacen('>', &style, 1)
}

/// Returns the last two numbers of the view box: width and height.
fn size(svg: &str) -> Option<(&str, &str)> {
    let (_, rest) = svg.split_once("viewBox=\"0 0 ")?;
    rest.split_once('"')?.0.split_once(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::drawing::{boxes, curves};
    use crate::comparison::examples::{degenerate_programs, example_comparison};

    /// Counts the dark pixels in a rectangle of a picture. The rectangle is in units of the
    /// drawing.
    fn dark(png: &[u8], (left, right): (u32, u32), (top, bottom): (u32, u32)) -> usize {
        let picture = Pixmap::decode_png(png).unwrap();
        let places = (2 * top..2 * bottom).flat_map(|y| (2 * left..2 * right).map(move |x| (x, y)));
        places.filter(|(x, y)| picture.pixel(*x, *y).is_some_and(|pixel| pixel.red() < 110)).count()
    }

    #[test]
    fn a_picture_has_its_heading_and_its_colours() {
        let png = render(&curves::by_trials(&example_comparison().programs[0])).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
        assert!(dark(&png, (60, 300), (4, 24)) > 300, "the heading is not there");
        assert!(dark(&png, (0, 60), (0, 30)) == 0, "the paper is not white");
        let picture = Pixmap::decode_png(&png).unwrap();
        assert_eq!(picture.width(), WIDTH);
        let blue = |pixel: &&resvg::tiny_skia::PremultipliedColorU8| {
            (pixel.red(), pixel.green(), pixel.blue()) == (0x00, 0x72, 0xb2)
        };
        assert!(picture.pixels().iter().filter(blue).count() > 100, "the first line is not in its colour");
    }

    #[test]
    fn odd_data_can_be_rendered() {
        for program in degenerate_programs() {
            for svg in [curves::by_seconds(&program), boxes::final_quality(&program)] {
                assert!(render(&svg).is_ok(), "{svg}");
            }
        }
        assert!(render(&boxes::overhead(&[])).is_ok());
    }

    #[test]
    fn what_is_no_drawing_is_an_error() {
        assert!(render("<svg").is_err() && render("").is_err());
    }
}
