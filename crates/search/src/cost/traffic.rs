//! Cache lines that move between the levels of memory.
//!
//! For every loop: if what one iteration of it touches fits a cache, then whatever the iterations touch again is still
//! there, and the loop brings in each of its lines once. Otherwise every iteration brings in its own. Calls follow each
//! other, so what fits a cache as a whole stays in it.

use tilewright_ir::nest::{LoopNest, Scope};
use tilewright_ir::{Access, TensorId, VarId};
use tilewright_target::Cpu;

use super::footprint::{LINE, Lines, Region};
use super::frames::{FrameId, Frames, Kind};
use super::instructions::{Frameset, deepest_serial, dependencies, has};
use super::machine::Machine;

/// Of a cache, what an iteration may take so that all of it stays there; and so much that nothing does.
const FITS: f64 = 0.7;
const OVERFLOWS: f64 = 1.2;
/// A written line is read before, and written back.
const WRITTEN: f64 = 2.0;
/// Lines that do not follow each other are not foreseen, and take longer from far away than their size says.
const ALONE: f64 = 2.0;

/// One access, at its place in the nest.
struct Visit {
    buffer: TensorId,
    written: bool,
    /// The frames around it, outermost first, and the bytes of lines that it touches while each runs once.
    path: Vec<FrameId>,
    bytes: Vec<f64>,
    /// What it touches follows itself in memory.
    streams: bool,
    /// The frames that it moves with, and the innermost serial one of them: inside of that, an element that is loaded
    /// stays in its register.
    moves: Frameset,
    serial: usize,
}

/// What is touched of one buffer while a frame runs.
struct Touched {
    buffer: TensorId,
    /// All accesses together, as if none met another.
    sum: f64,
    region: Region,
    union: f64,
    lines: Option<Lines>,
}

/// The accesses of a nest.
pub(super) struct Traffic<'a> {
    nest: &'a LoopNest,
    cpu: &'a Cpu,
    machine: &'a Machine,
    visits: Vec<Visit>,
    /// For every frame, what one run of its inside touches.
    inside: Vec<Vec<Touched>>,
    /// For every frame, what all runs of its inside touch.
    whole: Vec<Vec<Touched>>,
}

impl<'a> Traffic<'a> {
    pub fn new(nest: &'a LoopNest, cpu: &'a Cpu, machine: &'a Machine) -> Traffic<'a> {
        Traffic { nest, cpu, machine, visits: Vec::new(), inside: Vec::new(), whole: Vec::new() }
    }

    /// Notes an access of the statement at hand.
    pub fn visit(&mut self, frames: &Frames, access: &Access, written: bool) {
        let buffer = self.nest.buffer(access.tensor);
        if buffer.scope == Scope::Register {
            return;
        }
        let depth = frames.stack.len();
        self.inside.resize_with(frames.all.len(), Vec::new);
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
            if running > 0 {
                touch(
                    &mut self.inside[frames.stack[running - 1]],
                    access.tensor,
                    visit.bytes[running],
                    &region,
                );
            }
        }
        self.visits.push(visit);
    }

    /// Bytes that come into each level from behind it, for every root-level statement.
    pub fn bytes(&mut self, frames: &Frames) -> Vec<Vec<f64>> {
        let levels = self.cpu.caches.len();
        let nest = self.nest;
        for touched in self.inside.iter_mut().chain(&mut self.whole).flatten() {
            let lines = touched.region.lines(nest.buffer(touched.buffer));
            touched.union = touched.sum.min(lines.bytes());
            touched.lines = Some(lines);
        }
        let mut total = vec![vec![0.0; levels]; frames.unit + 1];
        for level in 0..levels {
            let fits: Vec<f64> = (0..frames.all.len()).map(|frame| self.fits(frame, level)).collect();
            for visit in &self.visits {
                let unit = visit.path.last().map_or(0, |frame| frames.all[*frame].unit);
                total[unit][level] += self.moved(frames, visit, &fits, level);
            }
        }
        total
    }

    /// To which degree what one run of a frame's inside touches stays in a cache.
    fn fits(&self, frame: FrameId, level: usize) -> f64 {
        let capacity = self.cpu.caches[level] as f64;
        let period = capacity / self.machine.ways(level) as f64;
        let Some(inside) = self.inside.get(frame) else { return 1.0 };
        let occupied: f64 = inside
            .iter()
            .map(|touched| touched.union * touched.lines.map_or(1.0, |lines| lines.crowding(period)))
            .sum();
        ((OVERFLOWS - occupied / capacity) / (OVERFLOWS - FITS)).clamp(0.0, 1.0)
    }

    /// Bytes that an access brings in.
    fn moved(&self, frames: &Frames, visit: &Visit, fits: &[f64], level: usize) -> f64 {
        let mut moved = LINE;
        for (place, frame) in visit.path.iter().enumerate().rev() {
            if place > visit.serial && !has(visit.moves, place) && frames.all[*frame].kind != Kind::Branch {
                continue;
            }
            let again = frames.all[*frame].trips * moved;
            let once = visit.bytes[place] * self.share(*frame, visit.buffer);
            moved = fits[*frame] * once.min(again) + (1.0 - fits[*frame]) * again;
        }
        // Before the first call comes another one.
        moved *= 1.0 - fits[0];
        moved
            * if visit.written { WRITTEN } else { 1.0 }
            * if visit.streams || level == 0 { 1.0 } else { ALONE }
    }

    /// The part of what a frame touches of a buffer that counts for one of its accesses, which may meet others.
    fn share(&self, frame: FrameId, buffer: TensorId) -> f64 {
        let touched = self.whole[frame].iter().find(|touched| touched.buffer == buffer);
        touched.map_or(1.0, |touched| touched.union / touched.sum.max(1.0))
    }
}

fn touch(all: &mut Vec<Touched>, buffer: TensorId, bytes: f64, region: &Region) {
    match all.iter_mut().find(|touched| touched.buffer == buffer) {
        Some(touched) => {
            touched.sum += bytes;
            touched.region.join(region);
        }
        None => all.push(Touched { buffer, sum: bytes, region: *region, union: 0.0, lines: None }),
    }
}
