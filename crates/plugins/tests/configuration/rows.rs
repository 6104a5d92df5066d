//! A configuration as rows, each with whether it is the default.

use kubestep_config::FeatureGates;
use kubestep_config::rows::{About, Row, rows};

use super::resolve_body;

fn of(body: &str, gates: &str) -> Vec<Row> {
    rows(&resolve_body(body, &FeatureGates::parse(gates).unwrap()).unwrap())
}

fn changed(rows: &[Row]) -> Vec<String> {
    let changed = rows.iter().filter(|row| row.changed == Some(true));
    changed.map(|row| format!("{} {}", row.name, row.value)).collect()
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
                    score: {enabled: [{name: ImageLocality, weight: 7}], \
                    disabled: [{name: ImageLocality}]}\n  \
                    pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 9}}]\n\
                    extenders: [{urlPrefix: 'http://x', filterVerb: f, ignorable: true}]\n";
    let rows = of(body, "OpportunisticBatching=false");
    let changed = changed(&rows);
    for expected in [
        "podMaxBackoffSeconds 60s",
        "NodeName off",
        "ImageLocality weight 7",
        "InterPodAffinity.hardPodAffinityWeight 9",
        "http://x filter",
        "OpportunisticBatching off",
    ] {
        assert!(changed.iter().any(|row| row == expected), "{expected}: {changed:?}");
    }
    let weight = rows.iter().find(|row| row.value == "9").unwrap();
    assert!(weight.doc.ends_with("By default 1."), "{}", weight.doc);
}
