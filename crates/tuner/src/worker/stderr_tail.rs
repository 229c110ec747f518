//! Keeps the last lines that a process wrote to standard error: the message of a panic, or of a
//! library that failed.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The number of lines that are kept.
const KEPT_LINES: usize = 8;
/// The number of bytes of a line that are kept.
const LONGEST_LINE: u64 = 500;

/// The last lines of a process.
pub(super) struct StderrTail {
    lines: Arc<Mutex<VecDeque<String>>>,
    reader: JoinHandle<()>,
}

impl StderrTail {
    /// Starts a thread that reads standard error, so that the pipe never fills up.
    pub fn start_reading(errors: ChildStderr) -> StderrTail {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&lines);
        let reader = std::thread::spawn(move || {
            let mut errors = BufReader::new(errors);
            while let Some(line) = next_line(&mut errors) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_back(line);
                let surplus = kept.len().saturating_sub(KEPT_LINES);
                kept.drain(..surplus);
            }
        });
        StderrTail { lines, reader }
    }

    /// Returns the last lines. Call this after the process has ended; it waits at most 100 ms for
    /// the end of the output.
    pub fn read(&self) -> String {
        // A child of the process may hold the pipe open, so the wait is bounded.
        for _ in 0..50 {
            if self.reader.is_finished() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| !line.is_empty()).map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// The next line, or a part of a very long one.
fn next_line(errors: &mut impl BufRead) -> Option<String> {
    let mut bytes = Vec::new();
    let read = errors.take(LONGEST_LINE).read_until(b'\n', &mut bytes).ok()?;
    (read > 0).then(|| String::from_utf8_lossy(&bytes).trim_end().to_owned())
}
