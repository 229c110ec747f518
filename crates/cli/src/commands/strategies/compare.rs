//! `tilewright strategies compare`: runs several strategies on the same programs and reports the
//! outcome.

use std::sync::Arc;

use tilewright::knob::Knobs;
use tilewright::report::comparison;
use tilewright::strategy::{ALL, Experience, Start, by_name, grid};
use tilewright::target::host_model;
use tilewright::tuner::compare::{
    Budget, CompareError, ComparedProgram, Comparison, ComparisonOptions, Landscape, LandscapeFile,
    LandscapeFileError, ProgramEntry, ProgramResult,
};
use tilewright::tuner::fleet::Fleet;
use tilewright::tuner::tune::Stop;

use super::files::{Files, json};
use super::programs::{given_programs, machine_of, recorded_programs};
use super::progress::ProgressDisplay;
use crate::args::strategies::CompareArgs;
use crate::failure::Failure;
use crate::output::{print, print_error_line};
use crate::template;
use crate::worker::{self, launch, stop_on_signals};

/// The number of trials of a search if no limit is given.
const DEFAULT_TRIALS: usize = 100;

/// Compares strategies on every program, prints the tables, and writes the files of `--out`.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let contest = contest(args)?;
    let mut recording = open_recording(args)?;
    let entries =
        if args.replay.is_some() { recorded_programs(args, &recording)? } else { given_programs(args)? };
    let files = args.out.as_deref().map(Files::new).transpose()?;
    let stop = stop_on_signals();
    let mut comparison = Comparison { setting: about(args, &contest, &entries), programs: Vec::new() };
    let mut experience = Vec::new();
    let mut ended = Ok(());
    for entry in &entries {
        match compare(args, entry, &contest, &mut recording, &experience, &stop) {
            Ok((compared, measured)) => {
                comparison.programs.push(compared);
                experience.extend(measured);
            }
            Err(failure) => ended = Err(failure),
        }
        if stop.is_requested() || ended.is_err() {
            break;
        }
    }
    if comparison
        .programs
        .iter()
        .all(|compared| compared.strategies.iter().all(|own| own.searches.is_empty()))
    {
        return ended.and(Err(Failure::Input("stopped before any search was complete".to_owned())));
    }
    if stop.is_requested() || ended.is_err() {
        print_error_line("stopped: the table has only the complete searches");
    }
    print(&if args.json { json(&comparison)? } else { comparison::text(&comparison) })?;
    if let Some(files) = files {
        print_error_line(&files.write(&comparison)?);
    }
    ended
}

/// The strategies that are compared, their seeds and their budget.
fn contest(args: &CompareArgs) -> Result<ComparisonOptions, Failure> {
    let all =
        || ALL.iter().map(|entry| entry.name).filter(|name| *name != grid::ENTRY.name).map(str::to_owned);
    let strategies = if args.strategies.is_empty() { all().collect() } else { args.strategies.clone() };
    for (at, name) in strategies.iter().enumerate() {
        by_name(name, &Knobs::default(), Start::default())
            .map_err(|error| Failure::Usage(error.to_string()))?;
        if strategies[..at].contains(name) {
            return Err(Failure::Usage(format!("--strategies has {name} twice")));
        }
    }
    let limited = args.time.is_some() || args.share.is_some();
    let budget = Budget {
        trials: args.trials.or((!limited).then_some(DEFAULT_TRIALS)),
        time: args.time,
        share: args.share,
    };
    Ok(ComparisonOptions {
        strategies,
        seeds: args.seeds.clone().collect(),
        budget,
        starts: args.starts,
        exhaustive_limit: u128::from(args.exhaustive),
        uses_nest_features: !args.knob_features_only,
        parallel_searches: args.parallel_searches,
    })
}

/// Opens the file of earlier measurements: for appending with `--record`, for reading with
/// `--replay`.
fn open_recording(args: &CompareArgs) -> Result<LandscapeFile, Failure> {
    let opened = match (&args.record, &args.replay) {
        (Some(path), _) => (path, LandscapeFile::open(path)),
        (None, Some(path)) => (path, LandscapeFile::read(path)),
        (None, None) => return Ok(LandscapeFile::default()),
    };
    let failure = |error: LandscapeFileError| Failure::Input(format!("{}: {error}", opened.0.display()));
    opened.1.map_err(failure)
}

/// Runs all strategies on one program. With `--transfer`, also returns the measurements that the
/// models of the next programs learn from.
fn compare(
    args: &CompareArgs,
    entry: &ProgramEntry,
    contest: &ComparisonOptions,
    recording: &mut LandscapeFile,
    experience: &[Experience],
    stop: &Arc<Stop>,
) -> Result<(ProgramResult, Option<Experience>), Failure> {
    let failure = |error: CompareError| failure(error);
    let task = entry.task.task().map_err(|error| Failure::Input(error.to_string()))?;
    let program = &task.program;
    let machine = machine_of(entry)?;
    let space = template::space(entry.template.as_deref(), program, &machine)?;
    let arena = ComparedProgram::new(program, &machine, &space, experience);
    let mut watch = ProgressDisplay::new(&entry.name, contest);
    let known = recording.costs(entry);
    let compete = |landscape: &mut Landscape<'_>, watch: &mut ProgressDisplay| {
        let compared = arena.compare(entry.name.clone(), contest, landscape, watch, stop);
        watch.end();
        report_missing(landscape);
        Ok((compared.map_err(failure)?, args.transfer.then(|| arena.experience(landscape))))
    };
    if args.replay.is_some() {
        return compete(&mut Landscape::recorded(known), &mut watch);
    }
    let mut fleet = Fleet::start(&launch()?, task.clone(), Vec::new(), stop).map_err(worker::failure)?;
    recording.begin_program(entry).map_err(|error| failure(CompareError::Record(error)))?;
    compete(&mut Landscape::measured(known, &mut fleet, recording), &mut watch)
}

fn report_missing(landscape: &Landscape<'_>) {
    if let Some(why) = landscape.final_race_error() {
        print_error_line(&format!(
            "warning: the best schedules could not be compared with each other: {why}"
        ));
    }
    if landscape.unknown_count() > 0 {
        print_error_line(&format!(
            "warning: {} candidates are not in the recording and count as failed; it was made with other options",
            landscape.unknown_count()
        ));
    }
}

fn failure(error: CompareError) -> Failure {
    match error {
        CompareError::Worker(lost) => worker::failure(lost),
        CompareError::Strategy(error) => Failure::Usage(error.to_string()),
        CompareError::Task(error) => Failure::Input(error.to_string()),
        CompareError::Record(error) => Failure::Machine(CompareError::Record(error).to_string()),
        CompareError::Stopped => Failure::Input("stopped before any search was complete".to_owned()),
        error @ CompareError::Default(_) => Failure::Machine(error.to_string()),
    }
}

/// Describes how the comparison was made: budget, machine and options.
fn about(args: &CompareArgs, contest: &ComparisonOptions, entries: &[ProgramEntry]) -> Vec<(String, String)> {
    let Budget { trials, time, share } = contest.budget;
    let budget = [
        trials.map(|trials| format!("{trials} trials")),
        time.map(|time| format!("{:.1} s", time.as_secs_f64())),
        share.map(|share| format!("{} % of the space", 100.0 * share)),
    ];
    let place = entries.first().map(|entry| match entry.task.target.options().as_slice() {
        [(_, threads), (_, vectors)] => {
            let model = if args.replay.is_some() { "a CPU".to_owned() } else { host_model() };
            format!("{model}: {threads} threads, {vectors}")
        }
        _ => {
            let machine = entry.task.target.recorded_machine(&entry.caches);
            machine.map(|machine| machine.target().hardware().model()).unwrap_or_default()
        }
    });
    let row = |name: &str, value: String| (name.to_owned(), value);
    let mut about = vec![
        row("machine", place.unwrap_or_default()),
        row("budget of a search", budget.into_iter().flatten().collect::<Vec<_>>().join(", ")),
        row("seeds", contest.seeds.len().to_string()),
        row("starting points", contest.starts.to_string()),
        row("searches at the same time", contest.parallel_searches.to_string()),
        row("version", tilewright::cache::TOOL_VERSION.to_owned()),
    ];
    if args.replay.is_some() {
        about.push(row("measurements", "replayed from a recording".to_owned()));
    }
    about
}
