//! `tilewright prove`: checks that scheduled loops compute what the program says.

use std::time::Instant;

use serde_json::json;
use tilewright::driver::Origin;
use tilewright::ir::Program;
use tilewright::polyhedral::{Verdict, prove_patiently};

use crate::args::ProveArgs;
use crate::failure::Failure;
use crate::inputs::read_sizes;
use crate::machine::machine_or_typical;
use crate::output::{print, print_error_line, spinner};
use crate::problem::{OR_INPUTS, concrete_program};
use crate::schedule::{ScheduleOption, ScheduleSource};
use crate::source::Source;
use crate::target::Target;
use tilewright::report::time::seconds;

/// Proves that the loops of a program compute what its text says.
pub fn run(args: &ProveArgs) -> Result<(), Failure> {
    let target = Target::find(&args.target)?;
    let name =
        target.compiled("--target interp runs a program as it is written, so there are no loops to prove")?;
    let machine = machine_or_typical(name, &args.compile.cpu)?;
    let asked = ScheduleOption::read(&args.compile)?;
    let (source, function) = Source::read_function(&args.file)?;
    let sizes = read_sizes(&source, &function, &args.sizes, &args.inputs)?;
    let program = concrete_program(&source, &function, &sizes, args.rounding, OR_INPUTS)?;
    let schedule = asked.choose(&program, &machine, &args.cache)?;
    schedule.skipped().for_each(|one| print_error_line(&format!("skipped: {one}")));
    let nest = schedule.lower(&program, machine.target())?;
    let begun = Instant::now();
    let spinner = spinner("proving");
    let verdict = prove_patiently(&program, &nest);
    spinner.finish_and_clear();
    let report = Report {
        path: source.path(),
        program: &program,
        target,
        schedule: &schedule,
        verdict,
        seconds: begun.elapsed().as_secs_f64(),
    };
    print(&if args.json { report.json() } else { report.text() })?;
    report.outcome()
}

/// The verdict of a proof, with everything that the report mentions.
struct Report<'a> {
    path: &'a str,
    program: &'a Program,
    target: Target,
    schedule: &'a ScheduleSource,
    verdict: Verdict,
    seconds: f64,
}

impl Report<'_> {
    /// The name of the verdict.
    fn verdict_name(&self) -> &'static str {
        match self.verdict {
            Verdict::Proved => "proved",
            Verdict::Refuted(_) => "refuted",
            Verdict::Undecided(_) => "undecided",
        }
    }

    /// Returns the counterexample, or the reason why the proof is undecided. Returns `None` for a
    /// proof.
    fn reason(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::Proved => None,
            Verdict::Refuted(reason) | Verdict::Undecided(reason) => Some(reason),
        }
    }

    /// Sizes and integer scalars, as `--sizes` takes them.
    fn sizes(&self) -> impl Iterator<Item = (&str, i64)> {
        self.program.symbols.iter().filter_map(|symbol| Some((symbol.name.as_str(), symbol.value?)))
    }

    /// Formats the report as text.
    fn text(&self) -> String {
        let time = seconds(self.seconds);
        let (name, schedule) = (&self.program.name, self.schedule.describe());
        let mut out = format!("{name}: {} in {time} (schedule: {schedule})\n", self.verdict_name());
        out.extend(self.reason().map(|reason| format!("  {}\n", reason.replace('\n', "\n  "))));
        match &self.verdict {
            Verdict::Proved => {}
            Verdict::Undecided(_) => {
                out += "  this is no sign of a mistake; `tilewright run --check` compares results with the interpreter\n";
            }
            Verdict::Refuted(_) => out += &self.loops_hint(),
        }
        out
    }

    /// Says how to print the refuted loops. `show` does not read the cache, so the hint includes
    /// the steps of a tuned schedule.
    fn loops_hint(&self) -> String {
        let sizes: Vec<String> = self.sizes().map(|(name, value)| format!("{name}={value}")).collect();
        let place = format!("{}:{}", self.path, self.program.name);
        let target = self.target;
        let show =
            format!("tilewright show {place} --stage loops --sizes {} --target {target}", sizes.join(","));
        match (self.schedule.path(), &self.schedule.chosen.origin) {
            (_, Origin::Default) => format!("  `{show}` prints the loops\n"),
            (Some(path), _) => format!("  `{show} --schedule {path}` prints the loops\n"),
            (None, _) => {
                let steps = self.schedule.chosen.schedule.to_string();
                format!(
                    "  `{show} --schedule FILE` prints the loops, with these steps in FILE:\n\n{}\n\n",
                    steps.trim_end()
                )
            }
        }
    }

    /// Formats the report as one line of JSON.
    fn json(&self) -> String {
        let sizes: serde_json::Map<String, serde_json::Value> =
            self.sizes().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let object = json!({
            "program": self.path,
            "function": self.program.name,
            "sizes": sizes,
            "target": self.target.to_string(),
            "schedule_source": self.schedule.name(),
            "verdict": self.verdict_name(),
            "reason": self.reason(),
            "seconds": self.seconds,
        });
        format!("{object}\n")
    }

    /// Returns the exit outcome. Refuted loops are a bug of Tilewright whatever the schedule,
    /// because illegal steps should have been refused.
    fn outcome(&self) -> Result<(), Failure> {
        match &self.verdict {
            Verdict::Proved | Verdict::Undecided(_) => Ok(()),
            Verdict::Refuted(_) => Err(Failure::Bug(format!(
                "the loops of `{}` do not compute what the program says, and the schedule was not refused",
                self.program.name
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use tilewright::driver::TargetName;
    use tilewright::target::{Cpu, VectorInstructions};

    use super::*;

    /// Returns the text, the JSON and the outcome for a verdict on a program with the default
    /// schedule.
    fn rendered(verdict: Verdict) -> (String, serde_json::Value, Result<(), Failure>) {
        let source = "def mv(float(M,K) A, float(K) x) -> (y) { y(i) +=! A(i,k) * x(k) }";
        let sizes = [("M", 8), ("K", 5)].into_iter().collect();
        let program = tilewright::syntax::check(&tilewright::syntax::parse(source).ast, "mv", &sizes).program;
        let cpu = Cpu { cores: 1, vectors: VectorInstructions::Baseline, caches: vec![32 << 10] };
        let program = program.unwrap();
        let schedule = ScheduleSource::default(&program, (&cpu).into());
        let report = Report {
            path: "mv.tw",
            program: &program,
            target: Target::Compiled(TargetName::Cpu),
            schedule: &schedule,
            verdict,
            seconds: 0.0125,
        };
        (report.text(), serde_json::from_str(&report.json()).unwrap(), report.outcome())
    }

    #[test]
    fn loops_that_are_refuted_are_a_bug() {
        let (text, json, outcome) = rendered(Verdict::Refuted("y(3) is written twice".to_owned()));
        assert_eq!(
            text,
            "mv: refuted in 12.50 ms (schedule: default)\n  y(3) is written twice\n  \
             `tilewright show mv.tw:mv --stage loops --sizes M=8,K=5 --target cpu` prints the loops\n"
        );
        assert_eq!((&json["verdict"], &json["reason"]), (&json!("refuted"), &json!("y(3) is written twice")));
        let failure = outcome.unwrap_err();
        assert_eq!(failure.status(), crate::failure::BUG);
        assert!(failure.to_string().contains("please report it: the loops of `mv`"), "{failure}");
    }

    #[test]
    fn loops_of_which_nothing_can_be_said_are_no_failure() {
        let (text, json, outcome) = rendered(Verdict::Undecided("data decides".to_owned()));
        assert!(
            text.starts_with("mv: undecided in 12.50 ms (schedule: default)\n  data decides\n"),
            "{text}"
        );
        assert!(text.contains("run --check"), "{text}");
        assert_eq!((&json["verdict"], &json["reason"]), (&json!("undecided"), &json!("data decides")));
        assert!(outcome.is_ok());
    }
}
