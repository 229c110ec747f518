//! `tilewright show --stage schedule --explain`: formats where each statement of a program is
//! computed, its time, and why it is computed there.

use tilewright::explain::{ComputedStatement, Explanation, StageExplanation};
use tilewright::ir::{LoopNest, Program};
use tilewright::report::explanation::{LEGEND, reason, storage};
use tilewright::report::time::seconds;
use tilewright::target::Target;

use crate::failure::Failure;
use crate::schedule::ScheduleSource;

/// The number of spaces between two columns.
const GAP: usize = 2;

/// Explains a schedule in lines, one for each statement.
pub fn explained(
    program: &Program,
    schedule: &ScheduleSource,
    target: Target<'_>,
) -> Result<String, Failure> {
    let nest = schedule.lower(program, target)?;
    let explanation = schedule.explain(program, &nest, target)?;
    Ok(format!(
        "schedule  {}\nexpected  {}\n\n{}\n{}\n",
        schedule.describe_explained(&explanation),
        seconds(explanation.seconds),
        table(&rows(&explanation, &nest)),
        LEGEND
    ))
}

/// The head of the table, and a row for each statement.
fn rows(explanation: &Explanation, nest: &LoopNest) -> Vec<[String; 5]> {
    let head =
        ["statement", "computed", "stored", "time", "why: the program's time with the stage elsewhere"]
            .map(str::to_owned);
    let of_stage = |stage: &StageExplanation| -> Vec<[String; 5]> {
        stage.statements.iter().enumerate().map(|(at, own)| row(explanation, stage, own, at, nest)).collect()
    };
    std::iter::once(head).chain(explanation.stages.iter().flat_map(of_stage)).collect()
}

fn row(
    explanation: &Explanation,
    stage: &StageExplanation,
    own: &ComputedStatement,
    at: usize,
    nest: &LoopNest,
) -> [String; 5] {
    let time = match own.seconds {
        Some(time) => format!("{} {:3.0} %", seconds(time), 100.0 * time / explanation.seconds),
        None => "-".to_owned(),
    };
    let why = match at {
        0 => reason(stage, explanation.seconds),
        _ => format!("as {}", stage.tensor),
    };
    [own.name.clone(), own.place.to_string(), storage(own, nest), time, why]
}

/// Aligns columns. The last one may be long, and is not padded.
fn table(rows: &[[String; 5]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    let line = |row: &[String; 5]| {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<0$}", width + GAP));
        format!("{}{}", padded.collect::<String>(), row[4]).trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
