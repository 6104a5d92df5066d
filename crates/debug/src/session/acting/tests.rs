//! A session that acts on a remote cluster, its copies and its branches: only the session itself
//! sends.

use std::sync::Mutex;

use super::*;
use crate::edit::Edit;
use crate::fork::Branches;
use crate::session::StepOutcome;
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_framework::host::ExtenderCall;
use kubestep_framework::objects::Objects;
use kubestep_framework::testing::{key, node, pod};

/// A session that acts on a remote cluster with a node and the pods `a` and `b`.
fn session() -> Session {
    let mut session = session_with(None);
    session.act(None);
    session
}

fn session_with(config: Option<&str>) -> Session {
    let (registry, features) =
        (kubestep_scheduler_plugins::add_to(kubestep_plugins::registry()), FeatureGates::default());
    let config = config::resolve(config, &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, features, &registry).unwrap();
    world.mirror_remote();
    world.accept(node("n1").into());
    world.accept(pod("a").into());
    world.accept(pod("b").into());
    Session::new(world)
}

fn words(sent: &[Outgoing]) -> Vec<String> {
    sent.iter().map(|open| open.request.describe()).collect()
}

#[test]
fn stepping_runs_no_cycle_and_what_a_cycle_wrote_leaves_once() {
    let mut session = session();
    assert_eq!(session.step_into(), StepOutcome::AtEnd);
    assert_eq!(session.next_cycle(), StepOutcome::AtEnd);
    assert_eq!(session.run_cycle(), StepOutcome::NewCycle);
    assert_eq!(session.describe_unsent(), "bind default/a to n1");
    assert_eq!(words(&session.send()), ["bind default/a to n1"]);
    assert!(session.is_at_newest() && session.unsent().is_empty());
    assert!(session.send().is_empty());
    let last = session.timeline().steps().last().unwrap().input.clone().unwrap();
    assert_eq!(last.describe(), "sent: bind default/a to n1");
}

#[test]
fn no_copy_sends_anything_wherever_it_began() {
    let mut session = session();
    session.run_cycle();
    let mut copy = session.clone();
    assert!(!copy.acts() && copy.send().is_empty());
    let mut fork = session.fork();
    assert!(fork.world().api().is_local());
    let bound = |session: &Session| {
        let pod = session.world().api().objects().pod(key("a")).unwrap();
        pod.spec.node_name.to_string()
    };
    assert_eq!(bound(&fork), "n1", "what was held back counts as done there");
    assert_eq!(fork.run_cycle(), StepOutcome::NewCycle);
    assert!(fork.send().is_empty() && fork.unsent().is_empty());
    assert_eq!(bound(&session), "");
    session.send();
    // The past is replayed on copies: the state before the cycle has nothing to send.
    session.go_to_stop(0);
    assert!(session.unsent().is_empty());
    assert!(session.world_at_position().api().outbox().is_empty());
}

#[test]
fn extenders_bind_for_the_one_session_alone() {
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                  extenders: [{urlPrefix: \"http://x\", bindVerb: bind}]";
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let answers = |who: &'static str| -> ExtenderFn {
        let calls = calls.clone();
        Arc::new(move |call: &ExtenderCall, _: &Objects| {
            calls.lock().unwrap().push(format!("{who} {}", call.verb));
            Ok(serde_json::json!({}))
        })
    };
    let mut session = session_with(Some(config));
    session.world.api_mut().set_extenders(answers("copies"));
    session.act(Some(answers("real")));
    session.run_cycle();
    // The receiver of the writes calls the extender, not the cycle.
    assert!(
        session.describe_unsent().contains("through extender 0"),
        "{}",
        session.describe_unsent()
    );
    assert!(calls.lock().unwrap().is_empty());
    // A copy does not call it either; a branch is a cluster of its own and calls the extender
    // function of copies.
    session.clone().run_cycle();
    session.world_at_position().clone().step();
    assert!(calls.lock().unwrap().is_empty());
    session.fork().run_cycle();
    assert_eq!(*calls.lock().unwrap(), ["copies bind"]);
    session.run_cycle();
    let sent = session.send().into_iter().map(|outgoing| outgoing.request.describe());
    assert_eq!(sent.filter(|words| words.contains("through extender 0")).count(), 2);
    // A replay does not call it.
    session.go_to_stop(1);
    session.world_at_position();
    assert_eq!(calls.lock().unwrap().len(), 1);
}

#[test]
fn an_edit_goes_to_a_branch_and_back_on_the_original_all_is_as_it_was() {
    let (mut session, mut branches) = (session(), Branches::default());
    session.run_cycle();
    let edit: Edit = "cordon node n1".parse().unwrap();
    let (_, forked) = branches.edit(&mut session, edit).unwrap();
    assert_eq!(forked.as_deref(), Some("what-if-1"));
    assert!(!session.acts());
    session.run_cycle();
    assert!(session.send().is_empty());
    assert_eq!(branches.undo(&mut session).unwrap(), "cordon node n1");
    assert!(branches.undo(&mut session).is_err(), "that it is alone cannot be undone");
    branches.switch(&mut session, "original").unwrap();
    assert!(session.acts());
    assert_eq!(words(&session.send()), ["bind default/a to n1"]);
}
