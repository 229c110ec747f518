//! The schedule that a program is compiled by: one from a file, one from the cache, or the default one.

use std::path::Path;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use tilewright_ir::{LoopNest, Program};
use tilewright_schedule::text::{ParsedSchedule, StepSpans, parse};
use tilewright_schedule::{Illegal, Refusal, Schedule, apply, blame, default_schedule};
use tilewright_syntax::Span;
use tilewright_target::Target;

use crate::failure::Failure;
use crate::output::complain;
use crate::text::{TextFile, style};
use crate::time::seconds;

/// What `--schedule` takes for the default schedule, tuned or not.
const DEFAULT: &str = "default";

/// Where a schedule comes from.
pub enum ScheduleSource {
    /// Static analysis of the program.
    Default {
        /// Why it is not another one, where that is worth saying.
        why: Option<String>,
    },
    /// The best that tuning has found for the program on this machine.
    Tuned {
        /// The steps, in the program's own names.
        schedule: Schedule,
        /// The time that was measured, in seconds.
        seconds: f64,
        /// Whether nothing was faster than the default schedule.
        is_default: bool,
    },
    /// A file, with the places of its steps.
    File {
        /// The text.
        file: TextFile,
        /// What it says.
        parsed: ParsedSchedule,
    },
}

impl ScheduleSource {
    /// Reads a schedule, if there is a file, and shows every mistake in its text. `default` is a word and no file.
    pub fn read(path: Option<&Path>) -> Result<ScheduleSource, Failure> {
        let Some(path) = path.filter(|path| *path != Path::new(DEFAULT)) else {
            return Ok(ScheduleSource::Default { why: None });
        };
        let file = TextFile::read(path)?;
        let parsed = parse(&file.text);
        file.draw(&parsed.diagnostics);
        if parsed.has_errors() {
            return Err(Failure::Reported);
        }
        Ok(ScheduleSource::File { file, parsed })
    }

    /// The word for it in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            ScheduleSource::Default { .. } => DEFAULT,
            ScheduleSource::Tuned { .. } => "cache",
            ScheduleSource::File { .. } => "file",
        }
    }

    /// What it is, for people.
    pub fn describe(&self) -> String {
        match self {
            ScheduleSource::Default { why: None } => DEFAULT.to_owned(),
            ScheduleSource::Default { why: Some(why) } => format!("{DEFAULT}: {why}"),
            ScheduleSource::Tuned { seconds: time, is_default: true, .. } => {
                format!("{DEFAULT}, which won the tuning: {} then", seconds(*time))
            }
            ScheduleSource::Tuned { seconds: time, .. } => {
                format!("tuned, from the cache: {} then", seconds(*time))
            }
            ScheduleSource::File { file, .. } => file.path.clone(),
        }
    }

    /// The steps for a program on a machine.
    pub fn schedule<'t>(&self, program: &'t Program, target: impl Into<Target<'t>>) -> Schedule {
        match self {
            ScheduleSource::Default { .. } => default_schedule(program, target),
            ScheduleSource::Tuned { schedule, .. } => schedule.clone(),
            ScheduleSource::File { parsed, .. } => parsed.schedule.clone(),
        }
    }

    /// The loops that the steps make of a program. A step that cannot be done is shown in its file.
    pub fn apply<'t>(
        &self,
        program: &'t Program,
        target: impl Into<Target<'t>>,
    ) -> Result<LoopNest, Failure> {
        let target = target.into();
        let schedule = self.schedule(program, target);
        let refusal = match apply(program, &schedule, target) {
            Ok(nest) => return Ok(nest),
            Err(refusal) => blame(program, &schedule, target, refusal),
        };
        match self {
            ScheduleSource::File { file, parsed } if refusal.step.is_some() => {
                Err(refused(file, parsed, &refusal))
            }
            _ if matches!(refusal.reason, Illegal::TooLarge { .. }) => {
                Err(Failure::Input(format!("{}; give smaller sizes", refusal.reason)))
            }
            ScheduleSource::File { file, parsed } => Err(refused(file, parsed, &refusal)),
            ScheduleSource::Default { .. } | ScheduleSource::Tuned { .. } => {
                Err(Failure::Bug(format!("the schedule of `{}` is refused: {refusal}", program.name)))
            }
        }
    }
}

/// Draws why a schedule is refused under the step at fault, where there is one.
fn refused(file: &TextFile, parsed: &ParsedSchedule, refusal: &Refusal) -> Failure {
    let Some(spans) = refusal.step.and_then(|step| parsed.spans.get(step)) else {
        return Failure::Input(format!("{} cannot be used: {}", file.path, refusal.reason));
    };
    complain(&format!("{}\n", draw(file, place(spans, &refusal.reason), &refusal.reason.to_string())));
    Failure::Reported
}

/// The part of the step that the reason is about, or all of it.
fn place(spans: &StepSpans, reason: &Illegal) -> Span {
    if let Illegal::Layout { part, .. } = reason {
        return layout_place(spans, *part);
    }
    // Most telling first: a step that brought the reason about need not name all of it.
    let about: Vec<&str> = match reason {
        Illegal::UnknownLoop { statement, name, .. } => return spans.of(&format!("{statement}.{name}")),
        Illegal::UnknownStatement { name, .. }
        | Illegal::GoneLoop { name, .. }
        | Illegal::UnknownTensor { name, .. }
        | Illegal::NameTaken(name)
        | Illegal::BadFactor { name, .. }
        | Illegal::CarriedDependence { name, .. }
        | Illegal::TooLong { name, .. }
        | Illegal::RegisterTile { name, .. }
        | Illegal::ThreadRegisters { name, .. }
        | Illegal::RegisterData { name }
        | Illegal::Combine { name, .. }
        | Illegal::Rfactor { name, .. } => vec![name],
        Illegal::NotNested { inner, .. } | Illegal::DependentExtent { inner, .. } => vec![inner],
        Illegal::RegisterIndex { name, loop_name } | Illegal::VectorBuffer { name, loop_name } => {
            vec![loop_name, name]
        }
        Illegal::WideInVector { tensor, reduced, loop_name } => vec![loop_name, reduced, tensor],
        Illegal::Inline { tensor, .. }
        | Illegal::ComputeAt { tensor, .. }
        | Illegal::Promote { tensor, .. }
        | Illegal::Prefetch { tensor, .. } => vec![tensor],
        Illegal::GpuLimit { statement, .. } => vec![statement],
        Illegal::OpenSize(_)
        | Illegal::Kernel(_)
        | Illegal::Layout { .. }
        | Illegal::TooMuchCode { .. }
        | Illegal::TooLarge { .. }
        | Illegal::BadLoopList(_)
        | Illegal::LoopKind(_) => {
            return spans.step;
        }
    };
    // Reasons name a loop or a statement on its own; in the text it is a part of `C[2].io`.
    let is_part = |name: &str, about: &str| {
        name.rsplit_once('.').is_some_and(|(statement, own)| statement == about || own == about)
    };
    let exact = |about: &&str| spans.names.iter().find(|(name, _)| name == about);
    let part = |about: &&str| spans.names.iter().find(|(name, _)| is_part(name, about));
    let found = about.iter().find_map(exact).or_else(|| about.iter().find_map(part));
    found.map_or(spans.step, |(_, span)| *span)
}

/// One dimension of the step's layout, or all of them.
fn layout_place(spans: &StepSpans, part: Option<usize>) -> Span {
    let one = part.and_then(|part| spans.layout.get(part)).copied();
    let all = || Some(spans.layout.first()?.to(*spans.layout.last()?));
    one.or_else(all).unwrap_or(spans.step)
}

/// A message with the line it is about.
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
