//! A pseudonymized cluster leads to the same decisions, and contains none of the original names.

use kubestep_api::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::message::is_a_word;
use super::*;
use kubestep_cluster::World;
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_debug::Session;
use kubestep_framework::record::CycleRecord;
use kubestep_source::fixtures::STORIES;
use kubestep_source::{Filter, Loaded};

/// Cycles run on each cluster.
const CYCLES: usize = 40;
/// Only every sixth recorded scenario is tested.
const SAMPLE: usize = 6;

/// A cluster and its scheduler configuration.
struct Cluster {
    name: String,
    objects: Vec<Object>,
    config: Option<Value>,
    features: FeatureGates,
}

impl Cluster {
    fn run(&self) -> Option<Session> {
        let registry = kubestep_scheduler_plugins::add_to(kubestep_plugins::registry());
        let text = self.config.as_ref().map(Value::to_string);
        let config =
            config::resolve(text.as_deref(), &self.features, &registry.descriptors()).ok()?;
        let mut world = World::new(&config, self.features, &registry).unwrap();
        kubestep_cluster::load(&mut world, self.objects.iter().cloned());
        let mut session = Session::new(world);
        session.run_until_idle(CYCLES, |_| false);
        Some(session)
    }

    fn redacted(&self) -> (Cluster, Redactor) {
        let mut redactor = Redactor::new(self.objects.iter());
        let objects = self.objects.iter().map(|object| redactor.object(object)).collect();
        let config = self.config.clone().map(|config| redactor.config(config));
        let (name, features) = (self.name.clone(), self.features);
        (Cluster { name, objects, config, features }, redactor)
    }
}

fn stories() -> Vec<Cluster> {
    kubestep_scheduler_plugins::declare_kinds();
    let cluster = |story: &kubestep_source::fixtures::Story| {
        let read = kubestep_source::read_text(story.name, story.cluster.into(), &Filter::default())
            .unwrap();
        let config =
            read.scheduler_config.map(|found| kubestep_api::yaml::from_str(&found.text).unwrap());
        let objects = read.objects.into_iter().map(|Loaded { object, .. }| object).collect();
        let features = FeatureGates::default();
        Cluster { name: story.name.to_owned(), objects, config, features }
    };
    STORIES.iter().map(cluster).collect()
}

/// A sample of recorded kube-scheduler scenarios.
fn recorded() -> Vec<Cluster> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance");
    let mut clusters = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for path in files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "gz")) {
        let mut text = String::new();
        GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
        let lines = text.lines().step_by(SAMPLE).map(|line| serde_json::from_str(line).unwrap());
        clusters.extend(lines.filter_map(|line: Value| scenario(&line)));
    }
    clusters
}

fn scenario(line: &Value) -> Option<Cluster> {
    let objects = line["objects"].as_array()?.iter().map(|object| {
        let text = object.to_string();
        let read =
            kubestep_source::read_text("o.json", text.into_bytes(), &Filter::default()).unwrap();
        read.objects.into_iter().next().map(|loaded| loaded.object)
    });
    let objects = objects.collect::<Option<Vec<Object>>>()?;
    let gates: BTreeMap<String, bool> =
        serde_json::from_value(line["featureGates"].clone()).unwrap_or_default();
    let pairs = gates.iter().map(|(name, on)| (name.as_str(), *on));
    let features = FeatureGates::from_pairs(pairs).ok()?;
    let config = Some(line["config"].clone()).filter(Value::is_object);
    Some(Cluster { name: line["name"].as_str()?.to_owned(), objects, config, features })
}

/// The result of a cycle, with every name replaced by `rename`.
fn trace_of(record: &CycleRecord, rename: &dyn Fn(&str) -> String) -> String {
    let node = |slot: &kubestep_framework::node::NodeId| rename(&record.nodes.name(*slot).text());
    let named = |name: Option<Name>| name.map(|name| rename(&name.text()));
    let verdicts = record.nodes.order.iter().map(|slot| {
        let verdict = record.filter.verdicts.get(*slot);
        let status = verdict.and_then(|id| record.verdicts.get(id));
        let status = status.map(|status| (status.code().as_str(), status.plugin().to_string()));
        format!("{} {:?}", node(slot), status.or(verdict.map(|id| ("", id.0.to_string()))))
    });
    let verdicts: Vec<String> = verdicts.collect();
    let feasible: Vec<String> = record.feasible.iter().map(node).collect();
    format!(
        "{}/{} attempt {}: {:?} on {:?}, nominated {:?}\n{verdicts:#?}\n{feasible:?}\n{:?}",
        rename(&record.pod.namespace),
        rename(&record.pod.name.text()),
        record.attempt,
        record.outcome,
        named(record.node),
        named(record.nominated_node),
        record.score.totals,
    )
}

/// The parts of a message, sorted independently of names.
fn parts(message: &str) -> BTreeSet<String> {
    message.split([',', '.']).map(|part| part.trim().to_owned()).collect()
}

/// The number of cycles with equal results and messages; or the first difference.
fn decides_the_same(cluster: &Cluster) -> Result<usize, String> {
    let Some(before) = cluster.run() else { return Ok(0) };
    let (other, redactor) = cluster.redacted();
    let name = &cluster.name;
    let after = other.run().ok_or_else(|| format!("{name}: {:?}", other.config))?;
    let rename = |name: &str| redactor.names.known(name).unwrap_or_else(|| name.to_owned());
    let same = |name: &str| name.to_owned();
    let (cycles, others): (Vec<_>, Vec<_>) =
        (before.history().cycles().collect(), after.history().cycles().collect());
    let mut compared = 0;
    for (ours, theirs) in cycles.iter().zip(&others) {
        let (ours_told, theirs_told) = (trace_of(ours, &rename), trace_of(theirs, &same));
        if ours_told != theirs_told {
            return Err(format!("{name}:\n{ours_told}\n≠\n{theirs_told}"));
        }
        // A word that is also a name in the cluster cannot be compared.
        let words = ours.message.split(|c: char| !c.is_alphanumeric());
        let old = redactor.names.old();
        if words.into_iter().any(|word| old.contains(word) && is_a_word(word)) {
            continue;
        }
        compared += 1;
        let message = redactor.clone().message(&ours.message);
        if parts(&message) != parts(&theirs.message) {
            let (ours, theirs) = (&ours.message, &theirs.message);
            return Err(format!("{name}: {ours}\n  → {message}\n  ≠ {theirs}"));
        }
    }
    match cycles.len() == others.len() {
        true => Ok(compared),
        false => Err(format!("{name}: {} and {} cycles", cycles.len(), others.len())),
    }
}

fn all_decide_the_same(clusters: &[Cluster]) -> usize {
    let results: Vec<Result<usize, String>> = clusters.iter().map(decides_the_same).collect();
    let wrong: Vec<&String> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let reported: Vec<String> =
        wrong.iter().take(12).map(|text| text.chars().take(1500).collect()).collect();
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), reported.join("\n"));
    results.into_iter().flatten().sum()
}

/// Names, labels, images and annotations of the original that must not occur in the result.
fn secrets(cluster: &Cluster) -> BTreeSet<String> {
    let mut secrets = BTreeSet::new();
    for object in &cluster.objects {
        let metadata = object.metadata();
        if object.kind() != Kind::CsiDriver {
            secrets.insert(metadata.name.to_string());
        }
        secrets.insert(metadata.namespace.to_string());
        let labels = metadata.labels.iter().map(|(key, value)| (key, value.to_string()));
        let annotations = metadata.annotations.iter().map(|(key, value)| (key, value.to_string()));
        for (key, value) in labels.chain(annotations) {
            let domain = key.split_once('/').map_or("", |(domain, _)| domain);
            if !is_well_known(domain) {
                secrets.insert(key.to_string());
                secrets.insert(value.to_string());
            }
        }
        if let Object::Pod(pod) = object {
            secrets.extend(pod.spec.containers.iter().map(|container| container.image.to_string()));
        }
    }
    secrets
}

/// Whether a word is public, and so may also be a name by coincidence.
fn is_public(word: &str) -> bool {
    word.is_empty()
        || word.parse::<i64>().is_ok()
        || matches!(word, "true" | "false" | "linux" | "windows" | "amd64" | "arm64")
        || word.starts_with("system-")
}

fn gives_nothing_away(cluster: &Cluster) {
    let (other, _) = cluster.redacted();
    let secrets = secrets(cluster);
    for object in &other.objects {
        let mut texts = Vec::new();
        collect(&object.to_json().unwrap(), "", &mut texts);
        for (field, text) in texts {
            let is_kept = field == "message" || KEPT_FIELDS.contains(&field.as_str());
            // NUMA zones are called node-0, as nodes may be.
            let is_zone = field == "name" && object.kind().as_str() == "NodeResourceTopology";
            let reported = secrets.contains(&text) && !is_public(&text) && !is_kept && !is_zone;
            assert!(!reported, "{}: {}: {field}: {text}", cluster.name, object.key());
        }
    }
}

/// Fields whose strings, and maps whose keys, are public.
const KEPT_FIELDS: &[&str] = &[
    "driver",
    "provisioner",
    "type",
    "reason",
    "attributes",
    "capacity",
    "expression",
    "counters",
];

fn collect(value: &Value, field: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => found.push((field.to_owned(), text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect(item, field, found)),
        Value::Object(fields) => {
            let is_map = ["labels", "matchLabels", "annotations", "nodeSelector"].contains(&field);
            for (name, value) in fields {
                if is_map {
                    found.push((field.to_owned(), name.clone()));
                }
                collect(value, name, found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_story_decides_the_same() {
    let cycles = all_decide_the_same(&stories());
    assert!(cycles > 20, "{cycles}");
}

#[test]
fn recorded_clusters_decide_the_same() {
    let clusters = recorded();
    let cycles = all_decide_the_same(&clusters);
    assert!(clusters.len() > 150 && cycles > 500, "{} clusters, {cycles} cycles", clusters.len());
}

#[test]
fn no_old_name_is_left() {
    stories().iter().chain(&recorded()).for_each(gives_nothing_away);
}

fn pod(value: Value) -> Object {
    Object::deserialize_as(Kind::Pod, value).unwrap()
}

#[test]
fn claims_of_a_pods_own_keep_their_pod() {
    let objects = [pod(json!({
        "metadata": {"name": "web-0", "namespace": "shop"},
        "spec": {"volumes": [{"name": "data", "ephemeral": {"volumeClaimTemplate": {}}}]},
    }))];
    let mut redactor = Redactor::new(objects.iter());
    let claim = redactor.name("web-0-data", "claim");
    let (pod, volume) = (redactor.name("web-0", "pod"), redactor.name("data", "name"));
    assert_eq!(claim, format!("{pod}-{volume}"));
}

#[test]
fn messages_keep_their_words() {
    let objects = [pod(json!({
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"nodeName": "node-7", "tolerations": [{"key": "team", "value": "node"}]},
    }))];
    let mut redactor = Redactor::new(objects.iter());
    let reported = "0/5 nodes are available: 1 node(s) had untolerated taint {team: node}, 4 Insufficient \
                cpu. See shop/web on node-7 and db.example.com.";
    let (key, value) = (redactor.name("team", "key"), redactor.name("node", "value"));
    let (namespace, name) = (redactor.name("shop", "namespace"), redactor.name("web", "pod"));
    let (node, host) = (redactor.name("node-7", "node"), redactor.name("db.example.com", "word"));
    let see = redactor.name("See", "word");
    assert_eq!(
        redactor.message(reported),
        format!(
            "0/5 nodes are available: 1 node(s) had untolerated taint {{{key}: {value}}}, 4 \
             Insufficient cpu. {see} {namespace}/{name} on {node} and {host}."
        )
    );
}

#[test]
fn expressions_compare_with_the_new_texts() {
    let mut redactor =
        Redactor { kept: ["gpu.example.com".to_owned()].into(), ..Redactor::default() };
    let model = redactor.name("a100", "attribute");
    assert_eq!(
        redactor.expression(
            "device.driver == 'gpu.example.com' && device.attributes[\"gpu.example.com\"].model == \"a100\""
        ),
        format!(
            "device.driver == 'gpu.example.com' && device.attributes[\"gpu.example.com\"].model == \"{model}\""
        )
    );
    let looks_inside = "device.attributes['x'].model.startsWith('a1')";
    assert_eq!(redactor.expression(looks_inside), looks_inside);
    assert_eq!(redactor.attribute("a100"), "a100");
    assert_eq!(redactor.expression("'never ends"), "");
}

#[test]
fn a_configuration_keeps_plugins_and_weights() {
    let mut redactor = Redactor::new([].iter());
    let config = json!({
        "profiles": [{
            "schedulerName": "mine",
            "plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 5}]}},
            "pluginConfig": [{"name": "NodeResourcesFit", "args": {
                "ignoredResourceGroups": ["example.com"],
                "scoringStrategy": {"resources": [{"name": "example.com/gpu", "weight": 3}, {"name": "cpu"}]},
            }}, {"name": "LoadWatcher", "args": {"address": "load.example", "token": "secret"}}],
        }],
        "extenders": [{"urlPrefix": "https://host.example:8080/x", "filterVerb": "filter"}],
    });
    let reported = redactor.config(config);
    let (name, domain) = (redactor.name("mine", "x"), redactor.name("example.com", "x"));
    let profile = &reported["profiles"][0];
    assert_eq!(profile["schedulerName"], name);
    assert_eq!(profile["plugins"]["score"]["enabled"][0]["name"], "NodeAffinity");
    let args = &profile["pluginConfig"][0]["args"];
    assert_eq!(args["ignoredResourceGroups"][0], domain);
    let gpu = args["scoringStrategy"]["resources"][0]["name"].as_str().unwrap();
    assert!(gpu.starts_with(&format!("{domain}/")), "{gpu}");
    assert_eq!(args["scoringStrategy"]["resources"][1]["name"], "cpu");
    assert_eq!(profile["pluginConfig"][1], json!({"name": "LoadWatcher"}));
    assert!(!reported.to_string().contains("host.example"));
}

#[test]
fn a_topology_keeps_what_decisions_depend_on() {
    kubestep_scheduler_plugins::add_to(kubestep_plugins::registry());
    let topology = json!({
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "worker-7"},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": "restricted"},
            {"name": "rack", "value": "cellar"},
        ],
        "zones": [
            {"name": "node-0", "type": "Node",
                "attributes": [{"name": "bmc", "value": "10.9.8.7"}],
                "resources": [{"name": "example.com/dev", "capacity": "4", "available": "3"}]},
            {"name": "left-socket", "type": "Node"},
        ],
    });
    let text = topology.to_string().into_bytes();
    let read = kubestep_source::read_text("o.json", text, &Filter::default()).unwrap();
    let objects: Vec<Object> = read.objects.into_iter().map(|loaded| loaded.object).collect();
    let mut redactor = Redactor::new(objects.iter());
    let reported = redactor.object(&objects[0]).to_json().unwrap();
    let (name, resource) = (redactor.name("worker-7", "x"), redactor.resource("example.com/dev"));
    assert_eq!(reported["metadata"]["name"], name);
    assert_eq!(
        reported["attributes"],
        json!([{"name": "topologyManagerPolicy", "value": "restricted"}])
    );
    let zone = &reported["zones"][0];
    assert_eq!((&zone["name"], &zone["attributes"]), (&json!("node-0"), &json!([])));
    assert_eq!(zone["resources"], json!([{"name": resource, "capacity": "4", "available": "3"}]));
    assert_eq!(reported["zones"][1]["name"], redactor.name("left-socket", "x"));
}
