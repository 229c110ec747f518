//! Draws one row per strategy as SVG: the final quality of its searches, or its time per
//! proposal.

use std::fmt::Write;

use super::colours::colour;
use super::spread::{self, Spread};
use super::text::{self, number, shorten, tick};
use super::{GOAL, WIDTH};
use crate::page::scale::Scale;
use tilewright_tuner::compare::{ProgramResult, SearchResult, StrategyResult};

/// The area of the rows. Names are on its left and numbers on its right.
const MARGIN: f64 = 8.0;
const LEFT: f64 = 228.0;
const RIGHT: f64 = WIDTH - 98.0;
const TOP: f64 = 54.0;
const ROW: f64 = 34.0;
/// The height of the axis labels.
const AXIS_HEIGHT: f64 = 26.0;
/// Half the height of a box or bar.
const HALF_HEIGHT: f64 = 9.0;
/// The vertical distance between the dots of searches that ended alike.
const DOT_DISTANCE: f64 = 3.0;

/// Draws a box plot of the final quality of each strategy, with whiskers from the lowest to the
/// highest search, a box around the middle half, and a dot per seed. A strategy that never found a
/// kernel has no box, because its zero would squeeze the other boxes.
pub fn final_quality(program: &ProgramResult) -> String {
    let of = |strategy: &StrategyResult| {
        strategy.searches.iter().map(|search| spread::last_quality(program, search)).collect()
    };
    let rows: Vec<Vec<f64>> = program.strategies.iter().map(of).collect();
    let drawn = rows.iter().filter(|values| has_box(values));
    let x = spread::quality_scale(drawn.flatten().copied(), LEFT, RIGHT);
    let bottom = TOP + ROW * rows.len() as f64;
    let shows = ": final quality, in % of the best known";
    let mut out = text::open_drawing(bottom + AXIS_HEIGHT, MARGIN, &program.name, shows);
    out += &axis(&x, bottom, |value| format!("{value:.0} %"));
    let goal = x.coordinate(GOAL);
    let _ = writeln!(out, "<path class=\"goal\" d=\"M{goal:.1} {TOP}V{bottom}\"/>");
    out += &text::line("across", "middle", (goal, TOP - 6.0), &format!("{GOAL} %"));
    for ((at, strategy), values) in program.strategies.iter().enumerate().zip(rows) {
        let y = row_centre(at);
        let told = Spread::of(values.clone()).map(|spread| format!("{:.1} %", spread.median));
        out += &labels(&strategy.name, y, told.as_deref().unwrap_or("no search"));
        if has_box(&values) {
            let marks = marks(&values, &strategy.searches, &x, y);
            let _ = writeln!(out, "<g class=\"{}\">\n{marks}</g>", colour(at));
        } else if !values.is_empty() {
            out += &text::line("up", "start", (LEFT + 8.0, y + 4.0), "no kernel found");
        }
    }
    out + "</svg>"
}

fn has_box(values: &[f64]) -> bool {
    values.iter().any(|value| *value > 0.0)
}

/// The vertical centre of a row.
fn row_centre(row: usize) -> f64 {
    TOP + ROW * (row as f64 + 0.5)
}

/// Draws a box with its whiskers and dots.
fn marks(values: &[f64], searches: &[SearchResult], x: &Scale, y: f64) -> String {
    let Some(spread) = Spread::of(values.to_vec()) else { return String::new() };
    let Spread { lowest, lower, median, upper, highest } = spread;
    let [lowest, lower, median, upper, highest] =
        [lowest, lower, median, upper, highest].map(|at| x.coordinate(at));
    let (top, bottom) = (y - HALF_HEIGHT, y + HALF_HEIGHT);
    let mut out =
        format!("<path class=\"whisker\" d=\"M{lowest:.1} {y}H{lower:.1}M{upper:.1} {y}H{highest:.1}\"/>\n");
    let _ = writeln!(out, "<path class=\"box\" d=\"M{lower:.1} {top}H{upper:.1}V{bottom}H{lower:.1}Z\"/>");
    let _ = writeln!(out, "<path class=\"median\" d=\"M{median:.1} {top}V{bottom}\"/>");
    for (at, (value, search)) in values.iter().zip(searches).enumerate() {
        let y = y + DOT_DISTANCE * ((at % 5) as f64 - 2.0);
        let _ = writeln!(
            out,
            "<circle class=\"seed\" cx=\"{:.1}\" cy=\"{y}\" r=\"2.6\"><title>seed {}: {value:.1} %</title></circle>",
            x.coordinate(*value),
            search.seed
        );
    }
    out
}

/// Draws bars for the time per proposal of each strategy in milliseconds: the median over the
/// searches of all programs.
pub fn overhead(programs: &[ProgramResult]) -> String {
    let rows: Vec<(&str, Option<f64>)> =
        names(programs).into_iter().map(|name| (name, median_proposal_time(programs, name))).collect();
    let x = decade_scale(rows.iter().filter_map(|(_, time)| *time));
    let bottom = TOP + ROW * rows.len() as f64;
    let mut out =
        text::open_drawing(bottom + AXIS_HEIGHT, MARGIN, "", "Strategy time per proposal, in milliseconds");
    out += &axis(&x, bottom, tick);
    for (at, (name, time)) in rows.into_iter().enumerate() {
        let told = time.map(|time| format!("{} ms", number(time)));
        out += &labels(name, row_centre(at), told.as_deref().unwrap_or("no proposal"));
        let Some(time) = time else { continue };
        let _ = writeln!(
            out,
            "<g class=\"{}\"><rect class=\"length\" x=\"{LEFT}\" y=\"{}\" width=\"{:.1}\" height=\"{}\"/></g>",
            colour(at),
            row_centre(at) - HALF_HEIGHT,
            (x.coordinate(time) - LEFT).max(2.0),
            2.0 * HALF_HEIGHT
        );
    }
    out + "</svg>"
}

/// Returns a logarithmic axis whose ends are powers of ten, so that all bars start at a round
/// number.
fn decade_scale(times: impl Iterator<Item = f64> + Clone) -> Scale {
    let positive = times.filter(|time| *time > 0.0);
    let lowest = positive.clone().fold(f64::INFINITY, f64::min);
    let highest = positive.fold(0.0, f64::max);
    Scale::logarithmic(10f64.powf(lowest.log10().floor()), 10f64.powf(highest.log10().ceil()), LEFT, RIGHT)
}

/// Returns all strategies, in the order of their first appearance.
fn names(programs: &[ProgramResult]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for strategy in programs.iter().flat_map(|program| &program.strategies) {
        if !names.contains(&strategy.name.as_str()) {
            names.push(&strategy.name);
        }
    }
    names
}

/// The median time per proposal in milliseconds, or `None` where nothing was proposed.
fn median_proposal_time(programs: &[ProgramResult], name: &str) -> Option<f64> {
    let strategies = programs.iter().flat_map(|program| &program.strategies);
    let searches =
        strategies.filter(|strategy| strategy.name == name).flat_map(|strategy| &strategy.searches);
    let proposing = searches.filter(|search| search.proposals > 0);
    let times = proposing.map(|search| 1e3 * search.strategy_seconds / search.proposals as f64);
    Spread::of(times.filter(|time| time.is_finite()).collect()).map(|spread| spread.median)
}

/// Draws the numbers below the rows, and vertical grid lines.
fn axis(x: &Scale, bottom: f64, told: fn(f64) -> String) -> String {
    let mut out = String::new();
    for value in x.ticks() {
        let at = x.coordinate(value);
        let _ = writeln!(out, "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/>");
        out += &text::line("across", "middle", (at, bottom + 18.0), &told(value));
    }
    out
}

/// Draws the name to the left of a row and its number to the right.
fn labels(name: &str, y: f64, number: &str) -> String {
    let name = shorten(name, LEFT - 12.0 - MARGIN);
    text::line("label", "end", (LEFT - 12.0, y + 4.0), &name)
        + &text::line("label", "start", (RIGHT + 12.0, y + 4.0), number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::examples::{degenerate_programs, example_comparison};

    #[test]
    fn odd_data_is_drawn() {
        for program in degenerate_programs() {
            let svg = final_quality(&program) + &overhead(std::slice::from_ref(&program));
            assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<i>"), "{svg}");
        }
        assert!(overhead(&[]).contains("</svg>"));
    }

    #[test]
    fn overhead_is_of_all_programs() {
        let programs = example_comparison().programs;
        assert_eq!(names(&programs).len(), programs[0].strategies.len());
        let search =
            |thinking| SearchResult { proposals: 10, strategy_seconds: thinking, ..SearchResult::default() };
        let strategy = |searches| vec![StrategyResult { name: "a".to_owned(), searches }];
        let program = |searches| ProgramResult { strategies: strategy(searches), ..ProgramResult::default() };
        let programs =
            [program(vec![search(0.01), search(0.05)]), program(vec![search(0.02), SearchResult::default()])];
        assert!(median_proposal_time(&programs, "a").is_some_and(|time| (time - 2.0).abs() < 1e-9));
        assert_eq!(median_proposal_time(&programs, "b"), None);
    }
}
