//! Draws the course of a search as SVG: every trial as a point, and the best so far as a line.

use std::fmt::Write;

use crate::page::html::escape;
use crate::page::scale::Scale;
use crate::time::seconds;
use tilewright_tuner::search::HistoryEntry;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 340.0;
/// The area of the points, and the height above it where failed trials are drawn as crosses.
const LEFT: f64 = 78.0;
const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT - 36.0;
const FAILED_HEIGHT: f64 = 12.0;

/// Draws the search curve.
pub fn curve(trials: &[HistoryEntry]) -> String {
    let times: Vec<f64> = trials.iter().filter_map(|tried| tried.seconds).collect();
    let across = Scale::from_zero(trials.len().saturating_sub(1) as f64, LEFT, RIGHT);
    let up = Scale::around(&times, BOTTOM, TOP);
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"The time of every trial\">\n{}{}{}</svg>",
        axes(&across, &up),
        points(trials, &across, &up),
        best_so_far(trials, &across, &up)
    )
}

fn axes(across: &Scale, up: &Scale) -> String {
    let mut out = String::new();
    for value in up.ticks() {
        let (y, label) = (up.coordinate(value), seconds(value));
        let _ =
            writeln!(out, "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
        let _ = writeln!(
            out,
            "<text class=\"up\" text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{label}</text>",
            LEFT - 8.0,
            y + 4.0
        );
    }
    for value in across.ticks().into_iter().filter(|value| value.fract() == 0.0) {
        let _ = writeln!(
            out,
            "<text class=\"across\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{}\">{value}</text>",
            across.coordinate(value),
            BOTTOM + 18.0
        );
    }
    let _ = writeln!(
        out,
        "<text class=\"across\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">trial</text>",
        (LEFT + RIGHT) / 2.0,
        HEIGHT - 4.0
    );
    out
}

fn points(trials: &[HistoryEntry], across: &Scale, up: &Scale) -> String {
    let mut out = String::new();
    for (at, tried) in trials.iter().enumerate() {
        let x = across.coordinate(at as f64);
        let name = if at == 0 { "the default schedule".to_owned() } else { format!("trial {at}") };
        let told = match tried.seconds {
            Some(time) => seconds(time),
            None => tried.outcome.clone(),
        };
        let title = escape(&format!("{name}, after {:.1} s: {told}", tried.after));
        let _ = match tried.seconds {
            Some(time) => writeln!(
                out,
                "<circle class=\"trial\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"2.6\"><title>{title}</title></circle>",
                up.coordinate(time)
            ),
            None => writeln!(
                out,
                "<path class=\"failed\" d=\"M{:.1} {FAILED_HEIGHT}l5 5m0 -5l-5 5\"><title>{title}</title></path>",
                x - 2.5
            ),
        };
    }
    out
}

fn best_so_far(trials: &[HistoryEntry], across: &Scale, up: &Scale) -> String {
    let mut path = String::new();
    let mut best = f64::INFINITY;
    for (at, tried) in trials.iter().enumerate() {
        let Some(time) = tried.seconds.filter(|time| *time < best) else { continue };
        let (x, y) = (across.coordinate(at as f64), up.coordinate(time));
        let _ = match path.is_empty() {
            true => write!(path, "M{x:.1} {y:.1}"),
            false => write!(path, "H{x:.1}V{y:.1}"),
        };
        best = time;
    }
    if path.is_empty() {
        return path;
    }
    format!(
        "<path class=\"best\" fill=\"none\" d=\"{path}H{RIGHT}\"><title>best so far: {}</title></path>\n",
        seconds(best)
    )
}
