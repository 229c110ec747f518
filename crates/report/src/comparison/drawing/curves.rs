//! Draws the quality of the best candidate so far over trials and over time: for each strategy, a
//! line for the median of its searches and a band around it. With more than five searches, the band
//! contains the middle half of them, otherwise all.
//!
//! Both horizontal axes are logarithmic, because strategies differ most at the start. After its
//! end, a search keeps its last quality.

use std::fmt::Write;

use super::colours;
use super::legend::legend;
use super::spread;
use super::steps::{HorizontalAxis, Step, steps};
use super::text::{self, tick};
use super::{GOAL, WIDTH};
use crate::page::html::escape;
use crate::page::scale::Scale;
use tilewright_tuner::compare::{ProgramResult, SearchResult};

/// The area of the curves, and the top of the legend.
const LEFT: f64 = 60.0;
const RIGHT: f64 = WIDTH - 48.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 366.0;
const LEGEND: f64 = BOTTOM + 48.0;
/// The number of bands that can overlap at full opacity.
const FULL_OPACITY_BANDS: f64 = 6.0;
/// Draws the best so far by the number of trials. The default schedule is measured before the first
/// trial.
pub fn by_trials(program: &ProgramResult) -> String {
    let last = searches(program).map(|search| search.trials).max().unwrap_or(0);
    draw(
        program,
        &HorizontalAxis { name: "trials", position: |best| best.trial as f64, first: 1.0, last: last as f64 },
    )
}

/// Draws the best so far by seconds. The axis starts when every search has found a candidate, so
/// that little of the drawing is empty. It starts at a tenth of the whole time at the latest, so
/// that one late search does not hide the others.
pub fn by_seconds(program: &ProgramResult) -> String {
    let last = searches(program).map(|search| search.seconds).fold(0.0, f64::max);
    let firsts = searches(program).filter_map(|search| search.bests.first());
    let first = firsts.map(|best| best.after).fold(last / 1e3, f64::max).min(last / 10.0);
    draw(program, &HorizontalAxis { name: "seconds of search", position: |best| best.after, first, last })
}

fn searches(program: &ProgramResult) -> impl Iterator<Item = &SearchResult> {
    program.strategies.iter().flat_map(|strategy| &strategy.searches)
}

fn draw(program: &ProgramResult, across: &HorizontalAxis) -> String {
    let curves: Vec<Vec<Step>> =
        program.strategies.iter().map(|strategy| steps(program, strategy, across)).collect();
    let x = Scale::logarithmic(across.first, across.last, LEFT, RIGHT);
    let y =
        spread::quality_scale(curves.iter().flatten().flat_map(|step| [step.low, step.high]), BOTTOM, TOP);
    let (names, bottom) = legend(&program.strategies, LEFT, LEGEND);
    let shows = format!(": best so far, in % of the best known, by {}", across.name);
    let mut out = text::open_drawing(bottom, LEFT, &program.name, &shows) + &axes(across.name, &x, &y);
    // Lines are drawn above all bands. Many bands are drawn fainter, so that they do not hide each
    // other.
    let _ = writeln!(out, "<g opacity=\"{:.2}\">", (FULL_OPACITY_BANDS / curves.len() as f64).min(1.0));
    for (at, steps) in curves.iter().enumerate() {
        out += &band(steps, &colours::colour(at), &x, &y);
    }
    out += "</g>\n";
    for ((at, strategy), steps) in program.strategies.iter().enumerate().zip(&curves) {
        out += &line(&strategy.name, steps, &colours::line(at), &x, &y);
    }
    out + &names + "</svg>"
}

/// Draws the axes with their numbers, and the goal line.
fn axes(name: &str, x: &Scale, y: &Scale) -> String {
    let mut out = String::new();
    for value in y.ticks() {
        let at = y.coordinate(value);
        let _ = writeln!(out, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>");
        out += &text::line("up", "end", (LEFT - 8.0, at + 4.0), &format!("{value:.0} %"));
    }
    for value in x.ticks() {
        let at = x.coordinate(value);
        let _ = writeln!(out, "<path class=\"grid\" d=\"M{at:.1} {TOP}V{BOTTOM}\"/>");
        out += &text::line("across", "middle", (at, BOTTOM + 18.0), &tick(value));
    }
    let goal = y.coordinate(GOAL);
    let _ = writeln!(out, "<path class=\"goal\" d=\"M{LEFT} {goal:.1}H{RIGHT}\"/>");
    out += &text::line("up", "start", (RIGHT + 8.0, goal + 4.0), &format!("{GOAL} %"));
    out + &text::line("across", "middle", ((LEFT + RIGHT) / 2.0, BOTTOM + 37.0), name)
}

/// The SVG path of a step function up to the right end.
fn path(steps: &[Step], height: fn(&Step) -> f64, x: &Scale, y: &Scale) -> String {
    let mut path = String::new();
    for step in steps {
        let (x, y) = (x.coordinate(step.from), y.coordinate(height(step)));
        let _ = match path.is_empty() {
            true => write!(path, "M{x:.1} {y:.1}"),
            false => write!(path, "H{x:.1}V{y:.1}"),
        };
    }
    format!("{path}H{RIGHT}")
}

fn line(name: &str, steps: &[Step], class: &str, x: &Scale, y: &Scale) -> String {
    let Some(last) = steps.last() else { return String::new() };
    format!(
        "<g class=\"{class}\"><path class=\"line\" d=\"{}\"><title>{}: {:.1} % at the end</title></path></g>\n",
        path(steps, |step| step.median, x, y),
        escape(name),
        last.median
    )
}

/// Draws the band: along its upper side to the right end, and back along its lower side.
fn band(steps: &[Step], class: &str, x: &Scale, y: &Scale) -> String {
    if steps.iter().all(|step| step.low == step.high) {
        return String::new();
    }
    let mut path = path(steps, |step| step.high, x, y);
    for step in steps.iter().rev() {
        let _ = write!(path, "V{:.1}H{:.1}", y.coordinate(step.low), x.coordinate(step.from));
    }
    format!("<g class=\"{class}\"><path class=\"band\" d=\"{path}Z\"/></g>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::examples::{degenerate_programs, search};
    use tilewright_tuner::compare::StrategyResult;

    /// Returns the numbers of a path, each with the letter before it.
    fn places(path: &str) -> Vec<(char, f64)> {
        let spaced =
            path.trim_end_matches('Z').replace(' ', "V").replace(['M', 'H'], " H").replace('V', " V");
        spaced
            .split_whitespace()
            .map(|part| (part.chars().next().unwrap(), part[1..].parse().unwrap()))
            .collect()
    }

    #[test]
    fn curves_keep_within_their_axes() {
        for program in degenerate_programs() {
            for svg in [by_trials(&program), by_seconds(&program)] {
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                let paths = svg.split(" d=\"").skip(1).filter_map(|rest| rest.split('"').next());
                for (letter, at) in paths.filter(|path| !path.contains('h')).flat_map(places) {
                    let ends = if letter == 'V' { TOP..=BOTTOM } else { LEFT..=RIGHT };
                    assert!(ends.contains(&at), "{letter}{at} in {svg}");
                }
            }
        }
    }

    #[test]
    fn lines_and_bands_are_steps_to_the_right_end() {
        let step = |from, low, median, high| Step { from, low, median, high };
        let steps = [step(1.0, 0.0, 20.0, 40.0), step(10.0, 50.0, 60.0, 100.0)];
        let (x, y) = (Scale::logarithmic(1.0, 100.0, LEFT, RIGHT), Scale::between(0.0, 100.0, BOTTOM, TOP));
        assert_eq!(path(&steps, |step| step.median, &x, &y), "M60.0 300.0H436.0V168.0H812");
        let around = "M60.0 234.0H436.0V36.0H812V201.0H436.0V366.0H60.0Z";
        assert!(band(&steps, "s0", &x, &y).contains(around));
    }

    #[test]
    fn names_are_no_markup() {
        let strategies =
            vec![StrategyResult { name: "<s>".to_owned(), searches: vec![search(&[(0, 2.0)], 1)] }];
        let program =
            ProgramResult { name: "<p>".to_owned(), best_known: 1.0, strategies, ..ProgramResult::default() };
        let svg = by_trials(&program) + &by_seconds(&program);
        assert!(!svg.contains("<s>") && !svg.contains("<p>") && svg.contains("&lt;s&gt;"), "{svg}");
    }
}
