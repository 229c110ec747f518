//! Chooses the schedule that a program is compiled with: from a file, from the cache, or the
//! default one. If the schedule is refused, prints the reason under the step at fault.

use std::path::Path;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use tilewright::cache::{CacheError, Difference, UnusableRecord};
use tilewright::driver::{ChosenSchedule, Origin, lower};
use tilewright::explain::{Explanation, explain};
use tilewright::ir::{LoopNest, Program};
use tilewright::kind::cost_model as usual_model;
use tilewright::report::{MeasuredTimes, ProgramPage};
use tilewright::schedule::text::{ParsedSchedule, StepSpans, parse};
use tilewright::schedule::{Illegal, Refusal};
use tilewright::syntax::Span;
use tilewright::target::Target;
use tilewright::train::model::{ModelChoice, cost_model};

use crate::args::CompileArgs;
use crate::args::cache::CacheOption;
use crate::commands::cache::failure as cache_failure;
use crate::failure::Failure;
use crate::output::{print_error_line, printable};
use crate::text::{TextFile, style};
use tilewright::report::time::seconds;

/// The value of `--schedule` that selects the default schedule, even where a tuned one exists.
const DEFAULT: &str = "default";

/// The value of `--schedule` that selects a search without trials.
const AUTO: &str = "auto";

/// A schedule file, with the positions of its steps.
pub struct ScheduleFile {
    text: TextFile,
    parsed: ParsedSchedule,
}

/// The schedule that the option `--schedule` selects.
pub enum ScheduleOption {
    /// The option is absent: the best schedule of the cache, else the default schedule.
    Best,
    /// The default schedule, even where a tuned one exists.
    Default,
    /// A search by a cost model alone.
    Auto(ModelChoice),
    /// The schedule in a file.
    File(ScheduleFile),
}

impl ScheduleOption {
    /// Reads a schedule file, and shows every mistake in its text. `default` and `auto` are
    /// keywords, not files.
    pub fn read(args: &CompileArgs) -> Result<ScheduleOption, Failure> {
        let Some(path) = args.schedule.as_deref() else { return Ok(ScheduleOption::Best) };
        if path == Path::new(DEFAULT) {
            return Ok(ScheduleOption::Default);
        }
        if path == Path::new(AUTO) {
            return Ok(ScheduleOption::Auto(args.model_choice()));
        }
        let text = TextFile::read(path)?;
        let parsed = parse(&text.text);
        text.draw(&parsed.diagnostics);
        if parsed.has_errors() {
            return Err(Failure::Reported);
        }
        Ok(ScheduleOption::File(ScheduleFile { text, parsed }))
    }

    /// Chooses the schedule of a program. If the default cache cannot be read, prints a warning and
    /// uses the default schedule.
    pub fn choose<'t>(
        self,
        program: &'t Program,
        target: impl Into<Target<'t>>,
        file: &CacheOption,
    ) -> Result<ScheduleSource, Failure> {
        let target = target.into();
        match self {
            ScheduleOption::Best => match best(program, target, file) {
                Err(failure) if file.cache.is_none() => {
                    print_error_line(&format!("warning: {failure}; the default schedule is used"));
                    Ok(ScheduleSource::default(program, target))
                }
                chosen => chosen,
            },
            asked => Ok(asked.without_cache(program, target)),
        }
    }

    /// Chooses the schedule of a program without reading the cache.
    pub fn without_cache(self, program: &Program, target: Target<'_>) -> ScheduleSource {
        match self {
            ScheduleOption::Best | ScheduleOption::Default => ScheduleSource::default(program, target),
            ScheduleOption::Auto(model) => {
                let model = cost_model(target, model);
                let chosen = ChosenSchedule::searched_with(program, target, &*model);
                ScheduleSource { chosen, file: None, why: None }
            }
            ScheduleOption::File(file) => {
                let chosen = ChosenSchedule::given(file.parsed.schedule.clone());
                ScheduleSource { chosen, file: Some(file), why: None }
            }
        }
    }
}

/// Returns the best schedule of the cache, or the default schedule.
fn best(program: &Program, target: Target<'_>, file: &CacheOption) -> Result<ScheduleSource, Failure> {
    let path = file.path()?;
    match ChosenSchedule::from_cache(program, target, &path) {
        Ok(chosen) => Ok(ScheduleSource { chosen, file: None, why: None }),
        Err(CacheError::Missing(_)) => {
            let why = file.cache.is_some().then(|| format!("there is no cache at {}", path.display()));
            Ok(ScheduleSource { why, ..ScheduleSource::default(program, target) })
        }
        Err(error) => Err(cache_failure(error)),
    }
}

/// The schedule that a program is compiled with, and where it comes from.
pub struct ScheduleSource {
    /// The steps.
    pub chosen: ChosenSchedule,
    /// The file that the steps were read from.
    pub file: Option<ScheduleFile>,
    /// The reason for using the default schedule, where the user should know it.
    why: Option<String>,
}

impl ScheduleSource {
    /// The default schedule.
    pub fn default(program: &Program, target: Target<'_>) -> ScheduleSource {
        ScheduleSource { chosen: ChosenSchedule::default(program, target), file: None, why: None }
    }

    /// The name of the origin in JSON.
    pub fn name(&self) -> &'static str {
        match &self.chosen.origin {
            Origin::Default => DEFAULT,
            Origin::Searched { .. } => AUTO,
            Origin::Tuned { .. } => "cache",
            Origin::Adapted { .. } => "adapted",
            Origin::Given => "file",
        }
    }

    /// Describes the origin as text.
    pub fn describe(&self) -> String {
        match (&self.chosen.origin, &self.file, &self.why) {
            (_, Some(file), _) => file.text.path.clone(),
            (Origin::Tuned { seconds: time, is_default: true }, ..) => {
                format!("{DEFAULT}, which was the fastest when tuned: {}", seconds(*time))
            }
            (Origin::Tuned { seconds: time, .. }, ..) => {
                format!("tuned, from the cache: {} when tuned", seconds(*time))
            }
            (Origin::Searched { seconds: time }, ..) => {
                format!("{AUTO}: {} predicted", seconds(*time))
            }
            (Origin::Adapted { differences }, ..) => describe_adapted(differences),
            (_, _, Some(why)) => format!("{DEFAULT}: {why}"),
            _ => DEFAULT.to_owned(),
        }
    }

    /// Describes the origin as text, and for the default schedule how it was found.
    pub fn describe_explained(&self, explanation: &Explanation) -> String {
        let found = match (&self.chosen.origin, explanation.is_by_rules) {
            (Origin::Default, true) => ", by rules",
            (Origin::Default, false) => ", found by a search with the cost model",
            _ => "",
        };
        format!("{}{found}", self.describe())
    }

    /// Explains the schedule. `nest` is the result of applying it to the program.
    pub fn explain(
        &self,
        program: &Program,
        nest: &LoopNest,
        target: Target<'_>,
    ) -> Result<Explanation, Failure> {
        let explained = explain(program, &self.chosen.schedule, nest, target, &*usual_model(target));
        explained.map_err(|why| {
            Failure::Bug(format!("the schedule of `{}` cannot be explained: {why}", program.name))
        })
    }

    /// The page about the program with this schedule. `source` is the text of the program.
    pub fn page(
        &self,
        program: &Program,
        source: &str,
        target: Target<'_>,
        measured: Option<MeasuredTimes>,
    ) -> Result<String, Failure> {
        let nest = self.lower(program, target)?;
        let explanation = self.explain(program, &nest, target)?;
        let page = ProgramPage {
            program,
            source,
            schedule: &self.chosen.schedule,
            origin: self.describe_explained(&explanation),
            nest: &nest,
            explanation: &explanation,
            target,
            measured,
        };
        Ok(page.html())
    }

    /// Describes the faster records of the cache that cannot be used.
    pub fn skipped(&self) -> impl Iterator<Item = String> {
        self.chosen.unusable.iter().map(describe_skipped)
    }

    /// The path of the schedule file, if there is one.
    pub fn path(&self) -> Option<&str> {
        self.file.as_ref().map(|file| file.text.path.as_str())
    }

    /// The loops that the steps make of a program.
    pub fn lower(&self, program: &Program, target: Target<'_>) -> Result<LoopNest, Failure> {
        let nest = lower(program, &self.chosen.schedule, target);
        nest.map_err(|refusal| self.refused(program, &refusal))
    }

    /// The failure for an illegal schedule. A step at fault is shown in its file.
    pub fn refused(&self, program: &Program, refusal: &Refusal) -> Failure {
        match &self.file {
            Some(file) if refusal.step.is_some() => refused(file, refusal),
            _ if matches!(refusal.reason, Illegal::TooLarge { .. }) => {
                Failure::Input(format!("{}; give smaller sizes", refusal.reason))
            }
            Some(file) => refused(file, refusal),
            None => Failure::Bug(format!("the schedule of `{}` is refused: {refusal}", program.name)),
        }
    }
}

/// Says what a schedule was tuned for instead.
fn describe_adapted(differences: &[Difference]) -> String {
    let describe = |own: &Difference| match own {
        Difference::Threads { found: 1, .. } => "1 thread".to_owned(),
        Difference::Threads { found, .. } => format!("{found} threads"),
        Difference::Size { name, found, .. } => format!("{name}={found}"),
        // No schedule is adapted across other differences.
        Difference::Program { .. } | Difference::Target { .. } | Difference::NothingMeasured => String::new(),
    };
    let all: Vec<String> = differences.iter().map(describe).collect();
    format!("tuned for {}, and adapted; `tilewright tune` searches for a better one", all.join(" and "))
}

/// Describes a record that cannot be used.
pub fn describe_skipped(skipped: &UnusableRecord) -> String {
    let time =
        skipped.seconds.map_or("a record".to_owned(), |time| format!("a record with {}", seconds(time)));
    printable(&format!("{time} cannot be used: {}", skipped.why))
}

/// Prints why a schedule is refused, under the step at fault if there is one.
fn refused(file: &ScheduleFile, refusal: &Refusal) -> Failure {
    let ScheduleFile { text: file, parsed } = file;
    let Some(spans) = refusal.step.and_then(|step| parsed.spans.get(step)) else {
        return Failure::Input(format!("{} cannot be used: {}", file.path, refusal.reason));
    };
    print_error_line(&format!(
        "{}\n",
        draw(file, span_of_reason(spans, &refusal.reason), &refusal.reason.to_string())
    ));
    Failure::Reported
}

/// The part of the step that the reason is about, or the whole step.
fn span_of_reason(spans: &StepSpans, reason: &Illegal) -> Span {
    if let Illegal::Layout { part, .. } = reason {
        return layout_span(spans, *part);
    }
    // The most specific names come first: the step that caused the refusal need not mention all of
    // them.
    let about: Vec<&str> = match reason {
        Illegal::UnknownLoop { statement, name, .. } => return spans.span_of(&format!("{statement}.{name}")),
        Illegal::UnknownStatement { name, .. }
        | Illegal::ReplacedLoop { name, .. }
        | Illegal::UnknownTensor { name, .. }
        | Illegal::NameTaken(name)
        | Illegal::BadFactor { name, .. }
        | Illegal::CarriedDependence { name, .. }
        | Illegal::TooLong { name, .. }
        | Illegal::RegisterTile { name, .. }
        | Illegal::ThreadRegisters { name, .. }
        | Illegal::RegisterData { name }
        | Illegal::Combine { name, .. }
        | Illegal::Rfactor { name, .. }
        | Illegal::Scan { name, .. } => vec![name],
        Illegal::NotNested { inner, .. } | Illegal::DependentExtent { inner, .. } => vec![inner],
        Illegal::RegisterIndex { name, loop_name }
        | Illegal::RegisterLane { name, loop_name }
        | Illegal::BufferInVectorLoop { name, loop_name } => vec![loop_name, name],
        Illegal::WideAccumulatorInVector { tensor, reduced, loop_name } => vec![loop_name, reduced, tensor],
        Illegal::Inline { tensor, .. }
        | Illegal::Clone { tensor, .. }
        | Illegal::ComputeAt { tensor, .. }
        | Illegal::StoreAt { tensor, .. }
        | Illegal::Promote { tensor, .. }
        | Illegal::Prefetch { tensor, .. } => vec![tensor],
        Illegal::ComputeWith { target, .. } => vec![target],
        Illegal::GpuLimit { statement, .. } => vec![statement],
        Illegal::UnknownSize(_)
        | Illegal::Kernel(_)
        | Illegal::Layout { .. }
        | Illegal::TooMuchCode { .. }
        | Illegal::TooLarge { .. }
        | Illegal::BadLoopList(_)
        | Illegal::LoopKind(_) => {
            return spans.step;
        }
    };
    // Reasons name a loop or a statement alone; the text of a step has it as a part of `C[2].io`.
    let is_part = |name: &str, about: &str| {
        name.rsplit_once('.').is_some_and(|(statement, own)| statement == about || own == about)
    };
    let exact = |about: &&str| spans.names.iter().find(|(name, _)| name == about);
    let part = |about: &&str| spans.names.iter().find(|(name, _)| is_part(name, about));
    let found = about.iter().find_map(exact).or_else(|| about.iter().find_map(part));
    found.map_or(spans.step, |(_, span)| *span)
}

/// One dimension of the step's layout, or all of them.
fn layout_span(spans: &StepSpans, part: Option<usize>) -> Span {
    let one = part.and_then(|part| spans.layout.get(part)).copied();
    let all = || Some(spans.layout.first()?.to(*spans.layout.last()?));
    one.or_else(all).unwrap_or(spans.step)
}

/// Formats a message under the line that it is about.
fn draw(file: &TextFile, span: Span, message: &str) -> String {
    let (start, end) = (span.start as usize, span.end as usize);
    let from = file.text[..start].rfind('\n').map_or(0, |at| at + 1);
    let to = file.text[end..].find('\n').map_or(file.text.len(), |at| end + at);
    let line = 1 + file.text[..from].matches('\n').count();
    let snippet = Snippet::source(&file.text[from..to])
        .path(&file.path)
        .line_start(line)
        .annotation(AnnotationKind::Primary.span(start - from..end - from));
    let style = style();
    let renderer = if style.color { Renderer::styled() } else { Renderer::plain() };
    let group = Level::ERROR.primary_title(message).element(snippet);
    renderer.decor_style(DecorStyle::Ascii).term_width(style.width).render(&[group])
}
