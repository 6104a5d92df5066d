//! How a configuration and the manual of the plugins are shown.

use kubestep_config::describe::config;
use kubestep_config::manual::{json, text};
use kubestep_config::rows::{About, Row, rows};
use kubestep_config::{FeatureGates, find_plugin};

use super::{plugins, resolve_body};

#[test]
fn a_configuration_is_shown_as_it_runs() {
    let gates = FeatureGates::parse("OpportunisticBatching=false").unwrap();
    let body = "profiles:\n- percentageOfNodesToScore: 100\n  plugins:\n    \
                    multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, \
                    {name: DefaultBinder}, {name: NodeAffinity, weight: 2}]}\n    \
                    score: {enabled: [{name: NodeAffinity, weight: 5}, {name: ImageLocality}]}\n  \
                    pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [x.io/r]}}]\n\
                    extenders: [{urlPrefix: 'http://x', filterVerb: f, bindVerb: b, ignorable: true}]\n";
    assert_eq!(
        config(&resolve_body(body, &gates).unwrap(), 60),
        "  Backoff         1s, doubled up to 10s
  Nodes searched  adaptive (50% minus 1% per 125 nodes, at least 5%, at least 100 nodes)
  Parallelism     16
  Feature gates   OpportunisticBatching=false
  Extender        http://x filter bind within 5s (ignorable)

Profile default-scheduler
  Nodes searched     all
  PreEnqueue         –
  QueueSort          PrioritySort
  PreFilter          NodeAffinity
  Filter             NodeAffinity
  PostFilter         –
  PreScore           NodeAffinity
  Score              !NodeAffinity×5 +ImageLocality×1
  Reserve            –
  Permit             –
  PreBind            –
  Bind               DefaultBinder
  PostBind           –
  PlacementGenerate  –
  PlacementScore     –
Arguments
  NodeResourcesFit  ignoredResources=[x.io/r]
                    scoringStrategy={type: LeastAllocated,
                    resources: [{name: cpu, weight: 1},
                    {name: memory, weight: 1}]}
  NodeAffinity      –
"
    );
}

/// The list of a plugin's arguments is what a document may contain: each is read, and another name
/// is rejected.
#[test]
fn every_argument_is_read() {
    let gates = FeatureGates::parse("StorageCapacityScoring=true").unwrap();
    for plugin in plugins() {
        let Some(args) = plugin.args else { continue };
        let rejected = |name: &str| {
            let args = format!("{{name: {}, args: {{{name}: {{}}}}}}", plugin.name);
            let resolved = resolve_body(&format!("profiles: [{{pluginConfig: [{args}]}}]"), &gates);
            resolved.is_err_and(|error| error.to_string().contains("unknown field"))
        };
        for argument in args.docs {
            assert!(!rejected(argument.name), "{}.{}", plugin.name, argument.name);
        }
        assert!(rejected("other"), "{}", plugin.name);
    }
}

#[test]
fn a_plugin_of_kubestep_alone_is_marked() {
    let own = plugins()
        .into_iter()
        .filter(|plugin| json(plugin, &FeatureGates::default())["partOfKubernetes"] == false);
    assert_eq!(own.map(|plugin| plugin.name).collect::<Vec<_>>(), ["ManualPermit"]);
}

#[test]
fn a_plugin_is_shown_completely() {
    let plugins = plugins();
    let plugin = find_plugin(&plugins, "InterPodAffinity").unwrap();
    assert_eq!(
        text(plugin, &FeatureGates::default(), 72),
        "InterPodAffinity: pods that attract or repel other pods

Nodes are rejected by required affinity and anti-affinity, of the pod
and of the pods on the nodes. Preferred terms score, and so do the
required affinity terms of pods on the nodes, with
hardPodAffinityWeight.

For example: Required anti-affinity to its own label over
kubernetes.io/hostname: each replica gets a node of its own, and with
more replicas than nodes the rest stay pending.

  Runs at     PreFilter Filter PreScore Score
  Weight      2
  By default  enabled

Arguments
  hardPodAffinityWeight               0 to 100; default: 1. Weight of
                                      the required affinity terms of
                                      pods on the nodes in the score.
  ignorePreferredTermsOfExistingPods  true or false; default: false.
                                      Ignores preferred terms of pods on
                                      the nodes in the score, which is
                                      faster.
"
    );
}

fn of(body: &str, gates: &str) -> Vec<Row> {
    rows(&resolve_body(body, &FeatureGates::parse(gates).unwrap()).unwrap())
}

fn changed(rows: &[Row]) -> Vec<String> {
    let changed = rows.iter().filter_map(|row| Some((row, row.default.as_deref()?)));
    changed.map(|(row, default)| format!("{} {} not {default}", row.name, row.value)).collect()
}

#[test]
fn the_default_configuration_changes_nothing() {
    let rows = of("", "");
    assert_eq!(changed(&rows), Vec::<String>::new());
    let gates = rows.iter().filter(|row| matches!(row.about, About::Gate(_))).count();
    assert_eq!(gates, FeatureGates::default().known().count());
    let at = |name: &str| rows.iter().position(|row| row.name == name).unwrap();
    assert_eq!(rows[at("Score") + 1].value, "weight 3");
    assert!(rows.iter().any(|row| row.name == "DefaultPreemption.minCandidateNodesAbsolute"));
}

#[test]
fn what_differs_is_marked_with_the_default_beside_it() {
    let body = "podMaxBackoffSeconds: 60\nprofiles:\n- plugins:\n    \
                    filter: {disabled: [{name: NodeName}]}\n    \
                    score: {enabled: [{name: TaintToleration, weight: 7}], \
                    disabled: [{name: TaintToleration}]}\n  \
                    pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 9}}]\n\
                    extenders: [{urlPrefix: 'http://x', filterVerb: f, ignorable: true}]\n";
    let rows = of(body, "OpportunisticBatching=false");
    let changed = changed(&rows);
    for expected in [
        "podMaxBackoffSeconds 60s not 10s",
        "Filter 13 plugins not 14 plugins",
        "NodeName off not on",
        "Score 9 plugins not other plugins or order",
        "TaintToleration weight 7 not weight 3",
        "InterPodAffinity.hardPodAffinityWeight 9 not 1",
        "http://x filter not none",
        "OpportunisticBatching off not on",
    ] {
        assert!(changed.iter().any(|row| row == expected), "{expected}: {changed:?}");
    }
    assert!(rows.iter().all(|row| row.has_default || row.default.is_none()));
}
