//! Formats the table of stages: where each statement is computed and stored, its time, and the
//! other places of its stage.

use std::fmt::Write;

use tilewright_search::explain::{Alternative, ComputedStatement, Decision, StageExplanation};

use super::times::{share, statements_in};
use super::{ProgramPage, times};
use crate::explanation::{difference, reason, refusal, storage};
use crate::page::html::escape;
use crate::time::seconds;

/// Formats the table, below a paragraph that explains it.
pub fn table(page: &ProgramPage) -> String {
    let rows: String = page.explanation.stages.iter().map(|stage| stage_rows(page, stage)).collect();
    format!(
        "<p class=\"faint\">The time of a statement that shares its loops with others is its part of their \
         predicted time. The last column compares the place of each stage with other places: how the predicted time \
         of the whole program changes if the stage is computed there and the rest of the schedule stays. Open it for all of them.</p>\n<div class=\"wide\">\n<table class=\"stages\">\n<thead>\n\
         <tr><th scope=\"col\">statement</th><th scope=\"col\">computed</th><th scope=\"col\">stored</th>\
         <th scope=\"col\">time</th><th scope=\"col\">other places</th></tr>\n</thead>\n<tbody>\n{rows}</tbody>\n\
         </table>\n</div>"
    )
}

fn stage_rows(page: &ProgramPage, stage: &StageExplanation) -> String {
    let row = |(at, own): (usize, &ComputedStatement)| {
        let why = if at == 0 { others(page, stage) } else { escape(&format!("as {}", stage.tensor)) };
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{why}</td></tr>\n",
            escape(&own.name),
            escape(&own.place.to_string()),
            escape(&storage(own, page.nest)),
            time(page, own)
        )
    };
    stage.statements.iter().enumerate().map(row).collect()
}

/// The predicted time of a statement, and the measured time of a nest that has no other statement.
fn time(page: &ProgramPage, own: &ComputedStatement) -> String {
    let Some(predicted) = own.seconds else { return "in its readers".to_owned() };
    let mut out = share(predicted, page.explanation.seconds);
    let alone = page.nest.roots().into_iter().position(|root| {
        let inside = statements_in(root);
        inside.len() == 1 && inside.contains(&own.statement)
    });
    let measured =
        page.measured.as_ref().zip(alone).and_then(|(own, at)| Some((own.roots.get(at)?, own.whole)));
    if let Some((own, whole)) = measured {
        let _ = write!(out, "<br/>measured {}", times::measured_share(*own, whole));
    }
    out
}

/// The other places of a stage: a line, and all of them behind it.
fn others(page: &ProgramPage, stage: &StageExplanation) -> String {
    let whole = page.explanation.seconds;
    let line = unbroken(&reason(stage, whole));
    let Decision::Compared { alternatives, refused } = &stage.decision else { return line };
    if alternatives.is_empty() {
        return line;
    }
    let rows: String = alternatives.iter().map(|own| alternative_row(own, whole)).collect();
    let refused: String = refused
        .iter()
        .map(|own| {
            format!(
                "<tr><td>{}</td><td colspan=\"2\">{}</td></tr>\n",
                escape(&own.place.to_string()),
                escape(&refusal(own))
            )
        })
        .collect();
    format!("<details>\n<summary>{line}</summary>\n<table>\n{rows}{refused}</table>\n</details>")
}

/// Escapes a text, and keeps percentages on one line.
fn unbroken(text: &str) -> String {
    escape(text).replace(" %", "&#160;%")
}

fn alternative_row(own: &Alternative, whole: f64) -> String {
    format!(
        "<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape(&own.to_string()),
        seconds(own.seconds),
        unbroken(&difference(own, whole))
    )
}
