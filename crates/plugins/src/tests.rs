//! The table of plugins as a whole.

mod switches;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use kubestep_config::{ExtensionPoint, FeatureGates, find_plugin};
use kubestep_framework::plugin::Plugin;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::testing::{Cluster, info_of};

/// The plugins of the default profile in their order, with the gates' defaults. Upstream:
/// `getDefaultPlugins` and `applyFeatureGates` in
/// `pkg/scheduler/apis/config/v1/default_plugins.go`.
const DEFAULT: [&str; 20] = [
    "SchedulingGates",
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
];

fn built(name: &str, features: &FeatureGates) -> Arc<dyn Plugin> {
    let (_, build) = PLUGINS.iter().find(|(plugin, _)| plugin.name == name).unwrap();
    build(&ProfileArgs::default(), features).unwrap()
}

fn default_plugins(gates: &str) -> Vec<&'static str> {
    let gates = FeatureGates::parse(gates).unwrap();
    let plugins = registry().descriptors();
    plugins.iter().filter(|plugin| plugin.is_default(&gates)).map(|plugin| plugin.name).collect()
}

#[test]
fn the_default_profile_follows_the_gates() {
    assert_eq!(default_plugins(""), DEFAULT);
    let all = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true";
    let of_groups = ["GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"];
    assert_eq!(default_plugins(all), [&DEFAULT[..], &of_groups].concat());
    let off = "NodeDeclaredFeatures=false,InPlacePodLevelResourcesVerticalScaling=false";
    assert_eq!(default_plugins(off).last(), Some(&"DefaultBinder"));
}

#[test]
fn descriptors_are_well_formed() {
    let plugins = registry().descriptors();
    assert_eq!(plugins.len(), PLUGINS.len(), "each name is there once");
    for plugin in &plugins {
        assert!(plugin.points.iter().next().is_some(), "{}", plugin.name);
        let kind = plugin.args.map(|args| args.kind);
        assert!(kind.is_none_or(|kind| kind == format!("{}Args", plugin.name)));
        assert!(plugin.args.is_none_or(|args| !args.docs.is_empty()), "{}", plugin.name);
        assert!(!plugin.doc.is_empty(), "{}", plugin.name);
        assert!(!plugin.doc.ends_with('.') && plugin.long_doc.ends_with('.'));
        assert!(plugin.example.ends_with('.'), "{}", plugin.name);
    }
    let locality = find_plugin(&plugins, "ImageLocality");
    assert_eq!(locality.and_then(|plugin| plugin.default_weight), Some(1));
}

#[test]
fn one_plugin_gates_by_the_spec_and_one_counts_the_pods_of_a_namespace() {
    let gates = FeatureGates::default();
    let that = |has: fn(&dyn Plugin) -> bool| {
        let names = DEFAULT.into_iter().filter(|name| has(&*built(name, &gates)));
        names.collect::<Vec<_>>()
    };
    assert_eq!(that(|plugin| plugin.gates_by_spec()), ["SchedulingGates"]);
    assert_eq!(that(|plugin| plugin.counts_pods_of_namespace()), ["PodTopologySpread"]);
}

#[test]
fn plugins_have_the_names_of_their_descriptors() {
    for (plugin, build) in PLUGINS {
        let built = build(&ProfileArgs::default(), &FeatureGates::default()).unwrap();
        assert_eq!(built.name(), plugin.name);
    }
}

/// What is kept of a score between two cycles depends on this. With a broader basis than necessary
/// scores stay right, but are computed again for every node.
#[test]
fn scores_are_kept_as_far_as_their_basis_allows() {
    let bases = PLUGINS.iter().filter(|(plugin, _)| plugin.points.contains(ExtensionPoint::Score));
    let bases = bases.map(|(plugin, build)| {
        let built = build(&ProfileArgs::default(), &FeatureGates::default()).unwrap();
        format!("{} {:?}", plugin.name, built.score_basis())
    });
    let expected = [
        "TaintToleration HighestScore",
        "NodeAffinity HighestScore",
        "NodeResourcesFit NodeAlone",
        "VolumeBinding FeasibleNodes",
        "PodTopologySpread FeasibleNodes",
        "InterPodAffinity AllScores",
        "DynamicResources AllScores",
        "NodeResourcesBalancedAllocation NodeAlone",
        "ImageLocality NodeAlone",
    ];
    assert_eq!(bases.collect::<Vec<_>>(), expected);
}

/// Pods with different signatures do not share their answers.
#[test]
fn every_plugin_that_reads_volumes_signs_them() {
    let cluster = Cluster::default();
    let pod = |claim: &str| {
        let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}});
        info_of(json!({"metadata": {"name": "p"}, "spec": {"volumes": [volume]}}))
    };
    for name in ["VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits"] {
        let built = built(name, &FeatureGates::default());
        let signed = |claim| built.sign(&cluster.queue(), &pod(claim)).unwrap();
        assert_eq!(signed("a"), signed("a"), "{name}");
        assert_ne!(signed("a"), signed("b"), "{name}");
    }
}

#[test]
fn descriptors_say_what_plugins_are_asked_for() {
    let plugins = registry().descriptors();
    let named = |is: fn(&PluginDescriptor) -> bool| -> String {
        let names = plugins.iter().filter(|plugin| is(plugin)).map(|plugin| plugin.name);
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        named(|plugin| !plugin.signs),
        "SchedulingGates PrioritySort DefaultPreemption DefaultBinder GangScheduling \
         TopologyPlacementGenerator PodGroupPodsCount EBSLimits GCEPDLimits AzureDiskLimits \
         CinderLimits ManualPermit"
    );
    assert_eq!(
        named(|plugin| !plugin.registers_events),
        "PrioritySort NodeResourcesBalancedAllocation ImageLocality DefaultBinder \
         TopologyPlacementGenerator PodGroupPodsCount ManualPermit"
    );
    assert_eq!(
        named(|plugin| plugin.args.is_some()),
        "NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity \
         DynamicResources DefaultPreemption NodeResourcesBalancedAllocation ManualPermit"
    );
    assert_eq!(
        named(|plugin| !plugin.history.is_empty()),
        "DynamicResources DefaultPreemption NodeDeclaredFeatures GangScheduling \
         TopologyPlacementGenerator PodGroupPodsCount EBSLimits GCEPDLimits AzureDiskLimits \
         CinderLimits"
    );
    let weights = plugins.iter().filter_map(|plugin| Some((plugin.name, plugin.default_weight?)));
    let weights: Vec<String> = weights.map(|(name, weight)| format!("{name} {weight}")).collect();
    assert_eq!(
        weights.join(", "),
        "TaintToleration 3, NodeAffinity 2, NodeResourcesFit 1, PodTopologySpread 2, \
         InterPodAffinity 2, DynamicResources 2, NodeResourcesBalancedAllocation 1, \
         ImageLocality 1, PodGroupPodsCount 1"
    );
}

/// Pods with equal keys share answers, so the key tells pods apart that get different ones.
#[test]
fn keys_are_equal_only_for_pods_that_are_alike_in_what_a_plugin_reads() {
    let zone = json!({"nodeSelector": {"zone": "a"}});
    let tolerant = json!({"tolerations": [{"operator": "Exists"}]});
    let large = json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}]});
    let filter: fn(&dyn Plugin, &PodInfo) -> Option<String> = |plugin, pod| plugin.filter_key(pod);
    let score: fn(&dyn Plugin, &PodInfo) -> Option<String> = |plugin, pod| plugin.score_key(pod);
    for (name, key, spec) in [
        ("NodeAffinity", filter, &zone),
        ("NodeAffinity", score, &zone),
        ("NodeUnschedulable", filter, &tolerant),
        ("TaintToleration", filter, &tolerant),
        ("TaintToleration", score, &tolerant),
        ("NodeResourcesFit", filter, &large),
        ("NodeResourcesFit", score, &large),
        ("NodeResourcesBalancedAllocation", score, &large),
    ] {
        let plugin = built(name, &FeatureGates::default());
        let of = |spec: &Value| key(&*plugin, &info_of(json!({"spec": spec}))).unwrap();
        let mut otherwise = spec.clone();
        otherwise["priority"] = 7.into();
        assert_eq!(of(spec), of(&otherwise), "{name}");
        assert_ne!(of(spec), of(&json!({"containers": [{}]})), "{name}");
    }
}
