//! Records runs in files and replays them, for `tilewright tune --record` and `--replay`.
//!
//! A recording holds the setting of the run and every answer of the measurer, including every
//! decision of the clock. The same search with the same answers ends with the same winner. A replay
//! measures nothing again, and its own duration does not matter.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | the contents of a recording |
//! | `recorder.rs` | a measurer that asks another one and records its answers |
//! | `replay.rs` | a measurer that answers from a recording |
//! | `file.rs` | the lines of JSON, and the checks when they are read |

mod file;
mod recorder;
mod replay;

use serde::{Deserialize, Serialize};

pub use file::RecordingError;
pub use recorder::Recorder;
pub use replay::Replay;

use crate::peak::Peaks;
use crate::task::RecordedTask;
use crate::tune::{DEFAULT_STARTS, ProofScope};
use tilewright_cache::outcome::Trial;

/// A run: its setting, and every answer of the measurer.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The setting.
    pub setting: Setting,
    /// The answers in the order in which they were given.
    pub answers: Vec<Answer>,
}

/// Everything that determines a search, apart from the measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The version of Tilewright, for the reader.
    pub tool_version: String,
    /// The task, without the given inputs: their files are gone when the run is over.
    pub task: RecordedTask,
    /// The names of the given inputs, each with a digest of its contents. Candidates were measured
    /// with these inputs.
    pub inputs: Vec<(String, String)>,
    /// The sizes of a CPU's data caches in bytes, which the space depends on.
    pub caches: Vec<usize>,
    /// The name of the strategy.
    pub strategy: String,
    /// The seed of all random decisions.
    pub seed: u64,
    /// The largest number of starting points from the cost model.
    #[serde(default = "starts")]
    pub starts: usize,
    /// The largest number of candidates.
    pub trials: Option<usize>,
    /// The time limit, in seconds.
    pub time: Option<f64>,
    /// The schedules from the cache that were tried first.
    pub hints: Vec<String>,
    /// The trials of other programs as features and seconds, if the strategy learns from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experience: Vec<Vec<(Vec<f32>, Option<f64>)>>,
    /// The template of the searched schedules, if it was not the one that analysis derives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Which schedules were proved. Recordings from before this option have no proofs.
    #[serde(rename = "proving", default)]
    pub proof_scope: ProofScope,
    /// The peak rates of the machine, if known.
    pub peaks: Option<Peaks>,
}

/// An answer of a measurer, with its time in seconds since the start. A replay gives the answers in
/// their recorded order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// A decision by the clock or a signal: a number, or yes or no.
    Decided {
        /// The number; 1 for yes.
        number: usize,
        /// The time of the decision.
        at: f64,
    },
    /// The trial of a candidate.
    Tried {
        /// The schedule of the candidate.
        schedule: String,
        /// The trial.
        trial: Trial,
        /// The time when the result was known.
        at: f64,
    },
    /// A race of schedules, such as the final comparison.
    Raced {
        /// The schedules of the race.
        schedules: Vec<String>,
        /// The samples of each schedule.
        samples: Vec<Vec<f64>>,
        /// The time when the race was over.
        at: f64,
    },
    /// The end of the run, in the last line.
    Ended {
        /// The number of workers that were lost.
        replaced: usize,
    },
}

/// The number of starting points in recordings from before this option.
fn starts() -> usize {
    DEFAULT_STARTS
}

impl Setting {
    /// The first difference from another setting that would change the search: a name, the value
    /// here, and the value there.
    pub fn difference(&self, other: &Setting) -> Option<(&'static str, String, String)> {
        let option = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
        let shown = |setting: &Setting| {
            let sizes = setting.task.sizes.iter().map(|(name, value)| format!("{name}={value}"));
            let inputs = setting.inputs.iter().map(|(name, digest)| format!("{name} ({digest})"));
            let place = &setting.task.target;
            let of_place = |name: &str| {
                option(place.options().into_iter().find(|(own, _)| *own == name).map(|(_, value)| value))
            };
            [
                ("function", setting.task.function.clone()),
                ("--sizes", sizes.collect::<Vec<_>>().join(",")),
                ("--in", option(Some(inputs.collect::<Vec<_>>().join(", ")).filter(|list| !list.is_empty()))),
                ("--target", setting.task.target.target_name().to_string()),
                ("--threads", of_place("threads")),
                ("--vectors", of_place("vectors")),
                ("device", option(place.device().map(|gpu| format!("{gpu:?}")))),
                ("--strategy", setting.strategy.clone()),
                ("--seed", setting.seed.to_string()),
                ("--starts", setting.starts.to_string()),
                ("--trials", option(setting.trials.map(|trials| trials.to_string()))),
                ("--time", option(setting.time.map(|seconds| format!("{seconds}s")))),
                ("--template", option(setting.template.clone())),
                ("proofs", setting.proof_scope.describe().to_owned()),
                ("caches", format!("{:?}", setting.caches)),
                ("program text", setting.task.source.clone()),
            ]
        };
        let mut pairs = shown(self).into_iter().zip(shown(other));
        pairs.find(|(own, other)| own.1 != other.1).map(|(own, other)| (own.0, own.1, other.1))
    }
}
