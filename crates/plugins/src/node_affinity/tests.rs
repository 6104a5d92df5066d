//! Tests of NodeAffinity with the outcomes of upstream's tests.

use serde_json::{Value, json};

use super::*;
use kubestep_api::Object;
use kubestep_framework::status::Code;
use kubestep_framework::testing::{Cluster, decoded, info_of, plugin};

const NOT_MATCHED: &str = "node(s) didn't match Pod's node affinity/selector";
const NOT_ENFORCED: &str = "node(s) didn't match scheduler-enforced node affinity";

/// Labels written as `key=value`.
fn labels(text: &str) -> Value {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    Value::Object(pairs.map(|(key, value)| (key.to_owned(), json!(value))).collect())
}

fn node(name: &str, text: &str) -> Value {
    json!({"metadata": {"name": name, "labels": labels(text)}})
}

/// Requirements written as `key Operator a,b`; those that begin with `@` are on fields.
fn term(requirements: &[&str]) -> Value {
    let mut term = json!({"matchExpressions": [], "matchFields": []});
    for text in requirements {
        let mut parts = text.trim_start_matches('@').split(' ');
        let (key, operator) = (parts.next().unwrap(), parts.next().unwrap());
        let values: Vec<&str> = parts.next().map_or(vec![], |values| values.split(',').collect());
        let requirement = json!({"key": key, "operator": operator, "values": values});
        let list = if text.starts_with('@') { "matchFields" } else { "matchExpressions" };
        term[list].as_array_mut().unwrap().push(requirement);
    }
    term
}

fn required(terms: &[&[&str]]) -> Value {
    let terms: Vec<Value> = terms.iter().map(|requirements| term(requirements)).collect();
    json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}})
}

fn preferred(terms: &[(i32, &[&str])]) -> Value {
    let preference = |(weight, requirements): &(i32, &[&str])| json!({"weight": weight, "preference": term(requirements)});
    let terms: Vec<Value> = terms.iter().map(preference).collect();
    json!({"preferredDuringSchedulingIgnoredDuringExecution": terms})
}

fn with_affinity(affinity: Value) -> Arc<PodInfo> {
    info_of(json!({"spec": {"affinity": {"nodeAffinity": affinity}}}))
}

fn affinity() -> Arc<dyn Plugin> {
    plugin(build, &ProfileArgs::default())
}

fn args(added: Value) -> ProfileArgs {
    ProfileArgs::default().with(NodeAffinityArgs { added_affinity: Some(decoded(added)) })
}

fn pre_filter(plugin: &Arc<dyn Plugin>, pod: &Arc<PodInfo>) -> PreFilterAnswer {
    plugin.pre_filter(&Cluster::default().cx(pod), &mut CycleState::default())
}

#[test]
fn expressions_are_anded_and_terms_ored() {
    let node = node("n", "foo=bar size=10 empty=");
    for (terms, fits) in [
        (&[&["foo In bar,value2"][..]][..], true),
        (&[&["foo In value1"]], false),
        (&[&["foo NotIn other"]], true),
        (&[&["foo NotIn bar"]], false),
        (&[&["gone NotIn other"]], true),
        (&[&["foo Exists"]], true),
        (&[&["gone Exists"]], false),
        (&[&["empty Exists"]], true),
        (&[&["gone DoesNotExist"]], true),
        (&[&["foo DoesNotExist"]], false),
        (&[&["size Gt 9"]], true),
        (&[&["size Gt 10"]], false),
        (&[&["size Lt 11"]], true),
        (&[&["foo Gt 1"]], false),
        (&[&["gone Lt 1"]], false),
        (&[&["foo Exists", "size In 9,10"]], true),
        (&[&["foo Exists", "size In 9"]], false),
        (&[&["gone Exists"], &["foo Exists"]], true),
        // An empty term matches nothing, nor does an affinity without terms.
        (&[&[]], false),
        (&[], false),
        (&[&[], &["foo Exists"]], true),
        // A term that cannot be parsed matches nothing; the other terms still count.
        (&[&["foo In {{.bad-value.}}"]], false),
        (&[&["foo Near bar"], &["foo Exists"]], true),
        (&[&["foo Exists bar"]], false),
        (&[&["size Gt big"]], false),
    ] {
        let cluster = Cluster::of(vec![node.clone()], vec![]);
        let rejections = cluster.rejections(&affinity(), &with_affinity(required(terms)));
        assert_eq!(rejections, [if fits { "" } else { NOT_MATCHED }], "{terms:?}");
    }
}

#[test]
fn the_selector_and_the_affinity_must_both_match() {
    let cluster = Cluster::of(vec![node("n", "foo=bar baz=x")], vec![]);
    for (selector, terms, fits) in [
        ("foo=bar", None, true),
        ("foo=bar baz=x", None, true),
        ("foo=bar gone=1", None, false),
        ("", None, true),
        ("foo=bar", Some("foo Exists"), true),
        ("foo=other", Some("foo Exists"), false),
        ("foo=bar", Some("gone Exists"), false),
    ] {
        let mut spec = json!({"nodeSelector": labels(selector)});
        if let Some(expression) = terms {
            spec["affinity"] = json!({"nodeAffinity": required(&[&[expression]])});
        }
        let rejections = cluster.rejections(&affinity(), &info_of(json!({"spec": spec})));
        assert_eq!(rejections, [if fits { "" } else { NOT_MATCHED }], "{selector} {terms:?}");
    }
}

#[test]
fn without_requirements_there_is_nothing_to_do() {
    for spec in [json!({}), json!({"affinity": {}}), json!({"affinity": {"nodeAffinity": {}}})] {
        assert!(pre_filter(&affinity(), &info_of(json!({"spec": spec}))).status.is_skip());
    }
    let enforcing = plugin(build, &args(required(&[&["foo Exists"]])));
    assert!(pre_filter(&enforcing, &info_of(json!({}))).status.is_success());
}

#[test]
fn named_nodes_narrow_the_search() {
    let one = "@metadata.name In n1";
    for (terms, expected) in [
        (&[&[one][..]][..], Some(vec!["n1"])),
        (&[&[one, "foo Exists"]], Some(vec!["n1"])),
        (&[&["@metadata.name In n2"], &[one]], Some(vec!["n1", "n2"])),
        (&[&[one], &["foo Exists"]], None),
        (&[&["@metadata.name NotIn n1"]], None),
        (&[&["@metadata.name In n1,n2,n3", "@metadata.name In n2,n3,n4"]], Some(vec!["n2", "n3"])),
        (&[&[one, "@metadata.name In n2"], &["@metadata.name In n3"]], Some(vec!["n3"])),
        (&[], None),
    ] {
        let answer = pre_filter(&affinity(), &with_affinity(required(terms)));
        assert!(answer.status.is_success(), "{terms:?}");
        let names = answer.nodes.map(|nodes| nodes.iter().map(Name::to_string).collect::<Vec<_>>());
        let expected = expected.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
        assert_eq!(names, expected, "{terms:?}");
    }
    let conflict = with_affinity(required(&[&[one, "@metadata.name In n2"]]));
    let status = pre_filter(&affinity(), &conflict).status;
    assert_eq!(status, Status::unresolvable("pod affinity terms conflict"));
}

#[test]
fn fields_match_the_name_with_one_value() {
    let cluster = Cluster::of(vec![node("n1", "foo=bar"), node("n2", "")], vec![]);
    for (terms, expected) in [
        (&[&["@metadata.name In n1"][..]][..], [true, false]),
        (&[&["@metadata.name NotIn n1"]], [false, true]),
        (&[&["@metadata.name In n1", "foo Exists"]], [true, false]),
        (&[&["@metadata.name In n2", "foo Exists"]], [false, false]),
        (&[&["@metadata.name In n2"], &["foo Exists"]], [true, true]),
        (&[&["@metadata.name In n1,n2"]], [false, false]),
        (&[&["@metadata.name Exists"]], [false, false]),
        (&[&["@metadata.uid NotIn x"]], [true, true]),
    ] {
        let statuses = cluster.filter(&affinity(), &with_affinity(required(terms))).unwrap();
        let fits: Vec<bool> = statuses.iter().map(Status::is_success).collect();
        assert_eq!(fits, expected, "{terms:?}");
    }
}

/// [`Cluster::filter`] compares the answer about all nodes at once with that about each node.
#[test]
fn nodes_that_a_pod_does_not_name_are_rejected_at_once() {
    let cluster = Cluster::of(vec![node("n1", ""), node("n2", "")], vec![]);
    let at_once = |plugin: &Arc<dyn Plugin>, pod: &Arc<PodInfo>| {
        plugin.filters(&cluster.cx(pod), &CycleState::default()).is_some()
    };
    let enforcing = plugin(build, &args(required(&[&["zone In a"]])));
    for (terms, named) in [
        (&[&["@metadata.name In n1"][..]][..], true),
        (&[&["@metadata.name In n1"], &["@metadata.name In gone", "foo Exists"]], true),
        (&[&["@metadata.name NotIn n1"]], false),
        (&[&["foo Exists"], &["@metadata.name In n1"]], false),
    ] {
        let pod = with_affinity(required(terms));
        assert_eq!(at_once(&affinity(), &pod), named, "{terms:?}");
        assert_eq!(affinity().filter_key(&pod).is_none(), named, "{terms:?}");
        assert!(!at_once(&enforcing, &pod) && enforcing.filter_key(&pod).is_some(), "{terms:?}");
    }
    let on = |name: &str| with_affinity(required(&[&[name]]));
    assert_eq!(cluster.rejections(&affinity(), &on("@metadata.name In n2")), [NOT_MATCHED, ""]);
    assert_eq!(cluster.rejections(&affinity(), &on("@metadata.name In n3")), [NOT_MATCHED; 2]);
}

#[test]
fn the_profile_may_enforce_more() {
    let plugin = plugin(build, &args(required(&[&["zone In a"]])));
    let cluster =
        Cluster::of(vec![node("n1", "zone=a foo=bar"), node("n2", "zone=b foo=bar")], vec![]);
    let rejections = |terms| cluster.rejections(&plugin, &with_affinity(required(terms)));
    assert_eq!(rejections(&[&["foo Exists"]]), ["", NOT_ENFORCED]);
    assert_eq!(rejections(&[&["gone Exists"]]), [NOT_MATCHED, NOT_ENFORCED]);
    assert_eq!(rejections(&[&["@metadata.name In n2"]]), [NOT_MATCHED, NOT_ENFORCED]);
    assert_eq!(cluster.rejections(&plugin, &info_of(json!({}))), ["", NOT_ENFORCED]);
}

#[test]
fn filter_works_without_pre_filter() {
    let cluster = Cluster::of(vec![node("n1", "foo=bar")], vec![]);
    let node = cluster.snapshot.get(NodeId(0)).unwrap();
    let filter = |pod: &Arc<PodInfo>| {
        affinity().filter(&cluster.cx(pod), &CycleState::default(), node).message()
    };
    assert_eq!(filter(&info_of(json!({"spec": {"nodeSelector": {"foo": "bar"}}}))), "");
    assert_eq!(filter(&with_affinity(required(&[&["foo In x"]]))), NOT_MATCHED);
}

#[test]
fn weights_of_matching_preferences_are_summed() {
    let three: &[(i32, &[&str])] = &[
        (2, &["foo In bar"]),
        (4, &["key In value"]),
        (5, &["foo In bar", "key In value", "az In az1"]),
    ];
    let one = &three[..1];
    let added_key: &[(i32, &[&str])] = &[(3, &["key In value"])];
    let all = "foo=bar key=value az=az1";
    for (nodes, own, added, expected) in [
        (["foo=bar", "key=value", "az=az1"], Some(one), None, [100, 0, 0]),
        (["abc=az11", "key=value", "az=az1"], Some(one), None, [0, 0, 0]),
        (["foo=bar", all, "key=value"], Some(three), None, [18, 100, 36]),
        (["foo=bar", "key=value", ""], None, Some(one), [100, 0, 0]),
        (["foo=bar", "key=value", all], Some(one), Some(added_key), [40, 60, 100]),
        // Weight 0 and an empty preference add nothing, but PreScore does not skip.
        (["foo=bar", "", ""], Some(&[(0, &["foo Exists"][..]), (7, &[])][..]), None, [0, 0, 0]),
    ] {
        let nodes = nodes.iter().enumerate().map(|(at, text)| node(&format!("n{at}"), text));
        let cluster = Cluster::of(nodes.collect(), vec![]);
        let pod = own.map_or(info_of(json!({})), |own| with_affinity(preferred(own)));
        let args = added.map_or(ProfileArgs::default(), |added| args(preferred(added)));
        let plugin = plugin(build, &args);
        assert_eq!(cluster.scores(&plugin, &pod).unwrap(), expected, "{own:?} {added:?}");
        // Without PreScore the scores are the same.
        let score = |node| plugin.score(&cluster.cx(&pod), &CycleState::default(), node);
        let mut scores: Vec<i64> =
            cluster.snapshot.iter().map(|node| score(node).unwrap()).collect();
        relative_to_highest(&mut scores, false);
        assert_eq!(scores, expected, "{own:?} {added:?}");
    }
}

#[test]
fn without_preferences_there_is_no_score_and_bad_ones_are_an_error() {
    let cluster = Cluster::of(vec![node("n", "foo=bar")], vec![]);
    let score = |pod| cluster.raw_scores(&affinity(), &pod);
    assert!(score(info_of(json!({}))).unwrap_err().is_skip());
    assert!(score(with_affinity(required(&[&["foo Exists"]]))).unwrap_err().is_skip());
    let bad = with_affinity(json!({"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 2, "preference": {"matchExpressions": [
            {"key": "invalid key", "operator": "In", "values": ["bar"]}]}}]}));
    let status = score(bad).unwrap_err();
    assert_eq!(status.code(), Code::Error);
    assert_eq!(
        status.message(),
        "[0].matchExpressions[0].key: Invalid value: \"invalid key\": name part must consist of \
         alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    );
}

#[test]
fn added_affinity_must_be_well_formed() {
    let error = |added| build(&args(added), &FeatureGates::default()).err().unwrap().to_string();
    let text = error(required(&[&["foo Near x"]]));
    assert!(
        text.starts_with(
            "parsing addedAffinity.requiredDuringSchedulingIgnoredDuringExecution: \
         nodeSelectorTerms[0].matchExpressions[0].operator"
        ),
        "{text}"
    );
    let text = error(preferred(&[(1, &["foo Near x"])]));
    assert!(
        text.starts_with(
            "parsing addedAffinity.preferredDuringSchedulingIgnoredDuringExecution: \
         [0].matchExpressions[0].operator"
        ),
        "{text}"
    );
}

#[test]
fn a_node_counts_when_it_comes_to_match() {
    let hint = |plugin: &Arc<dyn Plugin>, old: Option<&str>, new: &str| {
        let node = |text: &str| Object::from(decoded::<Node>(node("n", text)));
        let pod = info_of(json!({"spec": {"nodeSelector": {"foo": "bar"}}}));
        Cluster::default().hint(plugin, &pod, old.map(node), Some(node(new)))
    };
    let plain = affinity();
    assert_eq!(hint(&plain, None, ""), QueueingHint::Skip);
    assert_eq!(hint(&plain, None, "foo=bar"), QueueingHint::Queue);
    assert_eq!(hint(&plain, Some(""), "k=v"), QueueingHint::Skip);
    assert_eq!(hint(&plain, Some("foo=bar"), "k=v"), QueueingHint::Skip);
    assert_eq!(hint(&plain, Some(""), "foo=bar"), QueueingHint::Queue);
    assert_eq!(hint(&plain, Some("foo=bar"), "foo=bar k=v"), QueueingHint::Skip);
    let enforcing = plugin(build, &args(required(&[&["zone In a"]])));
    assert_eq!(hint(&enforcing, None, "foo=bar"), QueueingHint::Skip);
    assert_eq!(hint(&enforcing, None, "foo=bar zone=a"), QueueingHint::Queue);
    // The hint compares only the pod's own affinity, whatever the enforced one matches.
    assert_eq!(hint(&enforcing, Some("foo=bar"), "foo=bar zone=a"), QueueingHint::Skip);
}

#[test]
fn a_hint_on_an_affinity_that_cannot_be_parsed_is_an_error() {
    let new = Some(Object::from(decoded::<Node>(node("n", ""))));
    let objects = EventObjects { old: None, new };
    let pod = with_affinity(required(&[&["foo Near x"]]));
    assert!(Cluster::default().try_hint(&*affinity(), &pod, &objects).is_err());
}
