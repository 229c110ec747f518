//! Draws the predicted and the measured time of each nest as horizontal bars.

use std::collections::BTreeSet;
use std::fmt::Write;

use tilewright_ir::nest::Stmt;
use tilewright_ir::walk;

use super::ProgramPage;
use crate::page::html::escape;
use crate::page::scale::Scale;
use crate::page::text::{line, shorten};
use crate::time::seconds;

const WIDTH: f64 = 1000.0;
const LABEL_WIDTH: f64 = 330.0;
const NUMBER_WIDTH: f64 = 150.0;
/// The height of a bar, and the space between two nests.
const BAR: f64 = 13.0;
const GAP: f64 = 10.0;
/// The most characters of a label.
const MOST_CHARACTERS: usize = 44;

/// Draws the chart, below a sentence about its numbers.
pub fn chart(page: &ProgramPage) -> String {
    let measured = page.measured.as_ref().map(|own| own.roots.as_slice());
    let about = match measured {
        None => "Predicted by the cost model; <code>tilewright bench --report</code> also measures.",
        Some(_) => {
            "Predicted by the cost model (upper bars), and measured (lower bars). The measured time of a \
                    nest is how much longer a call takes that also runs this nest."
        }
    };
    let bars = if measured.is_some() { 2.0 } else { 1.0 };
    let row = bars * BAR + GAP;
    let roots = page.nest.roots();
    let times = page.explanation.roots.iter().chain(measured.into_iter().flatten());
    let longest = times.copied().fold(0.0, f64::max);
    let across = Scale::from_zero(longest, 0.0, WIDTH - LABEL_WIDTH - NUMBER_WIDTH);
    let mut out = format!(
        "<p class=\"faint\">{about}</p>\n<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
         aria-label=\"Time of each loop nest\">\n",
        row * roots.len() as f64
    );
    for (at, root) in roots.into_iter().enumerate() {
        let y = row * at as f64;
        let label = format!("{}: {}", at + 1, stage_names(page, root).join(", "));
        let middle = y + bars * BAR / 2.0 + 4.0;
        let _ = writeln!(
            out,
            "<g><title>{}</title>{}</g>",
            escape(&label),
            line("label", "end", (LABEL_WIDTH - 10.0, middle), &shorten(&label, MOST_CHARACTERS))
        );
        let predicted = page.explanation.roots.get(at).copied().unwrap_or(0.0);
        let text = share(predicted, page.explanation.seconds);
        bar(&mut out, "predicted", y, (predicted, &text), &across);
        if let Some(own) = measured.and_then(|own| own.get(at)) {
            let whole = page.measured.as_ref().map_or(0.0, |own| own.whole);
            bar(&mut out, "measured", y + BAR, (*own, &measured_share(*own, whole)), &across);
        }
    }
    out + "</svg>"
}

fn bar(out: &mut String, kind: &str, y: f64, (time, text): (f64, &str), across: &Scale) {
    let length = across.coordinate(time).max(1.0);
    let _ = write!(
        out,
        "<rect class=\"{kind}\" x=\"{LABEL_WIDTH}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{:.1}\">\
         <title>{kind}: {text}</title></rect>\n{}",
        BAR - 2.0,
        line("number", "start", (LABEL_WIDTH + length + 8.0, y + BAR - 3.0), text)
    );
}

/// Formats a measured time. The difference of two times can be within their noise.
pub fn measured_share(time: f64, whole: f64) -> String {
    if time > 0.0 { share(time, whole) } else { "within the noise".to_owned() }
}

/// Formats a time, with its part of the whole: `2.292 ms, 34 %`.
pub fn share(time: f64, whole: f64) -> String {
    let percent = if whole > 0.0 { 100.0 * time / whole } else { 0.0 };
    format!("{}, {percent:.0} %", seconds(time))
}

/// The times of a root in a line.
pub fn of_root(page: &ProgramPage, at: usize) -> String {
    let predicted = page.explanation.roots.get(at).copied().unwrap_or(0.0);
    let measured = page.measured.as_ref().and_then(|own| Some((own.roots.get(at)?, own.whole)));
    let measured =
        measured.map_or(String::new(), |(own, whole)| format!("; measured {}", measured_share(*own, whole)));
    format!("predicted {}{measured}", share(predicted, page.explanation.seconds))
}

/// The names of the statements of the program that are computed in a root, in their order.
pub fn stage_names(page: &ProgramPage, root: &Stmt) -> Vec<String> {
    statements_in(root).into_iter().map(|statement| page.statement_name(statement)).collect()
}

/// The statements of the program that are computed in a root.
pub fn statements_in(root: &Stmt) -> BTreeSet<usize> {
    let mut inside = BTreeSet::new();
    walk::visit(std::slice::from_ref(root), &mut |stmt| {
        let claim = stmt.store().and_then(|store| store.claim.as_ref());
        inside.extend(claim.map(|claim| claim.statement));
    });
    inside
}
