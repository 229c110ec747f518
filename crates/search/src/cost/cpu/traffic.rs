//! Counts the bytes of the cache lines that move between the levels of memory.
//!
//! If the data of one iteration of a loop fits into a cache, everything that later iterations touch
//! again is still there. The loop then loads each of its lines once. Otherwise every iteration
//! loads its own lines. Calls follow each other, so data that fits into a cache as a whole stays
//! there.

use tilewright_ir::nest::{Access, BufferId, LoopNest, LoopVarId, Scope};
use tilewright_target::Cpu;

use super::footprint::{LINE_BYTES, Lines, Region};
use super::frames::{FrameId, FrameKind, Frames};
use super::instructions::{Frameset, contains_frame, deepest_serial, dependencies};
use super::machine::Machine;

/// The working set of an iteration, as a share of a cache, up to which all of it stays in the
/// cache, and from which nothing does. Caches do not implement exact LRU replacement, so in between
/// a part of it stays.
const FITTING_SHARE: f64 = 0.7;
const OVERFLOWING_SHARE: f64 = 2.0;
/// A written line is read first and written back later.
const WRITE_FACTOR: f64 = 2.0;
/// Non-contiguous lines are not prefetched, so they take longer from distant levels than their size
/// suggests.
const SCATTERED_FACTOR: f64 = 2.0;

/// One access at its position in the nest.
struct RecordedAccess {
    buffer: BufferId,
    written: bool,
    /// The frames around the access, outermost first, and the bytes of the lines that it touches
    /// while each frame runs once.
    path: Vec<FrameId>,
    bytes: Vec<f64>,
    /// True if the touched bytes are contiguous in memory.
    streams: bool,
    /// The frames whose variables the access uses, and the innermost serial one of them. Inside of
    /// that frame, a loaded element stays in its register.
    moves: Frameset,
    serial: usize,
}

/// The data of one buffer that is touched while a frame runs.
#[derive(Clone, Copy)]
struct TouchedBuffer {
    buffer: BufferId,
    /// The bytes of all accesses together, without overlap.
    sum: f64,
    region: Region,
    /// Whether each core touches a part of its own.
    is_divided: bool,
}

/// The touched lines of a buffer, where lines that several accesses touch count once.
struct Union {
    lines: Lines,
    bytes: f64,
    /// The ratio of these bytes to the sum of all accesses.
    share: f64,
    /// Whether each core touches as many bytes of its own.
    is_divided: bool,
}

/// The bytes that the data of an iteration occupies in the caches.
#[derive(Default)]
struct Occupancy {
    /// For each cache, the bytes of all buffers.
    all: Vec<f64>,
    /// For each buffer and cache, how much more its lines occupy because they compete for few sets.
    /// This evicts the buffer's own lines: those of other buffers are mostly in other sets.
    conflicts: Vec<(BufferId, Vec<f64>)>,
}

impl Occupancy {
    /// The bytes that compete with the lines of a buffer.
    fn bytes(&self, buffer: BufferId, level: usize) -> f64 {
        let conflicts = self.conflicts.iter().find(|(own, _)| *own == buffer);
        let all = self.all.get(level).copied().unwrap_or(0.0);
        all + conflicts.map_or(0.0, |(_, bytes)| bytes[level])
    }
}

/// The accesses of a nest.
pub(super) struct Traffic<'a> {
    nest: &'a LoopNest,
    cpu: &'a Cpu,
    machine: &'a Machine,
    accesses: Vec<RecordedAccess>,
    /// For every frame, the data that all its iterations touch.
    touched: Vec<Vec<TouchedBuffer>>,
}

impl<'a> Traffic<'a> {
    pub fn new(nest: &'a LoopNest, cpu: &'a Cpu, machine: &'a Machine) -> Traffic<'a> {
        Traffic { nest, cpu, machine, accesses: Vec::new(), touched: Vec::new() }
    }

    /// Records an access of the current statement.
    pub fn record(&mut self, frames: &Frames, access: &Access, written: bool) {
        let buffer = self.nest.buffer(access.tensor);
        if buffer.scope == Scope::Register {
            return;
        }
        let depth = frames.stack.len();
        self.touched.resize_with(frames.all.len(), Vec::new);
        let moves = dependencies(frames, &access.indices);
        let is_parallel = |place: usize| frames.frame_at(place).kind == FrameKind::Parallel;
        let is_divided = (0..depth).any(|place| contains_frame(moves, place) && is_parallel(place));
        let mut visit = RecordedAccess {
            buffer: access.tensor,
            written,
            path: frames.stack.clone(),
            bytes: vec![0.0; depth + 1],
            streams: false,
            moves,
            serial: deepest_serial(frames, moves),
        };
        let mut region = Region::default();
        // From the inside out, each step adds one running frame.
        for running in (0..=depth).rev() {
            if running == depth || contains_frame(moves, running) {
                let trips = |var: LoopVarId| match frames.depth(var) {
                    Some(place) if place >= running => frames.frame_at(place).trips,
                    _ => 1.0,
                };
                region = Region::of(access, &trips);
                let lines = region.lines(buffer);
                visit.bytes[running] = lines.bytes();
                visit.streams |= lines.run() >= 2.0 * LINE_BYTES;
            } else {
                visit.bytes[running] = visit.bytes[running + 1];
            }
            if running < depth {
                let (buffer, sum) = (access.tensor, visit.bytes[running]);
                let touched = TouchedBuffer { buffer, sum, region, is_divided };
                add_touched(&mut self.touched[frames.stack[running]], &touched);
            }
        }
        self.accesses.push(visit);
    }

    /// The bytes that each level receives from the next one, for every root-level statement.
    pub fn bytes(&self, frames: &Frames) -> Vec<Vec<f64>> {
        let levels = self.cpu.caches.len();
        let unions: Vec<Vec<Union>> = self.touched.iter().map(|whole| self.unions(whole)).collect();
        let occupied = self.occupancies(frames, &unions);
        let mut total = vec![vec![0.0; levels]; frames.root_statement + 1];
        for visit in &self.accesses {
            let unit = visit.path.last().map_or(0, |frame| frames.all[*frame].root_statement);
            for (level, bytes) in total[unit].iter_mut().enumerate() {
                *bytes += self.loaded_bytes(frames, visit, (&occupied, &unions), level);
            }
        }
        total
    }

    /// For every frame, what the data of one iteration occupies in the caches. One iteration of a
    /// frame includes all iterations of the frames inside. Single elements that it touches besides
    /// do not count.
    fn occupancies(&self, frames: &Frames, unions: &[Vec<Union>]) -> Vec<Occupancy> {
        let mut inner: Vec<Vec<FrameId>> = vec![Vec::new(); self.touched.len()];
        for (frame, own) in frames.all.iter().enumerate().take(self.touched.len()).skip(1) {
            inner[own.parent].push(frame);
        }
        let occupancy = |inner: &Vec<FrameId>| match inner.as_slice() {
            [] => Occupancy::default(),
            [one] => self.occupancy(&self.touched[*one], &unions[*one]),
            several => {
                let mut joined = Vec::new();
                for touched in several.iter().flat_map(|frame| &self.touched[*frame]) {
                    add_touched(&mut joined, touched);
                }
                self.occupancy(&joined, &self.unions(&joined))
            }
        };
        inner.iter().map(occupancy).collect()
    }

    /// The space of touched data in each cache. The last cache holds the data of all cores.
    fn occupancy(&self, touched: &[TouchedBuffer], unions: &[Union]) -> Occupancy {
        let levels = self.cpu.caches.len();
        let cores = self.cpu.cores.max(1) as f64;
        let mut found = Occupancy { all: vec![0.0; levels], conflicts: Vec::new() };
        for (touched, union) in touched.iter().zip(unions) {
            let conflicts = (0..levels).map(|level| {
                let ways = self.machine.ways(level);
                let set_bytes = self.machine.capacity(self.cpu, level) / ways as f64;
                let parts = if union.is_divided && level + 1 == levels { cores } else { 1.0 };
                found.all[level] += union.bytes * parts;
                union.bytes * parts * (union.lines.conflict_factor(set_bytes, ways) - 1.0)
            });
            let conflicts = conflicts.collect();
            found.conflicts.push((touched.buffer, conflicts));
        }
        found
    }

    /// The share of a buffer's data that stays in a cache during an iteration that occupies so
    /// much.
    fn resident_share(&self, occupied: &Occupancy, buffer: BufferId, level: usize) -> f64 {
        let filled = occupied.bytes(buffer, level) / self.machine.capacity(self.cpu, level);
        ((OVERFLOWING_SHARE - filled) / (OVERFLOWING_SHARE - FITTING_SHARE)).clamp(0.0, 1.0)
    }

    /// The touched lines of each buffer.
    fn unions(&self, touched: &[TouchedBuffer]) -> Vec<Union> {
        let union = |touched: &TouchedBuffer| {
            let lines = touched.region.lines(self.nest.buffer(touched.buffer));
            let bytes = touched.sum.min(lines.bytes());
            let is_divided = touched.is_divided;
            Union { lines, bytes, share: bytes / touched.sum.max(1.0), is_divided }
        };
        touched.iter().map(union).collect()
    }

    /// The bytes that an access loads into a cache.
    fn loaded_bytes(
        &self,
        frames: &Frames,
        visit: &RecordedAccess,
        (occupied, unions): (&[Occupancy], &[Vec<Union>]),
        level: usize,
    ) -> f64 {
        let mut moved = LINE_BYTES;
        for (place, frame) in visit.path.iter().enumerate().rev() {
            if place > visit.serial
                && !contains_frame(visit.moves, place)
                && frames.all[*frame].kind != FrameKind::Branch
            {
                continue;
            }
            let own = self.touched[*frame].iter().position(|touched| touched.buffer == visit.buffer);
            let again = frames.all[*frame].trips * moved;
            let once = visit.bytes[place] * own.map_or(1.0, |own| unions[*frame][own].share);
            let stays = self.resident_share(&occupied[*frame], visit.buffer, level);
            moved = stays * once.min(again) + (1.0 - stays) * again;
        }
        // Another call came before, so data that fits into the cache is already there.
        moved *= 1.0 - self.resident_share(&occupied[0], visit.buffer, level);
        let alone = if visit.streams || level == 0 { 1.0 } else { SCATTERED_FACTOR };
        moved * if visit.written { WRITE_FACTOR * alone } else { alone }
    }
}

fn add_touched(all: &mut Vec<TouchedBuffer>, new: &TouchedBuffer) {
    match all.iter_mut().find(|touched| touched.buffer == new.buffer) {
        Some(touched) => {
            touched.sum += new.sum;
            touched.region.join(&new.region);
            touched.is_divided |= new.is_divided;
        }
        None => all.push(*new),
    }
}
