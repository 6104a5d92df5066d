//! A configuration as text.

use kubestep_config::FeatureGates;
use kubestep_config::describe::config;

use super::resolve_body;

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
