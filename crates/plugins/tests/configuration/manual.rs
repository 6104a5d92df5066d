//! The manual of the plugins.

use kubestep_config::manual::{json, text};
use kubestep_config::{FeatureGates, find_plugin};

use super::{plugins, resolve_body};

/// The list of a plugin's arguments is what a document may contain: each is read, and another name
/// is refused.
#[test]
fn every_argument_is_read() {
    let gates = FeatureGates::parse("StorageCapacityScoring=true").unwrap();
    for plugin in plugins() {
        let Some(args) = plugin.args else { continue };
        let refused = |name: &str| {
            let args = format!("{{name: {}, args: {{{name}: {{}}}}}}", plugin.name);
            let resolved = resolve_body(&format!("profiles: [{{pluginConfig: [{args}]}}]"), &gates);
            resolved.is_err_and(|error| error.to_string().contains("unknown field"))
        };
        for argument in args.docs {
            assert!(!refused(argument.name), "{}.{}", plugin.name, argument.name);
        }
        assert!(refused("other"), "{}", plugin.name);
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
fn a_plugin_is_told_whole() {
    let plugins = plugins();
    let plugin = find_plugin(&plugins, "InterPodAffinity").unwrap();
    assert_eq!(
        text(plugin, &FeatureGates::default(), 72),
        "InterPodAffinity: pods that attract or repel other pods

Required affinity and anti-affinity, of the pod and of the pods already
placed, refuse nodes; preferred terms score, and so do the required
affinity terms of placed pods with hardPodAffinityWeight.

For example: Required anti-affinity to its own label over
kubernetes.io/hostname: each replica gets a node for itself, and one
replica more than nodes stays pending.

  Runs at     PreFilter Filter PreScore Score
  Weight      2
  By default  enabled

Arguments
  hardPodAffinityWeight               0 to 100; default: 1. Weight with
                                      which required affinity terms of
                                      pods already placed attract the
                                      new pod.
  ignorePreferredTermsOfExistingPods  true or false; default: false.
                                      Leaves preferred terms of pods
                                      already placed out of the score,
                                      which is faster.
"
    );
}
