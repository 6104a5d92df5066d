//! How plugins run: the effect on the others when one fails, skips or narrows the nodes.

use crate::cycle_state::CycleState;
use crate::node::NodeId;
use crate::plugin::BindContext;
use crate::record::ScoreRecord;
use crate::registry::Registry;
use crate::runtime::scoring::CachedScores;
use crate::runtime::{Framework, PreFilterOutcome};
use crate::status::node_statuses::NodeStatuses;
use crate::status::{Code, Status};
use crate::testing::scripted::{Scripted, register};
use crate::testing::{Cluster, FakeHost, PodBuilder, framework_of, info, node, pod};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint::{self, *};
use kubestep_config::{FeatureGates, KubeVersion};

fn framework(plugins: &[&Scripted]) -> Framework {
    let mut registry = Registry::default();
    register(&mut registry, plugins);
    framework_of(&registry)
}

fn at(name: &'static str, point: ExtensionPoint) -> Scripted {
    Scripted::new(name, &[point])
}

fn pre_filter(plugins: &[&Scripted]) -> (PreFilterOutcome, CycleState) {
    let (cluster, pod, mut state) =
        (Cluster::new([node("n1")], []), info(pod("p")), CycleState::default());
    let outcome = framework(plugins).run_pre_filter(&cluster.cx(&pod), &mut state);
    (outcome, state)
}

fn narrowing(name: &'static str, nodes: &[&str]) -> Scripted {
    let nodes = nodes.iter().map(|node| Name::new(node)).collect();
    Scripted { narrows_to: Some(nodes), ..at(name, PreFilter) }
}

#[test]
fn plugins_that_narrow_leave_what_all_of_them_name() {
    let all = at("All", PreFilter);
    let nodes = |plugins: &[&Scripted]| pre_filter(plugins).0.nodes;
    let named = |names: &[&str]| Some(names.iter().map(|name| Name::new(name)).collect());
    assert_eq!(nodes(&[&all]), None);
    let (first, second) = (narrowing("A", &["n1", "n2"]), narrowing("B", &["n2", "n3"]));
    assert_eq!(nodes(&[&all, &first]), named(&["n1", "n2"]));
    assert_eq!(nodes(&[&first, &all, &second]), named(&["n2"]));
    let third = narrowing("C", &["n9"]);
    let (outcome, _) = pre_filter(&[&first, &third]);
    assert_eq!((outcome.nodes, outcome.narrowed_by.len()), (named(&[]), 2));
    assert_eq!(outcome.status.message(), "node(s) didn't satisfy plugin(s) [A C] simultaneously");
    let (outcome, _) = pre_filter(&[&narrowing("D", &[])]);
    assert_eq!(outcome.status.message(), "node(s) didn't satisfy plugin D");
}

#[test]
fn pre_filter_has_no_other_way_to_fail_than_refusing() {
    for code in [Code::Error, Code::Wait, Code::Pending] {
        let odd = at("Odd", PreFilter).says(PreFilter, Status::new(code, "odd"));
        let (outcome, _) = pre_filter(&[&odd]);
        let expected = Status::error("running PreFilter plugin \"Odd\": odd").by("Odd".into());
        assert_eq!(outcome.status, expected, "{code}");
    }
}

#[test]
fn who_skipped_is_known_however_pre_filter_ends() {
    let skips = at("Skips", PreFilter).says(PreFilter, Status::skip());
    for status in [
        Status::error("broken"),
        Status::unschedulable("full"),
        Status::unresolvable("never"),
        Status::SUCCESS,
    ] {
        let other = at("Other", PreFilter).says(PreFilter, status);
        let (_, state) = pre_filter(&[&skips, &other]);
        assert_eq!(state.skip_filter, [Symbol::new("Skips")]);
    }
    let nowhere = narrowing("Nowhere", &[]);
    assert_eq!(pre_filter(&[&skips, &nowhere]).1.skip_filter, [Symbol::new("Skips")]);
}

#[test]
fn an_error_in_the_pass_with_nominated_pods_ends_the_filter() {
    let mut cluster = Cluster::new([node("n1")], []);
    cluster.nominated.push("n1".into(), info(pod("nominated").priority(9)));
    let pod = info(pod("p"));
    let filtered = |plugin: &Scripted| {
        let framework = framework(&[plugin]);
        let (cx, state) = (cluster.cx(&pod), CycleState::default());
        framework.run_filter_with_nominated(&cx, &state, cluster.node("n1"))
    };
    let broken = at("Broken", Filter).says(Filter, Status::error("broken"));
    let expected = Status::error("running \"Broken\" filter plugin: broken").by("Broken".into());
    assert_eq!(filtered(&broken), expected);
    assert_eq!(broken.asked(), ["Filter p"], "the second pass is left out");
    let adds =
        Scripted { add_pod: Status::error("no"), ..Scripted::new("Adds", &[PreFilter, Filter]) };
    let text = "running AddPod on PreFilter plugin \"Adds\": no";
    assert_eq!(filtered(&adds), Status::error(text));
    assert!(adds.asked().is_empty());
    let passes = at("Passes", Filter);
    assert_eq!(filtered(&passes), Status::SUCCESS);
    assert_eq!(passes.asked().len(), 2);
}

#[test]
fn post_filters_are_left_out_where_they_are_not_wanted() {
    let (cluster, pod) = (Cluster::new([node("n1")], []), info(pod("p")));
    let plugin = at("Evicts", PostFilter);
    let framework = framework(&[&plugin]);
    let mut state = CycleState::default();
    let run = |state: &CycleState| {
        let statuses = NodeStatuses::default();
        framework.run_post_filter(
            cluster.cx(&pod),
            state,
            &statuses,
            &mut FakeHost::default(),
            None,
        )
    };
    assert_eq!(run(&state).status, Status::SUCCESS);
    assert_eq!(plugin.asked().len(), 1);
    state.skip_post_filters = true;
    let outcome = run(&state);
    assert_eq!(outcome.status, Status::unschedulable("All PostFilter plugins are skipped"));
    assert_eq!((outcome.answer.nominate, plugin.asked().len()), (None, 0));
}

/// Score with a plugin that gives these raw scores, or fails, after one that does not.
fn score(plugin: &Scripted) -> Status {
    let (cluster, pod) = (Cluster::new([node("n1"), node("n2")], []), info(pod("p")));
    let framework = framework(&[&at("First", Score), plugin]);
    let (cx, state) = (cluster.cx(&pod), CycleState::default());
    let ids = [NodeId(0), NodeId(1)];
    let raw = |plugin: &dyn crate::plugin::Plugin| {
        let nodes = ids.iter().filter_map(|id| cluster.snapshot.get(*id));
        nodes.map(|node| plugin.score(&cx, &state, node)).collect()
    };
    let mut record = ScoreRecord::default();
    let status =
        framework.run_score(&cx, &state, &ids.into(), CachedScores::none(2), raw, &mut record);
    let scored = if status.is_success() { 2 } else { 0 };
    assert_eq!(record.totals.len(), scored);
    // What was scored before the failure stays in the record.
    assert_eq!(record.plugins.len(), scored.max(1));
    status
}

#[test]
fn a_score_plugin_that_fails_ends_scoring() {
    let broken = at("Broken", Score).says(Score, Status::error("no"));
    let text = "running Score plugins: plugin \"Broken\" failed with: no";
    assert_eq!(score(&broken), Status::error(text));
    assert_eq!(broken.asked().len(), 1);
    let odd = Scripted { normalize: Status::error("no"), ..at("Odd", Score) };
    let text = "running Normalize on Score plugins: plugin \"Odd\" failed with: no";
    assert_eq!(score(&odd), Status::error(text));
    assert_eq!(score(&at("Fine", Score)), Status::SUCCESS);
}

/// Calls `run` with a framework of these plugins, to bind a pod.
fn binding<T>(
    plugins: &[&Scripted],
    run: impl FnOnce(&Framework, &mut BindContext<'_>, &mut CycleState) -> T,
) -> T {
    binding_in(FeatureGates::default(), plugins, run)
}

fn binding_in<T>(
    features: FeatureGates,
    plugins: &[&Scripted],
    run: impl FnOnce(&Framework, &mut BindContext<'_>, &mut CycleState) -> T,
) -> T {
    let mut cluster = Cluster { features, ..Cluster::new([node("n1")], []) };
    let pod = info(pod("p"));
    let mut host = FakeHost::default();
    let mut cx = cluster.binding(&pod, "n1", &mut host);
    run(&framework(plugins), &mut cx, &mut CycleState::default())
}

/// PreFlight of these plugins, and those that skip PreBind.
fn pre_flight(plugins: &[&Scripted]) -> (Status, Vec<Symbol>) {
    binding(plugins, |framework, cx, state| {
        let status = framework.run_pre_bind_pre_flight(cx, state);
        (status, state.skip_pre_bind.clone())
    })
}

/// Upstream's getPreBindPluginGroups: those that allow it run while an adjacent one waits.
#[test]
fn pre_bind_goes_on_with_the_neighbours_of_a_plugin_that_waits() {
    let plugin = |name, parallel| Scripted {
        pre_flight: Some(Status::SUCCESS),
        parallel,
        ..at(name, PreBind)
    };
    let waits = |parallel| plugin("Waits", parallel).says(PreBind, Status::wait());
    let ran = |plugins: &[&Scripted], with_pre_flight: bool| {
        binding(plugins, |framework, cx, state| {
            if with_pre_flight {
                framework.run_pre_bind_pre_flight(cx, state);
            }
            let rounds = [(); 2].map(|()| {
                let (answers, status) = framework.run_pre_bind(cx, state);
                assert!(status.is_wait());
                assert_eq!(status.plugin(), "Waits");
                answers.iter().map(|answer| answer.plugin.as_str()).collect::<Vec<_>>().join(" ")
            });
            rounds.join(", ")
        })
    };
    let (beside, last) = (plugin("Beside", true), plugin("Last", false));
    assert_eq!(ran(&[&waits(true), &beside, &last], true), "Waits Beside, Waits");
    assert_eq!(ran(&[&waits(true), &beside, &last], false), "Waits, Waits");
    assert_eq!(ran(&[&waits(true), &last, &beside], true), "Waits, Waits");
    assert_eq!(ran(&[&waits(false), &beside, &last], true), "Waits, Waits");
    assert_eq!(ran(&[&beside, &waits(true), &last], true), "Beside Waits, Waits");
}

#[test]
fn up_to_1_35_pre_bind_waits_for_the_plugin_before() {
    let plugin =
        |name| Scripted { pre_flight: Some(Status::SUCCESS), parallel: true, ..at(name, PreBind) };
    let (waits, beside) = (plugin("Waits").says(PreBind, Status::wait()), plugin("Beside"));
    let ran = [35, 36].map(|minor| {
        let features = FeatureGates::of(KubeVersion::of_minor(minor).unwrap());
        binding_in(features, &[&waits, &beside], |framework, cx, state| {
            framework.run_pre_bind_pre_flight(cx, state);
            framework.run_pre_bind(cx, state).0.len()
        })
    });
    assert_eq!(ran, [1, 2]);
}

#[test]
fn the_pre_flight_asks_who_has_something_to_do() {
    let flies = |name, status| Scripted { pre_flight: Some(status), ..at(name, PreBind) };
    assert_eq!(pre_flight(&[]), (Status::skip(), vec![]));
    let skips = flies("Skips", Status::skip());
    assert_eq!(pre_flight(&[&skips]), (Status::skip(), vec!["Skips".into()]));
    let works = flies("Works", Status::SUCCESS);
    assert_eq!(pre_flight(&[&works, &skips]), (Status::SUCCESS, vec!["Skips".into()]));
    let broken = flies("Broken", Status::error("no"));
    let (status, skipping) = pre_flight(&[&skips, &broken]);
    let text = "running PreBindPreFlight \"Broken\": no";
    assert_eq!((status.code(), status.message(), skipping), (Code::Error, text.into(), vec![]));
    let odd = flies("Odd", Status::unschedulable("no"));
    let (status, _) = pre_flight(&[&odd]);
    assert_eq!(
        (status.code(), status.message()),
        (
            Code::Error,
            "PreBindPreFlight Odd returned \"Unschedulable\", which is unsupported. It is \
             supposed to return Success, Skip, or Error status"
                .into()
        )
    );
}
