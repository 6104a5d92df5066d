//! Missing labels and names of nodes and pods.

use super::*;

const TERMS: &str = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
                     {nodeSelectorTerms: [{";

fn affinity(requirement: &str) -> String {
    format!("{TERMS}{requirement}}}]}}}}}},")
}

#[test]
fn gt_and_lt_compare_whole_numbers_only() {
    let required = affinity("matchExpressions: [{key: kernel, operator: Gt, values: ['6']}]");
    let cluster = node("a", "kernel: '6.12'", "") + &node("b", "kernel: '5'", "");
    let cluster = cluster + &web("1", &required);
    assert_eq!(
        causes(&cluster, "a"),
        [
            "NodeAffinity: node affinity kernel>6 (Gt and Lt compare whole numbers only): the node has \
          kernel=6.12"
        ]
    );
    assert_eq!(
        causes(&cluster, "b"),
        ["NodeAffinity: node affinity kernel>6: the node has kernel=5"]
    );
}

/// A typo in a node's name is corrected before anything is relaxed, wherever it is.
#[test]
fn a_mistyped_node_name_is_corrected() {
    let nodes = node("worker-a", "", "") + &node("worker-b", "", "");
    let field = affinity("matchFields: [{key: metadata.name, operator: In, values: [wroker-a]}]");
    let by_field = nodes.clone() + &web("1", &field);
    assert!(causes(&by_field, "worker-b")[0].contains("did you mean \"worker-a\"?"));
    let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.\
                nodeSelectorTerms[0].matchFields[0].values";
    assert_eq!(proposed(&by_field)[0], format!("set pod default/web {path}=[\"worker-a\"]"));
    let label = "nodeSelector: {kubernetes.io/hostname: wroker-b},";
    let by_label = proposed(&(nodes + &web("1", label)));
    assert_eq!(by_label[0], "select pod default/web kubernetes.io/hostname=worker-b");
}

#[test]
fn a_mistyped_label_of_other_pods_is_corrected() {
    let near = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
                [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: \
                databse}}}]}},";
    let database = bound("database", "a", &container(""));
    let cluster = node("a", "", "") + &database + &web("1", near);
    assert!(causes(&cluster, "a")[0].ends_with("on any node; did you mean app=database?"));
    let terms = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    assert_eq!(
        proposed(&cluster)[0],
        format!("set pod default/web {terms}[0].labelSelector.matchLabels['app']=\"database\"")
    );
}

/// The pod that the affinity selects does not exist: it is created, with the labels of all terms.
#[test]
fn a_missing_pod_is_created() {
    let near = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
                [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: cache}}}, \
                {topologyKey: kubernetes.io/hostname, labelSelector: {matchExpressions: [{key: tier, \
                operator: In, values: [fast, slow]}]}}]}},";
    let found = found(&settled(&(node("a", "", "") + &web("1", near))));
    let create = "put pod default/cache with app=cache,tier=fast on a";
    let fix = found.found.iter().find(|fix| edits(fix) == create).unwrap();
    assert_eq!(create.parse::<Edit>(), Ok(fix.edits[0].clone()));
    assert_eq!(fix.edits[0].line().parse::<Edit>().map(|edit| edit.to_string()), Ok(create.into()));
}

/// `web` and `batch` are two pools, not a typo.
#[test]
fn only_a_typo_counts_as_one() {
    let nodes = node("a", "pool: web", "unschedulable: true") + &node("b", "pool: batch", "");
    let cluster = nodes + &web("1", "nodeSelector: {pool: web},");
    let found = found(&settled(&cluster));
    let size = |wanted: &str| {
        let fix = found.found.iter().find(|fix| edits(fix).starts_with(wanted)).unwrap();
        fix.size
    };
    assert_eq!(size("select pod default/web pool=batch"), 1.45);
    assert_eq!(size("uncordon node a"), 1.25);
}

/// The kubelet and the cloud controller would overwrite an edit.
#[test]
fn names_and_zones_of_nodes_are_not_relabelled() {
    let nodes = node("a", "topology.kubernetes.io/zone: x", "") + &node("b", "", "");
    let zone = nodes.clone() + &web("1", "nodeSelector: {topology.kubernetes.io/zone: y},");
    let labels = |cluster: &str| -> Vec<String> {
        let proposed = proposed(cluster);
        proposed.into_iter().filter(|edits| edits.contains("label node")).collect()
    };
    // Without a controller, a person may set it.
    assert_eq!(labels(&zone), ["label node b topology.kubernetes.io/zone=y"]);
    let name = nodes + &web("1", "nodeSelector: {kubernetes.io/hostname: elsewhere},");
    assert_eq!(labels(&name), [""; 0]);
}
