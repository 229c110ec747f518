//! A temporary folder with programs, and running the command in it.

#![allow(dead_code, reason = "no test file needs all of it")]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tilewright::target::Cpu;
use tilewright::tuner::peak::PeakFile;

pub const PRODUCT: &str = "def mm(float(M,K) A, float(K,N) B) -> (C) {\n  C(i,j) +=! A(i,k) * B(k,j)\n}\n";
pub const DOUBLE: &str = "def double_all(float(N) x) -> (y) { y(i) = 2 * x(i) }\n";
pub const REFUSED: &str = "def bad(float(N) x) -> (y) {\n  y(i) = x(i) - x(i-1)\n}\n";
pub const WARNED: &str = "def sum(float(N) x) -> (s) { s += x(i) }\n";
pub const STRIDED: &str = "def strided(float(N) x, int s) -> (y) { y(i) = x(s*i) }\n";
pub const SGEMM: &str = "def sgemm(float a, float b, float(N,M) A, float(M,K) B) -> (C) {
  C(i,j) = b * C(i,j)
  C(i,j) += a * A(i,k) * B(k,j)
}\n";

/// A temporary folder for one test.
pub struct Folder(pub TempDir);

/// The outcome of a command.
pub struct CommandOutput {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Folder {
    pub fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        let programs = [
            ("mm", PRODUCT),
            ("double", DOUBLE),
            ("bad", REFUSED),
            ("warned", WARNED),
            ("strided", STRIDED),
            ("sgemm", SGEMM),
        ];
        for (name, text) in programs {
            folder.write(&format!("{name}.tw"), text);
        }
        folder.write("several.tw", [PRODUCT, DOUBLE].concat());
        folder
    }

    /// A folder for tuning with one thread. It has stored peaks, because measuring them takes a
    /// second and much memory.
    pub fn with_peaks() -> Folder {
        let folder = Folder::new();
        let cpu = Cpu { cores: 1, ..Cpu::host() };
        PeakFile::at_path(&folder.path("data/tilewright/peaks.json")).peaks(&cpu, 1 << 20).unwrap();
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    pub fn floats(&self, name: &str, shape: &[usize], values: &[f32]) {
        self.write(name, npy("<f4", shape, &float_bytes(values)));
    }

    pub fn ints(&self, name: &str, shape: &[usize], values: &[i32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.write(name, npy("<i4", shape, &bytes));
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
        command.args(line.split_whitespace()).current_dir(self.0.path()).env_remove("COLUMNS");
        // Tests must not read the user's own cache.
        command.env("XDG_DATA_HOME", self.0.path().join("data"));
        command
    }

    /// Runs a command line whose words are separated by spaces. The command must end within 120
    /// seconds.
    #[track_caller]
    pub fn tilewright(&self, line: &str) -> CommandOutput {
        let begun = Instant::now();
        let ended = CommandOutput::new(line, self.command(line).output().unwrap());
        assert!(begun.elapsed() < Duration::from_secs(120), "{line} took {:?}", begun.elapsed());
        ended
    }

    /// Runs a command that must succeed, and returns its output.
    #[track_caller]
    pub fn succeeds(&self, line: &str) -> String {
        let ended = self.tilewright(line);
        assert_eq!(ended.status, 0, "{line}\n{}", ended.err);
        ended.out
    }

    /// Runs a command that must fail with nothing but a message on standard error.
    #[track_caller]
    pub fn fails(&self, line: &str, status: i32, parts: &[&str]) {
        let ended = self.tilewright(line);
        assert_eq!(ended.status, status, "{line}\n{}{}", ended.out, ended.err);
        assert_eq!(ended.out, "", "{line}");
        assert!(ended.err.starts_with("error"), "{line}\n{}", ended.err);
        for part in parts {
            assert!(ended.err.contains(part), "{line}\nsays nothing of {part:?}:\n{}", ended.err);
        }
    }

    /// Checks that a result file holds these bytes.
    #[track_caller]
    pub fn assert_npy(&self, name: &str, descr: &str, shape: &[usize], data: &[u8]) {
        let bytes = fs::read(self.path(name)).unwrap();
        assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00", "{name}");
        let start = 10 + u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
        assert_eq!(start % 64, 0, "{name}");
        let text = std::str::from_utf8(&bytes[10..start]).unwrap();
        assert_eq!(text.trim_end(), header(descr, "False", &tuple(shape)), "{name}");
        assert!(text.ends_with('\n'), "{name}");
        assert_eq!(&bytes[start..], data, "{name}");
    }
}

impl CommandOutput {
    #[track_caller]
    pub fn new(line: &str, output: Output) -> CommandOutput {
        let status = output.status.code();
        let err = String::from_utf8(output.stderr).unwrap();
        let known = status.is_some_and(|status| (0..=3).contains(&status));
        assert!(known, "{line} ended with {:?}\n{err}", output.status);
        CommandOutput { status: status.unwrap(), out: String::from_utf8(output.stdout).unwrap(), err }
    }
}

pub fn float_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn tuple(shape: &[usize]) -> String {
    match shape {
        [only] => format!("({only},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

pub fn header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}")
}

/// A .npy file as NumPy writes it.
pub fn npy(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    npy_with(&header(descr, "False", &tuple(shape)), data)
}

pub fn npy_with(header: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

pub fn npz(entries: &[(&str, Vec<u8>)], method: zip::CompressionMethod) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    for (name, contents) in entries {
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(contents).unwrap();
    }
    archive.finish().unwrap().into_inner()
}
