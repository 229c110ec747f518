//! Keeps peaks in a file: `peaks.json` beside the user's cache.
//!
//! Peaks belong to the machine, so there is one file for all caches. It has an entry for every
//! machine, number of threads and kind of vectors.
//!
//! The file can always be made again. If it cannot be read, the peaks are measured again and the
//! file is replaced. If it cannot be written, the peaks are used without it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tilewright_target::{Cpu, host_model};

use super::{PeakError, Peaks};
use tilewright_cache::Cache;

/// A file of peaks, if there is a folder for it.
pub struct PeakFile {
    path: Option<PathBuf>,
}

/// The configuration that peaks belong to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Machine {
    model: String,
    caches: Vec<usize>,
    vectors: String,
    threads: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    machine: Machine,
    #[serde(flatten)]
    peaks: Peaks,
}

impl PeakFile {
    /// The file in the user's data folder, if there is one.
    pub fn in_user_folder() -> PeakFile {
        PeakFile { path: Cache::default_path().ok().map(|path| path.with_file_name("peaks.json")) }
    }

    /// A file at another path.
    pub fn at_path(path: &Path) -> PeakFile {
        PeakFile { path: Some(path.to_owned()) }
    }

    /// The peaks of a part of this machine, from the file or else measured now with at most
    /// `memory` bytes.
    pub fn peaks(&self, cpu: &Cpu, memory: usize) -> Result<Peaks, PeakError> {
        let machine = Machine::host(cpu);
        let kept = self.read().into_iter().find(|entry| entry.machine == machine);
        kept.map_or_else(|| self.measure(cpu, memory), |entry| Ok(entry.peaks))
    }

    /// Measures the peaks now, and keeps the higher of the known and the new value. A busy machine
    /// measures too low.
    pub fn measure(&self, cpu: &Cpu, memory: usize) -> Result<Peaks, PeakError> {
        let mut peaks = Peaks::measure(cpu, memory)?;
        let machine = Machine::host(cpu);
        let mut entries = self.read();
        if let Some(at) = entries.iter().position(|entry| entry.machine == machine) {
            let known = entries.remove(at).peaks;
            peaks = Peaks { gflops: peaks.gflops.max(known.gflops), gbs: peaks.gbs.max(known.gbs) };
        }
        entries.push(Entry { machine, peaks });
        if let Some(path) = &self.path {
            // Without the file, the next run measures again.
            let _ = write(path, &entries);
        }
        Ok(peaks)
    }

    /// The entries of the file; none if the file is invalid.
    fn read(&self) -> Vec<Entry> {
        let bytes = self.path.as_ref().and_then(|path| fs::read(path).ok());
        let entries = bytes.and_then(|bytes| serde_json::from_slice::<Vec<Entry>>(&bytes).ok());
        let sense = |entries: &Vec<Entry>| entries.iter().all(|entry| entry.peaks.are_plausible());
        entries.filter(sense).unwrap_or_default()
    }
}

impl Machine {
    fn host(cpu: &Cpu) -> Machine {
        Machine {
            model: host_model(),
            caches: cpu.caches.clone(),
            vectors: cpu.vectors.name().to_owned(),
            threads: cpu.cores,
        }
    }
}

/// Writes the file, which appears complete or not at all. If two processes write at once, the entry
/// of one is lost, and its next run measures again.
fn write(path: &Path, entries: &[Entry]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".tilewright-").tempfile_in(folder)?;
    serde_json::to_writer_pretty(&mut file, entries)?;
    file.write_all(b"\n")?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: usize = 1 << 20;

    fn cpu(cores: usize) -> Cpu {
        Cpu { cores, caches: vec![32 << 10], ..Cpu::host() }
    }

    #[test]
    fn peaks_are_measured_once_for_every_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/peaks.json");
        let kept = PeakFile::at_path(&path);
        let first = kept.peaks(&cpu(1), MEMORY).unwrap();
        let two = kept.peaks(&cpu(2), MEMORY).unwrap();
        assert_eq!(kept.read().len(), 2);
        assert_eq!(kept.peaks(&cpu(1), MEMORY).unwrap(), first);
        assert_eq!(kept.peaks(&cpu(2), MEMORY).unwrap(), two);
        let again = kept.measure(&cpu(1), MEMORY).unwrap();
        assert!(again.gflops >= first.gflops && again.gbs >= first.gbs);
        assert_eq!(kept.read().len(), 2);
    }

    #[test]
    fn a_file_that_makes_no_sense_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("peaks.json");
        let senseless = Entry { machine: Machine::host(&cpu(1)), peaks: Peaks { gflops: -1.0, gbs: 0.0 } };
        for content in ["", "[{", "[]]", "\0\u{1}", &serde_json::to_string(&[senseless]).unwrap()] {
            fs::write(&path, content).unwrap();
            let kept = PeakFile::at_path(&path);
            let peaks = kept.peaks(&cpu(1), MEMORY).unwrap();
            assert_eq!(kept.read().iter().map(|entry| entry.peaks).collect::<Vec<_>>(), [peaks], "{content}");
        }
    }

    #[test]
    fn where_nothing_can_be_written_peaks_are_still_known() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for path in [folder.path().join("file/below/peaks.json"), folder.path().to_owned()] {
            assert!(PeakFile::at_path(&path).peaks(&cpu(1), MEMORY).is_ok());
        }
        assert!(PeakFile { path: None }.peaks(&cpu(1), MEMORY).is_ok());
    }
}
