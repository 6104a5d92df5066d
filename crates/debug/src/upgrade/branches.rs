//! What the version changes between two branches of a session that decide as different versions, or
//! for all that was done in one branch.
//!
//! The branch that changed the version runs again from there, with other gates in place of those
//! that the change set; one branch alone runs again from its beginning. All its other inputs stay,
//! so what differs is the version's doing alone.

use std::sync::Arc;

use super::{RunError, RunVersion, Upgrade, compare};
use crate::Session;
use crate::diff::Pair;
use crate::edit::{EditError, configuration};
use crate::input::{Change, Input};
use kubestep_cluster::World;
use kubestep_config::FeatureGates;

/// Maximum number of cycles for a branch that has nothing left to schedule.
const UNTIL_IDLE: usize = 1_000_000;

/// The gates that decide at the end of a session.
pub fn gates(session: &Session) -> FeatureGates {
    *session.world().scheduler().features()
}

/// How many cycles a session needs in all to be as far as `other`: as many as that one had, or
/// until nothing is left if nothing is left there.
pub fn cycles_as_far_as(other: &Session) -> usize {
    match other.world().scheduler().queue().is_idle() {
        true => UNTIL_IDLE,
        false => other.history().cycle_count(),
    }
}

/// What the version changes from branch `a` to branch `b`, in about `limit` runs. `None` if both
/// decide as the same version. `go_on` gets the number of runs, and ends the search if it returns
/// false.
///
/// # Errors
/// One of the branches cannot run with the other one's version.
pub fn between_branches(
    a: &Session,
    b: &Session,
    limit: usize,
    go_on: &dyn Fn(usize) -> bool,
) -> Option<Result<Upgrade, RunError>> {
    let gates = Pair { a: gates(a), b: gates(b) };
    if gates.a.version_words() == gates.b.version_words() {
        return None;
    }
    let replays = [a, b].into_iter().filter_map(BranchReplay::of);
    let replay = replays.max_by_key(|replay| replay.step)?;
    let runs = std::cell::Cell::new(0);
    let run: &RunVersion<'_> = &|gates| {
        runs.set(runs.get() + 1);
        replay.run(gates, &|| go_on(runs.get()))
    };
    Some(compare(gates.a, gates.b, run, limit))
}

/// What an upgrade changes for a branch: everything that was done in it is done again under each
/// version, and what is left is scheduled. Runs and `go_on` are as in [`between_branches`].
///
/// # Errors
/// The branch cannot run with one of the versions.
pub fn of_branch(
    session: &Session,
    versions: Pair<FeatureGates>,
    limit: usize,
    go_on: &dyn Fn(usize) -> bool,
) -> Result<Upgrade, RunError> {
    let replay = BranchReplay::from_beginning(session);
    let runs = std::cell::Cell::new(0);
    let run: &RunVersion<'_> = &|gates| {
        runs.set(runs.get() + 1);
        replay.run(gates, &|| go_on(runs.get()))
    };
    compare(versions.a, versions.b, run, limit)
}

/// A branch that can run again with other gates.
struct BranchReplay {
    /// The step that set the gates, or the first one.
    step: usize,
    /// The branch before it.
    before: Session,
    /// The inputs after it.
    after: Vec<Input>,
    /// How many cycles it has in all; `None` runs it to its end.
    cycles: Option<usize>,
}

impl BranchReplay {
    /// `None` if nothing in the session sets the gates.
    fn of(session: &Session) -> Option<BranchReplay> {
        let sets = |input: &Input| matches!(input, Input::Change(change) if change.sets_gates());
        let steps = session.timeline().steps();
        let mut found = steps.numbered().rev();
        let (step, _) = found.find(|(_, step)| step.input.as_ref().is_some_and(sets))?;
        let after = steps.from(step + 1).filter_map(|step| step.input.clone()).collect();
        let before = state_after(session, step.checked_sub(1)?);
        Some(BranchReplay { step, before, after, cycles: Some(cycles_as_far_as(session)) })
    }

    /// All that the session remembers. Changes of the version are left out.
    fn from_beginning(session: &Session) -> BranchReplay {
        let steps = session.timeline().steps();
        let step = steps.start();
        let stays = |input: &Input| !matches!(input, Input::Change(change) if change.sets_gates());
        let after = steps.from(step + 1).filter_map(|step| step.input.clone()).filter(stays);
        let (before, after) = (state_after(session, step), after.collect());
        BranchReplay { step, before, after, cycles: None }
    }

    /// The branch as it is with these gates.
    fn run(&self, gates: FeatureGates, go_on: &dyn Fn() -> bool) -> Result<Session, RunError> {
        let rejected = |error: EditError| RunError::Rejected(error.to_string());
        let stopped = || Err(RunError::Stopped);
        let mut session = self.before.clone();
        session.change(Arc::new(SetGates(gates))).map_err(rejected)?;
        for input in &self.after {
            if !go_on() {
                return stopped();
            }
            session.apply(input.clone()).map_err(rejected)?;
        }
        match self.cycles {
            Some(cycles) => {
                let missing = cycles.saturating_sub(session.history().cycle_count());
                session.run_until_idle(missing, |_| !go_on());
            }
            None => {
                let ran = session.run_to_end(UNTIL_IDLE, |_| !go_on());
                if session.is_cut(ran, UNTIL_IDLE) {
                    let text = format!("not idle after {UNTIL_IDLE} scheduling cycles");
                    return Err(RunError::Rejected(text));
                }
            }
        }
        if go_on() { Ok(session) } else { stopped() }
    }
}

/// A copy of the session as it was after a step, which only goes forward.
fn state_after(session: &Session, step: usize) -> Session {
    let mut before = session.clone();
    before.detach();
    before.go_to_stop(before.timeline().last_stop_of(step));
    before.cut();
    before.only_forward();
    before
}

/// Gates that are between two versions.
#[derive(Debug)]
struct SetGates(FeatureGates);

impl Change for SetGates {
    fn describe(&self) -> String {
        format!("kube-version {}", self.0.version_words())
    }

    fn apply(&self, world: &mut World) -> Result<(), EditError> {
        configuration::set_gates(world, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::Edit;
    use crate::edit::tests::{NODES, container, world_with};
    use crate::upgrade::{Aspect, CausingChanges};
    use kubestep_config::versions::{Switch, VersionChange};
    use kubestep_config::{Feature, KubeVersion};
    use kubestep_framework::testing::key;

    fn edited(session: &Session, line: &str) -> Session {
        let mut branch = session.clone();
        branch.change(Arc::new(line.parse::<Edit>().unwrap())).unwrap();
        branch
    }

    /// A session of 1.33 with a pod that requests more than any node has.
    fn original() -> Session {
        let container = container("resources: {requests: {cpu: 9}}");
        let pod = format!("---\n{{kind: Pod, metadata: {{name: large}}, spec: {{{container}}}}}\n");
        let gates = FeatureGates::of(KubeVersion::of_minor(33).unwrap());
        Session::new(world_with(&format!("{NODES}{pod}"), gates))
    }

    fn run(mut session: Session) -> Session {
        session.run_until_idle(50, |_| false);
        session
    }

    fn search(a: &Session, b: &Session) -> Option<Upgrade> {
        between_branches(a, b, 100, &|_| true).transpose().unwrap()
    }

    #[test]
    fn the_responsible_changes_are_named_in_both_directions() {
        let a = run(original());
        let b = run(edited(&original(), "kube-version 1.34"));
        let unresolvable = VersionChange::Switch(Switch::RequestAboveAllocatableUnresolvable);
        let devices = VersionChange::Gate(Feature::DynamicResourceAllocation);
        let answered = VersionChange::Switch(Switch::ClaimlessPodsAnswered);
        // Without the gate, the plugin does not run, and its switch has no effect.
        let cases = [
            (&a, &b, vec![unresolvable, answered, devices]),
            (&b, &a, vec![unresolvable, devices]),
        ];
        for (a, b, changes) in cases {
            let upgrade = search(a, b).unwrap();
            let [pod] = upgrade.pods.as_slice() else { panic!("{:?}", upgrade.pods) };
            let cause = CausingChanges { changes, smallest: true };
            assert_eq!((pod.pod, pod.aspect, &pod.cause), (key("large"), Aspect::Message, &cause));
        }
    }

    #[test]
    fn other_edits_of_the_branch_are_not_the_versions_doing() {
        let a = run(original());
        let before = edited(&original(), "resize pod large cpu=100m");
        let after = edited(&edited(&original(), "kube-version 1.34"), "resize pod large cpu=100m");
        for branch in [edited(&before, "kube-version 1.34"), after] {
            let upgrade = search(&a, &run(branch)).unwrap();
            assert!(upgrade.is_empty(), "{:?}", upgrade.pods);
        }
        assert!(search(&a, &run(before)).is_none());
    }

    #[test]
    fn an_upgrade_of_a_branch_does_again_what_was_done_in_it() {
        let [from, to] =
            [33, 34].map(|minor| FeatureGates::of(KubeVersion::of_minor(minor).unwrap()));
        let upgrade = |session: &Session| {
            of_branch(session, Pair { a: from, b: to }, 100, &|_| true).unwrap()
        };
        let fresh = upgrade(&original());
        assert_eq!(fresh.pods.len(), 1, "{:?}", fresh.pods);
        // Whatever the branch decides as, and however far it is.
        assert_eq!(upgrade(&run(original())).pods, fresh.pods);
        assert_eq!(upgrade(&run(edited(&original(), "kube-version 1.36"))).pods, fresh.pods);
        let edited = run(edited(&original(), "resize pod large cpu=100m"));
        assert!(upgrade(&edited).is_empty());
        let stopped = of_branch(&original(), Pair { a: from, b: to }, 100, &|_| false);
        assert_eq!(stopped.unwrap_err(), RunError::Stopped);
    }

    #[test]
    fn a_stopped_search_ends_and_names_nothing() {
        let a = run(original());
        let b = run(edited(&original(), "kube-version 1.34"));
        assert!(between_branches(&a, &b, 100, &|_| false).unwrap().is_err());
        let stopped = between_branches(&a, &b, 100, &|runs| runs < 4).unwrap().unwrap();
        assert!(stopped.pods.iter().all(|pod| pod.cause.changes.len() > 2));
    }

    #[test]
    fn a_version_is_an_edit_with_the_gates_that_are_set() {
        let session = edited(&original(), "feature SchedulerPopFromBackoffQ=false");
        let newer = edited(&session, "kube-version 1.36");
        let expected = FeatureGates::of(KubeVersion::of_minor(36).unwrap());
        let expected = expected.with(Feature::SchedulerPopFromBackoffQ, false);
        assert_eq!(gates(&newer), expected);
        let again = "kube-version v1.36.2".parse::<Edit>().unwrap();
        let mut world = newer.world().clone();
        assert_eq!(
            again.apply(&mut world).unwrap_err().to_string(),
            "kube-scheduler is 1.36 already"
        );
        let oldest: Edit = "kube-version 1.31".parse().unwrap();
        assert_eq!(oldest.to_string(), "kube-version 1.31");
        let notes = oldest.apply(&mut world).unwrap().notes;
        assert!(notes[0].contains("SchedulerPopFromBackoffQ"), "{notes:?}");
        assert!("kube-version latest".parse::<Edit>().is_err());
    }
}
