//! Formats the outcome of a comparison as text tables, as tables for the page, and as JSON.

use serde_json::json;
use tilewright_tuner::compare::{
    Comparison, EffortToGoal, Overall, ProgramResult, Summary, overall, summaries,
};

use crate::time::seconds;

/// Rows under headers. The first column holds names, the others numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The titles of the columns.
    pub headers: Vec<String>,
    /// The rows, with one cell per column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    fn new(headers: &[&str], rows: Vec<Vec<String>>) -> Table {
        Table { headers: headers.iter().map(|header| (*header).to_owned()).collect(), rows }
    }

    /// Formats the table as aligned text columns.
    fn text(&self) -> String {
        let lines = || std::iter::once(&self.headers).chain(&self.rows);
        let width =
            |at: usize| lines().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..self.headers.len()).map(|at| width(at).unwrap_or(0)).collect();
        let line = |cells: &Vec<String>| {
            let cells = cells.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        lines().map(line).collect()
    }
}

/// The table of a program, with one row per strategy.
pub fn program_table(compared: &ProgramResult) -> Table {
    let row = |own: &Summary| {
        vec![
            own.name.clone(),
            own.best.map_or("-".to_owned(), seconds),
            own.best.map_or("-".to_owned(), |_| seconds(own.mean)),
            own.best.map_or("-".to_owned(), |_| seconds(own.deviation)),
            trials_text(own.trials),
            time_text(own.seconds),
            format!("{}/{}", own.successes.0, own.successes.1),
            percent_text(own.visited_share),
            format!("{:.3} ms", own.seconds_per_proposal * 1e3),
        ]
    };
    // In a comparison that was stopped, some strategies have no searches.
    let rows = summaries(compared).iter().filter(|own| own.successes.1 > 0).map(row).collect();
    let headers = [
        "strategy",
        "best",
        "mean",
        "deviation",
        "trials to 95 %",
        "time to 95 %",
        "reached",
        "visited",
        "a proposal",
    ];
    Table::new(&headers, rows)
}

/// The table of all programs together.
pub fn overall_table(comparison: &Comparison) -> Table {
    let row = |own: &Overall| {
        vec![
            own.name.clone(),
            percent_text(own.quality),
            trials_text(own.trials),
            time_text(own.seconds),
            format!("{}/{}", own.successes.0, own.successes.1),
        ]
    };
    let rows = overall(comparison).iter().map(row).collect();
    Table::new(&["strategy", "of the best known", "trials to 95 %", "time to 95 %", "reached"], rows)
}

/// Formats the whole comparison as text.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    for compared in &comparison.programs {
        out += &format!(
            "{}\n{}\n\n{}\n",
            compared.name,
            space_summary(compared),
            program_table(compared).text()
        );
    }
    if comparison.programs.len() > 1 {
        let table = overall_table(comparison).text();
        out += &format!("all {} programs, geometric means\n\n{table}", comparison.programs.len());
    }
    out.trim_end().to_owned() + "\n"
}

/// Formats the size of the space, the best time and the default time in a line.
pub fn space_summary(compared: &ProgramResult) -> String {
    let best = if compared.is_optimum { "best of all" } else { "best known" };
    let default = compared.default.map_or(String::new(), |default| format!(", default {}", seconds(default)));
    format!("{} points, {best} {}{default}", points_text(compared.size), seconds(compared.best_known))
}

/// Formats the whole comparison as JSON: every search, and the summaries.
pub fn json(comparison: &Comparison) -> serde_json::Result<String> {
    let programs = comparison.programs.iter().map(|compared| {
        let own = summaries(compared).into_iter().map(|own| {
            json!({
                "strategy": own.name,
                "best_us": own.best.map(|best| best * 1e6),
                "mean_us": own.best.map(|_| own.mean * 1e6),
                "deviation_us": own.best.map(|_| own.deviation * 1e6),
                "reached": own.successes.0,
                "searches": own.successes.1,
                "trials_to_95": value_if_reached(own.trials),
                "seconds_to_95": value_if_reached(own.seconds),
                "visited": own.visited_share,
                "proposal_ms": own.seconds_per_proposal * 1e3,
            })
        });
        json!({ "name": compared.name, "summary": own.collect::<Vec<_>>() })
    });
    let programs: Vec<serde_json::Value> = programs.collect();
    let found = serde_json::to_value(comparison)?;
    let overall = overall(comparison).into_iter().map(|own| {
        json!({
            "strategy": own.name,
            "of_best_known": own.quality,
            "reached": own.successes.0,
            "searches": own.successes.1,
            "trials_to_95": value_if_reached(own.trials),
            "seconds_to_95": value_if_reached(own.seconds),
        })
    });
    let overall: Vec<serde_json::Value> = overall.collect();
    Ok(format!("{}\n", json!({ "found": found, "programs": programs, "overall": overall })))
}

/// Returns the number of trials or seconds if the goal was reached.
fn value_if_reached(reached: EffortToGoal) -> Option<f64> {
    match reached {
        EffortToGoal::Reached(number) => Some(number),
        EffortToGoal::NotReached(_) => None,
    }
}

fn trials_text(reached: EffortToGoal) -> String {
    with_bound(reached, format!("{:.0}", reached.value()))
}

fn time_text(reached: EffortToGoal) -> String {
    with_bound(reached, format!("{:.1} s", reached.value()))
}

fn with_bound(reached: EffortToGoal, number: String) -> String {
    match reached {
        EffortToGoal::Reached(_) => number,
        EffortToGoal::NotReached(_) => format!("> {number}"),
    }
}

/// Formats a share as a percentage with two significant digits.
fn percent_text(share: f64) -> String {
    match 100.0 * share {
        percent if percent >= 10.0 || percent <= 0.0 => format!("{percent:.1} %"),
        percent if percent < 0.001 => format!("{percent:.1e} %"),
        percent => format!("{percent:.*} %", (1.0 - percent.log10().floor()) as usize),
    }
}

/// Formats a number of points, which may exceed every integer type.
fn points_text(number: f64) -> String {
    if number < 1e9 { format!("{number:.0}") } else { format!("{number:.1e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_below_each_other() {
        let rows = vec![vec!["a".to_owned(), "10".to_owned()], vec!["long".to_owned(), "> 5 µs".to_owned()]];
        let table = Table::new(&["name", "n"], rows);
        assert_eq!(table.text(), "name       n\na         10\nlong  > 5 µs\n");
    }

    #[test]
    fn shares_have_digits_that_say_something() {
        let shown = [1.0, 0.5, 0.0123, 0.000_123, 1.23e-8, 0.0].map(percent_text);
        assert_eq!(shown, ["100.0 %", "50.0 %", "1.2 %", "0.012 %", "1.2e-6 %", "0.0 %"]);
        assert_eq!((points_text(899_756.0), points_text(3e12)), ("899756".to_owned(), "3.0e12".to_owned()));
    }
}
