use proptest::prelude::*;

use super::*;

/// A random diagram: boxes of random sizes, some in nested frames, and edges between any two.
fn diagrams() -> impl Strategy<Value = Diagram> {
    let frames = prop::collection::vec((0..4usize, 20.0..200.0), 0..5).prop_map(|frames| {
        let frame = |(at, (parent, width)): (usize, (usize, f64))| Frame {
            parent: (parent < at).then_some(parent),
            width,
        };
        frames.into_iter().enumerate().map(frame).collect::<Vec<_>>()
    });
    let boxes = prop::collection::vec((20.0..220.0, 20.0..90.0, 0..8usize), 1..40);
    (boxes, frames, prop::collection::vec((0..40usize, 0..40usize), 0..80)).prop_map(
        |(boxes, frames, edges)| {
            let own = |(width, height, frame): (f64, f64, usize)| Leaf {
                width,
                height,
                frame: (frame < frames.len()).then_some(frame),
            };
            let boxes: Vec<Leaf> = boxes.into_iter().map(own).collect();
            let inside = |(from, to): (usize, usize)| (from % boxes.len(), to % boxes.len());
            let edges = edges.into_iter().map(inside).filter(|(from, to)| from != to).collect();
            Diagram { boxes, frames, edges }
        },
    )
}

/// The same without frames, and with edges from earlier to later boxes only.
fn acyclic_diagrams() -> impl Strategy<Value = Diagram> {
    diagrams().prop_map(|mut diagram| {
        diagram.frames.clear();
        diagram.boxes.iter_mut().for_each(|own| own.frame = None);
        diagram.edges.iter_mut().for_each(|(from, to)| (*from, *to) = ((*from).min(*to), (*from).max(*to)));
        diagram
    })
}

const NEARLY: f64 = 1e-6;

fn overlap(one: &Rectangle, other: &Rectangle) -> bool {
    let apart = |low: f64, size: f64, other: f64| low + size <= other + NEARLY;
    !(apart(one.x, one.width, other.x)
        || apart(other.x, other.width, one.x)
        || apart(one.y, one.height, other.y)
        || apart(other.y, other.height, one.y))
}

fn contains(outer: &Rectangle, inner: &Rectangle) -> bool {
    outer.x <= inner.x + NEARLY
        && outer.y <= inner.y + NEARLY
        && inner.x + inner.width <= outer.x + outer.width + NEARLY
        && inner.y + inner.height <= outer.y + outer.height + NEARLY
}

fn frames_around(diagram: &Diagram, of: usize) -> Vec<usize> {
    chain(diagram, diagram.boxes[of].frame)[1..].iter().map(|container| container - 1).collect()
}

/// The pieces of a route as rectangles: vertical pieces, and the space in which the route bends.
fn pieces(route: &Route) -> Vec<Rectangle> {
    let vertical = |at: &Station| Rectangle { x: at.x, y: at.top, width: 0.0, height: at.bottom - at.top };
    let bend = |pair: &[Station]| Rectangle {
        x: pair[0].x.min(pair[1].x),
        y: pair[0].bottom,
        width: (pair[0].x - pair[1].x).abs(),
        height: pair[1].top - pair[0].bottom,
    };
    route.stations.iter().map(vertical).chain(route.stations.windows(2).map(bend)).collect()
}

/// Checks that a route begins below its upper box, ends above its lower one, and goes down.
fn check_route(route: &Route, upper: &Rectangle, lower: &Rectangle) {
    let (first, last) = (route.stations[0], route.stations[route.stations.len() - 1]);
    assert!((first.top - upper.y - upper.height).abs() < NEARLY, "{route:?} {upper:?}");
    assert!((last.bottom - lower.y).abs() < NEARLY, "{route:?} {lower:?}");
    for (end, own) in [(first, upper), (last, lower)] {
        assert!((end.x - own.x - own.width / 2.0).abs() < NEARLY, "{route:?} {own:?}");
    }
    assert!(route.stations.iter().all(|at| at.top <= at.bottom + NEARLY), "{route:?}");
    assert!(route.stations.windows(2).all(|pair| pair[0].bottom <= pair[1].top + NEARLY), "{route:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn boxes_and_frames_nest_and_do_not_overlap(diagram in diagrams()) {
        let placed = layout(&diagram);
        let whole = Rectangle { width: placed.width, height: placed.height, ..Rectangle::default() };
        for (at, own) in placed.boxes.iter().enumerate() {
            prop_assert!(contains(&whole, own));
            prop_assert_eq!((own.width, own.height), (diagram.boxes[at].width, diagram.boxes[at].height));
            prop_assert!(placed.boxes[..at].iter().all(|other| !overlap(own, other)));
            let around = frames_around(&diagram, at);
            for (frame, rectangle) in placed.frames.iter().enumerate() {
                let is_right = match around.contains(&frame) {
                    true => contains(rectangle, own),
                    false => !overlap(rectangle, own),
                };
                prop_assert!(is_right, "{frame}: {rectangle:?} {own:?}");
            }
        }
    }

    #[test]
    fn edges_go_down_between_the_boxes(diagram in diagrams()) {
        let placed = layout(&diagram);
        for ((from, to), route) in diagram.edges.iter().zip(&placed.routes) {
            let (upper, lower) = if route.is_upward { (to, from) } else { (from, to) };
            check_route(route, &placed.boxes[*upper], &placed.boxes[*lower]);
            for (other, own) in placed.boxes.iter().enumerate() {
                let passes = pieces(route).iter().any(|piece| overlap(piece, own));
                prop_assert!(!passes, "{from} -> {to} runs through {other}: {route:?} {own:?}");
            }
        }
    }

    #[test]
    fn edges_without_cycles_all_go_down(diagram in acyclic_diagrams()) {
        prop_assert!(layout(&diagram).routes.iter().all(|route| !route.is_upward));
    }

    #[test]
    fn the_same_diagram_has_the_same_layout(diagram in diagrams()) {
        prop_assert_eq!(layout(&diagram), layout(&diagram.clone()));
    }
}

fn boxes(count: usize) -> Vec<Leaf> {
    vec![Leaf { width: 100.0, height: 40.0, frame: None }; count]
}

fn centre(own: &Rectangle) -> f64 {
    own.x + own.width / 2.0
}

#[test]
fn nothing_has_no_size() {
    assert_eq!(layout(&Diagram::default()), Layout::default());
}

#[test]
fn a_chain_is_straight_beside_its_inputs() {
    // 0 -> 1 -> ... -> 9, and each odd one also reads an input of its own.
    let chain = (1..10).map(|at| (at - 1, at));
    let inputs = (10..15).zip((1..10).step_by(2));
    let placed =
        layout(&Diagram { boxes: boxes(15), edges: chain.chain(inputs).collect(), ..Diagram::default() });
    // The first box and the first input stand side by side above their reader.
    for at in 2..9 {
        assert!((centre(&placed.boxes[at]) - centre(&placed.boxes[1])).abs() < NEARLY, "{placed:?}");
    }
    // An input stands directly above its reader.
    for (input, reader) in (10..15).zip((1..10).step_by(2)) {
        assert!((placed.boxes[input].y - placed.boxes[reader - 1].y).abs() < NEARLY, "{placed:?}");
    }
}

#[test]
fn one_edge_of_a_cycle_leads_upwards() {
    let placed =
        layout(&Diagram { boxes: boxes(3), edges: vec![(0, 1), (1, 2), (2, 0)], ..Diagram::default() });
    assert_eq!(placed.routes.iter().map(|route| route.is_upward).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn crossings_that_can_be_avoided_are() {
    // Two chains whose boxes are interleaved in the wrong order.
    let placed = layout(&Diagram { boxes: boxes(4), edges: vec![(0, 3), (1, 2)], ..Diagram::default() });
    let place = |at: usize| centre(&placed.boxes[at]);
    assert_eq!(place(0) < place(1), place(3) < place(2));
}

#[test]
fn a_chain_beside_a_trunk_is_straight() {
    // 1 -> 2 -> 3 -> 4 is the chain; 0 is read by 1, 3 and 4.
    let mut diagram = Diagram { boxes: boxes(5), ..Diagram::default() };
    diagram.edges = vec![(0, 1), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4)];
    for (own, width) in diagram.boxes.iter_mut().zip([153.76, 217.12, 153.76, 153.76, 196.0]) {
        own.width = width;
    }
    let mut framed = Diagram { frames: vec![Frame { parent: None, width: 50.0 }], ..diagram.clone() };
    framed.boxes[1..].iter_mut().for_each(|own| own.frame = Some(0));
    for placed in [layout(&diagram), layout(&framed)] {
        for at in 2..5 {
            assert!((centre(&placed.boxes[at]) - centre(&placed.boxes[1])).abs() < NEARLY, "{placed:?}");
        }
    }
}
