//! Maps values to coordinates along an axis, and chooses the numbers to show there ([`Scale`]).

/// Values that differ by more than this factor get a logarithmic axis.
const LOGARITHMIC_RATIO: f64 = 8.0;

/// An axis.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// The coordinates of the lowest and of the highest value.
    from: f64,
    to: f64,
}

impl Scale {
    /// An axis from 0 to a value.
    pub fn from_zero(high: f64, from: f64, to: f64) -> Scale {
        Scale { low: 0.0, high: if high > 0.0 { high } else { 1.0 }, logarithmic: false, from, to }
    }

    /// An axis from one value to another.
    pub fn between(low: f64, high: f64, from: f64, to: f64) -> Scale {
        Scale { low, high: if high > low { high } else { low + 1.0 }, logarithmic: false, from, to }
    }

    /// A logarithmic axis between two positive values. Its end is at least twice its start.
    pub fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> Scale {
        let low = if low > 0.0 && low.is_finite() { low } else { 1.0 };
        Scale { low, high: if high > 2.0 * low { high } else { 2.0 * low }, logarithmic: true, from, to }
    }

    /// An axis around positive values, with a margin at both ends.
    pub fn around(values: &[f64], from: f64, to: f64) -> Scale {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        let logarithmic = high > LOGARITHMIC_RATIO * low;
        let (low, high) = match logarithmic {
            true => (low / 1.15, high * 1.15),
            false => {
                let room = (0.08 * (high - low)).max(0.02 * high);
                ((low - room).max(0.0), high + room)
            }
        };
        Scale { low, high, logarithmic, from, to }
    }

    /// The coordinate of a value. Values outside the axis are placed at its ends.
    pub fn coordinate(&self, value: f64) -> f64 {
        self.from + self.fraction(value) * (self.to - self.from)
    }

    /// The relative position of a value between the lowest and the highest: 0 to 1.
    pub fn fraction(&self, value: f64) -> f64 {
        let part = match self.logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        part.clamp(0.0, 1.0)
    }

    /// The value at a relative position.
    pub fn value(&self, part: f64) -> f64 {
        match self.logarithmic {
            true => self.low * (self.high / self.low).powf(part),
            false => self.low + part * (self.high - self.low),
        }
    }

    /// Round values along the axis, about four to ten.
    pub fn ticks(&self) -> Vec<f64> {
        if self.logarithmic { self.decades() } else { self.steps() }
    }

    fn steps(&self) -> Vec<f64> {
        let raw = (self.high - self.low) / 5.0;
        let unit = 10f64.powf(raw.log10().floor());
        let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * unit >= raw).unwrap_or(10.0);
        let step = factor * unit;
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|at| at as f64 * step).collect()
    }

    fn decades(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let factors: &[f64] = if last - first > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let values = (first..=last).flat_map(|power| factors.iter().map(move |by| by * 10f64.powi(power)));
        values.filter(|value| (self.low..=self.high).contains(value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_ends_and_ticks_lie_between() {
        for values in [vec![1.0, 1.5], vec![1e-6, 3e-2], vec![2e-3], vec![], vec![5.0, 5.0, 39.0]] {
            let scale = Scale::around(&values, 100.0, 0.0);
            for value in &values {
                assert!((0.0..=100.0).contains(&scale.coordinate(*value)), "{values:?}");
            }
            let ticks = scale.ticks();
            assert!((2..=16).contains(&ticks.len()), "{values:?}: {ticks:?}");
            assert!(
                ticks.windows(2).all(|pair| scale.coordinate(pair[0]) > scale.coordinate(pair[1])),
                "{values:?}: {ticks:?}"
            );
        }
    }

    #[test]
    fn ends_that_are_no_range_become_one() {
        let near = [Scale::logarithmic(1.0, 1.0, 0.0, 1.0), Scale::between(1.0, 1.0, 0.0, 1.0)];
        let odd = [Scale::logarithmic(0.0, f64::NAN, 0.0, 1.0), Scale::between(1.0, f64::NAN, 0.0, 1.0)];
        for scale in near.into_iter().chain(odd) {
            assert_eq!((scale.coordinate(1.0), scale.coordinate(2.0)), (0.0, 1.0), "{scale:?}");
            assert!(scale.ticks().len() >= 2, "{scale:?}");
        }
        // A value without a logarithm is at the lower end.
        assert_eq!(Scale::logarithmic(1.0, 10.0, 5.0, 6.0).coordinate(0.0), 5.0);
    }

    #[test]
    fn far_values_are_shown_by_logarithms() {
        let scale = Scale::around(&[1.0, 100.0], 0.0, 1.0);
        assert!((scale.coordinate(10.0) - 0.5).abs() < 1e-9);
        assert!((scale.value(0.5) - 10.0).abs() < 1e-9);
        let near = Scale::from_zero(10.0, 0.0, 1.0);
        assert_eq!((near.coordinate(5.0), near.coordinate(20.0)), (0.5, 1.0));
        assert_eq!(near.ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    }
}
