use super::*;

fn rejection(reasons: &[&str], is_after_opaque: bool) -> Option<Rejection> {
    let reasons = reasons.iter().map(|reason| Symbol::new(reason)).collect();
    Some(Rejection { reasons, is_after_opaque })
}

/// Nodes n0, n1, … with what known plugins say.
fn known(nodes: &[Option<Rejection>]) -> KnownVerdicts {
    let named = nodes.iter().cloned().enumerate();
    KnownVerdicts {
        opaque: vec!["Mine".into()],
        nodes: named.map(|(at, own)| (Name::new(&format!("n{at}")), own)).collect(),
        pre_filter: None,
    }
}

fn names(nodes: &[Name]) -> Vec<String> {
    nodes.iter().map(|node| node.to_string()).collect()
}

#[test]
fn what_known_plugins_do_not_explain_is_left() {
    let cpu = || rejection(&["Insufficient cpu"], false);
    let known = known(&[None, cpu(), None, cpu()]);
    let learned =
        learn(&known, "0/4 nodes are available: 2 Insufficient cpu, 2 wrong moon.").unwrap();
    assert_eq!(learned.contradictions, Vec::<String>::new());
    assert_eq!((learned.at_least, learned.at_most), (2, 2));
    assert_eq!(names(&learned.nodes), ["n0", "n2"]);
    assert_eq!(learned.lines(), ["Mine rejected 2 nodes: wrong moon", "certain: n0, n2"]);
}

#[test]
fn a_plugin_that_runs_before_takes_nodes_from_those_after_it() {
    let cpu = || rejection(&["Insufficient cpu"], true);
    let both = || rejection(&["Insufficient cpu", "Insufficient memory"], true);
    let known = known(&[None, cpu(), cpu(), both()]);
    let message = "0/4 nodes are available: 1 Insufficient cpu, 3 wrong moon.";
    let learned = learn(&known, message).unwrap();
    assert_eq!(learned.contradictions, Vec::<String>::new());
    assert_eq!((learned.at_least, learned.at_most), (3, 3));
    // No memory is missing any more, so n3 was taken, and one of the two others.
    assert_eq!(names(&learned.nodes), ["n0", "n3"]);
    assert_eq!(names(&learned.among), ["n1", "n2"]);
}

#[test]
fn several_reasons_of_one_node_leave_a_range() {
    let known = known(&[None, None, None]);
    let learned = learn(&known, "0/3 nodes are available: 2 a, 3 b.").unwrap();
    assert_eq!((learned.at_least, learned.at_most), (3, 3));
    let wide = KnownVerdicts { nodes: known.nodes[..2].to_vec(), ..known };
    let learned = learn(&wide, "0/2 nodes are available: 1 a, 1 b.").unwrap();
    assert_eq!((learned.at_least, learned.at_most), (2, 2));
}

#[test]
fn numbers_that_do_not_add_up_are_reported() {
    let cpu = || rejection(&["Insufficient cpu"], false);
    let all = known(&[None, None, cpu()]);
    let contradictions = |message: &str| learn(&all, message).unwrap().contradictions;
    assert_eq!(
        contradictions("0/3 nodes are available: 1 Insufficient cpu, 1 wrong moon."),
        ["2 nodes must have been rejected by opaque plugins, but 1 rejection is left"]
    );
    assert_eq!(
        contradictions("0/3 nodes are available: 3 wrong moon."),
        [
            "0 nodes there, 1 here: Insufficient cpu",
            "2 nodes must have been rejected by opaque plugins, but 3 rejections are left"
        ],
        "the plugin runs behind the known one"
    );
    assert_eq!(
        contradictions("0/4 nodes are available: 1 Insufficient cpu, 2 wrong moon."),
        ["the message is about 4 nodes, here are 3"]
    );
    assert_eq!(
        contradictions("0/3 nodes are available: 3 Insufficient cpu."),
        ["3 nodes there, 1 here: Insufficient cpu"],
        "the plugin may use the same words, or the cluster was another"
    );
}

#[test]
fn pre_filter_and_the_points_after_the_selection() {
    let known = known(&[None, None]);
    let learned = learn(&known, "0/2 nodes are available: quota is over.").unwrap();
    assert_eq!(learned.lines(), ["Mine rejected the pod at PreFilter: quota is over"]);
    let learned = learn(&known, "0/1 nodes are available: 1 no lease.").unwrap();
    assert_eq!(learned.at, ReportingPoint::AfterSelection);
    let cpu = || rejection(&["Insufficient cpu"], true);
    let full = self::known(&[cpu(), cpu()]);
    let learned = learn(&full, "0/2 nodes are available: 2 Insufficient cpu.").unwrap();
    assert!(!learned.is_spoken() && !learned.contradicts());
}
