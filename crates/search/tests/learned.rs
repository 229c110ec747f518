//! Learned cost models: without trained parts they predict what the analytical model does; with
//! them, the corrected times of nests add up, and files of other versions are refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use std::sync::Arc;

use support::{cpu, program};
use tilewright_ir::LoopNest;
use tilewright_schedule::{apply, schedule_by_rules};
use tilewright_search::cost::learned::trees::{Node, Tree};
use tilewright_search::cost::learned::{RootFeatures, StageFeatures, Weights, features_of};
use tilewright_search::kind::{cost_model, learned_model, speeds};
use tilewright_target::{Gpu, Target};

const BLURRED: &str = "def blurred(float(H, W) x) -> (y, s) {
    v(i, j) = x(i, j) + x(i + 1, j) + x(i + 2, j)
    y(i, j) = v(i, j) + v(i, j + 1) / v(i, j + 2)
    s(i) +=! y(i, j)
}";

fn nest<'t>(target: impl Into<Target<'t>>) -> LoopNest {
    let program = program(BLURRED, &[("H", 200), ("W", 300)]);
    let target = target.into();
    apply(&program, &schedule_by_rules(&program, target), target).unwrap()
}

fn features<'t>(target: impl Into<Target<'t>>) -> Vec<RootFeatures> {
    let target = target.into();
    features_of(&*cost_model(target), &speeds(target), &nest(target))
}

fn weights(trees: Vec<Tree>) -> Weights {
    Weights::new("avx512".to_owned(), "made up".to_owned(), trees, None)
}

#[test]
fn untrained_weights_predict_what_the_analytical_model_does() {
    let (cpu, gpu) = (cpu(), Gpu::h200());
    for target in [Target::Cpu(&cpu), Target::Gpu(&gpu)] {
        let nest = nest(target);
        let learned = learned_model(target, Arc::new(weights(Vec::new())));
        let (own, analytical) = (learned.root_seconds(&nest), cost_model(target).root_seconds(&nest));
        for (own, analytical) in own.iter().zip(&analytical) {
            assert!((own / analytical - 1.0).abs() < 1e-9);
        }
        assert_eq!(own.len(), nest.roots().len());
    }
}

#[test]
fn corrections_multiply_the_time_of_each_nest() {
    let cpu = cpu();
    let nest = nest(&cpu);
    let twice = weights(vec![Tree(vec![Node::Leaf(2f32.ln())])]);
    let learned = learned_model((&cpu).into(), Arc::new(twice));
    let analytical: f64 = cost_model((&cpu).into()).root_seconds(&nest).iter().sum();
    assert!((learned.estimate(&nest).seconds / analytical - 2.0).abs() < 1e-5);
    assert!((learned.root_seconds(&nest).iter().sum::<f64>() / analytical - 2.0).abs() < 1e-5);
}

#[test]
fn features_are_as_many_for_every_nest_and_finite() {
    let (cpu, gpu) = (cpu(), Gpu::h200());
    for target in [Target::Cpu(&cpu), Target::Gpu(&gpu)] {
        let all = features(target);
        let count = all[0].values.len();
        for root in &all {
            assert_eq!(root.values.len(), count);
            assert!(root.values.iter().all(|value| value.is_finite()), "{root:?}");
            let stages = root.stages.iter();
            assert!(stages.flat_map(|stage| stage.values).all(f32::is_finite));
            assert!(!root.stages.is_empty());
        }
    }
    assert_eq!(StageFeatures::names().count(), StageFeatures::COUNT);
}

#[test]
fn a_file_of_another_version_or_with_nonsense_is_harmless() {
    let text = weights(Vec::new()).text().unwrap();
    assert_eq!(Weights::parse(&text).unwrap(), weights(Vec::new()));
    assert!(Weights::parse(&text.replace("\"version\":1", "\"version\":0")).is_err());
    assert!(Weights::parse("{}").is_err());
    // A tree that leads in circles, and one that asks for a feature that is not there.
    let circle = Tree(vec![Node::Split(0, 0.0, 0), Node::Leaf(1.0)]);
    let beyond = Tree(vec![Node::Split(9999, 0.0, 1), Node::Leaf(1.0), Node::Leaf(1.0)]);
    let root = &features(&cpu())[0];
    assert!(weights(vec![circle, beyond]).seconds(root).is_finite());
}
