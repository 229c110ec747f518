//! Defines [`TrainingFile`]: measured schedules, grouped by program.
//!
//! The file is a sequence of gzip members. Each has one record as JSON, so `zcat` shows the file as
//! lines. A record is appended with one write. If a process is killed meanwhile, the last member
//! lacks its end: [`TrainingFile::open`] removes it, and nothing else is lost.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use tilewright_tuner::task::RecordedTask;

/// The measured schedules of a program on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// The kind of the pipeline, such as `stencils`, or the name of a group of given programs.
    /// Models are judged by kinds that they were not trained with.
    pub kind: String,
    /// The program, its sizes, and the machine.
    pub task: RecordedTask,
    /// The sizes of the machine's caches in bytes, first level first.
    pub caches: Vec<usize>,
    /// The schedules, the default schedule first.
    pub schedules: Vec<MeasuredSchedule>,
}

/// A schedule with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredSchedule {
    /// The steps, as text.
    pub steps: String,
    /// The seconds of a call, at the speed that the machine had when it ran the default schedule.
    pub seconds: f64,
}

/// A file of records.
#[derive(Debug)]
pub struct TrainingFile {
    path: PathBuf,
    /// The names of the programs that the file has.
    known: BTreeSet<String>,
}

impl TrainingFile {
    /// Opens a file to append to, and makes it if there is none. A record that was not completely
    /// written is removed.
    pub fn open(path: &Path) -> io::Result<TrainingFile> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let bytes = fs::read(path)?;
        let (records, complete) = complete_records(&bytes);
        // A whole file is left alone: another process may append to it meanwhile.
        if complete < bytes.len() as u64 {
            file.set_len(complete)?;
        }
        let known = records.iter().map(ProgramRecord::name).collect();
        Ok(TrainingFile { path: path.to_owned(), known })
    }

    /// The names of the programs that the file has ([`ProgramRecord::name`]).
    pub fn names(&self) -> &BTreeSet<String> {
        &self.known
    }

    /// The number of programs.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there are no programs.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Appends a record.
    pub fn append(&mut self, record: &ProgramRecord) -> io::Result<()> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        serde_json::to_writer(&mut encoder, record)?;
        encoder.write_all(b"\n")?;
        let member = encoder.finish()?;
        let mut file = OpenOptions::new().append(true).open(&self.path)?;
        file.write_all(&member)?;
        file.sync_data()?;
        self.known.insert(record.name());
        Ok(())
    }
}

impl ProgramRecord {
    /// The name of the program in a file: its function, with its sizes if they are not in the text.
    pub fn name(&self) -> String {
        let sizes = self.task.sizes.iter().map(|(name, value)| format!(",{name}={value}"));
        format!("{}{}", self.task.function, sizes.collect::<String>())
    }
}

/// Reads all records of a file. One that was not completely written is left out.
pub fn read(path: &Path) -> io::Result<Vec<ProgramRecord>> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(complete_records(&bytes).0)
}

/// The records of a file's contents, and the number of bytes that they take.
fn complete_records(bytes: &[u8]) -> (Vec<ProgramRecord>, u64) {
    let (mut records, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let mut decoder = GzDecoder::new(rest);
        let mut text = String::new();
        let record = decoder.read_to_string(&mut text).ok().and_then(|_| serde_json::from_str(&text).ok());
        let Some(record) = record else { break };
        records.push(record);
        rest = decoder.into_inner();
    }
    (records, (bytes.len() - rest.len()) as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;
    use tilewright_tuner::task::ExecutionTarget;

    fn record(function: &str) -> ProgramRecord {
        let task = RecordedTask {
            source: format!("def {function}(float(8) x) -> (y) {{ y(i) = x(i) }}"),
            function: function.to_owned(),
            sizes: Vec::new(),
            target: ExecutionTarget::Cpu { threads: 2, vectors: "avx2".to_owned() },
            seed: 1,
            contract: true,
        };
        let schedules = vec![MeasuredSchedule { steps: "parallel y.i".to_owned(), seconds: 1e-3 }];
        ProgramRecord { kind: "pointwise".to_owned(), task, caches: vec![32768], schedules }
    }

    #[test]
    fn a_record_that_was_not_completely_written_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/records.gz");
        let mut file = TrainingFile::open(&path).unwrap();
        file.append(&record("one")).unwrap();
        file.append(&record("two")).unwrap();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        assert_eq!(read(&path).unwrap(), [record("one")]);
        let mut file = TrainingFile::open(&path).unwrap();
        assert!(file.names().iter().eq(["one"]));
        file.append(&record("two")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
}
