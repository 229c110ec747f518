//! Draws the legend of a comparison's curves as SVG: a line sample and a name for each strategy.

use std::fmt::Write;

use super::WIDTH;
use super::colours;
use super::text::{self, CHARACTER_WIDTH, shorten};
use crate::page::html::escape;
use tilewright_tuner::compare::StrategyResult;

/// The height of a row of names.
const ROW: f64 = 20.0;
/// The length of a line sample, and the gap between the sample and its name.
const SAMPLE_LENGTH: f64 = 30.0;
const AFTER_SAMPLE: f64 = 7.0;
/// The gap between columns.
const GAP: f64 = 18.0;
/// The maximum width of a name.
const LONGEST_NAME: f64 = 280.0;

/// Draws the names from `top` downwards in as many columns as fit. Returns the drawing and its
/// lower end.
pub fn legend(strategies: &[StrategyResult], left: f64, top: f64) -> (String, f64) {
    let names: Vec<String> =
        strategies.iter().map(|strategy| shorten(&strategy.name, LONGEST_NAME)).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let column = SAMPLE_LENGTH + AFTER_SAMPLE + CHARACTER_WIDTH * longest as f64 + GAP;
    let columns = (((WIDTH - left + GAP) / column) as usize).max(1);
    let mut out = String::new();
    for (at, (name, strategy)) in names.iter().zip(strategies).enumerate() {
        let (x, y) = (left + column * (at % columns) as f64, top + ROW * ((at / columns) as f64 + 0.5));
        let _ = writeln!(
            out,
            "<g class=\"{}\"><path class=\"line\" d=\"M{x:.1} {y:.1}h{SAMPLE_LENGTH}\"><title>{}</title></path></g>",
            colours::line(at),
            escape(&strategy.name)
        );
        out += &text::line("label", "start", (x + SAMPLE_LENGTH + AFTER_SAMPLE, y + 4.0), name);
    }
    (out, top + ROW * strategies.len().div_ceil(columns) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_go_below() {
        let strategy = |name: String| StrategyResult { name, ..StrategyResult::default() };
        let many: Vec<StrategyResult> =
            (0..12).map(|at| strategy(format!("a strategy with number {at}"))).collect();
        assert_eq!(legend(&many[..1], 60.0, 100.0).1, 120.0);
        assert_eq!(legend(&many, 60.0, 100.0).1, 100.0 + 4.0 * ROW);
        assert_eq!(legend(&[], 60.0, 100.0), (String::new(), 100.0));
    }
}
