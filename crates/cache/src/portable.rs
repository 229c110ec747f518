//! Moves records between machines, by a protobuf file as in `proto/tuning_records.proto` or by
//! merging another cache.
//!
//! The messages are written here by hand, so that the build needs no protobuf compiler. A test
//! compares them with the `.proto`. A file is read one record at a time, and memory is taken only
//! for bytes that are present, so that a small damaged file cannot demand much memory.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use prost::Message;

use crate::error::CacheError;
use crate::key::{ProgramKey, TargetFingerprint};
use crate::outcome::Outcome;
use crate::record::TuningRecord;
use crate::rows::{self, Filter};
use crate::{Cache, TOOL_VERSION};

/// The format name in the header of every export.
const FORMAT: &str = "tilewright tuning records";
/// The version of the format.
const VERSION: u32 = 2;
/// The longest message inside a file, in bytes.
const LONGEST_MESSAGE: u64 = 16 << 20;

/// The keys of the two fields of an export, header and record. Both are length-delimited.
const HEADER_KEY: u64 = 1 << 3 | 2;
const RECORD_KEY: u64 = 2 << 3 | 2;

#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(string, tag = "1")]
    format: String,
    #[prost(uint32, tag = "2")]
    version: u32,
    #[prost(uint64, tag = "3")]
    records: u64,
    #[prost(string, tag = "4")]
    tool_version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(string, tag = "1")]
    program: String,
    #[prost(message, repeated, tag = "2")]
    sizes: Vec<Size>,
    #[prost(message, optional, tag = "3")]
    target: Option<Target>,
    #[prost(uint32, tag = "4")]
    threads: u32,
    #[prost(string, tag = "5")]
    title: String,
    #[prost(string, tag = "6")]
    schedule: String,
    #[prost(string, tag = "7")]
    strategy: String,
    #[prost(string, tag = "8")]
    outcome: String,
    #[prost(string, tag = "9")]
    detail: String,
    #[prost(double, repeated, tag = "10")]
    samples: Vec<f64>,
    #[prost(string, tag = "11")]
    tool_version: String,
    #[prost(int64, tag = "12")]
    time: i64,
    #[prost(uint64, optional, tag = "13")]
    seed: Option<u64>,
    #[prost(uint64, optional, tag = "14")]
    trial: Option<u64>,
    #[prost(bytes = "vec", tag = "15")]
    hash: Vec<u8>,
    #[prost(string, tag = "16")]
    resources: String,
    #[prost(float, repeated, tag = "17")]
    features: Vec<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct Size {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, tag = "2")]
    value: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Target {
    #[prost(string, tag = "1")]
    device: String,
    #[prost(string, tag = "2")]
    model: String,
    #[prost(string, tag = "3")]
    vectors: String,
    #[prost(uint64, repeated, tag = "4")]
    caches: Vec<u64>,
}

/// The result of an import or a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCounts {
    /// The number of records that were new.
    pub added: usize,
    /// The number of records that the cache already had.
    pub known: usize,
}

impl MergeCounts {
    fn add(&mut self, new: bool) {
        *if new { &mut self.added } else { &mut self.known } += 1;
    }
}

impl Cache {
    /// Writes the records that pass a filter to a portable file, and returns their number. The file
    /// appears complete or not at all.
    pub fn export(&self, path: &Path, filter: &Filter) -> Result<usize, CacheError> {
        // Within one transaction, no insert can come between counting and reading.
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.sql_error(error))?;
        let count = rows::count(&transaction, filter).map_err(|error| self.sql_error(error))?;
        let io = |error| CacheError::io(path, error);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(".tilewright-").tempfile_in(folder).map_err(io)?;
        let mut out = BufWriter::new(file);
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            records: count as u64,
            tool_version: TOOL_VERSION.to_owned(),
        };
        write_message(&mut out, HEADER_KEY, &header).map_err(io)?;
        self.for_each_record(filter, &mut |record| {
            write_message(&mut out, RECORD_KEY, &Record::from(&record)).map_err(io)
        })?;
        let file = out.into_inner().map_err(|error| io(error.into_error()))?;
        file.as_file().sync_all().map_err(io)?;
        make_readable_for_all(file.as_file()).map_err(io)?;
        file.persist(path).map_err(|error| io(error.error))?;
        Ok(count)
    }

    /// Adds the records of a portable file: all of them, or none if one cannot be read.
    pub fn import(&self, path: &Path) -> Result<MergeCounts, CacheError> {
        let why = |why| CacheError::Import { path: path.to_owned(), why };
        // Opening the cache's own file, and closing it, would drop the locks of this process.
        if self.is_stored_at(path) {
            return Err(why("it is this cache itself, not an export".to_owned()));
        }
        let file = File::open(path).map_err(|error| CacheError::io(path, error))?;
        let metadata = file.metadata().map_err(|error| CacheError::io(path, error))?;
        if !metadata.is_file() {
            return Err(why("it is not a plain file".to_owned()));
        }
        let mut input = BufReader::new(file);
        let expected = read_header(&mut input).map_err(why)?.records;
        let transaction = self.begin_write()?;
        let mut merged = MergeCounts::default();
        while let Some(record) = read_record(&mut input).map_err(why)? {
            merged.add(rows::insert(&transaction, &record).map_err(|error| self.sql_error(error))?);
        }
        let found = merged.added + merged.known;
        if found as u64 != expected {
            return Err(why(format!(
                "it has {found} records where its header promises {expected}: it was cut off"
            )));
        }
        transaction.commit().map_err(|error| self.sql_error(error))?;
        Ok(merged)
    }

    /// Adds the records of another cache: all of them, or none if one cannot be read.
    pub fn merge(&self, other: &Path) -> Result<MergeCounts, CacheError> {
        if self.is_stored_at(other) {
            let known = self.count(&Filter::default())?;
            return Ok(MergeCounts { added: 0, known });
        }
        let other = Cache::open_existing(other)?;
        let transaction = self.begin_write()?;
        let mut merged = MergeCounts::default();
        other.for_each_record(&Filter::default(), &mut |record| {
            merged.add(rows::insert(&transaction, &record).map_err(|error| self.sql_error(error))?);
            Ok(())
        })?;
        transaction.commit().map_err(|error| self.sql_error(error))?;
        Ok(merged)
    }

    /// Returns true if the path names the file of this cache.
    fn is_stored_at(&self, path: &Path) -> bool {
        let whole = |path: &Path| path.canonicalize().ok();
        whole(path).is_some_and(|path| Some(path) == whole(&self.path))
    }
}

/// Makes the file readable for all users. Temporary files are private, but an export is meant for
/// others.
fn make_readable_for_all(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    let _ = file;
    Ok(())
}

fn write_message(out: &mut impl Write, key: u64, message: &impl Message) -> io::Result<()> {
    let mut bytes = Vec::new();
    prost::encoding::encode_varint(key, &mut bytes);
    message.encode_length_delimited(&mut bytes).map_err(io::Error::other)?;
    out.write_all(&bytes)
}

fn read_header(input: &mut impl Read) -> Result<Header, String> {
    let not_one = || "it is not an export of Tilewright".to_owned();
    let (key, bytes) = read_message(input).map_err(|_| not_one())?.ok_or_else(not_one)?;
    let header = Header::decode(bytes.as_slice()).map_err(|_| not_one())?;
    if key != HEADER_KEY || header.format != FORMAT {
        return Err(not_one());
    }
    if header.version > VERSION {
        return Err(format!(
            "it was written by a newer Tilewright ({}; version {} of the format, this one knows {VERSION}): update \
             Tilewright",
            header.tool_version, header.version
        ));
    }
    Ok(header)
}

/// Reads and checks the next record.
fn read_record(input: &mut impl Read) -> Result<Option<TuningRecord>, String> {
    let Some((key, bytes)) = read_message(input)? else { return Ok(None) };
    if key != RECORD_KEY {
        return Err(format!("it is damaged: it has a field with key {key} where a record is expected"));
    }
    let message = Record::decode(bytes.as_slice()).map_err(|error| format!("it is damaged: {error}"))?;
    let hash = message.hash.clone();
    let record = message.into_record()?;
    record.check()?;
    if record.hash() != hash.as_slice() {
        return Err("it is damaged: a record does not have the hash that it was written with".to_owned());
    }
    Ok(Some(record))
}

/// The key and the bytes of the next field, or `None` at the end of the file.
fn read_message(input: &mut impl Read) -> Result<Option<(u64, Vec<u8>)>, String> {
    let Some(key) = read_varint(input)? else { return Ok(None) };
    let length = read_varint(input)?.ok_or("it was cut off")?;
    if length > LONGEST_MESSAGE {
        return Err(format!(
            "it is damaged: a record has {length} bytes, and at most {LONGEST_MESSAGE} are allowed"
        ));
    }
    let mut bytes = Vec::new();
    input.by_ref().take(length).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 == length { Ok(Some((key, bytes))) } else { Err("it was cut off".to_owned()) }
}

/// A varint of protobuf, or `None` at the end of the file.
fn read_varint(input: &mut impl Read) -> Result<Option<u64>, String> {
    let mut value = 0;
    for at in 0..10 {
        let mut byte = [0];
        match input.read(&mut byte).map_err(|error| error.to_string())? {
            0 if at == 0 => return Ok(None),
            0 => return Err("it was cut off".to_owned()),
            _ => value |= u64::from(byte[0] & 0x7f) << (7 * at),
        }
        if byte[0] < 0x80 {
            return Ok(Some(value));
        }
    }
    Err("it is damaged: a number has more than 10 bytes".to_owned())
}

impl From<&TuningRecord> for Record {
    fn from(record: &TuningRecord) -> Record {
        let ProgramKey { canonical, sizes, target, threads } = &record.program;
        Record {
            program: canonical.clone(),
            sizes: sizes.iter().map(|(name, value)| Size { name: name.clone(), value: *value }).collect(),
            target: Some(Target {
                device: target.device.clone(),
                model: target.model.clone(),
                vectors: target.vectors.clone(),
                caches: target.caches.clone(),
            }),
            threads: *threads as u32,
            title: record.title.clone(),
            schedule: record.schedule.clone(),
            strategy: record.strategy.clone(),
            outcome: record.outcome.name().to_owned(),
            detail: record.outcome.detail().to_owned(),
            samples: record.samples.clone(),
            tool_version: record.tool_version.clone(),
            time: record.time,
            seed: record.seed,
            trial: record.trial,
            hash: record.hash().to_vec(),
            resources: record.resources.clone(),
            features: record.features.clone(),
        }
    }
}

impl Record {
    fn into_record(self) -> Result<TuningRecord, String> {
        let Target { device, model, vectors, caches } = self.target.ok_or("a record has no machine")?;
        let program = ProgramKey {
            canonical: self.program,
            sizes: self.sizes.into_iter().map(|size| (size.name, size.value)).collect(),
            target: TargetFingerprint { device, model, vectors, caches },
            threads: self.threads as usize,
        };
        Ok(TuningRecord {
            program,
            title: self.title,
            schedule: self.schedule,
            strategy: self.strategy,
            outcome: Outcome::parse(&self.outcome, self.detail).ok_or("a record has an unknown outcome")?,
            samples: self.samples,
            resources: self.resources,
            features: self.features,
            tool_version: self.tool_version,
            time: self.time,
            seed: self.seed,
            trial: self.trial,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage, Value};

    use super::*;

    /// A decoder made from the `.proto` reads back every field that the messages of this file
    /// write.
    #[test]
    fn messages_agree_with_the_proto() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
        let files = protox::compile(["tuning_records.proto"], [folder]).unwrap();
        let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
        let record = Record {
            program: "program".to_owned(),
            sizes: vec![Size { name: "s0".to_owned(), value: -3 }],
            target: Some(Target {
                device: "device".to_owned(),
                model: "model".to_owned(),
                vectors: "vectors".to_owned(),
                caches: vec![1, 2],
            }),
            threads: 4,
            title: "title".to_owned(),
            schedule: "schedule".to_owned(),
            strategy: "strategy".to_owned(),
            outcome: "outcome".to_owned(),
            detail: "detail".to_owned(),
            samples: vec![0.5],
            tool_version: "tool_version".to_owned(),
            time: -12,
            seed: Some(13),
            trial: Some(0),
            hash: vec![15],
            resources: "resources".to_owned(),
            features: vec![0.25],
        };
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            records: 1,
            tool_version: "tool_version".to_owned(),
        };
        let mut bytes = Vec::new();
        write_message(&mut bytes, HEADER_KEY, &header).unwrap();
        write_message(&mut bytes, RECORD_KEY, &record).unwrap();
        let export = pool.get_message_by_name("tilewright.cache.v1.Export").unwrap();
        let read = DynamicMessage::decode(export, bytes.as_slice()).unwrap();
        assert_eq!(read.encode_to_vec(), bytes, "there are fields that the .proto does not have");
        let told = read.to_text_format();
        assert_eq!(
            told,
            "header{format:\"tilewright tuning records\",version:2,records:1,tool_version:\"tool_version\"},\
             records:[{program:\"program\",sizes:[{name:\"s0\",value:-3}],\
             target{device:\"device\",model:\"model\",vectors:\"vectors\",caches:[1,2]},threads:4,title:\"title\",\
             schedule:\"schedule\",strategy:\"strategy\",outcome:\"outcome\",detail:\"detail\",samples:[0.5],\
             tool_version:\"tool_version\",time:-12,seed:13,trial:0,hash:\"\\017\",resources:\"resources\",\
             features:[0.25]}]"
        );
        let Some(Value::List(records)) = read.get_field_by_name("records").map(|field| field.into_owned())
        else {
            panic!("no records");
        };
        let fields = records[0].as_message().unwrap().descriptor().fields().len();
        assert_eq!(fields, 17, "the .proto has fields that are not written");
    }
}
