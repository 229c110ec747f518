//! `tilewright cache`: lists, shows, exports, imports, merges and clears tuning records, and
//! explains why a lookup finds a record or none.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value, json};
use tilewright::cache::{
    BestUsable, Cache, CacheError, Canonical, Difference, Filter, MergeCounts, NearKey, OutcomeKind,
    ProgramKey, Summary, TOOL_VERSION, TargetFingerprint, TuningRecord, UnusableRecord, schedule_if_legal,
};
use tilewright::ir::Program;
use tilewright::syntax::check;
use tilewright::target::Machine;

use crate::args::RoundingArgs;
use crate::args::cache::{
    CacheCommand, CacheOption, ClearArgs, ExportArgs, ImportArgs, ListArgs, LookupArgs, MergeArgs,
};
use crate::failure::Failure;
use crate::inputs::{bindings, refuse_unknown_sizes};
use crate::machine::machine;
use crate::output::{print, printable};
use crate::problem::concrete_program;
use crate::schedule::describe_skipped;
use crate::source::Source;
use crate::target::Target;
use tilewright::report::time::{date, now, seconds};

/// The number of records that `show` prints in its text form.
const MAX_SHOWN: usize = 10;

/// Executes a subcommand.
pub fn run(command: &CacheCommand) -> Result<(), Failure> {
    match command {
        CacheCommand::List(args) => list(args),
        CacheCommand::Show(args) => show(args),
        CacheCommand::Explain(args) => explain(args),
        CacheCommand::Export(args) => export(args),
        CacheCommand::Import(args) => import(args),
        CacheCommand::Merge(args) => merge(args),
        CacheCommand::Clear(args) => clear(args),
    }
}

impl CacheOption {
    /// Returns the path of the cache.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        self.cache.clone().map_or_else(|| Cache::default_path().map_err(failure), Ok)
    }

    /// Opens the cache without creating it, for reading or for removing records. Returns `None` if
    /// no cache was named and the user's default cache does not exist yet.
    pub fn open_existing(&self) -> Result<Option<Cache>, Failure> {
        match Cache::open_existing(&self.path()?) {
            Err(CacheError::Missing(_)) if self.cache.is_none() => Ok(None),
            outcome => outcome.map(Some).map_err(failure),
        }
    }

    /// Opens the cache, and creates it if it is missing.
    pub fn open_or_create(&self) -> Result<Cache, Failure> {
        Cache::open(&self.path()?).map_err(failure)
    }
}

/// Converts an error of the cache to the failure that ends the command.
pub fn failure(error: CacheError) -> Failure {
    let text = error.to_string();
    match error {
        CacheError::NoHome
        | CacheError::ReadOnly(_)
        | CacheError::Full(_)
        | CacheError::Busy(_)
        | CacheError::Sql { .. } => Failure::Machine(text),
        CacheError::Invalid(_) => Failure::Bug(text),
        _ => Failure::Input(text),
    }
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let cache = args.cache.open_existing()?;
    let found = match &cache {
        Some(cache) => cache.summaries(&Filter::default()).map_err(failure)?,
        None => Vec::new(),
    };
    if args.json {
        let rows: Vec<Value> = found.iter().map(summary_json).collect();
        return print(&format!("{}\n", Value::from(rows)));
    }
    if found.is_empty() {
        return print(&format!(
            "no program was tuned yet: {} has no records\n",
            args.cache.path()?.display()
        ));
    }
    let header = ["PROGRAM", "TARGET", "THREADS", "TRIALS", "MEASURED", "BEST", "LAST (UTC)"];
    let rows = found.iter().map(|summary| {
        [
            printable(&summary.title),
            printable(&summary.key.target.to_string()),
            summary.key.threads.to_string(),
            summary.trials.to_string(),
            summary.measured.to_string(),
            summary.best.map_or("-".to_owned(), seconds),
            date(summary.last),
        ]
    });
    print(&table(&header.map(str::to_owned), &rows.collect::<Vec<_>>()))
}

/// Formats rows as text columns, each as wide as its longest cell.
fn table<const N: usize>(header: &[String; N], rows: &[[String; N]]) -> String {
    let lines = || std::iter::once(header).chain(rows);
    let widths: Vec<usize> =
        (0..N).map(|at| lines().map(|line| line[at].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for line in lines() {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out
}

/// A program with everything that its lookup in the cache needs.
struct Lookup {
    program: Program,
    canonical: Canonical,
    key: ProgramKey,
    machine: Machine,
    path: PathBuf,
    cache: Option<Cache>,
}

impl Lookup {
    fn read(args: &LookupArgs) -> Result<Lookup, Failure> {
        let program = sized_program(&args.source, &args.sizes, args.rounding)?;
        let why = "--target interp compiles nothing, so the cache has no records for it";
        let name = Target::find(&args.target)?.compiled(why)?;
        let machine = machine(name, &args.cpu)?;
        let canonical = Canonical::new(&program);
        let key = canonical.key_on(&machine);
        Ok(Lookup {
            program,
            canonical,
            key,
            machine,
            path: args.cache.path()?,
            cache: args.cache.open_existing()?,
        })
    }

    /// A short description of the program, the target and the threads of this lookup.
    fn describe(&self) -> String {
        let (title, target) = (self.canonical.title(), &self.key.target);
        let (count, processors) = self.machine.target().hardware().parallel_units();
        format!("{title} on {target} with {count} {processors}")
    }

    /// Returns the steps of a record in the names of the program, or the reason why they are
    /// illegal here.
    fn schedule(&self, record: &TuningRecord) -> Result<String, String> {
        let own = self.canonical.schedule_of(record, &self.machine);
        own.refusal.map_or(Ok(own.schedule.to_string()), |refusal| Err(refusal.to_string()))
    }
}

/// Checks a function at sizes that are all given.
fn sized_program(spec: &str, sizes: &[(String, i64)], rounding: RoundingArgs) -> Result<Program, Failure> {
    let (source, function) = Source::read_function(spec)?;
    let sizes = bindings(sizes)?;
    refuse_unknown_sizes(&source, &[source.function(&function)], &sizes)?;
    concrete_program(&source, &function, &sizes, rounding, "")
}

fn show(args: &LookupArgs) -> Result<(), Failure> {
    let lookup = Lookup::read(args)?;
    let mut records = match &lookup.cache {
        Some(cache) => cache.records(&Filter::for_key(&lookup.key)).map_err(failure)?,
        None => Vec::new(),
    };
    // Failures have no median and are listed last.
    let time = |record: &TuningRecord| record.median().unwrap_or(f64::INFINITY);
    records.sort_by(|one, other| time(one).total_cmp(&time(other)));
    let Some(best) = records.first() else {
        return Err(Failure::Input(format!(
            "{} has no records of {}; `tilewright cache explain` lists the nearest records",
            lookup.path.display(),
            lookup.describe()
        )));
    };
    if args.json {
        return print(&format!("{}\n", show_json(&lookup, &records)));
    }
    let mut out = format!("{}\n  cache     {}\n", lookup.describe(), lookup.path.display());
    let _ = writeln!(out, "  trials    {}: {}", records.len(), outcomes_text(&records));
    let shown_rows: Vec<[String; 5]> = records.iter().take(MAX_SHOWN).map(record_row).collect();
    let header = ["TIME", "STRATEGY", "TRIAL", "WHEN (UTC)", "VERSION"].map(str::to_owned);
    let _ = write!(out, "\n{}", table(&header, &shown_rows));
    if records.len() > MAX_SHOWN {
        let _ = writeln!(out, "… and {} more; --json prints all", records.len() - MAX_SHOWN);
    }
    if !best.resources.is_empty() {
        let _ = writeln!(out, "\nresources of the best kernel: {}", printable(&best.resources));
    }
    if best.median().is_some() {
        let _ = match lookup.schedule(best) {
            Ok(steps) => write!(out, "\nthe best schedule, as --schedule takes it\n{steps}"),
            Err(refusal) => writeln!(out, "\nthe best schedule is refused here: {}", printable(&refusal)),
        };
    }
    print(&out)
}

/// The number of records of each outcome, as text.
fn outcomes_text(records: &[TuningRecord]) -> String {
    let mut counts: BTreeMap<OutcomeKind, usize> = BTreeMap::new();
    records.iter().for_each(|record| *counts.entry(record.outcome.kind()).or_default() += 1);
    counts.into_iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
}

fn record_row(record: &TuningRecord) -> [String; 5] {
    let detail = printable(record.outcome.detail());
    let failed = || format!("{} {}", record.outcome.name(), detail).trim_end().to_owned();
    [
        record.median().map_or_else(failed, seconds),
        printable(&record.strategy),
        record.trial.map_or("-".to_owned(), |trial| trial.to_string()),
        date(record.time),
        printable(&record.tool_version),
    ]
}

fn explain(args: &LookupArgs) -> Result<(), Failure> {
    let lookup = Lookup::read(args)?;
    let (choice, nearest) = match &lookup.cache {
        Some(cache) => look_up(&lookup, cache).map_err(failure)?,
        None => (BestUsable { best: None, unusable: Vec::new() }, Vec::new()),
    };
    if args.json {
        return print(&format!("{}\n", explanation_json(&lookup, &choice, &nearest)));
    }
    let skipped = choice.unusable.iter().map(|one| format!("  skipped   {}\n", describe_skipped(one)));
    let skipped: String = skipped.collect();
    print(&match &choice.best {
        Some(record) => describe_hit(&lookup, record) + &skipped,
        None => describe_miss(&lookup, &nearest) + &skipped,
    })
}

/// Returns the record that `run` and `bench` would use, and the nearest records if there is none.
fn look_up(lookup: &Lookup, cache: &Cache) -> Result<(BestUsable<TuningRecord>, Vec<NearKey>), CacheError> {
    let Lookup { program, canonical, key, machine, .. } = lookup;
    let target = machine.target();
    let choice = cache
        .best_usable(key, &|record| schedule_if_legal(canonical, &record, program, target).map(|_| record))?;
    let nearest = if choice.best.is_none() { cache.nearest(key)? } else { Vec::new() };
    Ok((choice, nearest))
}

fn describe_hit(lookup: &Lookup, record: &TuningRecord) -> String {
    let mut out = format!("hit: {}\n", lookup.describe());
    let mut row = |name: &str, value: String| {
        let _ = writeln!(out, "  {name:<9} {}", printable(&value));
    };
    row("time", record.median().map_or("-".to_owned(), seconds));
    row("found by", record.strategy.clone());
    row("when", date(record.time));
    let version = &record.tool_version;
    if version != TOOL_VERSION {
        row("version", format!("measured by {version}; this is {TOOL_VERSION}, which can use it"));
    }
    out
}

fn describe_miss(lookup: &Lookup, nearest: &[NearKey]) -> String {
    let mut out = format!("miss: nothing was measured for {}\n", lookup.describe());
    if nearest.is_empty() {
        let _ = writeln!(out, "{} has no records", lookup.path.display());
        return out;
    }
    let _ = writeln!(out, "the nearest in {}:", lookup.path.display());
    for near in nearest {
        let Summary { title, trials, best, .. } = &near.summary;
        let best = best.map_or("none measured".to_owned(), |best| format!("best {}", seconds(best)));
        let trials = if *trials == 1 { "1 trial".to_owned() } else { format!("{trials} trials") };
        let _ = writeln!(out, "  {}: {trials}, {best}", printable(title));
        for difference in &near.differences {
            let (name, text) = describe_difference(&lookup.canonical, difference);
            let _ = writeln!(out, "    {name:<8} {}", printable(&text));
        }
    }
    out
}

/// Returns the name of the field that differs, and a sentence with both values.
fn describe_difference(canonical: &Canonical, difference: &Difference) -> (String, String) {
    let pair = |name: &str, wanted: &str, found: &str| {
        (name.to_owned(), format!("{wanted} here, {found} in the record"))
    };
    match difference {
        Difference::Program { wanted, found } => {
            let from = start_of_difference(wanted, found);
            pair("program", &quote(wanted, from), &quote(found, from))
        }
        Difference::Size { name, wanted, found } => {
            pair(canonical.program_size_name(name), &wanted.to_string(), &found.to_string())
        }
        Difference::Threads { wanted, found } => pair("threads", &wanted.to_string(), &found.to_string()),
        Difference::Target { field, wanted, found } => pair(field, wanted, found),
        Difference::NothingMeasured => ("outcome".to_owned(), "none of these records can be used".to_owned()),
    }
}

/// The number of characters quoted before the first difference of two lines, and in total.
const CONTEXT_CHARS: usize = 24;
const QUOTED_CHARS: usize = 80;

/// Returns the character at which quoting starts, so that some text before the first difference is
/// shown.
fn start_of_difference(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    if same < QUOTED_CHARS / 2 { 0 } else { same - CONTEXT_CHARS }
}

/// Quotes at most `QUOTED_CHARS` characters of a line from the given character on.
fn quote(line: &str, from: usize) -> String {
    let part: String = line.chars().skip(from).take(QUOTED_CHARS).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if line.chars().count() > from + QUOTED_CHARS { "…" } else { "" };
    format!("`{before}{part}{after}`")
}

fn export(args: &ExportArgs) -> Result<(), Failure> {
    let Some(cache) = args.cache.open_existing()? else {
        return Err(Failure::Input(format!(
            "there is nothing to export: no cache at {}",
            args.cache.path()?.display()
        )));
    };
    let count = cache.export(&args.out, &Filter::default()).map_err(failure)?;
    print(&format!("{} written to {}\n", records_text(count), args.out.display()))
}

fn import(args: &ImportArgs) -> Result<(), Failure> {
    let cache = args.cache.open_or_create()?;
    args.files.iter().try_for_each(|file| print_added(file, &cache, cache.import(file)))
}

fn merge(args: &MergeArgs) -> Result<(), Failure> {
    let cache = args.cache.open_or_create()?;
    args.files.iter().try_for_each(|file| print_added(file, &cache, cache.merge(file)))
}

fn print_added(
    from: &std::path::Path,
    cache: &Cache,
    outcome: Result<MergeCounts, CacheError>,
) -> Result<(), Failure> {
    let MergeCounts { added, known } = outcome.map_err(failure)?;
    print(&format!(
        "{}: {} added to {}, {known} already there\n",
        from.display(),
        records_text(added),
        cache.path().display()
    ))
}

fn clear(args: &ClearArgs) -> Result<(), Failure> {
    let Some(cache) = args.cache.open_existing()? else {
        return print(&format!("nothing to remove: there is no cache at {}\n", args.cache.path()?.display()));
    };
    if args.damaged {
        let removed = cache.clear_damaged().map_err(failure)?;
        return print(&format!("{} removed from {}\n", records_text(removed), cache.path().display()));
    }
    let filter = clear_filter(args)?;
    if filter == Filter::default() && !args.yes {
        let all = cache.count(&filter).map_err(failure)?;
        return Err(Failure::Usage(format!(
            "this would remove all {} of {}: give --yes, or a condition",
            records_text(all),
            cache.path().display()
        )));
    }
    let removed = cache.clear(&filter).map_err(failure)?;
    print(&format!("{} removed from {}\n", records_text(removed), cache.path().display()))
}

fn clear_filter(args: &ClearArgs) -> Result<Filter, Failure> {
    let older =
        args.older_than.map(|age| now().saturating_sub(i64::try_from(age.as_secs()).unwrap_or(i64::MAX)));
    let filter = Filter {
        threads: args.threads,
        before: older,
        measured: args.failed.then_some(false),
        ..Filter::default()
    };
    let Some(spec) = &args.source else { return Ok(filter) };
    if !args.sizes.is_empty() {
        let rounding = RoundingArgs { no_contract: args.no_contract };
        let canonical = Canonical::new(&sized_program(spec, &args.sizes, rounding)?);
        return Ok(Filter {
            program: Some(canonical.text().to_owned()),
            sizes: Some(canonical.sizes()),
            ..filter
        });
    }
    let (source, function) = Source::read_function(spec)?;
    let checked = check(&source.parsed.ast, &function, &Default::default());
    source.print(&checked.diagnostics);
    let program = checked.program.ok_or(Failure::Reported)?;
    let program = if args.no_contract { program.without_contraction() } else { program };
    Ok(Filter { program: Some(Canonical::new(&program).text().to_owned()), ..filter })
}

fn records_text(count: usize) -> String {
    if count == 1 { "1 record".to_owned() } else { format!("{count} records") }
}

fn target_json(target: &TargetFingerprint) -> Value {
    json!({
        "device": target.device,
        "model": target.model,
        "vectors": target.vectors,
        "caches": target.caches,
    })
}

fn summary_json(summary: &Summary) -> Value {
    json!({
        "program": summary.title,
        "canonical": summary.key.canonical,
        "sizes": sizes_json(&summary.key.sizes),
        "target": target_json(&summary.key.target),
        "threads": summary.key.threads,
        "trials": summary.trials,
        "measured": summary.measured,
        "best_us": summary.best.map(|best| best * 1e6),
        "last": summary.last,
    })
}

fn sizes_json(sizes: &[(String, i64)]) -> Value {
    sizes
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(*value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn record_json(lookup: &Lookup, record: &TuningRecord) -> Value {
    json!({
        "outcome": record.outcome.name(),
        "detail": record.outcome.detail(),
        "median_us": record.median().map(|median| median * 1e6),
        "samples_us": record.samples.iter().map(|seconds| seconds * 1e6).collect::<Vec<_>>(),
        "resources": record.resources,
        "strategy": record.strategy,
        "seed": record.seed,
        "trial": record.trial,
        "time": record.time,
        "tool_version": record.tool_version,
        "schedule": lookup.schedule(record).ok(),
        "canonical_schedule": record.schedule,
    })
}

fn show_json(lookup: &Lookup, records: &[TuningRecord]) -> Value {
    json!({
        "program": lookup.canonical.title(),
        "target": target_json(&lookup.key.target),
        "threads": lookup.key.threads,
        "records": records.iter().map(|record| record_json(lookup, record)).collect::<Vec<_>>(),
    })
}

fn explanation_json(lookup: &Lookup, choice: &BestUsable<TuningRecord>, nearest: &[NearKey]) -> Value {
    let difference = |one: &Difference| {
        let (field, text) = describe_difference(&lookup.canonical, one);
        json!({ "field": field, "difference": text })
    };
    let near = |near: &NearKey| {
        let differences: Vec<Value> = near.differences.iter().map(difference).collect();
        json!({ "near": summary_json(&near.summary), "differences": differences })
    };
    let skipped = skipped_json(&choice.unusable);
    match &choice.best {
        Some(record) => json!({ "hit": true, "record": record_json(lookup, record), "skipped": skipped }),
        None => {
            let nearest: Vec<Value> = nearest.iter().map(near).collect();
            json!({ "hit": false, "nearest": nearest, "skipped": skipped })
        }
    }
}

/// Formats unusable records as JSON.
pub fn skipped_json(skipped: &[UnusableRecord]) -> Value {
    let one = |one: &UnusableRecord| json!({ "median_us": one.seconds.map(|seconds| seconds * 1e6), "why": one.why });
    skipped.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_quoted_where_they_differ() {
        let long = "t2[v0, v1] = ".to_owned() + &"t0[v0] + ".repeat(30);
        let (one, other) = (format!("{long}t1[v0]"), format!("{long}t3[v0]"));
        let from = start_of_difference(&one, &other);
        assert_eq!(quote(&one, from), "`…0] + t0[v0] + t0[v0] + t1[v0]`");
        assert_eq!(quote(&other, from), "`…0] + t0[v0] + t0[v0] + t3[v0]`");
        assert_eq!(start_of_difference("abc", "abd"), 0);
        assert_eq!(quote(&long, 0), format!("`{}…`", &long[..QUOTED_CHARS]));
    }
}
