//! Makes the style sheets of the page and of standalone drawings.
//!
//! The page's sheet consists of [`STYLE`] and `strategies.css`. Both have one rule per line, which
//! `light_style` relies on to find the rules of a drawing.

use crate::page::STYLE;
#[cfg(any(test, feature = "png"))]
use crate::page::colours::{Scheme, resolve};

/// The rules that only this page has.
const COMPARISON_STYLE: &str = include_str!("strategies.css");

/// The style sheet of the page.
pub fn style_sheet() -> String {
    format!("{STYLE}\n{COMPARISON_STYLE}")
}

/// The style sheet of a standalone drawing, for PNG: light colours, and no variables, because the
/// renderer does not support them.
#[cfg(any(test, feature = "png"))]
pub fn light_style() -> String {
    let sheet = style_sheet();
    let rules = sheet.lines().filter(|line| line.starts_with("svg .") || line.starts_with("svg text"));
    let rules = rules.chain(sheet.lines().filter(|line| line.starts_with('.')));
    resolve(&rules.collect::<Vec<_>>().join("\n"), &sheet, Scheme::Light)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variable_is_left_and_none_is_dark() {
        let light = light_style();
        assert!(!light.contains("var("), "{light}");
        assert!(light.contains(".s0 { color: #0072b2; }") && light.contains("fill: #1d2330;"), "{light}");
        assert!(!light.contains("#3f97d3"), "{light}");
    }
}
