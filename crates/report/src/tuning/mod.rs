//! Formats the page about a search, which `tune --report FILE.html` writes.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | the sections, in their order |
//! | `curve.rs`, `bars.rs` | the drawings |

mod bars;
mod curve;

use std::fmt::Write;

use tilewright_cache::TOOL_VERSION;
use tilewright_ir::print::nest as nest_text;
use tilewright_schedule::text::parse;
use tilewright_schedule::{Refusal, apply};
use tilewright_target::Machine;
use tilewright_tuner::recording::Setting;
use tilewright_tuner::roofline::{Limit, Roofline};
use tilewright_tuner::search::SearchOutcome;
use tilewright_tuner::tune::TuningReport;

use crate::page::STYLE;
use crate::page::html::{command_line, escape, section, table, verbatim};
use crate::time::{date, now, seconds};
use bars::{Bar, histogram, horizontal_bars};
use curve::curve;

/// Formats a search as an HTML page: one file that refers to nothing outside itself. The roofline
/// says how near the kernels come to the peaks of the machine. The page shows the loops of the
/// winner, so it is an error if the winner's schedule is refused.
pub fn tuning_page(found: &SearchOutcome, roofline: &Roofline) -> Result<String, Refusal> {
    Page { found, setting: &found.setting, machine: &found.machine, tuned: &found.report, roofline }.html()
}

/// The contents of a page.
struct Page<'a> {
    found: &'a SearchOutcome,
    /// The options of the search.
    setting: &'a Setting,
    /// The machine that the program was tuned for.
    machine: &'a Machine,
    /// The report of the tuning loop.
    tuned: &'a TuningReport,
    roofline: &'a Roofline,
}

impl Page<'_> {
    /// Formats the page.
    fn html(&self) -> Result<String, Refusal> {
        let title = escape(&self.title());
        let curve = curve(&self.found.history.trials);
        let times: Vec<f64> = self.found.history.times().collect();
        let legend = "<p class=\"faint\">Each point is a candidate that was measured, each cross above one that \
                      failed; the line is the best so far. At the end, the fastest candidates \
                      were measured again in turn, and the numbers above are from that comparison. \
                      Point at a mark to read it.</p>\n";
        let mut sections = vec![
            section("Search", &format!("{legend}{curve}")),
            section(
                "Outcomes of candidates",
                &horizontal_bars("Outcomes of candidates", &self.outcome_bars()),
            ),
            section("Times of measured candidates", &histogram(&times)),
        ];
        if !self.found.is_replay {
            let spent = horizontal_bars("Time by kind of work", &self.time_bars());
            sections.push(section("Time by kind of work", &spent));
        }
        sections.extend([
            section("Schedule", &verbatim(&self.tuned.schedule)),
            section("Loops", &verbatim(&self.loops()?)),
            section("Program", &verbatim(&self.setting.task.source)),
            section("Command and settings", &table(&self.provenance())),
        ]);
        Ok(format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{title}</title>\n\
             <style>\n{}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{}{}</body>\n</html>\n",
            STYLE,
            self.headline(),
            sections.concat()
        ))
    }

    fn title(&self) -> String {
        let sizes = self.setting.task.sizes.iter().map(|(name, value)| format!("{name}={value}"));
        let sizes = sizes.collect::<Vec<_>>().join(", ");
        format!("{} {sizes}", self.setting.task.function).trim_end().to_owned()
    }

    /// Formats the main times, and the limit of the roofline.
    fn headline(&self) -> String {
        let tuned = self.tuned;
        let mut out =
            format!("<p class=\"faint\">tuned on {}</p>\n<div class=\"numbers\">\n", escape(&self.model()));
        let mut number = |name: &str, time: f64| {
            let rates = escape(&self.roofline.describe(time));
            let _ = writeln!(out, "<div>{name}<b>{}</b><span>{rates}</span></div>", seconds(time));
        };
        number("tuned", tuned.seconds);
        if let Some(time) = tuned.one_shot_seconds {
            number("one shot", time);
        }
        number("default", tuned.default_seconds);
        let gain = match tuned.is_default {
            true => "No schedule faster than the default schedule was found.".to_owned(),
            false => {
                format!("{:.2} times as fast as the default schedule.", tuned.default_seconds / tuned.seconds)
            }
        };
        let _ = writeln!(out, "</div>\n<p>{gain} {}</p>", escape(&self.limit_sentence()));
        if let Some(proof) = tuned.proof.describe() {
            let _ = writeln!(out, "<p>Proof: {}.</p>", escape(&proof));
        }
        out
    }

    /// Describes the limit that the roofline gives.
    fn limit_sentence(&self) -> String {
        let (Some(peaks), Some((limit, least))) = (self.roofline.peaks, self.roofline.limit()) else {
            return "The peak rates of this machine are not known.".to_owned();
        };
        let unless = match self.machine.target().hardware().warm_cache_sizes() {
            [] => "",
            _ => " unless the caches hold the data",
        };
        let nearer = match limit {
            Limit::Arithmetic => format!("arithmetic, {:.1} GFLOP/s", peaks.gflops),
            Limit::Memory => format!("memory, {:.1} GB/s{unless}", peaks.gbs),
        };
        format!(
            "A call does {:.3} GFLOP on {:.3} MB. The nearer limit of this machine is {nearer}: it allows {} a call, \
             and the tuned schedule reaches {:.0} % of that.",
            self.roofline.work.operations / 1e9,
            self.roofline.work.bytes / 1e6,
            seconds(least),
            100.0 * least / self.tuned.seconds
        )
    }

    /// The number of candidates of each outcome, and of points that were never compiled, by reason.
    fn outcome_bars(&self) -> Vec<Bar> {
        let ended = self.tuned.outcomes.iter().map(|(kind, count)| (kind.to_string(), *count));
        let rejected = self.tuned.rejections.iter();
        let rejected = rejected.map(|(reason, count)| (format!("not compiled: {reason}"), *count));
        let slow = (self.tuned.predicted_too_slow > 0)
            .then(|| ("not compiled: expected to be slow".to_owned(), self.tuned.predicted_too_slow));
        let all = ended.chain(rejected).chain(slow);
        all.map(|(label, count)| Bar { label, value: count as f64, text: count.to_string() }).collect()
    }

    fn time_bars(&self) -> Vec<Bar> {
        let whole = self.tuned.elapsed.as_secs_f64().max(1e-9);
        let bar = |(label, time): (&str, f64)| Bar {
            label: label.to_owned(),
            value: time,
            text: format!("{time:.2} s, {:.0} %", 100.0 * time / whole),
        };
        self.tuned.time_spent.parts().into_iter().map(bar).collect()
    }

    /// The winner's loops, as `tilewright show --stage loops` prints them.
    fn loops(&self) -> Result<String, Refusal> {
        let schedule = parse(&self.tuned.schedule).schedule;
        Ok(nest_text(&apply(&self.found.program, &schedule, self.machine)?))
    }

    /// Everything that is needed to repeat the run.
    fn provenance(&self) -> Vec<(&'static str, String)> {
        let Setting { task, strategy, seed, .. } = self.setting;
        let elapsed = self.tuned.elapsed.as_secs_f64();
        let replayed = if self.found.is_replay { ", replayed from a recording" } else { "" };
        let place = match task.target.device() {
            None => task.target.options(),
            Some(_) => {
                vec![
                    ("target", task.target.target_name().to_string()),
                    ("resources", self.tuned.resources.clone()),
                ]
            }
        };
        let first = [("command", command_line(std::env::args())), ("machine", self.model())];
        let others = [
            ("trials", format!("{} in {elapsed:.1} s{replayed}", self.tuned.trials)),
            ("strategy", strategy.clone()),
            ("seed", seed.to_string()),
            ("workers lost", self.tuned.lost_workers.to_string()),
            ("date", format!("{} UTC", date(now()))),
            ("version", format!("tilewright {TOOL_VERSION}")),
        ];
        first.into_iter().chain(place).chain(others).collect()
    }

    /// The model name of the machine.
    fn model(&self) -> String {
        self.machine.target().hardware().model()
    }
}
