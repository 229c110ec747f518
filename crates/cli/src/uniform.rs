//! Parses the input `uniform(LOW,HIGH)` of the command line, which asks for random numbers between
//! two bounds.

use tilewright::interp::seed::Uniform;
use tilewright::ir::{DType, Number};

use crate::failure::Failure;

/// The two bounds as text. The type of the input determines which numbers they are.
#[derive(Clone, Debug)]
pub struct UniformRange {
    input: String,
    low: String,
    high: String,
}

impl UniformRange {
    /// Reads `uniform(LOW,HIGH)` for an input. Returns `None` for any other text, such as a file
    /// name.
    pub fn read(input: &str, value: &str) -> Option<Result<UniformRange, Failure>> {
        let inside = value.trim().strip_prefix("uniform(")?.strip_suffix(')')?;
        let ends: Vec<&str> = inside.split(',').map(str::trim).collect();
        let [low, high] = ends[..] else {
            return Some(Err(Failure::Usage(format!(
                "--in {input}={value}: uniform takes two numbers, as in {input}=uniform(0.1,1)"
            ))));
        };
        Some(Ok(UniformRange { input: input.to_owned(), low: low.to_owned(), high: high.to_owned() }))
    }

    /// Converts the bounds to numbers of a type.
    pub fn for_type(&self, dtype: DType) -> Result<Uniform, Failure> {
        let (low, high) = (self.parse_bound(&self.low, dtype)?, self.parse_bound(&self.high, dtype)?);
        let is_empty = match (low, high) {
            (Number::Int(low), Number::Int(high)) => low > high,
            _ => low.as_f64() > high.as_f64(),
        };
        if is_empty {
            return Err(self.refuse(&format!("{} is more than {}", self.low, self.high)));
        }
        Ok(Uniform { low, high })
    }

    fn parse_bound(&self, text: &str, dtype: DType) -> Result<Number, Failure> {
        let input = &self.input;
        let Some(number) = text.parse::<f64>().ok().filter(|number| number.is_finite()) else {
            return Err(self.refuse(&format!("`{text}` is not a finite number")));
        };
        if dtype.is_float() {
            let number = Number::Float(number);
            return match number.convert(dtype).as_f64().is_finite() {
                true => Ok(number),
                false => Err(self.refuse(&format!("{input} is {dtype}, and {text} is out of its range"))),
            };
        }
        let (low, high) = dtype.integer_bounds().unwrap_or((i128::MIN, i128::MAX));
        match text.parse::<i128>() {
            Ok(whole) if (low..=high).contains(&whole) => Ok(Number::Int(whole)),
            Ok(_) => Err(self.refuse(&format!("{input} is {dtype}, and {text} is out of its range"))),
            Err(_) => Err(self.refuse(&format!("{input} is {dtype}, but `{text}` is no {dtype}"))),
        }
    }

    fn refuse(&self, why: &str) -> Failure {
        Failure::Usage(format!("--in {}=uniform({},{}): {why}", self.input, self.low, self.high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(text: &str, dtype: DType) -> Result<(Number, Number), String> {
        let range = UniformRange::read("A", text).unwrap().and_then(|range| range.for_type(dtype));
        match range {
            Ok(Uniform { low, high }) => Ok((low, high)),
            Err(Failure::Usage(why)) => Err(why),
            Err(_) => panic!("{text} is a matter of usage"),
        }
    }

    #[test]
    fn ends_are_numbers_of_the_type() {
        let floats = ends("uniform(0.1, 1e2)", DType::Float32);
        assert_eq!(floats, Ok((Number::Float(0.1), Number::Float(100.0))));
        assert_eq!(ends("uniform(-3,-3)", DType::Int8), Ok((Number::Int(-3), Number::Int(-3))));
        let largest = ends("uniform(0,18446744073709551615)", DType::UInt64);
        assert_eq!(largest, Ok((Number::Int(0), Number::Int(u64::MAX.into()))));
        assert!(UniformRange::read("A", "uniform.npy").is_none());
    }

    #[test]
    fn nonsense_is_refused() {
        let cases = [
            (
                "uniform(1)",
                DType::Float32,
                "--in A=uniform(1): uniform takes two numbers, as in A=uniform(0.1,1)",
            ),
            (
                "uniform(1,2,3)",
                DType::Float32,
                "--in A=uniform(1,2,3): uniform takes two numbers, as in A=uniform(0.1,1)",
            ),
            ("uniform(2,1)", DType::Float32, "--in A=uniform(2,1): 2 is more than 1"),
            ("uniform(nan,1)", DType::Float32, "--in A=uniform(nan,1): `nan` is not a finite number"),
            ("uniform(0,inf)", DType::Float64, "--in A=uniform(0,inf): `inf` is not a finite number"),
            ("uniform(a,b)", DType::Int32, "--in A=uniform(a,b): `a` is not a finite number"),
            (
                "uniform(0,1e39)",
                DType::Float32,
                "--in A=uniform(0,1e39): A is float32, and 1e39 is out of its range",
            ),
            (
                "uniform(0,256)",
                DType::UInt8,
                "--in A=uniform(0,256): A is uint8, and 256 is out of its range",
            ),
            ("uniform(0,0.5)", DType::Int32, "--in A=uniform(0,0.5): A is int32, but `0.5` is no int32"),
        ];
        for (text, dtype, why) in cases {
            assert_eq!(ends(text, dtype), Err(why.to_owned()));
        }
    }
}
