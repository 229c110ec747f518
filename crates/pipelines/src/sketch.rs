//! Defines [`Sketch`]: a pipeline that is being written, with its tensors.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::element::Element;
use crate::{Kind, PipelineOptions, Size};

/// The points of all stages together: pixels times stages. About a nanosecond each.
const FEWEST_POINTS: f64 = 0.6e6;
const MOST_POINTS: f64 = 12e6;
/// The sides of an image.
const SHORTEST_SIDE: f64 = 96.0;
const LONGEST_SIDE: f64 = 2560.0;
/// The width of a line of source text, about.
const LINE: usize = 96;

/// An image.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub name: String,
    pub element: Element,
    /// The number of planes; none if the image has two dimensions.
    pub planes: Option<i64>,
    pub height: i64,
    pub width: i64,
    /// The number of later stages that read it.
    pub readers: usize,
}

impl Image {
    /// The left-hand side of a statement that defines the image.
    pub fn target(&self) -> String {
        self.at("c", "y", "x")
    }

    /// An element. The plane counts only if there are several.
    pub fn at(&self, plane: &str, y: &str, x: &str) -> String {
        match self.planes {
            Some(_) => format!("{}({plane}, {y}, {x})", self.name),
            None => format!("{}({y}, {x})", self.name),
        }
    }

    /// The ranges of the variables of [`Image::target`].
    pub fn ranges(&self) -> String {
        let planes = self.planes.map_or(String::new(), |planes| format!("c in 0:{planes}, "));
        format!("{planes}y in 0:{}, x in 0:{}", self.height, self.width)
    }

    /// The dimensions, as in a declaration.
    fn dimensions(&self) -> String {
        let planes = self.planes.map_or(String::new(), |planes| format!("{planes}, "));
        format!("{planes}{}, {}", self.height, self.width)
    }
}

/// A pipeline that is being written.
pub(crate) struct Sketch {
    pub rng: Pcg64Mcg,
    pub images: Vec<Image>,
    /// The number of tensors that the pipeline computes so far.
    pub stages: usize,
    parameters: Vec<String>,
    lines: Vec<String>,
    /// The images that have a view with repeated edges.
    with_view: Vec<String>,
    /// The number of the next name.
    next_name: usize,
    /// The sides of the inputs.
    pub height: i64,
    pub width: i64,
}

impl Sketch {
    /// A pipeline of one or two inputs.
    pub fn new(options: &PipelineOptions) -> Sketch {
        let salt = Kind::ALL.iter().position(|kind| *kind == options.kind).unwrap_or(0) as u64;
        let seed = options.seed.wrapping_mul(1009).wrapping_add(options.stages as u64 * 8 + salt);
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let (height, width) = sides(&mut rng, options);
        let mut sketch = Sketch {
            rng,
            images: Vec::new(),
            stages: 0,
            parameters: Vec::new(),
            lines: Vec::new(),
            with_view: Vec::new(),
            next_name: 0,
            height,
            width,
        };
        for _ in 0..sketch.rng.random_range(1..=2) {
            sketch.add_input();
        }
        sketch
    }

    fn add_input(&mut self) {
        let element = self.pick(&[Element::Float, Element::Float, Element::Uint8, Element::Uint16]);
        let planes = self.pick(&[None, None, Some(3), Some(4)]);
        let name = format!("input{}", self.images.len() + 1);
        let image = Image { name, element, planes, height: self.height, width: self.width, readers: 0 };
        self.parameters.push(format!("{}({}) {}", element.name(), image.dimensions(), image.name));
        self.images.push(image);
    }

    /// Adds a parameter that is no image, such as a matrix of weights. Returns its name.
    pub fn add_parameter(&mut self, element: Element, dimensions: &str) -> String {
        let name = format!("weights{}", self.parameters.len());
        self.parameters.push(format!("{}({dimensions}) {name}", element.name()));
        name
    }

    /// One of some values.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.rng.random_range(0..from.len())].clone()
    }

    /// A new image of the same shape and type as another one. It is not defined yet.
    pub fn like(&mut self, other: &Image) -> Image {
        Image { name: self.new_name(), readers: 0, ..other.clone() }
    }

    /// A name that no tensor has.
    pub fn new_name(&mut self) -> String {
        self.next_name += 1;
        format!("s{}", self.next_name)
    }

    /// Chooses an image to read: most often a late one, or one that nobody has read.
    pub fn choose(&mut self) -> Image {
        let unread = self.unread();
        let first_late = self.images.len().saturating_sub(6);
        let at = match unread.is_empty() || self.rng.random_bool(0.4) {
            true => self.rng.random_range(first_late..self.images.len()),
            false => self.pick(&unread),
        };
        self.read(at)
    }

    /// The image at a position, which gets another reader.
    pub fn read(&mut self, at: usize) -> Image {
        self.images[at].readers += 1;
        self.images[at].clone()
    }

    /// Writes a statement that defines an image.
    pub fn define(&mut self, image: Image, operator: &str, value: &str, further_ranges: &str) {
        let ranges = format!("{}{further_ranges}", image.ranges());
        self.statement(&image.target(), operator, value, &ranges);
        self.images.push(image);
    }

    /// Writes a statement that defines a tensor.
    pub fn statement(&mut self, target: &str, operator: &str, value: &str, ranges: &str) {
        self.stages += 1;
        self.line(&format!("{target} {operator} {value}"));
        if !ranges.is_empty() {
            self.line(&format!("  where {ranges}"));
        }
    }

    /// Writes a line that is no stage by itself.
    pub fn line(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    /// The view of an image that repeats its edges.
    pub fn view(&mut self, image: &Image) -> Image {
        let name = format!("{}_r", image.name);
        if !self.with_view.contains(&image.name) {
            self.with_view.push(image.name.clone());
            // The planes have no edges.
            let of = if image.planes.is_some() { ", 1, 2" } else { "" };
            self.line(&format!("{name} = repeat({}{of})", image.name));
        }
        Image { name, ..image.clone() }
    }

    /// An element of an image at the place of the element `(c, y, x)` of another one, whatever the
    /// sizes of both.
    pub fn element_for(&mut self, image: &Image, of: &Image) -> String {
        let levels = (of.height as f64 / image.height as f64).log2().round() as i32;
        let place = |name: &str| match levels {
            0 => name.to_owned(),
            1.. => format!("{name}/{}", 1 << levels),
            _ => format!("{}*{name}", 1 << -levels),
        };
        let reach = |side: i64| if levels >= 0 { (side - 1) >> levels } else { (side - 1) << -levels };
        let is_inside = reach(of.height) < image.height && reach(of.width) < image.width;
        let image = if is_inside { image.clone() } else { self.view(image) };
        let plane = match (image.planes, of.planes) {
            (Some(own), Some(other)) if own >= other => "c".to_owned(),
            (Some(own), Some(_)) => format!("min(c, {})", own - 1),
            _ => "0".to_owned(),
        };
        image.at(&plane, &place("y"), &place("x"))
    }

    /// The positions of the images that nobody has read.
    pub fn unread(&self) -> Vec<usize> {
        (0..self.images.len()).filter(|at| self.images[*at].readers == 0).collect()
    }

    /// The stages that it takes to join all images that nobody has read, and some more, three by
    /// three.
    pub fn open_joins(&self, more: usize) -> usize {
        (self.unread().len() + more) / 2
    }

    /// The whole text.
    pub fn text(&self, name: &str, options: &PipelineOptions) -> String {
        let head = format!(
            "# A random pipeline: {} stages, kind {}, seed {}.\n# tilewright run {name}.tw\n\n",
            self.stages, options.kind, options.seed
        );
        let results: Vec<&str> =
            self.images.iter().filter(|own| own.readers == 0).map(|own| own.name.as_str()).collect();
        let parameters = self.parameters.join(", ");
        let mut text = format!("{head}def {name}({parameters}) -> ({}) {{\n", results.join(", "));
        for line in &self.lines {
            text.push_str(&wrapped(line));
        }
        text.push_str("}\n");
        text
    }
}

/// A line of a body, broken where it is too long.
fn wrapped(line: &str) -> String {
    let mut text = String::from("  ");
    let mut column = 2;
    for word in line.split_inclusive(' ') {
        if column + word.len() > LINE
            && word.starts_with(|first: char| first.is_alphanumeric() || first == '(')
        {
            text.truncate(text.trim_end().len());
            text.push_str("\n      ");
            column = 6;
        }
        text.push_str(word);
        column += word.len();
    }
    text.push('\n');
    text
}

/// The sides of the inputs.
fn sides(rng: &mut impl Rng, options: &PipelineOptions) -> (i64, i64) {
    if options.size == Size::Small {
        return (rng.random_range(20..40), rng.random_range(20..40));
    }
    let points = FEWEST_POINTS * (MOST_POINTS / FEWEST_POINTS).powf(rng.random_range(0.0..1.0));
    let pixels = points / options.kind.weight() / options.stages as f64;
    let shape: f64 = rng.random_range(-0.5..0.5);
    let side = |scale: f64| (pixels.sqrt() * scale.exp2()).clamp(SHORTEST_SIDE, LONGEST_SIDE) as i64;
    let (height, width) = (side(-shape), side(shape));
    // Most pictures have round sizes.
    match rng.random_bool(0.7) {
        true => ((height + 16) / 32 * 32, (width + 16) / 32 * 32),
        false => (height, width),
    }
}
