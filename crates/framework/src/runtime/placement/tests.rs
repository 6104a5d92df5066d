//! Generating and scoring placements, with fake plugins.

use super::*;
use crate::registry::{Built, Entry, Registry};
use crate::status::Code;
use crate::testing::{Cluster, framework_of, key, node};
use kubestep_api::Name;
use kubestep_config::{FeatureGates, PluginDescriptor, ProfileArgs};

/// A plugin with fixed answers; the name of a placement is its score.
struct ByRule {
    name: &'static str,
    generate: fn(&Placement) -> Result<Vec<Placement>, Status>,
    score: fn(i64) -> Result<i64, Status>,
    normalize: fn(&mut [i64]) -> Status,
}

impl Plugin for ByRule {
    fn name(&self) -> Symbol {
        self.name.into()
    }

    fn generate_placements(
        &self,
        _cx: &GroupContext<'_>,
        parent: &Placement,
    ) -> Result<Vec<Placement>, Status> {
        (self.generate)(parent)
    }

    fn score_placement(
        &self,
        _cx: &GroupContext<'_>,
        proposal: &Proposal<'_>,
    ) -> Result<i64, Status> {
        (self.score)(proposal.placement.name.text().parse().unwrap())
    }

    fn normalize_placements(&self, _cx: &GroupContext<'_>, scores: &mut [i64]) -> Status {
        (self.normalize)(scores)
    }
}

const PLAIN: ByRule = ByRule {
    name: "Plain",
    generate: |parent| Ok(vec![parent.clone()]),
    score: Ok,
    normalize: |_| Status::SUCCESS,
};

type Build = fn(&ProfileArgs, &FeatureGates) -> Built;

/// A profile of rules, as (name, weight, factory).
fn profile(point: ExtensionPoint, plugins: &[(&'static str, i32, Build)]) -> Framework {
    let entry = |(name, weight, factory): &(&'static str, i32, Build)| {
        let plain = PluginDescriptor::new(name, &[point]);
        let descriptor = PluginDescriptor { default_weight: Some(*weight), ..plain };
        Entry::new(descriptor, *factory)
    };
    framework_of(&Registry::of(plugins.iter().map(entry)).unwrap())
}

fn cx(cluster: &Cluster) -> GroupContext<'_> {
    GroupContext {
        group: key("g"),
        snapshot: &cluster.snapshot,
        objects: &cluster.objects,
        features: &cluster.features,
        shared: &cluster.shared,
        now: cluster.now,
    }
}

fn generated(plugins: &[(&'static str, i32, Build)]) -> Result<Vec<Placement>, Status> {
    let cluster = Cluster::new(["n1", "n2", "n3"].map(node), []);
    profile(ExtensionPoint::PlacementGenerate, plugins).run_placement_generate(&cx(&cluster))
}

fn placement(name: &str, nodes: &[&str]) -> Placement {
    Placement { name: name.into(), nodes: nodes.iter().map(|node| Name::new(node)).collect() }
}

#[test]
fn without_a_plugin_all_nodes_are_the_only_placement() {
    assert_eq!(generated(&[]), Ok(vec![placement("", &["n1", "n2", "n3"])]));
}

#[test]
fn the_plugin_makes_placements_of_all_nodes() {
    let halves: Build = |_, _| {
        let generate: fn(&Placement) -> _ = |parent| {
            let (first, second) = parent.nodes.split_at(1);
            let named =
                |name: &str, nodes: &[Name]| Placement { name: name.into(), nodes: nodes.to_vec() };
            Ok(vec![named("a", first), named("b", second)])
        };
        Ok(Arc::new(ByRule { generate, ..PLAIN }))
    };
    let expected = vec![placement("a", &["n1"]), placement("b", &["n2", "n3"])];
    assert_eq!(generated(&[("Plain", 0, halves)]), Ok(expected));
}

#[test]
fn a_plugin_that_fails_or_makes_nothing_ends_the_search() {
    let none: Build = |_, _| Ok(Arc::new(ByRule { generate: |_| Ok(Vec::new()), ..PLAIN }));
    let status = generated(&[("Plain", 0, none)]).unwrap_err();
    assert_eq!(status, Status::unschedulable("no feasible placements found").by("Plain".into()));
    let broken: Build =
        |_, _| Ok(Arc::new(ByRule { generate: |_| Err(Status::error("broken")), ..PLAIN }));
    let status = generated(&[("Plain", 0, broken)]).unwrap_err();
    assert_eq!(status, Status::error("broken").by("Plain".into()));
}

const FIRST: (&str, i32, Build) = ("Plain", 1, |_, _| Ok(Arc::new(PLAIN)));

/// The totals of placements that score 0, 50 and 100 by name.
fn totals(plugins: &[(&'static str, i32, Build)]) -> Result<Vec<i64>, String> {
    let cluster = Cluster::default();
    let placements = ["0", "50", "100"].map(|name| placement(name, &[]));
    let proposals: Vec<_> = placements
        .iter()
        .map(|placement| Proposal { placement, assignments: Vec::new() })
        .collect();
    let profile = profile(ExtensionPoint::PlacementScore, plugins);
    profile.run_placement_score(&cx(&cluster), &proposals).map_err(|status| {
        assert_eq!(status.code(), Code::Error);
        status.message()
    })
}

#[test]
fn totals_are_sums_of_weighted_scores() {
    assert_eq!(totals(&[]), Ok(vec![0, 0, 0]));
    let half: Build = |_, _| {
        Ok(Arc::new(ByRule {
            name: "Half",
            score: |score| Ok(if score == 50 { 50 } else { 0 }),
            ..PLAIN
        }))
    };
    assert_eq!(totals(&[FIRST, ("Half", 2, half)]), Ok(vec![0, 150, 100]));
}

#[test]
fn scores_are_normalized_before_they_are_weighted() {
    let fourfold: Build = |_, _| {
        Ok(Arc::new(ByRule {
            name: "Fourfold",
            score: |score| Ok(4 * score),
            normalize: |scores| {
                scores.iter_mut().for_each(|score| *score /= 4);
                Status::SUCCESS
            },
            ..PLAIN
        }))
    };
    assert_eq!(totals(&[FIRST, ("Fourfold", 2, fourfold)]), Ok(vec![0, 150, 300]));
}

#[test]
fn errors_have_upstreams_text() {
    let error = |factory: Build| totals(&[FIRST, ("Odd", 1, factory)]).unwrap_err();
    let score: Build = |_, _| {
        Ok(Arc::new(ByRule { name: "Odd", score: |_| Err(Status::error("broken")), ..PLAIN }))
    };
    assert_eq!(error(score), "running PlacementScore plugins: plugin \"Odd\" failed with: broken");
    let normalize: Build = |_, _| {
        Ok(Arc::new(ByRule { name: "Odd", normalize: |_| Status::error("broken"), ..PLAIN }))
    };
    assert_eq!(
        error(normalize),
        "running NormalizePlacementScore on PlacementScore plugins: plugin \"Odd\" failed with: \
         broken"
    );
    let text = |score| {
        format!(
            "applying score defaultWeights on PlacementScore plugins: plugin \"Odd\" returns an \
             invalid score {score}, it should in the range of [0, 100] after normalizing"
        )
    };
    let above: Build =
        |_, _| Ok(Arc::new(ByRule { name: "Odd", score: |score| Ok(score + 1), ..PLAIN }));
    assert_eq!(error(above), text(101));
    let below: Build =
        |_, _| Ok(Arc::new(ByRule { name: "Odd", score: |score| Ok(score - 1), ..PLAIN }));
    assert_eq!(error(below), text(-1));
}
