//! Collects the programs of a comparison, from the command line or from a recording of an earlier
//! comparison.

use tilewright::target::Machine;
use tilewright::tuner::compare::{LandscapeFile, ProgramEntry};
use tilewright::tuner::task::{ExecutionTarget, RecordedTask};

use crate::args::strategies::CompareArgs;
use crate::args::{ProgramArgs, RoundingArgs, parse_sizes};
use crate::failure::Failure;
use crate::machine::machine;
use crate::problem::Problem;
use crate::target::Target;
use crate::template;

/// Returns the programs of the command line.
pub fn given_programs(args: &CompareArgs) -> Result<Vec<ProgramEntry>, Failure> {
    let (place, caches) = place(args)?;
    let template = template::read(args.template.as_deref())?;
    let entry = |text: &String| entry(args, text, place.clone(), caches.clone(), template.clone());
    args.programs.iter().map(entry).collect()
}

/// Returns the programs of a recording: all, or those that the command line names.
pub fn recorded_programs(
    args: &CompareArgs,
    recording: &LandscapeFile,
) -> Result<Vec<ProgramEntry>, Failure> {
    let mut entries: Vec<ProgramEntry> = Vec::new();
    for entry in recording.entries() {
        if !entries.contains(entry) {
            entries.push(entry.clone());
        }
    }
    if entries.is_empty() {
        return Err(Failure::Input("the recording has no program yet".to_owned()));
    }
    if args.programs.is_empty() {
        return Ok(entries);
    }
    let mut named = Vec::new();
    for text in &args.programs {
        let name = read(args, text).map(|problem| name(&problem))?;
        // One program may be recorded with several templates, or on several machines.
        let before = named.len();
        named.extend(entries.iter().filter(|entry| entry.name == name).cloned());
        if named.len() == before {
            return Err(Failure::Input(format!("the recording has no {name}")));
        }
    }
    Ok(named)
}

fn entry(
    args: &CompareArgs,
    text: &str,
    place: ExecutionTarget,
    caches: Vec<usize>,
    template: Option<String>,
) -> Result<ProgramEntry, Failure> {
    let problem = read(args, text)?;
    let task = RecordedTask {
        source: problem.source.file.text.clone(),
        function: problem.program.name.clone(),
        sizes: problem.given_sizes(),
        target: place,
        seed: 0,
        contract: true,
    };
    Ok(ProgramEntry { name: name(&problem), task, caches, template })
}

/// Reads a program from `FILE[:NAME][@SIZES]`.
fn read(args: &CompareArgs, text: &str) -> Result<Problem, Failure> {
    let (file, sizes) = match text.rsplit_once('@') {
        Some((file, sizes)) => {
            (file, parse_sizes(sizes).map_err(|why| Failure::Usage(format!("{text}: {why}")))?)
        }
        None => (text, args.sizes.clone()),
    };
    let rounding = RoundingArgs::default();
    Problem::read(&ProgramArgs { file: file.to_owned(), sizes, inputs: Vec::new(), seed: 0, rounding })
}

fn name(problem: &Problem) -> String {
    let sizes = problem.sizes().map(|(name, value)| format!("{name}={value}"));
    format!("{} {}", problem.program.name, sizes.collect::<Vec<_>>().join(",")).trim_end().to_owned()
}

/// Returns where kernels run, and the cache sizes of that machine.
fn place(args: &CompareArgs) -> Result<(ExecutionTarget, Vec<usize>), Failure> {
    let why = "strategies are compared on kernels, and --target interp has none";
    let name = Target::find(&args.target)?.compiled(why)?;
    let machine = machine(name, &args.cpu)?;
    let caches = machine.target().hardware().warm_cache_sizes().to_vec();
    Ok((ExecutionTarget::for_target(name, &machine), caches))
}

/// Returns the machine that an entry was measured on. In a replay it may differ from this machine,
/// because nothing is run.
pub fn machine_of(entry: &ProgramEntry) -> Result<Machine, Failure> {
    entry.task.target.recorded_machine(&entry.caches).map_err(|error| Failure::Input(error.to_string()))
}
