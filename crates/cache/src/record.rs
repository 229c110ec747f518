//! Defines a record of the cache, a candidate that was tried with its outcome
//! ([`TuningRecord`]), and checks and hashes its fields.

use tilewright_schedule::text;
use xxhash_rust::xxh3::Xxh3;

use crate::outcome::{Outcome, OutcomeKind};

use crate::key::{ProgramKey, sizes_text};

/// The length limit of a canonical program, in bytes.
const LONGEST_PROGRAM: usize = 4 << 20;
/// The length limit of a schedule, in bytes.
const LONGEST_SCHEDULE: usize = 1 << 20;
/// The length limit of the other texts, in bytes.
const LONGEST_TEXT: usize = 16 << 10;
/// The largest number of features. A record with more was not written by Tilewright.
const MOST_FEATURES: usize = 256;
/// The largest number of samples of one candidate.
const MOST_SAMPLES: usize = 100_000;
/// The largest number of sizes of a program, and of caches of a machine.
const MOST_NUMBERS: usize = 4096;

/// One candidate that was tried, with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct TuningRecord {
    /// The program and the machine.
    pub program: ProgramKey,
    /// The program and sizes in the user's names, such as `mm M=64,K=32`. It is for display, never
    /// for lookups.
    pub title: String,
    /// The steps of the schedule in canonical names, as text.
    pub schedule: String,
    /// The strategy that proposed the candidate.
    pub strategy: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The sampled times of one call in seconds, if the candidate was measured.
    pub samples: Vec<f64>,
    /// The device resources that the kernels use, as the compiler reports them; empty if it reports
    /// nothing.
    pub resources: String,
    /// The features for cost models; empty if unknown. They follow from the other fields, so the
    /// hash leaves them out.
    pub features: Vec<f32>,
    /// The version of Tilewright that made the record.
    pub tool_version: String,
    /// The time of the trial, in seconds since 1970.
    pub time: i64,
    /// The seed of the search.
    pub seed: Option<u64>,
    /// The number of the trial within the search.
    pub trial: Option<u64>,
}

impl Outcome {
    /// The outcome with its detail cut to the allowed length.
    pub(crate) fn with_short_detail(&self) -> Outcome {
        const MARK: &str = " …";
        let detail = self.detail();
        if detail.len() <= LONGEST_TEXT {
            return self.clone();
        }
        let ends = (0..=LONGEST_TEXT - MARK.len()).rev().find(|at| detail.is_char_boundary(*at));
        let cut = format!("{}{MARK}", &detail[..ends.unwrap_or(0)]);
        self.kind().with_detail(cut)
    }

    /// The outcome with this name and detail.
    pub(crate) fn parse(name: &str, detail: String) -> Option<Outcome> {
        let kind = OutcomeKind::ALL.into_iter().find(|kind| kind.name() == name)?;
        let may_have_detail = !matches!(kind, OutcomeKind::Measured | OutcomeKind::TimedOut);
        (may_have_detail || detail.is_empty()).then(|| kind.with_detail(detail))
    }
}

impl TuningRecord {
    /// The median of the samples: seconds of one call. For an even number of samples, the mean of
    /// the middle two.
    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            length if length % 2 == 1 => Some(sorted[middle]),
            _ => Some(sorted[middle - 1].midpoint(sorted[middle])),
        }
    }

    /// Checks the size and the form of every field, and returns the first defect. Does not check
    /// whether the schedule is legal.
    pub fn check(&self) -> Result<(), String> {
        let ProgramKey { canonical, sizes, target, threads } = &self.program;
        check_length("the program", canonical, LONGEST_PROGRAM)?;
        check_length("the schedule", &self.schedule, LONGEST_SCHEDULE)?;
        for (what, text) in [
            ("the title", self.title.as_str()),
            ("the strategy", &self.strategy),
            ("the outcome", self.outcome.detail()),
            ("the text of the resources", &self.resources),
            ("the version", &self.tool_version),
            ("the device", &target.device),
            ("the model", &target.model),
            ("the vectors", &target.vectors),
        ] {
            check_length(what, text, LONGEST_TEXT)?;
        }
        let numbered = |(at, (name, _)): (usize, &(String, i64))| *name == format!("s{at}");
        if sizes.len() > MOST_NUMBERS || !sizes.iter().enumerate().all(numbered) {
            return Err("its sizes are not named s0, s1, …".to_owned());
        }
        if target.caches.len() > MOST_NUMBERS
            || target.caches.iter().any(|bytes| i64::try_from(*bytes).is_err())
        {
            return Err("it has too many caches, or a cache that is too large".to_owned());
        }
        if !(1..=1 << 20).contains(threads) {
            return Err(format!("it has {threads} threads, and 1 to {} are allowed", 1 << 20));
        }
        if self.trial.is_some_and(|trial| i64::try_from(trial).is_err()) {
            return Err("its trial number needs more than 63 bits".to_owned());
        }
        if self.features.len() > MOST_FEATURES || !self.features.iter().all(|feature| feature.is_finite()) {
            return Err("it has too many features, or one that is not finite".to_owned());
        }
        self.check_samples()?;
        match text::parse(&self.schedule).diagnostics.into_iter().find(|found| found.is_error()) {
            None => Ok(()),
            Some(error) => Err(format!("its schedule cannot be read: {}", error.message)),
        }
    }

    fn check_samples(&self) -> Result<(), String> {
        let measured = self.outcome == Outcome::Measured;
        if measured == self.samples.is_empty() {
            let what = if measured { "no samples" } else { "samples" };
            return Err(format!("its outcome is {}, and it has {what}", self.outcome.name()));
        }
        if self.samples.len() > MOST_SAMPLES {
            let found = self.samples.len();
            return Err(format!("it has {found} samples, and at most {MOST_SAMPLES} are allowed"));
        }
        match self.samples.iter().find(|seconds| !(seconds.is_finite() && **seconds > 0.0)) {
            None => Ok(()),
            Some(seconds) => Err(format!("it has a sample of {seconds} seconds")),
        }
    }

    /// A hash of every field except the features. It identifies equal records from different
    /// sources.
    pub(super) fn hash(&self) -> [u8; 16] {
        let ProgramKey { canonical, sizes, target, threads } = &self.program;
        let optional = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
        let mut hash = Xxh3::new();
        for part in [
            canonical.as_str(),
            &sizes_text(sizes),
            &target.device,
            &target.model,
            &target.vectors,
            &target.caches_text(),
            &threads.to_string(),
            &self.title,
            &self.schedule,
            &self.strategy,
            self.outcome.name(),
            self.outcome.detail(),
            &self.tool_version,
            &self.time.to_string(),
            &optional(self.seed),
            &optional(self.trial),
        ] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.update(&self.sample_bytes());
        // Appending the text without its length keeps the hash of older records, which have no
        // resources.
        hash.update(self.resources.as_bytes());
        hash.digest128().to_le_bytes()
    }

    /// The features as bytes, little-endian.
    pub(super) fn feature_bytes(&self) -> Vec<u8> {
        self.features.iter().flat_map(|feature| feature.to_le_bytes()).collect()
    }

    /// The samples as bytes, little-endian.
    pub(super) fn sample_bytes(&self) -> Vec<u8> {
        self.samples.iter().flat_map(|seconds| seconds.to_le_bytes()).collect()
    }
}

fn check_length(what: &str, text: &str, most: usize) -> Result<(), String> {
    if text.len() <= most {
        return Ok(());
    }
    Err(format!("{what} has {} bytes, and at most {most} are allowed", text.len()))
}
