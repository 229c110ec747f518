//! Reads and writes files of landscapes, the costs of programs' schedules ([`LandscapeFile`]). The
//! command `tilewright strategies compare --record` makes such files.
//!
//! A file has lines of JSON: a program, and then the schedules that were measured for it. Lines are
//! only ever appended, so a process that is killed loses nothing that it has measured.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::landscape::{CostRecorder, KnownCost};
use crate::task::RecordedTask;

/// The format name in the first line.
const FORMAT: &str = "tilewright landscapes";
const VERSION: u32 = 2;
/// The first version, which has no times from final races.
const FIRST_VERSION: u32 = 1;

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub enum LandscapeFileError {
    /// The first line is not that of a recorded comparison.
    #[error("this file was not written by `tilewright strategies compare --record`")]
    NotALandscapeFile,
    /// The file was written by another version of Tilewright.
    #[error("this file has version {0}, and this Tilewright reads up to version {VERSION}")]
    Version(u32),
    /// A line, counted from 1, is invalid.
    #[error("line {0} is invalid: {1}")]
    Line(usize, String),
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] io::Error),
}

/// A program that was searched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramEntry {
    /// The name of the program for people.
    pub name: String,
    /// The program and the target, without the inputs that were given.
    pub task: RecordedTask,
    /// The sizes of the machine's caches in bytes, which the space depends on.
    pub caches: Vec<usize>,
    /// The template of the searched schedules, if it was not the one that analysis derives.
    pub template: Option<String>,
}

/// A line of a file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// The first line.
    Format(String, u32),
    /// The program that the following lines belong to.
    Program(Box<ProgramEntry>),
    /// A schedule, the time of one call if it works, and the time of the trial. The last such line
    /// counts.
    Measured(String, Option<f64>, f64),
    /// A schedule, and the time of one call from the final race of the best of all searches. The
    /// last such line counts.
    Confirmed(String, f64),
}

/// The contents of a file, and the file to append to.
#[derive(Debug, Default)]
pub struct LandscapeFile {
    programs: Vec<(ProgramEntry, HashMap<String, KnownCost>)>,
    file: Option<File>,
}

impl LandscapeFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<LandscapeFile, LandscapeFileError> {
        LandscapeFile::from_text(&std::fs::read_to_string(path)?)
    }

    /// Opens a file to append to, after reading it if it exists.
    pub fn open(path: &Path) -> Result<LandscapeFile, LandscapeFileError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.into()),
        };
        // A file that was cut off in its first line has no contents yet.
        let is_new = !text.contains('\n') && first_line().starts_with(&text);
        let mut landscape_file =
            if is_new { LandscapeFile::default() } else { LandscapeFile::from_text(&text)? };
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        if is_new {
            file.set_len(0)?;
            write_line(&mut file, &Line::Format(FORMAT.to_owned(), VERSION))?;
        } else if !text.ends_with('\n') {
            // The process that wrote the file was killed in the middle of a line.
            file.set_len(text.rfind('\n').map_or(0, |end| end as u64 + 1))?;
        }
        landscape_file.file = Some(file);
        Ok(landscape_file)
    }

    /// The programs, in the order in which they came.
    pub fn entries(&self) -> impl Iterator<Item = &ProgramEntry> {
        self.programs.iter().map(|(entry, _)| entry)
    }

    /// All known costs of a program's schedules.
    pub fn costs(&self, entry: &ProgramEntry) -> HashMap<String, KnownCost> {
        let mut all: HashMap<String, KnownCost> = HashMap::new();
        for (_, run) in self.programs.iter().filter(|(own, _)| own == entry) {
            // Times from a race can only be compared with each other, so only those of the last run
            // count.
            if run.values().any(|known| known.final_seconds.is_some()) {
                all.values_mut().for_each(|known| known.final_seconds = None);
            }
            for (schedule, known) in run {
                let before = all.get(schedule).copied().unwrap_or_default();
                // A schedule may have been measured in one run and confirmed in another.
                let is_measured = known.trial_seconds > 0.0 || known.seconds.is_some();
                let latest = if is_measured { *known } else { before };
                let confirmed = known.final_seconds.or(before.final_seconds);
                all.insert(schedule.clone(), KnownCost { final_seconds: confirmed, ..latest });
            }
        }
        all
    }

    /// Begins the lines of a program.
    pub fn begin_program(&mut self, entry: &ProgramEntry) -> io::Result<()> {
        self.append_line(&Line::Program(Box::new(entry.clone())))
    }

    fn append_line(&mut self, line: &Line) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| write_line(file, line))
    }

    /// Reads the text of a file. Nothing in the text is executed, and impossible measurements are
    /// refused.
    pub fn from_text(text: &str) -> Result<LandscapeFile, LandscapeFileError> {
        // A last line without a line end was never finished.
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let mut lines = whole.lines().enumerate();
        match lines.next().map(|(_, first)| serde_json::from_str(first)) {
            Some(Ok(Line::Format(format, FIRST_VERSION..=VERSION))) if format == FORMAT => {}
            Some(Ok(Line::Format(format, version))) if format == FORMAT => {
                return Err(LandscapeFileError::Version(version));
            }
            _ => return Err(LandscapeFileError::NotALandscapeFile),
        }
        let is_time = |time: f64| time.is_finite() && time >= 0.0;
        let mut landscape_file = LandscapeFile::default();
        for (at, line) in lines {
            let wrong = |why: &str| LandscapeFileError::Line(at + 1, why.to_owned());
            match serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))? {
                Line::Format(..) => return Err(wrong("it names the format a second time")),
                Line::Program(entry) => landscape_file.programs.push((*entry, HashMap::new())),
                Line::Measured(schedule, seconds, took) => {
                    if !is_time(took) || seconds.is_some_and(|seconds| !is_time(seconds) || seconds == 0.0) {
                        return Err(wrong("a time is out of range"));
                    }
                    let (_, known) =
                        landscape_file.programs.last_mut().ok_or_else(|| wrong("no program precedes it"))?;
                    let confirmed = known.get(&schedule).and_then(|known| known.final_seconds);
                    known.insert(
                        schedule,
                        KnownCost { seconds, trial_seconds: took, final_seconds: confirmed },
                    );
                }
                Line::Confirmed(schedule, seconds) => {
                    let (_, known) =
                        landscape_file.programs.last_mut().ok_or_else(|| wrong("no program precedes it"))?;
                    if !is_time(seconds) || seconds == 0.0 {
                        return Err(wrong("a time is out of range"));
                    }
                    known.entry(schedule).or_default().final_seconds = Some(seconds);
                }
            }
        }
        Ok(landscape_file)
    }
}

impl CostRecorder for LandscapeFile {
    fn record_cost(&mut self, schedule: &str, known: KnownCost) -> io::Result<()> {
        self.append_line(&Line::Measured(schedule.to_owned(), known.seconds, known.trial_seconds))
    }

    fn record_final_time(&mut self, schedule: &str, seconds: f64) -> io::Result<()> {
        self.append_line(&Line::Confirmed(schedule.to_owned(), seconds))
    }
}

/// The first line of a file.
fn first_line() -> String {
    serde_json::to_string(&Line::Format(FORMAT.to_owned(), VERSION)).unwrap_or_default()
}

/// Passes one whole line to the system at once.
fn write_line(file: &mut File, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;
    use crate::task::ExecutionTarget;

    fn entry(name: &str) -> ProgramEntry {
        let place = ExecutionTarget::Cpu { threads: 2, vectors: "avx2".to_owned() };
        let task = RecordedTask {
            source: "def f(float(N) x) -> (y) { y(i) = x(i) }".to_owned(),
            function: "f".to_owned(),
            sizes: vec![("N".to_owned(), 8)],
            target: place,
            seed: 0,
            contract: true,
        };
        ProgramEntry { name: name.to_owned(), task, caches: vec![1 << 15], template: None }
    }

    #[test]
    fn what_is_added_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("landscape_file");
        for (at, name) in ["one", "two", "one"].into_iter().enumerate() {
            let mut landscape_file = LandscapeFile::open(&path).unwrap();
            landscape_file.begin_program(&entry(name)).unwrap();
            let known = |seconds: Option<f64>, took: f64| KnownCost {
                seconds,
                trial_seconds: took,
                final_seconds: None,
            };
            landscape_file.record_cost(&format!("{at}"), known(Some(0.1 + at as f64), 0.5)).unwrap();
            landscape_file.record_cost("always", known(None, 0.25)).unwrap();
            landscape_file.record_final_time(&format!("{at}"), 0.2 + at as f64).unwrap();
        }
        // The process was killed in the middle of a line.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"measured\":[\"cut").unwrap();
        let landscape_file = LandscapeFile::open(&path).unwrap();
        let one = landscape_file.costs(&entry("one"));
        assert_eq!(one.len(), 3);
        // Only the last run's race times count.
        assert_eq!((one["0"].final_seconds, one["2"].final_seconds), (None, Some(2.2)));
        let known = KnownCost { seconds: Some(1.1), trial_seconds: 0.5, final_seconds: Some(1.2) };
        assert_eq!(landscape_file.costs(&entry("two"))["1"], known);
        assert_eq!(landscape_file.costs(&entry("three")).len(), 0);
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("]}\n"));
    }

    #[test]
    fn nonsense_is_refused() {
        let beginning = format!("{{\"format\":[\"{FORMAT}\",1]}}\n");
        let program = format!("{}\n", serde_json::to_string(&Line::Program(Box::new(entry("f")))).unwrap());
        assert!(matches!(LandscapeFile::from_text(""), Err(LandscapeFileError::NotALandscapeFile)));
        assert!(matches!(LandscapeFile::from_text("{}\n"), Err(LandscapeFileError::NotALandscapeFile)));
        assert!(matches!(
            LandscapeFile::from_text(&beginning.replace(",1]", ",9]")),
            Err(LandscapeFileError::Version(9))
        ));
        for line in ["{\"measured\":[\"s\",1.0,1.0]}\n", "nonsense\n"] {
            assert!(
                matches!(
                    LandscapeFile::from_text(&format!("{beginning}{line}")),
                    Err(LandscapeFileError::Line(2, _))
                ),
                "{line}"
            );
        }
        for line in ["[\"s\",-1.0,1.0]", "[\"s\",0.0,1.0]", "[\"s\",1.0,-1.0]", "[\"s\",1e999,1.0]"] {
            let text = format!("{beginning}{program}{{\"measured\":{line}}}\n");
            assert!(matches!(LandscapeFile::from_text(&text), Err(LandscapeFileError::Line(3, _))), "{line}");
        }
    }
}
