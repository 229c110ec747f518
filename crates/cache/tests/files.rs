//! The cache file under stress: many writers, killed processes, damage, foreign files, and missing
//! permissions.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{product_record, target};
use tempfile::{TempDir, tempdir};
use tilewright_cache::{Cache, CacheError, Filter, MergeCounts, TuningRecord};

/// The environment variable of a process that a test starts to insert records.
const WRITER: &str = "TILEWRIGHT_TEST_WRITER";

fn numbered(writer: u64, trial: u64) -> TuningRecord {
    TuningRecord { seed: Some(writer), trial: Some(trial), ..product_record(8, 8, 8, 1.0 + trial as f64) }
}

/// A cache with some records, in a folder of its own.
fn cache_in_folder(records: u64) -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    let cache = Cache::open(&path).unwrap();
    (0..records).for_each(|trial| assert!(cache.insert(&numbered(0, trial)).unwrap()));
    (folder, path)
}

fn count(path: &Path) -> usize {
    Cache::open_existing(path).unwrap().count(&Filter::default()).unwrap()
}

/// Asserts that opening fails with a message that names the file, and leaves the file unchanged.
#[track_caller]
fn refused(path: &Path, parts: &[&str]) {
    let before = fs::read(path).ok();
    for open in [Cache::open, Cache::open_existing] {
        let error = open(path).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        parts.iter().for_each(|part| assert!(error.contains(part), "{part:?} is not in: {error}"));
    }
    assert!(fs::read(path).ok() == before, "{} was changed", path.display());
}

fn sqlite(path: &Path, statements: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(statements).unwrap();
}

#[test]
fn missing_folders_are_made_and_a_missing_file_can_be_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a/b/c.sqlite");
    assert!(matches!(Cache::open_existing(&path), Err(CacheError::Missing(_))));
    assert!(!folder.path().join("a").exists());
    assert!(Cache::open(&path).unwrap().insert(&numbered(0, 0)).unwrap());
    assert_eq!(count(&path), 1);
    refused(folder.path(), &["is a folder", "cache.sqlite"]);
    fs::write(folder.path().join("file"), "x").unwrap();
    let inside = folder.path().join("file/cache.sqlite");
    assert!(Cache::open(&inside).unwrap_err().to_string().contains("cannot use"));
}

#[test]
fn what_is_not_a_cache_is_refused_and_left_alone() {
    let (folder, path) = cache_in_folder(50);
    let whole = fs::read(&path).unwrap();
    let with = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    refused(&with("text", b"not a database, and longer than a header"), &["not a SQLite file", "--cache"]);
    refused(&with("short", b"SQLite f"), &["not a SQLite file"]);
    refused(
        &with("header", b"SQLite format 3\0 and then nothing that makes sense"),
        &["it is left as it is"],
    );
    refused(&with("half", &whole[..whole.len() / 2]), &["damaged", "restore it from a copy"]);
    refused(&with("cut", &whole[..whole.len() - 4096]), &["damaged"]);
    let mut scrambled = whole.clone();
    scrambled[2 * 4096..6 * 4096].iter_mut().for_each(|byte| *byte ^= 0x5a);
    refused(&with("scrambled", &scrambled), &["damaged"]);

    let newer = with("newer", &whole);
    sqlite(&newer, "PRAGMA user_version = 4");
    refused(&newer, &["newer Tilewright", "version 4", "knows 3", "update Tilewright"]);
    let other = folder.path().join("other");
    sqlite(&other, "CREATE TABLE record (id INTEGER); PRAGMA user_version = 1");
    refused(&other, &["another program"]);
    let trigger = with("trigger", &whole);
    sqlite(&trigger, "CREATE TRIGGER bad AFTER INSERT ON record BEGIN DELETE FROM record; END");
    refused(&trigger, &["its tables are not those of a cache"]);
    // The valid cache is still valid.
    assert_eq!(count(&path), 50);
}

/// Turns a cache into a file of the first version.
fn make_old(path: &Path) {
    sqlite(
        path,
        "ALTER TABLE record DROP COLUMN features; ALTER TABLE record DROP COLUMN resources; PRAGMA user_version = 1",
    );
}

#[test]
fn an_old_file_is_brought_up_to_date_and_one_that_cannot_be_written_is_read_as_it_is() {
    let (folder, path) = cache_in_folder(3);
    make_old(&path);
    let old = fs::read(&path).unwrap();
    let cache = Cache::open(&path).unwrap();
    let records = cache.records(&Filter::default()).unwrap();
    assert_eq!(records, (0..3).map(|trial| numbered(0, trial)).collect::<Vec<_>>());
    // The same record still has the same hash, and resources are kept from now on.
    assert!(!cache.insert(&numbered(0, 1)).unwrap());
    let told = TuningRecord { resources: "C: 96 registers".to_owned(), ..numbered(0, 7) };
    assert!(cache.insert(&told).unwrap());
    drop(cache);
    let again = Cache::open_existing(&path).unwrap();
    assert_eq!(again.records(&Filter::default()).unwrap().pop(), Some(told));
    // Tables of neither the old nor the current version are refused.
    let other = folder.path().join("other.sqlite");
    fs::write(&other, &old).unwrap();
    sqlite(&other, "ALTER TABLE record DROP COLUMN trial");
    refused(&other, &["its tables are not those of a cache"]);
    #[cfg(unix)]
    {
        let before = folder.path().join("before.sqlite");
        fs::write(&before, &old).unwrap();
        let mut permissions = fs::metadata(&before).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&before, permissions).unwrap();
        // Root can write the file all the same.
        assert_eq!(Cache::open(&before).unwrap().records(&Filter::default()).unwrap(), records);
    }
}

#[test]
fn a_damaged_row_does_not_hide_the_next_best() {
    let (_folder, path) = cache_in_folder(5);
    sqlite(&path, "UPDATE record SET schedule = 'boom' WHERE id = 1");
    let cache = Cache::open(&path).unwrap();
    let choice = cache.best_usable(&numbered(0, 0).program, &Ok).unwrap();
    assert_eq!(choice.best.unwrap().trial, Some(1));
    assert_eq!(choice.unusable.len(), 1);
    assert_eq!(choice.unusable[0].seconds, None);
    assert!(choice.unusable[0].why.contains("its schedule cannot be read"), "{:?}", choice.unusable);
}

#[test]
fn rows_of_a_stranger_are_checked_and_can_be_removed() {
    let (_folder, path) = cache_in_folder(5);
    for damage in [
        "UPDATE record SET schedule = 'boom' WHERE id = 2",
        "UPDATE record SET samples = x'00' WHERE id = 2",
        "UPDATE record SET median = 1e-9 WHERE id = 2",
        "UPDATE record SET outcome = 'wonderful' WHERE id = 2",
        "UPDATE record SET threads = -1 WHERE id = 2",
        "UPDATE record SET sizes = 'x' WHERE id = 2",
        "UPDATE record SET title = CAST(x'ff' AS TEXT) WHERE id = 2",
        "UPDATE record SET schedule = CAST(zeroblob(70000000) AS TEXT) WHERE id = 2",
    ] {
        let copy = path.with_extension("copy");
        fs::copy(&path, &copy).unwrap();
        sqlite(&copy, damage);
        let cache = Cache::open(&copy).unwrap();
        let error = cache.records(&Filter::default()).unwrap_err().to_string();
        assert!(error.contains("copy"), "{damage}: {error}");
        assert!(cache.merge(&copy).is_ok(), "a cache is merged with itself without reading it");
        let into = Cache::in_memory().unwrap();
        assert!(into.merge(&copy).is_err(), "{damage}");
        assert_eq!(into.count(&Filter::default()).unwrap(), 0);
        if damage.contains("zeroblob") {
            assert!(error.contains("damaged"), "{error}");
            continue;
        }
        assert!(error.contains("record 2") && error.contains("--damaged"), "{damage}: {error}");
        assert_eq!(cache.clear_damaged().unwrap(), 1, "{damage}");
        assert_eq!(cache.records(&Filter::default()).unwrap().len(), 4);
    }
}

#[test]
fn threads_and_processes_insert_at_once() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("new/cache.sqlite");
    let mut processes: Vec<_> = (0..3).map(|writer| start_writer(&path, writer, 40)).collect();
    std::thread::scope(|scope| {
        for writer in 10..13 {
            let path = &path;
            scope.spawn(move || {
                let cache = Cache::open(path).unwrap();
                (0..40).for_each(|trial| assert!(cache.insert(&numbered(writer, trial)).unwrap()));
            });
        }
    });
    processes.iter_mut().for_each(|process| assert!(process.wait().unwrap().success()));
    assert_eq!(count(&path), 6 * 40);
}

/// A process loses its locks on a file when it closes any handle of the file.
#[cfg(target_os = "linux")]
#[test]
fn opening_a_cache_again_keeps_the_locks_of_the_process() {
    use std::os::unix::fs::MetadataExt;

    let (_folder, path) = cache_in_folder(5);
    let file = format!(":{} ", fs::metadata(&path).unwrap().ino());
    let own = format!(" {} ", std::process::id());
    let is_locked = || {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|lock| lock.contains(&file) && lock.contains(&own))
    };
    let cache = Cache::open(&path).unwrap();
    if !is_locked() {
        eprintln!("skipped: this system does not tell the locks of files");
        return;
    }
    drop(Cache::open(&path).unwrap());
    assert!(cache.import(&path).is_err());
    assert!(is_locked());
}

#[test]
fn a_killed_process_loses_no_record_that_it_has_inserted() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    let mut inserted = 0;
    for round in 0..3 {
        let mut process = start_writer(&path, round, u64::MAX);
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        for _ in 0..20 {
            while !lines.next().unwrap().unwrap().starts_with("inserted") {}
        }
        process.kill().unwrap();
        process.wait().unwrap();
        let more = lines.map_while(Result::ok).filter(|line| line.starts_with("inserted")).count();
        inserted += 20 + more;
        let kept = count(&path);
        assert!(kept >= inserted, "{kept} records are left of {inserted}");
        inserted = kept;
    }
}

/// Starts this test program again, to insert records and report each one.
fn start_writer(path: &Path, writer: u64, trials: u64) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer_process", "--nocapture"])
        .env(WRITER, format!("{writer} {trials} {}", path.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn writer_process() {
    let Ok(task) = std::env::var(WRITER) else { return };
    let mut words = task.splitn(3, ' ');
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    let (writer, trials) = (number(), number());
    let cache = Cache::open(Path::new(words.next().unwrap())).unwrap();
    println!();
    for trial in 0..trials {
        cache.insert(&numbered(writer, trial)).unwrap();
        println!("inserted {trial}");
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn an_export_brings_everything_to_another_cache_once() {
    let (folder, path) = cache_in_folder(20);
    let cache = Cache::open(&path).unwrap();
    let export = folder.path().join("records.pb");
    assert_eq!(cache.export(&export, &Filter::default()).unwrap(), 20);
    assert!(cache.import(&path).unwrap_err().to_string().contains("this cache itself"));
    let other = Cache::in_memory().unwrap();
    assert_eq!(other.import(&export).unwrap(), MergeCounts { added: 20, known: 0 });
    assert_eq!(other.import(&export).unwrap(), MergeCounts { added: 0, known: 20 });
    assert_eq!(other.merge(&path).unwrap(), MergeCounts { added: 0, known: 20 });
    let all = Filter::default();
    assert_eq!(other.records(&all).unwrap(), cache.records(&all).unwrap());
    assert_eq!(Cache::in_memory().unwrap().merge(&path).unwrap(), MergeCounts { added: 20, known: 0 });
    assert!(matches!(other.merge(Path::new("nowhere")), Err(CacheError::Missing(_))));
    assert!(matches!(other.import(Path::new("nowhere")), Err(CacheError::Io { .. })));
    let nothing = Filter { threads: Some(77), ..Filter::default() };
    assert_eq!(cache.export(&export, &nothing).unwrap(), 0);
    assert_eq!(other.import(&export).unwrap(), MergeCounts::default());
}

#[test]
fn a_bad_export_changes_nothing() {
    let (folder, path) = cache_in_folder(6);
    let cache = Cache::open(&path).unwrap();
    let export = folder.path().join("records.pb");
    cache.export(&export, &Filter::default()).unwrap();
    let whole = fs::read(&export).unwrap();
    let into = Cache::in_memory().unwrap();
    let import = |bytes: &[u8]| {
        fs::write(&export, bytes).unwrap();
        let outcome = into.import(&export);
        assert_eq!(into.count(&Filter::default()).unwrap(), 0, "{outcome:?}");
        outcome.expect_err("imported").to_string()
    };
    // The file is cut off at many positions, also between two records.
    for length in (0..whole.len()).step_by(7) {
        let error = import(&whole[..length]);
        assert!(error.contains("nothing was imported"), "{length}: {error}");
    }
    // One byte is wrong, at many positions.
    for at in (0..whole.len()).step_by(11) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x04;
        // A wrong tool version or record count in the header need not be detected.
        fs::write(&export, &damaged).unwrap();
        if at > 60 {
            assert!(Cache::in_memory().unwrap().import(&export).is_err(), "byte {at}");
        }
    }
    let mut huge = whole[..whole.iter().position(|byte| *byte == 0x12).unwrap()].to_vec();
    huge.extend([0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    import(&huge);
    huge.truncate(huge.len() - 9);
    huge.extend([0xff; 12]);
    import(&huge);
    assert!(import(b"PK\x03\x04 a zip file").contains("not an export of Tilewright"));
    assert!(import(b"").contains("not an export of Tilewright"));
    let newer: Vec<u8> = [&b"\x0a\x1d\x0a\x19tilewright tuning records\x10\x03"[..]].concat();
    assert!(import(&newer).contains("newer Tilewright"));
}

#[test]
fn the_default_is_in_the_users_data_folder() {
    let path = Cache::default_path().unwrap();
    assert!(path.ends_with("tilewright/cache.sqlite"), "{}", path.display());
    assert_eq!(target().to_cpu(2), Some(support::cpu()));
}
