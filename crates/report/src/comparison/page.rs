//! Formats a comparison as an HTML page.
//!
//! The page is one file that refers to nothing outside itself, like the report of `tune`. All text
//! that comes from the user goes through [`crate::page::html::escape`].

use std::fmt::Write;

use super::drawing::{boxes, curves};
use super::style::style_sheet;
use super::table::{Table, overall_table};
use crate::page::html::{escape, section, table};
use crate::time::seconds;
use tilewright_tuner::compare::{Comparison, ProgramResult};

const LEGEND: &str = "<p class=\"faint\">A line is the median of a strategy's searches. The band \
                      around it reaches from the lowest to the highest search, or over the middle \
                      half if there are more than five seeds. The quality is the time of the best \
                      known kernel divided by the time of the best so far. The horizontal axes are \
                      logarithmic. In the box plot, each dot is a search.</p>\n";
const OVERHEAD: &str = "<p class=\"faint\">The time that the strategy itself takes to propose a point and to learn from \
                        it, without compiling and measuring: the median of all searches of all programs.</p>\n";

/// Formats the page. `tables` has one table per program, in the order of the programs.
pub fn html(title: &str, comparison: &Comparison, tables: &[Table]) -> String {
    let title = escape(title);
    let mut sections = String::new();
    for (at, program) in comparison.programs.iter().enumerate() {
        sections += &section(&program.name, &program_section(program, tables.get(at)));
    }
    if comparison.programs.len() > 1 {
        sections += &section("All programs, geometric means", &html_table(&overall_table(comparison)));
    }
    if !comparison.programs.is_empty() {
        let drawing = figure(&boxes::overhead(&comparison.programs));
        sections += &section("Overhead", &format!("{OVERHEAD}{drawing}"));
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{title}</title>\n\
         <style>\n{}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{}{LEGEND}{sections}</body>\n</html>\n",
        style_sheet(),
        headline(comparison)
    )
}

/// Formats the numbers of strategies, programs and searches, and the settings of the comparison.
fn headline(comparison: &Comparison) -> String {
    let programs = comparison.programs.len();
    let strategies = comparison.programs.iter().map(|program| program.strategies.len()).max().unwrap_or(0);
    let searches = comparison.programs.iter().flat_map(|program| &program.strategies);
    let searches: usize = searches.map(|strategy| strategy.searches.len()).sum();
    let about: Vec<(&str, String)> =
        comparison.setting.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    format!(
        "<p class=\"faint\">{}, {}, {}</p>\n{}\n",
        count(strategies, "strategy", "strategies"),
        count(programs, "program", "programs"),
        count(searches, "search", "searches"),
        table(&about)
    )
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn program_section(program: &ProgramResult, table: Option<&Table>) -> String {
    let drawings = [curves::by_trials(program), curves::by_seconds(program), boxes::final_quality(program)];
    let drawings: String = drawings.iter().map(|drawing| figure(drawing)).collect();
    format!("{}{}{drawings}", key_numbers(program), table.map(html_table).unwrap_or_default())
}

fn figure(drawing: &str) -> String {
    format!("<figure>\n{drawing}\n</figure>\n")
}

/// Formats the size of the space, the best known time and the default time.
fn key_numbers(program: &ProgramResult) -> String {
    let mut out = String::from("<div class=\"numbers\">\n");
    let mut number = |name: &str, value: &str, told: &str| {
        let _ = writeln!(out, "<div>{name}<b>{value}</b><span>{told}</span></div>");
    };
    number("space", &points_text(program.size), "points");
    let best =
        if program.is_optimum { "the optimum: every point was tried" } else { "no better kernel known" };
    number("best known", &seconds(program.best_known), best);
    match program.default {
        Some(time) => {
            let part = format!("{:.1} % of the best known", 100.0 * program.best_known / time);
            number("default", &seconds(time), &part);
        }
        None => number("default", "none", "the default schedule was not measured"),
    }
    out + "</div>\n"
}

/// Formats a number of points: all digits below a million.
fn points_text(size: f64) -> String {
    if size < 1e6 { format!("{size:.0}") } else { format!("{size:.2e}") }
}

/// Formats a table with a header row.
fn html_table(table: &Table) -> String {
    let row = |tag: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = table.rows.iter().map(|cells| row("td", cells)).collect();
    let head = row("th", &table.headers);
    format!(
        "<div class=\"wide\">\n<table class=\"compared\">\n<thead>\n{head}</thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    )
}

#[cfg(test)]
mod tests {
    use resvg::usvg::roxmltree::Document;

    use super::*;
    use crate::comparison::examples::{degenerate_programs, example_comparison};

    /// Counts the elements of a name on the page. The page is parsed as XML, so every element must
    /// be closed.
    fn elements(page: &str, name: &str) -> usize {
        let document = Document::parse(page.strip_prefix("<!DOCTYPE html>\n").unwrap()).unwrap();
        document.descendants().filter(|node| node.has_tag_name(name)).count()
    }

    #[test]
    fn every_program_has_its_table_and_drawings() {
        let table = Table { headers: vec!["strategy".to_owned()], rows: vec![vec!["a".to_owned()]] };
        let page = html("Strategies", &example_comparison(), &vec![table; 3]);
        assert_eq!((elements(&page, "svg"), elements(&page, "table")), (3 * 3 + 1, 3 + 2));
        assert!(!page.contains("http"), "the page refers to something elsewhere");
    }

    #[test]
    fn nothing_from_the_user_is_markup() {
        let about = vec![("<i>".to_owned(), "<i>".to_owned())];
        let comparison = Comparison { setting: about, programs: degenerate_programs() };
        let table = Table { headers: vec!["<i>".to_owned()], rows: vec![vec!["<i>\u{0}&".to_owned()]] };
        let page = html("<i>", &comparison, &[table]);
        assert_eq!(elements(&page, "i"), 0);
    }

    #[test]
    fn nothing_compared_is_a_page_too() {
        let page = html("Nothing", &Comparison::default(), &[]);
        assert_eq!((elements(&page, "h1"), elements(&page, "svg")), (1, 0));
    }
}
