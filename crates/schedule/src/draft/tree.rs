//! Stores the tree of loops and statements of a draft. A loop lists the nodes of its body, and
//! every node records its parent. So walking inwards or outwards follows links and needs no search.
//! The functions here keep both directions consistent.

use tilewright_ir::nest::LoopVarId;

use super::table::Table;
use super::{Draft, StatementId};

/// A loop, or a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Loop(LoopVarId),
    Statement(StatementId),
}

/// The parent of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Parent {
    /// No parent: the node is not placed yet, or is no longer in the tree.
    #[default]
    None,
    /// The nodes that run once, to prepare constants.
    Setup,
    Body,
    Loop(LoopVarId),
}

/// Both directions of the tree, below the outermost nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    /// The nodes in the body of each loop.
    bodies: Table<Vec<Node>>,
    pub loop_parents: Table<Parent>,
    pub statement_parents: Table<Parent>,
}

impl Links {
    pub fn add_loop(&mut self) {
        self.bodies.push(Vec::new());
        self.loop_parents.push(Parent::None);
    }

    pub fn add_statement(&mut self) {
        self.statement_parents.push(Parent::None);
    }
}

impl Draft<'_> {
    /// The nodes in the body of a loop.
    pub fn body_of(&self, var: LoopVarId) -> &[Node] {
        &self.links.bodies[var.index()]
    }

    /// The nodes directly inside a parent.
    pub fn children(&self, of: Parent) -> &[Node] {
        match of {
            Parent::None => &[],
            Parent::Setup => &self.setup,
            Parent::Body => &self.body,
            Parent::Loop(var) => self.body_of(var),
        }
    }

    /// The parent of a node.
    pub fn parent(&self, node: Node) -> Parent {
        match node {
            Node::Loop(var) => self.links.loop_parents[var.index()],
            Node::Statement(id) => self.links.statement_parents[id.0],
        }
    }

    /// A node and all nodes around it, from the inside out.
    fn ancestors(&self, node: Node) -> impl Iterator<Item = Node> {
        std::iter::successors(Some(node), |node| match self.parent(*node) {
            Parent::Loop(var) => Some(Node::Loop(var)),
            _ => None,
        })
    }

    /// The loops around a node, outermost first, without the node itself.
    pub fn loops_around_node(&self, node: Node) -> Vec<LoopVarId> {
        let around = self.ancestors(node).skip(1).filter_map(|node| match node {
            Node::Loop(var) => Some(var),
            Node::Statement(_) => None,
        });
        let mut around: Vec<LoopVarId> = around.collect();
        around.reverse();
        around
    }

    /// The node directly inside `of` that contains the statement or is the statement; none if the
    /// statement is elsewhere.
    pub fn child_containing(&self, of: Parent, statement: StatementId) -> Option<Node> {
        self.ancestors(Node::Statement(statement)).find(|node| self.parent(*node) == of)
    }

    /// The positions of a statement and of the loops around it among their siblings, outermost
    /// first. The positions of two statements compare as the statements are ordered.
    pub fn execution_position(&self, statement: StatementId) -> Vec<usize> {
        let place = |node: Node| {
            let neighbours = self.children(self.parent(node)).iter();
            neighbours.take_while(|other| **other != node).count()
        };
        let mut places: Vec<usize> = self.ancestors(Node::Statement(statement)).map(place).collect();
        places.reverse();
        places
    }

    /// Every loop and statement in these nodes, outermost first and in order.
    pub fn descendants(&self, nodes: &[Node]) -> Vec<Node> {
        let mut found = Vec::new();
        self.collect_descendants(nodes, &mut found);
        found
    }

    fn collect_descendants(&self, nodes: &[Node], found: &mut Vec<Node>) {
        for node in nodes {
            found.push(*node);
            if let Node::Loop(var) = node {
                self.collect_descendants(self.body_of(*var), found);
            }
        }
    }

    /// The statements in these nodes, in order.
    pub fn statements_in(&self, nodes: &[Node]) -> Vec<StatementId> {
        let statement = |node| match node {
            Node::Statement(id) => Some(id),
            Node::Loop(_) => None,
        };
        self.descendants(nodes).into_iter().filter_map(statement).collect()
    }

    /// The first statement in these nodes.
    pub fn first_statement(&self, nodes: &[Node]) -> Option<StatementId> {
        nodes.iter().find_map(|node| match node {
            Node::Statement(id) => Some(*id),
            Node::Loop(var) => self.first_statement(self.body_of(*var)),
        })
    }

    /// The last statement in these nodes.
    pub fn last_statement(&self, nodes: &[Node]) -> Option<StatementId> {
        nodes.iter().rev().find_map(|node| match node {
            Node::Statement(id) => Some(*id),
            Node::Loop(var) => self.last_statement(self.body_of(*var)),
        })
    }

    /// The loops in these nodes.
    pub fn loops_in(&self, nodes: &[Node]) -> Vec<LoopVarId> {
        let var = |node| match node {
            Node::Loop(var) => Some(var),
            Node::Statement(_) => None,
        };
        self.descendants(nodes).into_iter().filter_map(var).collect()
    }

    /// Puts loops, outermost first, around nodes, and returns the outermost loop. The caller must
    /// place it in the tree.
    pub fn wrap_in_loops(&mut self, loops: &[LoopVarId], nodes: Vec<Node>) -> Vec<Node> {
        loops.iter().rev().fold(nodes, |nodes, var| {
            self.set_parent(&nodes, Parent::Loop(*var));
            self.links.bodies[var.index()] = nodes;
            vec![Node::Loop(*var)]
        })
    }

    /// Inserts nodes into the children of `of`, before the child that is at this position now.
    pub fn insert(&mut self, of: Parent, at: usize, nodes: Vec<Node>) {
        self.set_parent(&nodes, of);
        self.children_mut(of).splice(at..at, nodes);
    }

    /// Takes a node out of the tree, and returns the parent and the position that it had.
    pub fn detach(&mut self, node: Node) -> (Parent, usize) {
        let parent = self.parent(node);
        let at = self.children(parent).iter().position(|other| *other == node);
        let at = at.expect("a node is among the children of its parent");
        self.children_mut(parent).remove(at);
        self.set_parent(&[node], Parent::None);
        (parent, at)
    }

    /// Takes a statement out of the tree, together with the loops that have nothing else inside.
    pub fn remove_statement(&mut self, statement: StatementId) {
        let mut node = Node::Statement(statement);
        while let (Parent::Loop(around), _) = self.detach(node)
            && self.body_of(around).is_empty()
        {
            node = Node::Loop(around);
        }
    }

    fn children_mut(&mut self, of: Parent) -> &mut Vec<Node> {
        match of {
            Parent::None => unreachable!("nodes are only inserted below a parent"),
            Parent::Setup => &mut self.setup,
            Parent::Body => &mut self.body,
            Parent::Loop(var) => &mut self.links.bodies[var.index()],
        }
    }

    fn set_parent(&mut self, nodes: &[Node], parent: Parent) {
        for node in nodes.iter().filter(|node| self.parent(**node) != parent).copied().collect::<Vec<_>>() {
            match node {
                Node::Loop(var) => self.links.loop_parents[var.index()] = parent,
                Node::Statement(id) => self.links.statement_parents[id.0] = parent,
            }
        }
    }
}
