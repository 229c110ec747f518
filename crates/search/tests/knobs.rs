//! The invariants of domains: sizes, numbering, neighbours, walks, features and text. The tests
//! enumerate small domains completely.

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use tilewright_search::knob::{Divisors, Domain, Knob, Knobs, Point, Value};

fn exact(extent: i64, parts: usize) -> Domain {
    Knob::factorisation("tile", extent, parts, Divisors::Exact).domain
}

fn near(extent: i64, parts: usize, most_waste_percent: u32) -> Domain {
    Knob::factorisation("tile", extent, parts, Divisors::Near { most_waste_percent }).domain
}

fn permutation(elements: usize) -> Domain {
    Knob::permutation("order", elements).domain
}

fn ordinal(values: &[i64]) -> Domain {
    Knob::ordinal("unroll", values.iter().copied()).domain
}

fn categorical(count: usize) -> Domain {
    Knob::categorical("layout", (0..count).map(|at| format!("choice{at}"))).domain
}

fn gemm(extent: i64) -> Knobs {
    let tile = |name, parts| Knob::factorisation(name, extent, parts, Divisors::Exact);
    Knobs::new(vec![tile("tile_m", 4), tile("tile_k", 2), tile("tile_n", 4)])
}

fn all(domain: &Domain) -> Vec<Value> {
    (0..domain.size()).map(|index| domain.nth(index).expect("an index below the size")).collect()
}

fn factors(value: &Value) -> &[i64] {
    match value {
        Value::Factors(factors) => factors,
        other => panic!("{other:?} are no factors"),
    }
}

/// Checks the numbering: each value occurs once, all values belong to the domain, and nothing
/// follows the last one.
fn check_numbering(domain: &Domain) -> Vec<Value> {
    let values = all(domain);
    assert_eq!(
        values.iter().collect::<BTreeSet<_>>().len(),
        values.len(),
        "{domain:?} numbers a value twice"
    );
    assert!(values.iter().all(|value| domain.contains(value)));
    assert_eq!(domain.nth(domain.size()), None);
    assert_eq!(domain.nth(u128::MAX), None);
    values
}

/// Checks the neighbours: they belong to the domain, are symmetric, never include the value itself,
/// occur once each, and connect all values.
fn check_topology(domain: &Domain) {
    let values = check_numbering(domain);
    let index: HashMap<&Value, usize> = values.iter().enumerate().map(|(at, value)| (value, at)).collect();
    let neighbours: Vec<BTreeSet<usize>> = values
        .iter()
        .map(|value| {
            let found = domain.neighbours(value);
            let set: BTreeSet<usize> = found.iter().map(|neighbour| index[neighbour]).collect();
            assert_eq!(set.len(), found.len(), "{value:?} has a neighbour twice");
            assert!(!set.contains(&index[value]), "{value:?} is its own neighbour");
            set
        })
        .collect();
    for (at, set) in neighbours.iter().enumerate() {
        for &other in set {
            assert!(neighbours[other].contains(&at), "{:?} → {:?} only", values[at], values[other]);
        }
    }
    let mut reached = BTreeSet::from([0]);
    let mut open = vec![0];
    while let Some(at) = open.pop().filter(|_| !values.is_empty()) {
        open.extend(neighbours[at].iter().copied().filter(|&other| reached.insert(other)));
    }
    assert!(values.is_empty() || reached.len() == values.len(), "{domain:?} falls apart");
}

#[test]
fn the_spaces_of_matrix_products_are_as_large_as_published() {
    assert_eq!(gemm(512).size(), 484_000);
    assert_eq!(gemm(1024).size(), 899_756);
    assert_eq!(gemm(2048).size(), 1_589_952);
}

#[test]
fn exact_factorisations_are_all_products() {
    for extent in 1..=64 {
        let domain = exact(extent, 3);
        let mut products = Vec::new();
        for (a, b) in (1..=extent).flat_map(|a| (1..=extent).map(move |b| (a, b))) {
            products
                .extend((1..=extent).filter(|c| a * b * c == extent).map(|c| Value::Factors(vec![a, b, c])));
        }
        let mut values = check_numbering(&domain);
        values.sort();
        assert_eq!(values, products);
    }
}

#[test]
fn near_factorisations_are_all_that_waste_little() {
    for (extent, waste) in (1..=40).flat_map(|extent| [0, 5, 12, 30, 100].map(|waste| (extent, waste))) {
        let domain = near(extent, 3, waste);
        let mut expected = Vec::new();
        for (b, c) in (1..=2 * extent).flat_map(|b| (1..=2 * extent).map(move |c| (b, c))) {
            let a = (extent + b * c - 1) / (b * c);
            if (a * b * c - extent) * 100 <= extent * i64::from(waste) {
                expected.push(Value::Factors(vec![a, b, c]));
            }
        }
        expected.sort();
        let mut values = check_numbering(&domain);
        values.sort();
        assert_eq!(values, expected, "{extent} with {waste} %");
        assert!(all(&exact(extent, 3)).iter().all(|value| domain.contains(value)));
    }
}

#[test]
fn exact_neighbours_are_mutual_and_connect() {
    for extent in (1..=130).chain([360, 512, 997, 1001, 1024, 2310]) {
        for parts in 1..=4 {
            check_topology(&exact(extent, parts));
        }
    }
}

#[test]
fn near_neighbours_are_mutual_and_connect() {
    for extent in (1..=130).chain([197, 199, 211, 256, 509, 1009]) {
        for waste in [0, 1, 3, 10, 25, 150] {
            check_topology(&near(extent, 2, waste));
            if extent <= 64 {
                check_topology(&near(extent, 3, waste));
            }
        }
    }
    check_topology(&near(127, 4, 5));
    check_topology(&near(1, 1, 10));
    check_topology(&near(30, 1, 10));
}

#[test]
fn other_neighbours_are_mutual_and_connect() {
    (0..=5).for_each(|elements| check_topology(&permutation(elements)));
    for values in [&[][..], &[4], &[0, 16], &[1, 2, 4, 8, 16]] {
        check_topology(&ordinal(values));
    }
    (0..=5).for_each(|count| check_topology(&categorical(count)));
}

#[test]
fn near_neighbours_include_the_exact_ones() {
    for extent in [12, 64, 97, 360] {
        let (exact, near) = (exact(extent, 3), near(extent, 3, 10));
        for value in all(&exact) {
            let found: BTreeSet<Value> = near.neighbours(&value).into_iter().collect();
            assert!(exact.neighbours(&value).iter().all(|neighbour| found.contains(neighbour)));
        }
    }
}

/// The moves of G-BFS (section 3.2, equation 6): one factor is doubled and another is halved.
#[test]
fn powers_of_two_have_the_moves_of_gbfs() {
    let domain = exact(1024, 4);
    for value in all(&domain) {
        let state = factors(&value);
        let mut expected = BTreeSet::new();
        for (doubled, halved) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
            if doubled != halved && state[halved] % 2 == 0 {
                let mut next = state.to_vec();
                next[doubled] *= 2;
                next[halved] /= 2;
                expected.insert(Value::Factors(next));
            }
        }
        assert_eq!(domain.neighbours(&value).into_iter().collect::<BTreeSet<_>>(), expected);
    }
}

/// The topologies of figure 1 of OpEvo.
#[test]
fn the_figures_of_opevo() {
    let corner = Value::Factors(vec![8, 1, 1]);
    let of_corner = [vec![4, 2, 1], vec![4, 1, 2]].map(Value::Factors);
    assert_eq!(exact(8, 3).size(), 10);
    assert_eq!(exact(8, 3).neighbours(&corner), of_corner);
    let of_order = [vec![1, 0, 2], vec![2, 1, 0], vec![0, 2, 1]].map(Value::Order);
    assert_eq!(permutation(3).neighbours(&Value::Order(vec![0, 1, 2])), of_order);
    assert_eq!(ordinal(&[4, 2, 1, 3]).neighbours(&Value::Choice(1)), [0, 2].map(Value::Choice));
    assert_eq!(categorical(4).neighbours(&Value::Choice(1)), [0, 2, 3].map(Value::Choice));
}

#[test]
fn odd_domains_do_no_harm() {
    let huge = 1 << 40;
    let odd =
        [exact(0, 3), exact(-4, 2), exact(6, 0), exact(1, 0), exact(1, 1), exact(huge, 1), exact(huge, 4)];
    let more =
        [near(0, 3, 10), near(1, 0, 10), near(huge, 1, 10), near((1 << 31) - 1, 3, 5), near(huge, 3, 5)];
    let rest = [permutation(0), permutation(1), permutation(40), ordinal(&[]), categorical(0)];
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    for domain in odd.iter().chain(&more).chain(&rest) {
        let Some(value) = domain.sample(&mut rng) else {
            assert_eq!((domain.size(), domain.nth(0)), (0, None));
            continue;
        };
        assert!(domain.contains(&value), "{value:?}");
        let neighbours = domain.neighbours(&value);
        assert!(
            neighbours.iter().all(|next| domain.contains(next) && domain.neighbours(next).contains(&value))
        );
        assert!(domain.contains(&domain.walk(&value, 0.9, &mut rng)));
        assert!(domain.contains(&domain.walk(&value, f64::NAN, &mut rng)));
        assert!(domain.nth(domain.size() - 1).is_some());
    }
    assert_eq!(exact(huge, 4).size(), 43 * 42 * 41 / 6);
    assert_eq!(permutation(40).size(), u128::MAX);
}

/// An extent beyond the table: small tiles are free, and large ones divide the extent.
#[test]
fn huge_near_extents_connect() {
    let prime = (1 << 31) - 1;
    let domain = near(prime, 2, 10);
    assert_eq!(domain.nth(domain.size() - 1), Some(Value::Factors(vec![1, prime])));
    let largest_free = Value::Factors(vec![8192, 1 << 18]);
    assert!(domain.contains(&largest_free));
    let next = domain.neighbours(&largest_free);
    assert!(
        next.contains(&Value::Factors(vec![1, prime]))
            && next.contains(&Value::Factors(vec![8193, (1 << 18) - 1]))
    );
}

#[test]
fn walks_stop_close_by_with_the_right_chance() {
    let domain = exact(8, 3);
    let start = Value::Factors(vec![8, 1, 1]);
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    let mut ends: HashMap<Value, u32> = HashMap::new();
    for _ in 0..20_000 {
        *ends.entry(domain.walk(&start, 0.5, &mut rng)).or_default() += 1;
    }
    assert_eq!(ends.len(), 10, "every value can be reached");
    // The walk stops at once with probability 1/2, or returns later. The expected share is the (1 -
    // q)(I - Q)^-1 of appendix A, evaluated for this graph.
    let stayed = f64::from(ends[&start]) / 20_000.0;
    assert!((stayed - 0.5408).abs() < 0.015, "{stayed}");
    let (middle, edge) = (ends[&Value::Factors(vec![2, 2, 2])], ends[&Value::Factors(vec![2, 4, 1])]);
    assert!(middle > edge, "the paper's example: {middle} and {edge}");
    assert_eq!(domain.walk(&start, 0.0, &mut rng), start);
}

#[test]
fn samples_are_uniform() {
    for domain in [exact(36, 3), near(13, 3, 20), permutation(4), ordinal(&[1, 2, 3]), categorical(5)] {
        let mut rng = Pcg64Mcg::seed_from_u64(3);
        let size = domain.size() as usize;
        let mut counts: HashMap<Value, u32> = HashMap::new();
        for _ in 0..size * 1000 {
            *counts.entry(domain.sample(&mut rng).unwrap()).or_default() += 1;
        }
        assert_eq!(counts.len(), size);
        // The tolerance is six standard deviations.
        assert!(counts.values().all(|&count| count.abs_diff(1000) < 190), "{counts:?}");
    }
}

#[test]
fn features_have_a_fixed_length() {
    let knobs = mixed();
    let point = knobs.parse("tile_i=[8,4,2] order=[1,2,0] unroll=16 layout=rows").unwrap();
    assert_eq!(knobs.features(&point), [3.0, 2.0, 1.0, 1.0, 0.0, 0.5, 0.5, 0.0, 1.0]);
    assert_eq!(knobs.features(&Point(Vec::new())), vec![0.0; knobs.width()]);
    assert_eq!(knobs.features(&Point(vec![Value::Choice(9); 4])), vec![0.0; knobs.width()]);
}

fn mixed() -> Knobs {
    Knobs::new(vec![
        Knob::factorisation("tile_i", 64, 3, Divisors::Exact),
        Knob::permutation("order", 3),
        Knob::ordinal("unroll", [64, 0, 16, 16]),
        Knob::categorical("layout", ["packed", "rows"]),
    ])
}

#[test]
fn points_read_as_they_are_written() {
    let knobs = mixed();
    let text = "tile_i=[8,4,2] order=[1,0,2] unroll=16 layout=rows";
    let point = knobs.parse(text).unwrap();
    let values =
        [Value::Factors(vec![8, 4, 2]), Value::Order(vec![1, 0, 2]), Value::Choice(1), Value::Choice(1)];
    assert_eq!(point.0, values);
    assert_eq!(knobs.print(&point).to_string(), text);
    assert_eq!(knobs.parse("  tile_i=[ 8, 4 ,2]   order=[1,0,2] unroll=16\tlayout=rows ").unwrap(), point);
    assert_eq!(Knobs::default().parse(" ").unwrap(), Point(Vec::new()));
}

#[test]
fn wrong_points_are_refused_by_name() {
    let refused = |text: &str| mixed().parse(text).unwrap_err().to_string();
    assert_eq!(refused(""), "expected `tile_i=…`, found ``");
    assert_eq!(refused("tile_j=[1]"), "expected `tile_i=…`, found `tile_j=[1]`");
    assert_eq!(refused("tile_i=[8,4,3] order="), "`tile_i` cannot be `[8,4,3]`");
    assert_eq!(refused("tile_i=[8,4,"), "`tile_i` cannot be `[8,4,`");
    assert_eq!(refused("tile_i=[64,1,1] order=[0,0,1]"), "`order` cannot be `[0,0,1]`");
    assert_eq!(refused("tile_i=[64,1,1] order=[0,2,1] unroll=17"), "`unroll` cannot be `17`");
    let whole = "tile_i=[64,1,1] order=[0,2,1] unroll=0 layout=";
    assert_eq!(refused(&format!("{whole}columns")), "`layout` cannot be `columns`");
    let trailing = "unexpected `more` after the value of the last knob";
    assert_eq!(refused(&format!("{whole}rows more")), trailing);
}

#[test]
fn the_first_point_is_plain() {
    let knobs = mixed();
    let first = knobs.nth(0).unwrap();
    assert_eq!(knobs.print(&first).to_string(), "tile_i=[64,1,1] order=[0,1,2] unroll=0 layout=packed");
    assert_eq!(Knobs::default().size(), 1);
    assert_eq!(Knobs::default().nth(0), Some(Point(Vec::new())));
}

#[test]
fn an_empty_choice_empties_the_product() {
    let many = (0..9).map(|at| Knob::permutation(format!("order{at}"), 30));
    let mut knobs = Knobs::new(many.collect());
    assert_eq!(knobs.size(), u128::MAX);
    knobs.push(Knob::ordinal("none", []));
    assert_eq!((knobs.size(), knobs.nth(0)), (0, None));
}

/// Any domain that is small enough to enumerate.
fn any_domain() -> impl Strategy<Value = Domain> {
    prop_oneof![
        (1i64..400, 1usize..4).prop_map(|(extent, parts)| exact(extent, parts)),
        (1i64..60, 1usize..4, 0u32..40).prop_map(|(extent, parts, waste)| near(extent, parts, waste)),
        (0usize..5).prop_map(permutation),
        proptest::collection::vec(any::<i64>(), 1..6).prop_map(|values| ordinal(&values)),
        (1usize..6).prop_map(categorical),
    ]
}

fn any_knobs() -> impl Strategy<Value = Knobs> {
    let knob = |(at, domain)| Knob { name: format!("knob{at}"), domain };
    proptest::collection::vec(any_domain(), 0..4)
        .prop_map(move |domains| Knobs::new(domains.into_iter().enumerate().map(knob).collect()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_point_has_its_text_and_mutual_neighbours(knobs in any_knobs(), seed: u64) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let point = knobs.sample(&mut rng).unwrap();
        prop_assert!(knobs.contains(&point));
        prop_assert_eq!(knobs.parse(&knobs.print(&point).to_string()).unwrap(), point.clone());
        prop_assert_eq!(knobs.features(&point).len(), knobs.width());
        for neighbour in knobs.neighbours(&point) {
            prop_assert!(knobs.contains(&neighbour));
            prop_assert!(knobs.neighbours(&neighbour).contains(&point));
        }
        prop_assert!(knobs.contains(&knobs.walk(&point, 0.5, &mut rng)));
    }

    #[test]
    fn any_domain_is_numbered_and_connected(domain in any_domain()) {
        check_topology(&domain);
    }
}

#[test]
fn proposals_satisfy_the_rules() {
    let tile = |name: &str| Knob::factorisation(name, 64, 2, Divisors::Exact);
    let mut knobs = Knobs::new(vec![tile("m"), tile("n"), Knob::ordinal("unroll", [1, 2, 4])]);
    knobs.add_rule(0..2, |point| point.factors(0)[1] * point.factors(1)[1] <= 16);
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut point = knobs.sample(&mut rng).unwrap();
    for _ in 0..200 {
        assert!(knobs.allows(&point), "{}", knobs.print(&point));
        assert!(knobs.neighbours(&point).iter().all(|near| knobs.allows(near)));
        assert!(knobs.allows(&knobs.sample(&mut rng).unwrap()));
        point = knobs.walk(&point, 0.7, &mut rng);
    }
    // There are 7 x 7 pairs of exponents, of which the rule allows those with a sum of at most 4.
    let share = knobs.allowed_share(20_000, 2);
    assert!((share - 15.0 / 49.0).abs() < 0.02, "{share}");
    // Points that violate a rule still belong to the space.
    assert_eq!(knobs.size(), 7 * 7 * 3);
}
