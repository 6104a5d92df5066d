//! The names and labels of metrics after the same story: metrics that kube-scheduler has and
//! kubestep has not are listed with the reason.

use std::collections::{BTreeMap, BTreeSet};

/// Missing metrics: a name prefix, and the reason.
const MISSING: [(&str, &str); 12] = [
    ("aggregator_", "of the API server's library, not of a scheduler"),
    ("apiserver_", "of the API server's library, not of a scheduler"),
    ("authenti", "callers are looked up without a library that counts it"),
    ("authorization_", "callers are looked up without a library that counts it"),
    ("cardinality_", "no metric can be changed by flags"),
    ("disabled_", "no metric can be changed by flags"),
    ("hidden_", "no metric can be changed by flags"),
    ("registered_", "no metric can be changed by flags"),
    ("go_", "there is no Go runtime"),
    ("rest_client_exec_plugin_", "programs that give credentials are run by another library"),
    ("rest_client_transport_cert_rotation_", "client certificates are read by another library"),
    ("workqueue_", "of the API server's library, not of a scheduler"),
];

type Metrics = BTreeMap<String, BTreeSet<String>>;

/// The names with their labels, buckets merged.
fn metrics(text: &str) -> Metrics {
    let mut all = Metrics::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let end = line.find(['{', ' ']).unwrap_or(line.len());
        let name = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|part| line[..end].strip_suffix(part))
            .unwrap_or(&line[..end]);
        let labels = all.entry(name.to_owned()).or_default();
        let Some((_, rest)) = line.split_once('{') else { continue };
        let parts = rest.split("=\"").map(|part| part.rsplit([',', '"', '{']).next().unwrap());
        let found: Vec<&str> = parts.collect();
        let found = found[..found.len() - 1].iter().filter(|label| **label != "le");
        labels.extend(found.map(ToString::to_string));
    }
    all
}

/// The differences, one per line.
pub fn differences(upstream: &str, ours: &str) -> String {
    let (upstream, ours) = (metrics(upstream), metrics(ours));
    let mut text = String::new();
    for (name, labels) in &upstream {
        let excused = MISSING.iter().any(|(beginning, _)| name.starts_with(beginning));
        match ours.get(name) {
            None if excused => {}
            None => text += &format!("- {name} {labels:?}\n"),
            Some(_) if excused => text += &format!("{name} is reported, though it is excused\n"),
            Some(reported) if reported != labels => {
                text += &format!("- {name} {labels:?}\n+ {name} {reported:?}\n");
            }
            Some(_) => {}
        }
    }
    text
}

#[test]
fn labels_are_found_whatever_their_values_hold() {
    let text = "# HELP a b\na_bucket{x=\"1,y=2\",le=\"3\"} 1\nb 2\nc{z=\"{\"} 1\n";
    let all = metrics(text);
    let labels = |name: &str| all[name].iter().cloned().collect::<Vec<_>>();
    assert_eq!(
        (labels("a"), labels("b"), labels("c")),
        (vec!["x".into()], vec![], vec!["z".into()])
    );
}
