//! Selectors against labels, nodes and taints.

use super::*;
use crate::{Node, Pod, Taint, Toleration};

fn from_yaml<T: serde::de::DeserializeOwned>(text: &str) -> T {
    crate::yaml::from_str(text).unwrap()
}

fn labels(text: &str) -> Labels {
    from_yaml(text)
}

fn compile(text: &str) -> Result<Selector, SelectorErrors> {
    Selector::new(Some(&from_yaml(text)))
}

#[test]
fn absent_selects_nothing_and_empty_everything() {
    assert_eq!(Selector::new(None), Ok(Selector::Nothing));
    assert_eq!(compile("{}"), Ok(Selector::Everything));
    assert!(!Selector::Nothing.matches(&labels("{a: b}")));
    assert!(Selector::Everything.matches(&Labels::new()));
}

#[test]
fn operators_on_present_and_absent_labels() {
    let labels = labels("{app: web, level: '5', word: x}");
    let cases = [
        ("app=web", true),
        ("app!=web", false),
        ("zone!=a", true),
        ("app in (web,db)", true),
        ("app in (db)", false),
        ("zone in (a)", false),
        ("app notin (db)", true),
        ("app notin (web)", false),
        ("zone notin (a)", true),
        ("app", true),
        ("zone", false),
        ("!app", false),
        ("!zone", true),
        ("level>4", true),
        ("level>5", false),
        ("level<6", true),
        ("word>1", false),
        ("zone<1", false),
        ("app=web,level in (5),!zone", true),
        ("app=web,level in (6)", false),
        ("", true),
    ];
    for (text, expected) in cases {
        assert_eq!(Selector::parse(text).unwrap().matches(&labels), expected, "{text}");
    }
}

#[test]
fn prints_sorted_by_key() {
    let selector = compile(
        "{matchLabels: {b: x}, matchExpressions: [{key: a, operator: NotIn, values: [z, y]}, {key: c, operator: Exists}]}",
    );
    assert_eq!(selector.unwrap().to_string(), "a notin (y,z),b=x,c");
    assert_eq!(Selector::Nothing.to_string(), "<none>");
    assert_eq!(Selector::parse("a=b,!c,d>3").unwrap().to_string(), "a=b,!c,d>3");
}

#[test]
fn what_the_api_refuses_is_an_error() {
    let cases = [
        (
            "{matchExpressions: [{key: a, operator: Has}]}",
            r#""Has" is not a valid label selector operator"#,
        ),
        (
            "{matchExpressions: [{key: a, operator: In}]}",
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            "{matchExpressions: [{key: a, operator: Exists, values: [b, c]}]}",
            r#"values: Invalid value: ["b","c"]: values set must be empty for exists and does not exist"#,
        ),
    ];
    for (text, error) in cases {
        assert_eq!(compile(text).unwrap_err().to_string(), error);
    }
    assert_eq!(
        Selector::parse("a in b").unwrap_err().to_string(),
        r#"label selector "a in b": values of "a" must stand in parentheses"#
    );
    assert!(Selector::parse("a=b,,c").is_err());
    assert!(Selector::parse("a=b c").is_err());
}

#[test]
fn narrowing_keeps_nothing_nothing() {
    let more = || Requirement::unchecked("k".into(), Operator::Equals, vec!["v".into()]);
    assert_eq!(Selector::Nothing.and([more()]), Selector::Nothing);
    assert_eq!(Selector::Everything.and([more()]).to_string(), "k=v");
    assert_eq!(Selector::parse("z=1").unwrap().and([more()]).to_string(), "k=v,z=1");
}

fn node_matches(selector: &str, node: &Node) -> Result<bool, SelectorErrors> {
    let pod: Pod = from_yaml(&format!("{{spec: {selector}}}"));
    RequiredNodeAffinity::of(&pod).matches(&node.metadata.labels, node.metadata.name)
}

fn affinity(terms: &str) -> String {
    format!(
        "{{affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: {terms}}}}}}}}}"
    )
}

#[test]
fn node_terms_are_ored_and_their_parts_anded() {
    let node: Node = from_yaml("{metadata: {name: n1, labels: {zone: a, cpus: '8'}}}");
    let zone = |zone: &str| format!("{{key: zone, operator: In, values: [{zone}]}}");
    let name = |name: &str| format!("{{key: metadata.name, operator: In, values: [{name}]}}");
    let cases = [
        ("{}".to_string(), true),
        ("{nodeSelector: {zone: a}}".to_string(), true),
        ("{nodeSelector: {zone: b}}".to_string(), false),
        (affinity("[]"), false),
        (affinity("[{}]"), false),
        (affinity(&format!("[{{}}, {{matchExpressions: [{}]}}]", zone("a"))), true),
        (affinity(&format!("[{{matchExpressions: [{}]}}]", zone("b"))), false),
        (affinity(&format!("[{{matchFields: [{}]}}]", name("n1"))), true),
        (
            affinity(&format!(
                "[{{matchExpressions: [{}], matchFields: [{}]}}]",
                zone("b"),
                name("n1")
            )),
            false,
        ),
        (affinity("[{matchExpressions: [{key: cpus, operator: Gt, values: ['7']}]}]"), true),
        (
            affinity(
                "[{matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]}, {matchFields: [{key: other, operator: NotIn, values: [x]}]}]",
            ),
            true,
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(node_matches(&spec, &node), Ok(expected), "{spec}");
    }
}

#[test]
fn broken_node_terms_match_nothing_and_tell_only_if_nothing_else_matched() {
    let node: Node = from_yaml("{metadata: {name: n1, labels: {zone: a}}}");
    let broken = "{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}";
    let good = "{matchExpressions: [{key: zone, operator: Exists}]}";
    let error = "nodeSelectorTerms[0].matchFields[0].values: Invalid value: [\"a\",\"b\"]: must have one element";
    assert_eq!(
        node_matches(&affinity(&format!("[{broken}]")), &node),
        Err(SelectorErrors(vec![error.into()]))
    );
    assert_eq!(node_matches(&affinity(&format!("[{broken}, {good}]")), &node), Ok(true));
    let operator = node_matches(
        &affinity("[{matchExpressions: [{key: a, operator: Like, values: [b]}]}]"),
        &node,
    );
    assert_eq!(
        operator.unwrap_err().to_string(),
        r#"nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Like": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt""#
    );
}

#[test]
fn the_unmet_parts_of_each_term_are_those_that_decide() {
    let node: Node = from_yaml("{metadata: {name: n1, labels: {zone: a, cpus: '8'}}}");
    let selector = from_yaml(
        "{nodeSelectorTerms: [
          {matchExpressions: [{key: zone, operator: In, values: [b]}, {key: cpus, operator: Exists}],
           matchFields: [{key: metadata.name, operator: In, values: [n2]}]},
          {},
          {matchExpressions: [{key: cpus, operator: Gt, values: [many]}]},
          {matchExpressions: [{key: cpus, operator: Gt, values: ['7']}]}]}",
    );
    let matcher = NodeMatcher::new(&selector, "");
    let unmet = |name: &str| -> Vec<(usize, Vec<UnmetPart>)> {
        let terms = matcher.unmet(&node.metadata.labels, name.into());
        terms.map(|(term, parts)| (term, parts.collect())).collect()
    };
    let (first, name) = (UnmetPart::Expression(0), UnmetPart::Field(0));
    assert_eq!(unmet("n1"), [(0, vec![first, name]), (2, vec![first]), (3, vec![])]);
    assert_eq!(unmet("")[0], (0, vec![first]));
    let selector = Selector::from_labels(&from_yaml("{zone: b, cpus: '8', disk: ssd}"));
    let keys = selector.unmet(&node.metadata.labels).map(|at| selector.requirements()[at].key);
    assert_eq!(keys.collect::<Vec<_>>(), ["disk", "zone"]);
}

#[test]
fn preferences_add_up_their_weights() {
    let node: Node = from_yaml("{metadata: {name: n1, labels: {zone: a, disk: ssd}}}");
    let terms: Vec<crate::PreferredSchedulingTerm> = from_yaml(
        "[{weight: 5, preference: {matchExpressions: [{key: zone, operator: In, values: [a]}]}},
          {weight: 7, preference: {matchExpressions: [{key: disk, operator: Exists}]}},
          {weight: 9, preference: {matchExpressions: [{key: gpu, operator: Exists}]}},
          {weight: 0, preference: {matchExpressions: [{key: a, operator: Like}]}},
          {weight: 3, preference: {}}]",
    );
    let preferred = PreferredTerms::new(&terms).unwrap();
    assert_eq!(preferred.score(&node.metadata.labels, node.metadata.name), 12);
    let verdicts: Vec<_> = preferred.verdicts(&node.metadata.labels, node.metadata.name).collect();
    assert_eq!(verdicts, [(5, true), (7, true), (9, false)]);
}

fn tolerated(toleration: &str, taint: &str, comparisons: bool) -> bool {
    let (toleration, taint): (Toleration, Taint) = (from_yaml(toleration), from_yaml(taint));
    tolerates(&toleration, &taint, comparisons)
}

#[test]
fn tolerations_match_by_effect_key_and_operator() {
    let taint = "{key: gpu, value: '8', effect: NoSchedule}";
    let cases = [
        ("{key: gpu, value: '8', effect: NoSchedule}", true),
        ("{key: gpu, operator: Equal, value: '8'}", true),
        ("{key: gpu, operator: Equal, value: '9'}", false),
        ("{key: gpu, operator: Exists}", true),
        ("{operator: Exists}", true),
        ("{operator: Exists, effect: NoExecute}", false),
        ("{value: '8'}", true),
        ("{key: cpu, operator: Exists}", false),
        ("{key: gpu, operator: Like, value: '8'}", false),
        ("{key: gpu, operator: Gt, value: '5'}", false),
    ];
    for (toleration, expected) in cases {
        assert_eq!(tolerated(toleration, taint, false), expected, "{toleration}");
    }
}

#[test]
fn comparing_tolerations_need_their_gate_and_plain_integers() {
    let taint = "{key: gpu, value: '8', effect: NoSchedule}";
    let cases = [
        ("{key: gpu, operator: Gt, value: '5'}", true),
        ("{key: gpu, operator: Gt, value: '8'}", false),
        ("{key: gpu, operator: Lt, value: '9'}", true),
        ("{key: gpu, operator: Lt, value: '+9'}", false),
        ("{key: gpu, operator: Lt, value: '09'}", false),
        ("{key: gpu, operator: Lt, value: many}", false),
    ];
    for (toleration, expected) in cases {
        assert_eq!(tolerated(toleration, taint, true), expected, "{toleration}");
    }
}

#[test]
fn the_first_untolerated_taint_is_found() {
    let taints: Vec<Taint> = from_yaml(
        "[{key: a, effect: NoSchedule}, {key: b, effect: PreferNoSchedule}, {key: c, effect: NoExecute}]",
    );
    let tolerations: Vec<Toleration> = from_yaml("[{key: a, operator: Exists}]");
    let all = find_untolerated_taint(&taints, &tolerations, false, |_| true);
    assert_eq!(all.unwrap().key, "b");
    let hard = find_untolerated_taint(&taints, &tolerations, false, |taint| {
        taint.effect != crate::TaintEffect::PreferNoSchedule
    });
    assert_eq!(hard.unwrap().key, "c");
}

#[test]
fn keys_and_values_are_rejected_in_the_apis_words() {
    let name = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
                used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                     characters, '-' or '.', and must start and end with an alphanumeric character \
                     (e.g. 'example.com', regex used for validation is \
                     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let long = "x".repeat(64);
    for (key, reason) in [
        ("", format!("name part must be non-empty; name part {name}")),
        ("-a", format!("name part {name}")),
        (&long, "name part must be no more than 63 bytes".to_owned()),
        ("/a", "prefix part must be non-empty".to_owned()),
        ("Ex.com/a", format!("prefix part {subdomain}")),
        (
            "a/b/c",
            format!(
                "a valid label key {name} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            ),
        ),
    ] {
        let errors = Requirement::new(key.into(), Operator::Exists, vec![], "p").unwrap_err();
        assert_eq!(errors, [format!("p.key: Invalid value: {key:?}: {reason}")]);
    }
    let errors = Requirement::new("a".into(), Operator::In, vec!["b!".into()], "p").unwrap_err();
    assert_eq!(
        errors,
        [
            "p.values[0][a]: Invalid value: \"b!\": a valid label must be an empty string or consist of \
          alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
          character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
          '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        ]
    );
}

#[test]
fn the_same_error_twice_is_reported_once() {
    assert_eq!(join_errors(&["a".into(), "a".into()]), "a");
    assert_eq!(join_errors(&["a".into(), "b".into(), "a".into()]), "[a, b]");
}
