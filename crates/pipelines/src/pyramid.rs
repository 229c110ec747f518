//! Adds levels of half the size, and the way back up, where each level is joined with the coarser
//! one.

use rand::RngExt;

use crate::pointwise;
use crate::sketch::{Image, Sketch};

/// The shortest side of a level that is halved.
const LEAST_HALVED: i64 = 8;

/// Adds some levels.
pub(crate) fn add(sketch: &mut Sketch, left: usize) {
    let image = sketch.choose();
    let mut levels = vec![image];
    let most = sketch.rng.random_range(1..=6).min(left.div_ceil(2));
    for _ in 0..most {
        let Some(finer) = levels.last().cloned() else { return };
        if finer.height.min(finer.width) < LEAST_HALVED {
            break;
        }
        if levels.len() > 1 {
            sketch.read(sketch.images.len() - 1);
        }
        levels.push(halved(sketch, &finer));
    }
    if levels.len() < 2 {
        return pointwise::join(sketch, &levels);
    }
    let mut coarse = sketch.images.len() - 1;
    let way_up = (left + 1).saturating_sub(levels.len());
    for finer in levels.iter().rev().skip(1).take(way_up) {
        joined(sketch, coarse, finer);
        coarse = sketch.images.len() - 1;
    }
}

/// Defines an image of half the size: means of two by two or three by three elements.
fn halved(sketch: &mut Sketch, finer: &Image) -> Image {
    let mut image = sketch.like(finer);
    (image.height, image.width) = (finer.height / 2, finer.width / 2);
    let value = match sketch.rng.random_bool(0.6) {
        true => {
            let values: Vec<String> =
                [("2*y", "2*x"), ("2*y", "2*x + 1"), ("2*y + 1", "2*x"), ("2*y + 1", "2*x + 1")]
                    .map(|(y, x)| finer.at("c", y, x))
                    .to_vec();
            finer.element.mean(&values, &[1, 1, 1, 1])
        }
        false => {
            let source = sketch.view(finer);
            let places = [
                ("2*y", "2*x - 1"),
                ("2*y", "2*x"),
                ("2*y", "2*x + 1"),
                ("2*y - 1", "2*x"),
                ("2*y + 1", "2*x"),
            ];
            let values = places.map(|(y, x)| source.at("c", y, x)).to_vec();
            finer.element.mean(&values, &[1, 4, 1, 1, 1])
        }
    };
    sketch.define(image.clone(), "=", &value, "");
    image
}

/// Defines an image of the size of a finer one: the coarser one at twice the size, joined with it.
fn joined(sketch: &mut Sketch, coarse: usize, finer: &Image) {
    let coarse = sketch.read(coarse);
    let image = sketch.like(finer);
    let source = sketch.view(&coarse);
    let values = [("y/2", "x/2"), ("y/2", "(x + 1)/2"), ("(y + 1)/2", "x/2"), ("(y + 1)/2", "(x + 1)/2")]
        .map(|(y, x)| source.at("c", y, x));
    let mean = coarse.element.mean(&values, &[1, 1, 1, 1]);
    let large = coarse.element.convert(&mean, finer.element);
    let value = pointwise::value(sketch, finer.element, &[finer.target(), large]);
    sketch.define(image, "=", &value, "");
}
