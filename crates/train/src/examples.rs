//! Turns records of measurements into examples: the features of each schedule, and its time.

use std::thread;

use tilewright_schedule::{apply, text};
use tilewright_search::cost::learned::{RootFeatures, features_of};
use tilewright_search::kind::{cost_model, family, speeds};

use crate::data::ProgramRecord;

/// The schedules of a program that a model learns from or is judged by.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name of the program.
    pub name: String,
    /// The kind of machines that ran it, such as `avx512`.
    pub family: String,
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
    (schedules.len() > 1).then(|| Program {
        name: record.name(),
        family: family(target),
        kind: record.kind.clone(),
        schedules,
    })
}

/// Made-up programs, for tests of training.
#[cfg(test)]
pub(crate) mod made_up {
    use tilewright_search::cost::learned::{StageFeatures, StageInput, TERMS};

    use super::*;

    /// Programs whose schedules take 4 times as long as the analytical model predicts, if their
    /// last feature is 1. The first feature says nothing.
    pub(crate) fn programs() -> Vec<Program> {
        let schedule = |noise: f32, slow: f32, seconds: f64| {
            let mut stage = StageInput { values: [0.0; StageFeatures::COUNT], terms: [0.0; TERMS] };
            (stage.values[0], stage.values[StageFeatures::COUNT - 1]) = (noise, slow);
            stage.terms[TERMS - 1] = seconds as f32;
            let root = RootFeatures { seconds, values: vec![noise, slow], stages: vec![stage] };
            Example { roots: vec![root], seconds: seconds * if slow > 0.5 { 4.0 } else { 1.0 } }
        };
        let program = |number: usize| {
            let noise = |at: usize| (number * 7 + at * 5) as f32 % 3.0;
            Program {
                name: format!("program {number}"),
                family: "avx2".to_owned(),
                kind: "pointwise".to_owned(),
                schedules: (0..6).map(|at| schedule(noise(at), (at % 2) as f32, 1e-3)).collect(),
            }
        };
        (0..20).map(program).collect()
    }
}
