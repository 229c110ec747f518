//! `tilewright train`: trains the cost model for a machine.

mod collect;
mod judge;

use std::path::PathBuf;

use tilewright::target::Machine;
use tilewright::train::folder;
use tilewright::train::judge::best;
use tilewright::tuner::task::ExecutionTarget;

use crate::args::train::{Phase, TrainArgs};
use crate::failure::Failure;
use crate::machine::machine;
use crate::pending_file::PendingFile;
use crate::target::Target;

/// Runs the phases that the arguments name.
pub fn run(args: &TrainArgs) -> Result<(), Failure> {
    let why = "models are trained with kernels, and --target interp has none";
    let name = Target::find(&args.target)?.compiled(why)?;
    let machine = machine(name, &args.cpu)?;
    let place = ExecutionTarget::for_target(name, &machine);
    let runs = |phase: Phase| args.phase.is_none_or(|own| own == phase);
    let data = data_files(args, &machine)?;
    if runs(Phase::Collect) {
        collect::run(args, &place, &data[0])?;
    }
    if runs(Phase::Judge) || runs(Phase::Fit) {
        let report = PendingFile::new("--report", args.report.as_deref())?;
        let found = judge::read(&data)?;
        let chosen = args.model.filter(|_| args.phase == Some(Phase::Fit));
        let model = match chosen {
            Some(model) => model,
            None => best(&judge::run(&found, report.as_ref())?),
        };
        if runs(Phase::Fit) {
            judge::fit(&found, model, &weights_file(args, &machine)?)?;
        }
    }
    Ok(())
}

/// The file of the trained model.
fn weights_file(args: &TrainArgs, machine: &Machine) -> Result<PathBuf, Failure> {
    let missing =
        || Failure::Machine("this machine has no folder for a user's data; give --weights".to_owned());
    args.weights.clone().or_else(|| folder::weights_file(machine.target())).ok_or_else(missing)
}

/// The files of measured schedules.
fn data_files(args: &TrainArgs, machine: &Machine) -> Result<Vec<PathBuf>, Failure> {
    if !args.data.is_empty() {
        return Ok(args.data.clone());
    }
    let missing = || Failure::Machine("this machine has no folder for a user's data; give --data".to_owned());
    Ok(vec![folder::training_file(machine.target()).ok_or_else(missing)?])
}
