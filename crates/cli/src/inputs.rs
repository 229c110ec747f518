//! Reads sizes, tensors and scalars from the command line and from files, and completes them with
//! random data from the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tilewright::interp::{Inputs, seed};
use tilewright::ir::derived::number_text;
use tilewright::ir::{DType, Number, Program, SymbolKind, Tensor};
use tilewright::syntax::ast::Function;
use tilewright::syntax::diagnostic::most_similar;
use tilewright::syntax::sizes::{Sizes, scalars, shape_text, size_names, tensors};
use tilewright::syntax::{Bindings, signature};

use crate::failure::Failure;
use crate::npy;
use crate::output::print_error_line;
use crate::picture::layout::written_dimensions;
use crate::source::Source;
use crate::tensor_file::{self, Declared, FileFormat};
use crate::uniform::UniformRange;

/// The origin of the sizes that `--sizes` lists.
const SIZES_OPTION: &str = "--sizes";

/// The sizes and inputs that the user has given.
#[derive(Default)]
pub struct GivenInputs {
    sizes: Sizes,
    tensors: BTreeMap<String, (Tensor, String)>,
    /// Tensors of random numbers, which are generated when their shape is known.
    random: BTreeMap<String, UniformRange>,
    scalars: BTreeMap<String, Number>,
    /// Whether `--in` gives some input.
    has_inputs: bool,
    /// The seed of the random numbers.
    seed: u64,
}

fn has_tensor(function: &Function, name: &str) -> bool {
    tensors(function).any(|(tensor, _)| tensor.text == name)
}

/// The name in the program of a tensor or size that the user names: `g_0` for `g[0]`.
fn in_program(name: &str) -> String {
    name.replace('[', "_").replace(']', "")
}

/// Collects the sizes of `--sizes`, and refuses a size that is given twice.
pub fn bindings(sizes: &[(String, i64)]) -> Result<Bindings, Failure> {
    let mut all = Bindings::default();
    for (size, value) in sizes {
        if let Some(first) = all.get(&in_program(size)) {
            return Err(Failure::Usage(format!("--sizes gives {size} twice: {first} and {value}")));
        }
        all.set(in_program(size), *value);
    }
    Ok(all)
}

/// Refuses values for sizes that no function has.
pub fn refuse_unknown_sizes(
    source: &Source,
    functions: &[&Function],
    sizes: &Bindings,
) -> Result<(), Failure> {
    let functions: Vec<_> = functions.iter().map(|function| signature(function, sizes)).collect();
    let mut names: Vec<&str> = functions.iter().flat_map(|function| size_names(function)).collect();
    names.sort_unstable();
    names.dedup();
    match sizes.iter().find(|(name, _)| !names.contains(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let hint = most_similar(name, names.iter().copied())
                .map(|close| format!(" Did you mean {close}?"))
                .unwrap_or_default();
            let listed = if names.is_empty() {
                "It has none.".to_owned()
            } else {
                format!("It has: {}.", names.join(", "))
            };
            Err(Failure::Input(format!(
                "{} has no size or integer scalar {name}.{hint} {listed}",
                source.path()
            )))
        }
    }
}

/// Adds the scalars that `check` takes: numbers for parameters of one function or several.
pub fn add_scalars(
    source: &Source,
    functions: &[&Function],
    inputs: &[String],
    all: &mut Bindings,
) -> Result<(), Failure> {
    for input in inputs {
        let number = input.split_once('=').and_then(|(name, value)| Some((name, value.parse::<f64>().ok()?)));
        let (name, number) = number.ok_or_else(|| {
            Failure::Usage(format!("--in takes NAME=NUMBER for a scalar here, not {input}"))
        })?;
        let mut named = functions.iter().flat_map(|function| scalars(function));
        let Some((_, dtype)) = named.find(|(scalar, _)| scalar.text == name) else {
            return Err(Failure::Input(format!("{} has no scalar {name}", source.path())));
        };
        if dtype.is_integer() {
            return Err(Failure::Usage(format!("{name} is {dtype}: give --sizes {input}")));
        }
        all.set_scalar(name, Number::Float(number).convert(dtype));
    }
    Ok(())
}

/// Reads the sizes and integer scalars of a function: those of `--sizes`, and those that inputs
/// determine.
pub fn read_sizes(
    source: &Source,
    name: &str,
    sizes: &[(String, i64)],
    inputs: &[String],
) -> Result<Bindings, Failure> {
    Ok(read_inputs(source, name, sizes, inputs, 0)?.sizes.bindings)
}

/// Reads all sizes and inputs that the user has given for a function.
pub fn read_inputs(
    source: &Source,
    name: &str,
    sizes: &[(String, i64)],
    inputs: &[String],
    seed: u64,
) -> Result<GivenInputs, Failure> {
    let function = source.function(name);
    let mut given = GivenInputs { seed, has_inputs: !inputs.is_empty(), ..GivenInputs::default() };
    let listed = bindings(sizes)?;
    refuse_unknown_sizes(source, &[function], &listed)?;
    let function = &*signature(function, &listed);
    for (size, value) in listed.iter() {
        given.sizes.set(size, value, SIZES_OPTION);
    }
    for input in inputs {
        given.read(function, input)?;
    }
    for (size, value) in given.sizes.bindings.iter() {
        if let Some((_, dtype)) = scalars(function).find(|(scalar, _)| scalar.text == size) {
            given.scalars.entry(size.to_owned()).or_insert(checked_integer(size, dtype, value.into())?);
        }
    }
    for (tensor, ty) in tensors(function) {
        if let (Some(ty), Some((value, path))) = (ty, given.tensors.get(&tensor.text)) {
            let taken =
                given.sizes.infer_from_shape(tensor, ty, value.shape(), format!("{} ({path})", tensor.text));
            taken.map_err(|found| {
                source.print(&[*found]);
                Failure::Reported
            })?;
        }
    }
    Ok(given)
}

fn checked_integer(name: &str, dtype: DType, value: i128) -> Result<Number, Failure> {
    let (low, high) = dtype.integer_bounds().unwrap_or((i128::MIN, i128::MAX));
    if (low..=high).contains(&value) {
        return Ok(Number::Int(value));
    }
    Err(Failure::Input(format!("{name} is {dtype}, and {value} is out of its range")))
}

impl GivenInputs {
    /// Sizes and integer scalars.
    pub fn sizes(&self) -> &Bindings {
        &self.sizes.bindings
    }

    /// Whether a scalar has a value.
    pub fn has_scalar(&self, name: &str) -> bool {
        self.scalars.contains_key(name)
    }

    /// The tensors and scalars that have a value.
    pub fn names(&self) -> BTreeSet<String> {
        self.tensors.keys().chain(self.random.keys()).chain(self.scalars.keys()).cloned().collect()
    }

    /// Reads `A=a.npy`, `A=photo.png`, `A=uniform(0,1)`, `a=2.5` or `inputs.npz`.
    fn read(&mut self, function: &Function, input: &str) -> Result<(), Failure> {
        match input.split_once('=') {
            Some((name, value)) if name.contains('[') => {
                self.read(function, &format!("{}={value}", in_program(name)))
            }
            Some((name, value)) => match scalars(function).find(|(scalar, _)| scalar.text == name) {
                Some((_, dtype)) => self.scalar(name, dtype, value),
                None if size_names(function).contains(&name) && !has_tensor(function, name) => {
                    Err(Failure::Usage(format!("{name} is a size: give --sizes {name}={value}")))
                }
                None if value.parse::<f64>().is_ok() && !has_tensor(function, name) => {
                    Err(unknown_input(function, name))
                }
                None if value.parse::<f64>().is_ok() => Err(Failure::Usage(format!(
                    "{name} is a tensor and takes a file, --in {name}=FILE.npy, or random numbers, --in {name}=uniform(LOW,HIGH)"
                ))),
                None => {
                    if let Some(range) = UniformRange::read(name, value) {
                        return self.random(function, name, range?);
                    }
                    let path = Path::new(value);
                    // Only a .npy file can be read for a parameter that is not declared.
                    if FileFormat::of(path).is_some_and(|format| format != FileFormat::Npy) {
                        self.refuse_tensor(function, name)?;
                    }
                    let tensor = tensor_file::read(path, &self.declared(function, name))
                        .map_err(|error| Failure::Input(format!("{value}: {error}")))?;
                    self.tensor(function, name, tensor, value)
                }
            },
            None if Path::new(input).extension().is_some_and(|extension| extension == "npz") => {
                let tensors = npy::read_archive(Path::new(input))
                    .map_err(|error| Failure::Input(format!("{input}: {error}")))?;
                for (name, tensor) in tensors {
                    match scalars(function).find(|(scalar, _)| scalar.text == name) {
                        Some((_, dtype)) => self.scalar_tensor(&name, dtype, &tensor, input)?,
                        None => self.tensor(function, &name, tensor, input)?,
                    }
                }
                Ok(())
            }
            None => Err(Failure::Usage(format!(
                "--in takes NAME=FILE, NAME=uniform(LOW,HIGH), NAME=NUMBER or a .npz file, not {input}"
            ))),
        }
    }

    /// A tensor as the function declares it.
    fn declared<'a>(&self, function: &Function, name: &'a str) -> Declared<'a> {
        let ty = tensors(function).find(|(tensor, _)| tensor.text == name).and_then(|(_, ty)| ty);
        Declared { name, ty: ty.map(|ty| (ty.dtype, written_dimensions(ty, &self.sizes.bindings))) }
    }

    fn tensor(&mut self, function: &Function, name: &str, tensor: Tensor, path: &str) -> Result<(), Failure> {
        self.refuse_tensor(function, name)?;
        self.tensors.insert(name.to_owned(), (tensor, path.to_owned()));
        Ok(())
    }

    fn random(&mut self, function: &Function, name: &str, range: UniformRange) -> Result<(), Failure> {
        self.refuse_tensor(function, name)?;
        self.random.insert(name.to_owned(), range);
        Ok(())
    }

    /// Refuses a tensor that the function does not have, or that was given before.
    fn refuse_tensor(&self, function: &Function, name: &str) -> Result<(), Failure> {
        if self.tensors.contains_key(name) || self.random.contains_key(name) {
            return Err(Failure::Usage(format!("--in gives {name} twice")));
        }
        if has_tensor(function, name) {
            return Ok(());
        }
        Err(unknown_input(function, name))
    }

    /// Reads a scalar: a number, a file with a number, or a random number.
    fn scalar(&mut self, name: &str, dtype: DType, value: &str) -> Result<(), Failure> {
        if let Some(range) = UniformRange::read(name, value) {
            let number = range?.for_type(dtype)?.scalar(name, dtype, self.seed);
            return self.set_scalar(name, dtype, number, "--in");
        }
        match FileFormat::of(Path::new(value)) {
            Some(FileFormat::Npy) => {
                let tensor = npy::read(Path::new(value))
                    .map_err(|error| Failure::Input(format!("{value}: {error}")))?;
                return self.scalar_tensor(name, dtype, &tensor, value);
            }
            Some(_) => {
                return Err(Failure::Input(format!(
                    "{name} is a scalar of the program, and takes a number, as in --in {name}=2, not the file {value}"
                )));
            }
            None => {}
        }
        let number = match dtype {
            DType::Bool if value == "true" || value == "false" => {
                Some(Number::Int((value == "true") as i128))
            }
            _ if dtype.is_float() => value.parse().ok().map(Number::Float),
            _ => value.parse().ok().map(Number::Int),
        };
        let number = number
            .ok_or_else(|| Failure::Input(format!("{name} is {dtype}, but `{value}` is no {dtype}")))?;
        self.set_scalar(name, dtype, number, "--in")
    }

    fn scalar_tensor(
        &mut self,
        name: &str,
        dtype: DType,
        tensor: &Tensor,
        path: &str,
    ) -> Result<(), Failure> {
        if tensor.len() != 1 {
            return Err(Failure::Input(format!(
                "{name} is a scalar, and {path} has {} elements",
                tensor.len()
            )));
        }
        if dtype.is_float() != tensor.dtype().is_float() {
            return Err(Failure::Input(format!("{name} is {dtype}, and {path} holds {}", tensor.dtype())));
        }
        self.set_scalar(name, dtype, tensor.get(0), path)
    }

    fn set_scalar(&mut self, name: &str, dtype: DType, number: Number, from: &str) -> Result<(), Failure> {
        if dtype.is_integer() {
            checked_integer(name, dtype, number.as_i128())?;
        }
        // Only a scalar that is not used as an index can be larger than every index.
        if let (true, Ok(value)) = (dtype.is_integer(), i64::try_from(number.as_i128())) {
            if let (Some(first), Some(origin)) = (self.sizes.bindings.get(name), self.sizes.origin(name)) {
                if origin != SIZES_OPTION {
                    return Err(Failure::Usage(format!("--in gives {name} twice")));
                }
                if first != value {
                    return Err(Failure::Input(format!(
                        "{name} is {first} from --sizes, but {value} from {from}"
                    )));
                }
            }
            self.sizes.set(name, value, from);
        }
        self.sizes.bindings.set_scalar(name, number.convert(dtype));
        match self.scalars.insert(name.to_owned(), number.convert(dtype)) {
            Some(_) => Err(Failure::Usage(format!("--in gives {name} twice"))),
            None => Ok(()),
        }
    }
}

/// The failure for a name that is no input. The parameters are listed; a result that the caller
/// supplies is suggested if its name is close.
fn unknown_input(function: &Function, name: &str) -> Failure {
    let params: Vec<&str> = function.params.iter().map(|param| param.name.text.as_str()).collect();
    let results = function.results.iter().map(|result| result.name.text.as_str());
    // `img` is short for `image`.
    let mut longer = params.iter().copied().filter(|param| name.len() > 1 && is_abbreviation(name, param));
    let close = most_similar(name, params.iter().copied()).or_else(|| longer.next());
    let hint = close
        .or_else(|| most_similar(name, results))
        .map(|close| format!(" Did you mean {close}?"))
        .unwrap_or_default();
    let listed = if params.is_empty() { "none".to_owned() } else { params.join(", ") };
    Failure::Input(format!("`{}` has no input {name}.{hint} It has: {listed}", function.name.text))
}

/// Returns true when the letters of the short name occur in the long one, in order, and both begin
/// with the same letter.
fn is_abbreviation(short: &str, long: &str) -> bool {
    let mut letters = long.chars();
    short.chars().next() == long.chars().next()
        && short.chars().all(|wanted| letters.any(|letter| letter == wanted))
}

/// Returns all inputs of the program: those that were given, and the others from the seed. If some
/// were given, a line on standard error names the scalars that were not.
pub fn complete_inputs(program: &Program, given: GivenInputs) -> Result<Inputs, Failure> {
    let (seed, has_inputs) = (given.seed, given.has_inputs);
    let mut inputs = given_inputs(program, given)?;
    let known: BTreeSet<String> = inputs.scalars.keys().cloned().collect();
    seed::complete_scalars(program, &mut inputs, seed);
    if let (true, Some(note)) = (has_inputs, random_scalars(program, &known, &inputs)) {
        print_error_line(&note);
    }
    seed::complete_inputs(program, inputs, seed).map_err(Failure::no_memory)
}

/// Names the scalars that were not given, and their random values.
fn random_scalars(program: &Program, known: &BTreeSet<String>, inputs: &Inputs) -> Option<String> {
    let has_size =
        |name: &str| program.symbols.iter().any(|symbol| symbol.name == name && symbol.value.is_some());
    let made =
        program.scalars.iter().filter(|scalar| !known.contains(&scalar.name) && !has_size(&scalar.name));
    let (mut values, mut options) = (Vec::new(), Vec::new());
    for scalar in made {
        values.push(format!("{} = {}", scalar.name, number_text(*inputs.scalars.get(&scalar.name)?)));
        options.push(format!("--in {}=…", scalar.name));
    }
    let (last, others) = values.split_last()?;
    let text = match others {
        [] => format!("{last} is"),
        others => format!("{} and {last} are", others.join(", ")),
    };
    Some(format!("note: {text} random: give {}", options.join(" ")))
}

/// Returns the inputs that were given, after checking them: tensors, random tensors, and integer
/// scalars that sizes determine.
pub fn given_inputs(program: &Program, given: GivenInputs) -> Result<Inputs, Failure> {
    let mut inputs = Inputs::default();
    let GivenInputs { sizes, mut tensors, mut random, scalars, seed, .. } = given;
    let sizes = sizes.bindings;
    for (id, declared) in program.tensors_with(|role| role.is_supplied()) {
        let shape = program
            .shape(id)
            .ok_or_else(|| Failure::Input(format!("the shape of {} is not known", declared.name)))?;
        if let Some((tensor, path)) = tensors.remove(&declared.name) {
            refuse_other_type(&declared.name, declared.dtype, &shape, &tensor, &path)?;
            inputs.tensors.insert(declared.name.clone(), tensor);
        }
        if let Some(range) = random.remove(&declared.name) {
            let made = range.for_type(declared.dtype)?.tensor(&declared.name, declared.dtype, &shape, seed);
            inputs.tensors.insert(declared.name.clone(), made.map_err(Failure::no_memory)?);
        }
    }
    let unused = tensors.pop_first().map(|(name, (_, path))| (name, path));
    let unused = unused.or(random.pop_first().map(|(name, _)| (name, "uniform".to_owned())));
    if let Some((name, from)) = unused {
        return Err(Failure::Input(format!(
            "{name} is a result that `{}` computes, so it takes no input, and {from} has no use",
            program.name
        )));
    }
    for scalar in &program.scalars {
        let bound = sizes.get(&scalar.name).filter(|_| {
            program
                .symbols
                .iter()
                .any(|symbol| symbol.name == scalar.name && matches!(symbol.kind, SymbolKind::Scalar(_)))
        });
        let value = bound.map(|value| Number::Int(value as i128)).or(scalars.get(&scalar.name).copied());
        inputs.scalars.extend(value.map(|value| (scalar.name.clone(), value)));
    }
    Ok(inputs)
}

fn refuse_other_type(
    name: &str,
    dtype: DType,
    shape: &[usize],
    tensor: &Tensor,
    path: &str,
) -> Result<(), Failure> {
    if tensor.dtype() != dtype {
        let found = tensor.dtype();
        let numpy = match dtype {
            DType::Bool => "np.bool_".to_owned(),
            DType::BFloat16 => "ml_dtypes.bfloat16".to_owned(),
            _ => format!("np.{dtype}"),
        };
        return Err(Failure::Input(format!(
            "{name} is {dtype} in the program, but {path} holds {found}; save it with {name}.astype({numpy})"
        )));
    }
    if tensor.shape() != shape {
        let (wanted, found) = (shape_text(shape), shape_text(tensor.shape()));
        return Err(Failure::Input(format!("{name} has the shape {wanted}, but {path} has {found}")));
    }
    Ok(())
}
