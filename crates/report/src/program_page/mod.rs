//! Formats the page about a scheduled program, which `show --report FILE.html` and
//! `bench --report FILE.html` write.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | the sections, in their order |
//! | `times.rs` | the predicted and the measured time of each nest, as a chart |
//! | `stages.rs` | the table of stages, with the other places of each |
//! | `picture.rs` | a nest as nested parts: loops, buffers, statements |
//! | `boxes.rs` | these parts as an SVG drawing of nested boxes |

mod boxes;
mod picture;
mod stages;
mod times;

use std::fmt::Write;
use std::slice;

use tilewright_cache::TOOL_VERSION;
use tilewright_ir::print::nest as nest_text;
use tilewright_ir::{LoopNest, Program};
use tilewright_schedule::Schedule;
use tilewright_search::explain::{ComputedStatement, Explanation};
use tilewright_target::Target;

use crate::explanation::LEGEND;
use crate::graph::{inline_scheduled_graph, page_style};
use crate::page::STYLE;
use crate::page::html::{command_line, escape, section, table, verbatim};
use crate::time::{date, now, seconds};

const PAGE_STYLE: &str = include_str!("program.css");

/// The contents of the page.
pub struct ProgramPage<'a> {
    /// The program.
    pub program: &'a Program,
    /// The text of the file that the program is from.
    pub source: &'a str,
    /// The steps of the schedule.
    pub schedule: &'a Schedule,
    /// Where the schedule comes from, as text.
    pub origin: String,
    /// The loops that the schedule makes of the program.
    pub nest: &'a LoopNest,
    /// Why the stages are where they are.
    pub explanation: &'a Explanation,
    /// The target that the program is scheduled for.
    pub target: Target<'a>,
    /// The measured times, if anything was measured.
    pub measured: Option<MeasuredTimes>,
}

/// The measured seconds of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredTimes {
    /// The median time of a call.
    pub whole: f64,
    /// The time of each statement outside of loops ([`LoopNest::roots`]): how much longer a call
    /// takes that also runs this statement.
    pub roots: Vec<f64>,
}

impl ProgramPage<'_> {
    /// Formats the page as HTML: one file that refers to nothing outside itself.
    pub fn html(&self) -> String {
        let title = escape(&self.title());
        let sections = [
            section("Time by loop nest", &times::chart(self)),
            section("Stages", &stages::table(self)),
            section("Graph", &self.graph()),
            section("Loops", &self.loops()),
            section("Schedule", &verbatim(&self.schedule_text())),
            section("Program", &verbatim(self.source)),
            section("Command and settings", &table(&self.provenance())),
        ];
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{title}</title>\n\
             <style>\n{STYLE}{}{PAGE_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{}{}</body>\n</html>\n",
            page_style(),
            self.headline(),
            sections.concat()
        )
    }

    fn title(&self) -> String {
        let sizes =
            self.program.symbols.iter().filter_map(|own| Some(format!("{}={}", own.name, own.value?)));
        format!("{} {}", self.program.name, sizes.collect::<Vec<_>>().join(", ")).trim_end().to_owned()
    }

    /// Formats the main times and counts.
    fn headline(&self) -> String {
        let statements = || self.explanation.stages.iter().flat_map(|stage| &stage.statements);
        let inlined = statements().filter(|own| own.seconds.is_none()).count();
        let model = self.target.hardware().model();
        let mut out = format!(
            "<p class=\"faint\">schedule: {}, for {}</p>\n<div class=\"numbers\">\n",
            escape(&self.origin),
            escape(&model)
        );
        let mut number = |name: &str, value: String, told: String| {
            let _ = writeln!(out, "<div>{name}<b>{value}</b><span>{told}</span></div>");
        };
        number("predicted", seconds(self.explanation.seconds), "by the cost model".to_owned());
        if let Some(measured) = &self.measured {
            let ratio = measured.whole / self.explanation.seconds;
            number("measured", seconds(measured.whole), format!("{ratio:.2} times the prediction"));
        }
        number("statements", statements().count().to_string(), format!("{inlined} of them inlined"));
        number("loop nests", self.nest.roots().len().to_string(), self.temporaries());
        out + "</div>\n"
    }

    /// Describes the memory of the buffers that a call allocates.
    fn temporaries(&self) -> String {
        let scratch = self.nest.buffers.iter().filter(|own| own.scope == tilewright_ir::nest::Scope::Scratch);
        let bytes: i64 = scratch.map(|own| own.bytes()).sum();
        format!("{:.2} MB of temporaries", bytes as f64 / 1e6)
    }

    fn graph(&self) -> String {
        let about = "<p class=\"faint\">Each box is an input or a statement, with its type and what the schedule \
                     decided for it. A frame is a loop nest or a kernel. Dashed boxes are inlined.</p>\n";
        format!(
            "{about}<div class=\"graph wide\">\n{}</div>",
            inline_scheduled_graph(self.program, self.nest)
        )
    }

    /// The picture of each nest, and the loops as text.
    fn loops(&self) -> String {
        let mut out = boxes::legend();
        if !self.nest.setup.is_empty() {
            let parts = picture::picture(self.nest, &self.nest.setup, &|own| self.statement_name(own));
            let _ = writeln!(
                out,
                "<h3>Setup, once for given constant inputs</h3>\n{}",
                boxes::draw("Setup", &parts)
            );
        }
        for (at, root) in self.nest.roots().into_iter().enumerate() {
            let name = format!("Nest {}", at + 1);
            let picture = picture::picture(self.nest, slice::from_ref(root), &|own| self.statement_name(own));
            let _ = writeln!(
                out,
                "<h3>{name}: {}</h3>\n{}",
                escape(&times::of_root(self, at)),
                boxes::draw(&name, &picture)
            );
        }
        let text = verbatim(&nest_text(self.nest));
        out + &format!("<details>\n<summary>The loops as text</summary>\n{text}\n</details>")
    }

    fn schedule_text(&self) -> String {
        match self.schedule.steps.is_empty() {
            true => "# no steps: the loops of the program's text".to_owned(),
            false => self.schedule.to_string(),
        }
    }

    /// The statement of the explanation, by its position in the program.
    fn computed(&self, statement: usize) -> Option<&ComputedStatement> {
        let mut all = self.explanation.stages.iter().flat_map(|stage| &stage.statements);
        all.find(|own| own.statement == statement)
    }

    fn statement_name(&self, statement: usize) -> String {
        self.computed(statement).map_or(String::new(), |own| own.name.clone())
    }

    /// Everything that is needed to make the page again.
    fn provenance(&self) -> Vec<(&'static str, String)> {
        let hardware = self.target.hardware();
        let (units, kind) = hardware.parallel_units();
        vec![
            ("command", command_line(std::env::args())),
            ("machine", hardware.model()),
            ("target", format!("{}, {units} {kind}, {}", hardware.interface(), hardware.instruction_set())),
            ("times", LEGEND.to_owned()),
            ("date", format!("{} UTC", date(now()))),
            ("version", format!("tilewright {TOOL_VERSION}")),
        ]
    }
}
