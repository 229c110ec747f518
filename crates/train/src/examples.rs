//! Turns records of measurements into examples: the features of each schedule, and its time.

use std::thread;

use tilewright_schedule::{apply, text};
use tilewright_search::cost::learned::{RootFeatures, features_of};
use tilewright_search::kind::{cost_model, speeds};

use crate::data::ProgramRecord;

/// The schedules of a program that a model learns from or is judged by.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name of the program.
    pub name: String,
    /// The kind of the pipeline, or the name of a group.
    pub kind: String,
    /// The schedules.
    pub schedules: Vec<Example>,
}

/// A schedule.
#[derive(Clone, Debug)]
pub struct Example {
    /// The features of each statement outside of loops.
    pub roots: Vec<RootFeatures>,
    /// The measured seconds of a call.
    pub seconds: f64,
}

impl Example {
    /// The seconds by the analytical model.
    pub fn analytical(&self) -> f64 {
        self.roots.iter().map(|root| root.seconds).sum()
    }
}

/// The examples of records, computed on all cores. Programs and schedules that this version
/// refuses are left out.
pub fn programs(records: &[ProgramRecord]) -> Vec<Program> {
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut found = thread::scope(|scope| {
        let share = |first: usize| {
            let own = (first..records.len()).step_by(threads);
            scope.spawn(move || {
                own.filter_map(|at| Some((at, program(&records[at])?))).collect::<Vec<(usize, Program)>>()
            })
        };
        let running: Vec<_> = (0..threads).map(share).collect();
        running.into_iter().flat_map(|own| own.join().unwrap_or_default()).collect::<Vec<_>>()
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, program)| program).collect()
}

fn program(record: &ProgramRecord) -> Option<Program> {
    let task = record.task.task().ok()?;
    let machine = task.target.recorded_machine(&record.caches).ok()?;
    let target = machine.target();
    let (model, speeds) = (cost_model(target), speeds(target));
    let example = |steps: &str, seconds: f64| {
        let parsed = text::parse(steps);
        let nest = apply(&task.program, &parsed.schedule, target).ok().filter(|_| !parsed.has_errors())?;
        Some(Example { roots: features_of(&*model, &speeds, &nest), seconds })
    };
    let schedules: Vec<Example> =
        record.schedules.iter().filter_map(|own| example(&own.steps, own.seconds)).collect();
    (schedules.len() > 1).then(|| Program { name: record.name(), kind: record.kind.clone(), schedules })
}
