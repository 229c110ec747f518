//! Draws the bar charts of the tuning report as SVG: labelled horizontal bars, and a histogram
//! of times.

use std::fmt::Write;

use crate::page::html::escape;
use crate::page::scale::Scale;
use crate::time::seconds;

const WIDTH: f64 = 860.0;
/// The height of a horizontal bar, with the gap to the next one.
const ROW: f64 = 24.0;
const LABEL_WIDTH: f64 = 250.0;
const NUMBER_WIDTH: f64 = 130.0;
/// The size of the histogram, and its number of bars.
const HEIGHT: f64 = 200.0;
const BOTTOM: f64 = HEIGHT - 28.0;
const BINS: usize = 40;

/// A bar of a horizontal chart.
pub struct Bar {
    /// The label of the bar.
    pub label: String,
    /// The length of the bar.
    pub value: f64,
    /// The value as text.
    pub text: String,
}

/// Draws horizontal bars, one below the other.
pub fn horizontal_bars(name: &str, bars: &[Bar]) -> String {
    let longest = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let across = Scale::from_zero(longest, 0.0, WIDTH - LABEL_WIDTH - NUMBER_WIDTH);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{}\">\n",
        ROW * bars.len() as f64,
        escape(name)
    );
    for (at, bar) in bars.iter().enumerate() {
        let (y, length) = (ROW * at as f64, across.coordinate(bar.value).max(1.0));
        let (label, text) = (escape(&bar.label), escape(&bar.text));
        let _ = writeln!(
            out,
            "<text class=\"label\" text-anchor=\"end\" x=\"{}\" y=\"{}\">{label}</text>",
            LABEL_WIDTH - 10.0,
            y + 16.0
        );
        let _ = writeln!(
            out,
            "<rect class=\"bar\" x=\"{LABEL_WIDTH}\" y=\"{}\" width=\"{length:.1}\" height=\"{}\"><title>{label}: {text}</title></rect>",
            y + 3.0,
            ROW - 6.0
        );
        let _ =
            writeln!(out, "<text x=\"{:.1}\" y=\"{}\">{text}</text>", LABEL_WIDTH + length + 8.0, y + 16.0);
    }
    out + "</svg>"
}

/// Draws a histogram of times.
pub fn histogram(times: &[f64]) -> String {
    let across = Scale::around(times, 10.0, WIDTH - 10.0);
    let mut counts = [0usize; BINS];
    for time in times {
        counts[((across.fraction(*time) * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let up = Scale::from_zero(most as f64, 0.0, BOTTOM - 6.0);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Numbers of candidates by time\">\n"
    );
    let width = (WIDTH - 20.0) / BINS as f64;
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (tall, edge) =
            (up.coordinate(*count as f64), |at: usize| seconds(across.value(at as f64 / BINS as f64)));
        let _ = writeln!(
            out,
            "<rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\"><title>{count} from {} to {}</title></rect>",
            10.0 + width * at as f64,
            BOTTOM - tall,
            width - 2.0,
            edge(at),
            edge(at + 1)
        );
    }
    for value in across.ticks() {
        let (x, label) = (across.coordinate(value), seconds(value));
        let _ = writeln!(
            out,
            "<text class=\"across\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{}\">{label}</text>",
            BOTTOM + 18.0
        );
    }
    out + "</svg>"
}
