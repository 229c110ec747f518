//! Formats the outcome of `tilewright tune` as short text or as JSON.

use std::collections::BTreeMap;

use serde_json::json;
use tilewright::cache::outcome::OutcomeKind;
use tilewright::tuner::roofline::Roofline;
use tilewright::tuner::search::SearchOutcome;
use tilewright::tuner::task::ExecutionTarget;
use tilewright::tuner::tune::{Proof, RefutedSchedule, TuningReport};

use crate::output::printable;
use tilewright::report::time::seconds;

/// A finished run.
pub struct Summary<'a> {
    /// The search.
    pub found: &'a SearchOutcome,
    /// Its outcome.
    pub tuned: &'a TuningReport,
    /// The work of the program and the machine's peaks, to express times as shares of the limit.
    pub roofline: &'a Roofline,
}

impl Summary<'_> {
    /// Formats the outcome as text.
    pub fn text(&self) -> String {
        let tuned = self.tuned;
        let mut out = String::new();
        let mut row = |name: &str, value: String| out += &format!("  {name:<10} {value}\n");
        if let Some(gpu) = self.place().device() {
            row("device", format!("{}, {}", self.place().target_name(), gpu.name));
        }
        row("default", self.speed(tuned.default_seconds));
        if let Some(time) = tuned.one_shot_seconds {
            row("one shot", self.speed(time));
        }
        if let Some(outcome) = &tuned.one_shot_failure {
            row("one shot", printable(&outcome.to_string()));
        }
        let gain = tuned.default_seconds / tuned.seconds;
        row(
            "tuned",
            match tuned.is_default {
                true => "nothing faster was found".to_owned(),
                false => format!("{}: {gain:.2} times as fast", self.speed(tuned.seconds)),
            },
        );
        if let Some(proof) = tuned.proof.describe() {
            row("proof", printable(&proof));
        }
        for RefutedSchedule { reason, .. } in &tuned.refuted {
            row("refuted", format!("a faster schedule, please report it: {}", printable(reason)));
        }
        if !tuned.resources.is_empty() {
            row("resources", tuned.resources.clone());
        }
        if let Some(peaks) = self.roofline.peaks {
            let whose = match self.place().device() {
                None => "",
                Some(_) => ", from the description of the device",
            };
            row("peak", format!("{:.1} GFLOP/s, {:.1} GB/s from memory{whose}", peaks.gflops, peaks.gbs));
        }
        row("trials", self.trials());
        if let Some(left_out) = self.left_out() {
            row("rejected", left_out);
        }
        if !self.found.is_replay {
            row("time", self.time());
        }
        if tuned.lost_workers > 0 {
            row("workers", format!("{} were lost and replaced", tuned.lost_workers));
        }
        row("cache", self.cache_text().to_owned());
        out + "\n" + &tuned.schedule
    }

    fn place(&self) -> &ExecutionTarget {
        &self.found.setting.task.target
    }

    /// Describes what the cache keeps of this run.
    fn cache_text(&self) -> &str {
        self.found.cache_summary.as_deref().unwrap_or("unchanged: this is a replay")
    }

    fn speed(&self, time: f64) -> String {
        format!("{}, {}", seconds(time), self.roofline.describe(time))
    }

    fn trials(&self) -> String {
        let outcomes = self.tuned.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}"));
        let ended = format!("{} in {:.1} s", self.tuned.trials, self.tuned.elapsed.as_secs_f64());
        std::iter::once(ended).chain(outcomes).collect::<Vec<_>>().join(", ")
    }

    /// The numbers of points that were never compiled, by reason.
    fn left_out(&self) -> Option<String> {
        let refused = self.tuned.rejections.iter().map(|(reason, count)| format!("{count} {reason}"));
        let slow = (self.tuned.predicted_too_slow > 0)
            .then(|| format!("{} expected to be slow", self.tuned.predicted_too_slow));
        let all: Vec<String> = refused.chain(slow).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// The time of each part of the search.
    fn time(&self) -> String {
        let parts = self.tuned.time_spent.parts();
        parts.map(|(name, seconds)| format!("{name} {seconds:.1} s")).join(", ")
    }

    /// Formats the outcome as one line of JSON.
    pub fn json(&self) -> String {
        let Summary { tuned, roofline, .. } = self;
        let failures = tuned.outcomes.iter().filter(|(outcome, _)| **outcome != OutcomeKind::Measured);
        let failures: BTreeMap<_, _> = failures.map(|(outcome, count)| (outcome.name(), *count)).collect();
        let device = self.place().device().map(|gpu| &gpu.name);
        let (proved, proof_reason) = match &tuned.proof {
            Proof::Proved => (json!(true), None),
            Proof::Undecided(why) => (json!("undecided"), Some(why)),
            Proof::NotRequested => (json!(false), None),
        };
        let object = json!({
            "event": "done",
            "target": self.place().target_name().to_string(),
            "device": device,
            "median_us": tuned.seconds * 1e6,
            "default_us": tuned.default_seconds * 1e6,
            "one_shot_us": tuned.one_shot_seconds.map(|seconds| seconds * 1e6),
            "gflops": roofline.gflops(tuned.seconds),
            "gbps": roofline.gbs(tuned.seconds),
            "peak_gflops": roofline.peaks.map(|peaks| peaks.gflops),
            "peak_gbs": roofline.peaks.map(|peaks| peaks.gbs),
            "limit": roofline.limit().map(|(limit, _)| limit.name()),
            "share_of_limit": roofline.peak_share(tuned.seconds),
            "trials": tuned.trials,
            "seconds": tuned.elapsed.as_secs_f64(),
            "time_spent": (!self.found.is_replay).then_some(tuned.time_spent),
            "failures": failures,
            "proved": proved,
            "proof_reason": proof_reason,
            "resources": tuned.resources,
            "schedule": tuned.schedule,
        });
        format!("{object}\n")
    }
}
