//! Formats how cost models were judged as a page: the table, and predicted against measured times.

use std::fmt::Write;

use tilewright_train::judge::{Judgement, ModelKind};

use crate::page::html::{escape, section, verbatim};
use crate::page::{STYLE, text};
use crate::time::seconds;

/// The side of a drawing, and the margin for its labels.
const SIDE: f64 = 420.0;
const MARGIN: f64 = 46.0;

/// The page about judged models of a kind of machines. `table` is the table of their means.
pub fn page(family: &str, table: &str, judgements: &[Judgement]) -> String {
    let title = format!("Cost models for {family}");
    let drawings: String = ModelKind::ALL.iter().map(|model| drawing(*model, judgements)).collect();
    let explanation = "<p>Each point is a schedule of a program of a kind that the model has not seen: its measured \
         time to the right, its predicted time upwards, both as logarithms. Points on the line are predicted as \
         measured.</p>\n";
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<h1>{0}</h1>\n{1}{2}</body>\n</html>\n",
        escape(&title),
        section("Programs of kinds that the models have not seen", &verbatim(table)),
        section("Predicted against measured times", &format!("{explanation}{drawings}")),
    )
}

/// Predicted against measured times of one model.
fn drawing(model: ModelKind, judgements: &[Judgement]) -> String {
    let own = judgements.iter().filter(|own| own.model == model);
    let times: Vec<(f64, f64)> = own.flat_map(|own| own.times.iter().copied()).collect();
    if times.is_empty() {
        return String::new();
    }
    let all = || times.iter().flat_map(|(predicted, measured)| [*predicted, *measured]);
    let least = all().fold(f64::INFINITY, f64::min).max(1e-9).log10().floor();
    let most = all().fold(1e-9, f64::max).log10().ceil().max(least + 1.0);
    let place = |time: f64| (time.max(1e-9).log10() - least) / (most - least) * (SIDE - MARGIN);
    let (right, up) = (|time: f64| MARGIN + place(time), |time: f64| SIDE - MARGIN - place(time));
    let mut svg =
        format!("<h3>{}</h3>\n<svg viewBox=\"0 0 {SIDE} {SIDE}\" width=\"{SIDE}\">\n", model.name());
    let (low, high) = (10f64.powf(least), 10f64.powf(most));
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"currentColor\" opacity=\"0.5\"/>",
        right(low),
        up(low),
        right(high),
        up(high)
    );
    for (predicted, measured) in &times {
        let (x, y) = (right(*measured), up(*predicted));
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.5\" fill=\"currentColor\" opacity=\"0.5\"/>"
        );
    }
    for power in least as i32..=most as i32 {
        let time = 10f64.powi(power);
        svg.push_str(&text::line("label", "middle", (right(time), SIDE - MARGIN + 18.0), &seconds(time)));
        svg.push_str(&text::line("label", "end", (MARGIN - 4.0, up(time) + 4.0), &seconds(time)));
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schedule_is_a_point() {
        let judgement = Judgement {
            model: ModelKind::Trees,
            kind: "scans".to_owned(),
            program: "scans_1_3".to_owned(),
            correlation: 1.0,
            chosen: 1.0,
            times: vec![(1e-3, 2e-3), (5e-4, 1e-3)],
        };
        let page = page("a<b", "table", &[judgement]);
        assert_eq!(page.matches("<circle").count(), 2);
        assert!(page.contains("Cost models for a&lt;b") && !page.contains("NaN"));
    }
}
