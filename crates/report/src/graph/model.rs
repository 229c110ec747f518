//! Defines [`Graph`]: the nodes and edges of a picture as text and kinds, before layout.

/// The statements of a program and the tensors that they read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The name of the program.
    pub name: String,
    /// What is known about the program as a whole, such as its sizes.
    pub details: String,
    /// The nodes, in the order of the program: inputs, then statements.
    pub nodes: Vec<Node>,
    /// The edges, from the node that is read to its reader.
    pub edges: Vec<Edge>,
    /// The frames. The frame around another one comes first.
    pub frames: Vec<Frame>,
}

/// An input or a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name of the input or the statement, as schedules write it.
    pub name: String,
    /// What the node is.
    pub kind: Kind,
    /// Further lines of the box: the type first.
    pub lines: Vec<String>,
    /// More to say where the reader asks for it.
    pub tooltip: String,
    /// The frame around the node.
    pub frame: Option<usize>,
    /// Whether the node reads its own result of an earlier iteration.
    pub reads_itself: bool,
    /// Whether the node has no loops of its own, because its readers compute it.
    pub is_inlined: bool,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A tensor that the caller supplies.
    Input,
    /// An input that stays the same between calls.
    Constant,
    /// A statement that defines a temporary.
    Temporary,
    /// A statement that defines a result.
    Result,
    /// A copy of a tensor, or a partial result, that a schedule adds.
    Staged,
}

impl Kind {
    /// Every kind, in the order of a legend.
    pub const ALL: [Kind; 5] = [Kind::Input, Kind::Constant, Kind::Temporary, Kind::Result, Kind::Staged];

    /// The name for readers.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Input => "input",
            Kind::Constant => "constant",
            Kind::Temporary => "temporary",
            Kind::Result => "result",
            Kind::Staged => "staged",
        }
    }
}

/// A node that reads another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The node that is read.
    pub from: usize,
    /// The reader.
    pub to: usize,
    /// How the two are related.
    pub relation: Relation,
    /// More to say where the reader asks for it.
    pub tooltip: String,
}

/// How the nodes of an edge are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// The second reads elements of the first.
    Reads,
    /// The second reads what the first has computed in an earlier iteration of a loop around both.
    Carried,
    /// The second changes or completes the tensor of the first.
    Continues,
}

/// A frame around nodes, such as an ordered loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The title.
    pub title: String,
    /// More to say where the reader asks for it.
    pub tooltip: String,
    /// The frame around this one.
    pub parent: Option<usize>,
}
