//! A run on file: all that it was told by whoever measured, and all that the clock decided. The same search with the same
//! answers ends with the same winner, without anything being measured again, however long it takes.
//!
//! | file | is |
//! |---|---|
//! | `mod.rs` | what a recording holds |
//! | `recorder.rs` | a measurer that asks another one, and writes down what it says |
//! | `replay.rs` | a measurer that answers from a recording |
//! | `file.rs` | its lines of JSON, and what is refused in them |

mod file;
mod recorder;
mod replay;

use serde::{Deserialize, Serialize};

pub use file::RecordingError;
pub use recorder::Recorder;
pub use replay::Replay;

use crate::peak::Peaks;
use crate::task::{Place, Task};
use crate::tune::{Proving, STARTS};
use tilewright_cache::outcome::Trial;

/// A run: what was asked for, and every answer of the measurer.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// What was asked for.
    pub setting: Setting,
    /// Answers in the order in which they came.
    pub answers: Vec<Answer>,
}

/// All that decides what a search does, apart from what is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The version of Tilewright, for the reader.
    pub tool_version: String,
    /// What was tuned. Inputs that were given are not in it: their files are gone when the run is over.
    pub task: Task,
    /// The names of those inputs, with a digest of what was in them: candidates were measured with that.
    pub inputs: Vec<(String, String)>,
    /// Bytes of the data caches of a processor, which the space depends on.
    pub caches: Vec<usize>,
    /// The name of the strategy.
    pub strategy: String,
    /// Decides all that is random.
    pub seed: u64,
    /// The most points that the cost model gives the search to start from.
    #[serde(default = "starts")]
    pub starts: usize,
    /// The most candidates.
    pub trials: Option<usize>,
    /// The most seconds.
    pub time: Option<f64>,
    /// Schedules from the cache that were tried first.
    pub hints: Vec<String>,
    /// What was tried for other programs, where the strategy learns from that: features and seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experience: Vec<Vec<(Vec<f32>, Option<f64>)>>,
    /// The schedules that were searched, where they are not those of the analysis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Which schedules were proved. Recordings from before that could be chosen have no proofs.
    #[serde(default)]
    pub proving: Proving,
    /// What the machine could do at most, if that was known.
    pub peaks: Option<Peaks>,
}

/// What a measurer said, and when: in seconds since the start. They are in the order in which they were given, and a
/// replay gives them in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// What the clock or a signal decided: how many, or whether.
    Decided {
        /// The number; 1 for yes.
        number: usize,
        /// When.
        at: f64,
    },
    /// What became of a candidate.
    Tried {
        /// Its schedule.
        schedule: String,
        /// What became of it.
        trial: Trial,
        /// When that was known.
        at: f64,
    },
    /// The last comparison.
    Raced {
        /// Who took part.
        schedules: Vec<String>,
        /// The times of each.
        samples: Vec<Vec<f64>>,
        /// When it was over.
        at: f64,
    },
    /// The run was over: the last line.
    Ended {
        /// Workers that were lost on the way.
        replaced: usize,
    },
}

/// Of recordings from before that could be chosen.
fn starts() -> usize {
    STARTS
}

impl Setting {
    /// In what another setting differs so that the search would be another one: a name, what is here, what is there.
    pub fn difference(&self, other: &Setting) -> Option<(&'static str, String, String)> {
        let option = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
        let shown = |setting: &Setting| {
            let sizes = setting.task.sizes.iter().map(|(name, value)| format!("{name}={value}"));
            let inputs = setting.inputs.iter().map(|(name, digest)| format!("{name} ({digest})"));
            let (threads, vectors, device) = match &setting.task.place {
                Place::Cpu { threads, vectors } => (Some(threads.to_string()), Some(vectors.clone()), None),
                Place::Device { gpu, .. } => (None, None, Some(format!("{gpu:?}"))),
            };
            [
                ("function", setting.task.function.clone()),
                ("--sizes", sizes.collect::<Vec<_>>().join(",")),
                ("--in", option(Some(inputs.collect::<Vec<_>>().join(", ")).filter(|list| !list.is_empty()))),
                ("--target", setting.task.place.name()),
                ("--threads", option(threads)),
                ("--vectors", option(vectors)),
                ("device", option(device)),
                ("--strategy", setting.strategy.clone()),
                ("--seed", setting.seed.to_string()),
                ("--starts", setting.starts.to_string()),
                ("--trials", option(setting.trials.map(|trials| trials.to_string()))),
                ("--time", option(setting.time.map(|seconds| format!("{seconds}s")))),
                ("--template", option(setting.template.clone())),
                ("proofs", setting.proving.describe().to_owned()),
                ("caches", format!("{:?}", setting.caches)),
                ("program text", setting.task.source.clone()),
            ]
        };
        let mut pairs = shown(self).into_iter().zip(shown(other));
        pairs.find(|(own, other)| own.1 != other.1).map(|(own, other)| (own.0, own.1, other.1))
    }
}
