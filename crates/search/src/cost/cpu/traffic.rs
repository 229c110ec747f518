//! Cache lines that move between the levels of memory.
//!
//! For every loop: if what one iteration of it touches fits a cache, then whatever the iterations
//! touch again is still there, and the loop brings in each of its lines once. Otherwise every
//! iteration brings in its own. Calls follow each other, so what fits a cache as a whole stays in
//! it.

use tilewright_ir::nest::{LoopNest, Scope};
use tilewright_ir::{Access, TensorId, VarId};
use tilewright_target::Cpu;

use super::footprint::{LINE, Lines, Region};
use super::frames::{FrameId, Frames, Kind};
use super::instructions::{Frameset, deepest_serial, dependencies, has};
use super::machine::Machine;

/// Of a cache, what an iteration may take so that all of it stays there; and so much that nothing
/// does. Caches do not throw out exactly what was used longest ago, so in between some of it does.
const FITS: f64 = 0.7;
const OVERFLOWS: f64 = 2.0;
/// A written line is read before, and written back.
const WRITTEN: f64 = 2.0;
/// Lines that do not follow each other are not foreseen, and take longer from far away than their
/// size says.
const ALONE: f64 = 2.0;

/// One access, at its place in the nest.
struct Visit {
    buffer: TensorId,
    written: bool,
    /// The frames around it, outermost first, and the bytes of lines that it touches while each
    /// runs once.
    path: Vec<FrameId>,
    bytes: Vec<f64>,
    /// What it touches follows itself in memory.
    streams: bool,
    /// The frames that it moves with, and the innermost serial one of them: inside of that, an
    /// element that is loaded stays in its register.
    moves: Frameset,
    serial: usize,
}

/// What is touched of one buffer while a frame runs.
struct Touched {
    buffer: TensorId,
    /// All accesses together, as if none met another.
    sum: f64,
    region: Region,
}

/// The lines of what is touched of a buffer, those that several accesses touch counted once.
struct Union {
    lines: Lines,
    bytes: f64,
    /// The part of its bytes that counts for one of the accesses.
    share: f64,
}

/// The accesses of a nest.
pub(super) struct Traffic<'a> {
    nest: &'a LoopNest,
    cpu: &'a Cpu,
    machine: &'a Machine,
    visits: Vec<Visit>,
    /// For every frame, what all runs of its inside touch.
    whole: Vec<Vec<Touched>>,
}

impl<'a> Traffic<'a> {
    pub fn new(nest: &'a LoopNest, cpu: &'a Cpu, machine: &'a Machine) -> Traffic<'a> {
        Traffic { nest, cpu, machine, visits: Vec::new(), whole: Vec::new() }
    }

    /// Notes an access of the statement at hand.
    pub fn visit(&mut self, frames: &Frames, access: &Access, written: bool) {
        let buffer = self.nest.buffer(access.tensor);
        if buffer.scope == Scope::Register {
            return;
        }
        let depth = frames.stack.len();
        self.whole.resize_with(frames.all.len(), Vec::new);
        let moves = dependencies(frames, &access.indices);
        let mut visit = Visit {
            buffer: access.tensor,
            written,
            path: frames.stack.clone(),
            bytes: vec![0.0; depth + 1],
            streams: false,
            moves,
            serial: deepest_serial(frames, moves),
        };
        let mut region = Region::default();
        // From the inside out, one more frame running each time.
        for running in (0..=depth).rev() {
            if running == depth || has(moves, running) {
                let trips = |var: VarId| match frames.place(var) {
                    Some(place) if place >= running => frames.at(place).trips,
                    _ => 1.0,
                };
                region = Region::of(access, &trips);
                let lines = region.lines(buffer);
                visit.bytes[running] = lines.bytes();
                visit.streams |= lines.run() >= 2.0 * LINE;
            } else {
                visit.bytes[running] = visit.bytes[running + 1];
            }
            if running < depth {
                touch(&mut self.whole[frames.stack[running]], access.tensor, visit.bytes[running], &region);
            }
        }
        self.visits.push(visit);
    }

    /// Bytes that come into each level from behind it, for every root-level statement.
    pub fn bytes(&self, frames: &Frames) -> Vec<Vec<f64>> {
        let levels = self.cpu.caches.len();
        let unions: Vec<Vec<Union>> = self.whole.iter().map(|whole| self.unions(whole)).collect();
        let fits = self.all_fits(frames, &unions);
        let mut total = vec![vec![0.0; levels]; frames.unit + 1];
        for visit in &self.visits {
            let unit = visit.path.last().map_or(0, |frame| frames.all[*frame].unit);
            for (level, bytes) in total[unit].iter_mut().enumerate() {
                *bytes += self.moved(frames, visit, &fits, &unions, level);
            }
        }
        total
    }

    /// To which degree what one run of a frame's inside touches stays in each cache. One run of a
    /// frame is all runs of those in it; single elements that it touches besides do not count.
    fn all_fits(&self, frames: &Frames, unions: &[Vec<Union>]) -> Vec<Vec<f64>> {
        let mut inner: Vec<Vec<FrameId>> = vec![Vec::new(); self.whole.len()];
        for (frame, own) in frames.all.iter().enumerate().take(self.whole.len()).skip(1) {
            inner[own.parent].push(frame);
        }
        let fits = |inner: &Vec<FrameId>| match inner.as_slice() {
            [] => vec![1.0; self.cpu.caches.len()],
            [one] => self.fits(&unions[*one]),
            several => {
                let mut joined = Vec::new();
                for touched in several.iter().flat_map(|frame| &self.whole[*frame]) {
                    touch(&mut joined, touched.buffer, touched.sum, &touched.region);
                }
                self.fits(&self.unions(&joined))
            }
        };
        inner.iter().map(fits).collect()
    }

    /// To which degree what is touched stays in each cache.
    fn fits(&self, together: &[Union]) -> Vec<f64> {
        let mut occupied = vec![0.0; self.cpu.caches.len()];
        for union in together {
            for (level, occupied) in occupied.iter_mut().enumerate() {
                let ways = self.machine.ways(level);
                *occupied +=
                    union.bytes * union.lines.crowding(self.cpu.caches[level] as f64 / ways as f64, ways);
            }
        }
        let stays = |(occupied, capacity): (&f64, &usize)| {
            let filled = occupied / (*capacity).max(1) as f64;
            ((OVERFLOWS - filled) / (OVERFLOWS - FITS)).clamp(0.0, 1.0)
        };
        occupied.iter().zip(&self.cpu.caches).map(stays).collect()
    }

    /// For each buffer, the lines of what was touched.
    fn unions(&self, touched: &[Touched]) -> Vec<Union> {
        let union = |touched: &Touched| {
            let lines = touched.region.lines(self.nest.buffer(touched.buffer));
            let bytes = touched.sum.min(lines.bytes());
            Union { lines, bytes, share: bytes / touched.sum.max(1.0) }
        };
        touched.iter().map(union).collect()
    }

    /// Bytes that an access brings into a cache.
    fn moved(
        &self,
        frames: &Frames,
        visit: &Visit,
        fits: &[Vec<f64>],
        unions: &[Vec<Union>],
        level: usize,
    ) -> f64 {
        let mut moved = LINE;
        for (place, frame) in visit.path.iter().enumerate().rev() {
            if place > visit.serial && !has(visit.moves, place) && frames.all[*frame].kind != Kind::Branch {
                continue;
            }
            let own = self.whole[*frame].iter().position(|touched| touched.buffer == visit.buffer);
            let again = frames.all[*frame].trips * moved;
            let once = visit.bytes[place] * own.map_or(1.0, |own| unions[*frame][own].share);
            let stays = fits[*frame][level];
            moved = stays * once.min(again) + (1.0 - stays) * again;
        }
        // Before the first call comes another one.
        moved *= 1.0 - fits[0][level];
        let alone = if visit.streams || level == 0 { 1.0 } else { ALONE };
        moved * if visit.written { WRITTEN * alone } else { alone }
    }
}

fn touch(all: &mut Vec<Touched>, buffer: TensorId, bytes: f64, region: &Region) {
    match all.iter_mut().find(|touched| touched.buffer == buffer) {
        Some(touched) => {
            touched.sum += bytes;
            touched.region.join(region);
        }
        None => all.push(Touched { buffer, sum: bytes, region: *region }),
    }
}
