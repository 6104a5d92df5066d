//! What in-tree plugins register for up to 1.31, and without queueing hints in 1.32 and 1.33.
//!
//! Upstream: `EventsToRegister` of each plugin.

use kubestep_framework::events::{Action, EventResource, Registration, RegistrationRules};

/// For a plugin that registers all updates of nodes up to 1.31. After that, see
/// [`labels_and_taints`].
pub(crate) fn all_node_updates(
    rules: RegistrationRules,
    newest: Registration,
) -> Option<Registration> {
    match rules.by_change {
        true => labels_and_taints(rules, newest),
        false => Some(on_nodes(newest, |_| Action::ADD | Action::UPDATE)),
    }
}

/// For a plugin that registers updates of labels and taints of nodes too. Upstream checks a node
/// before the events of its update, so that the node may pass only after an update that does not
/// concern the plugin. Up to 1.31, only those of taints count.
pub(crate) fn labels_and_taints(
    rules: RegistrationRules,
    newest: Registration,
) -> Option<Registration> {
    let more = match rules.by_change {
        true => Action::UPDATE_NODE_LABEL | Action::UPDATE_NODE_TAINT,
        false => Action::UPDATE_NODE_TAINT,
    };
    Some(on_nodes(newest, |action| action | more))
}

/// For a plugin whose hint for these events is newer.
pub(crate) fn without_hint_for(resource: EventResource, newest: Registration) -> Registration {
    let hint = newest.hint.filter(|_| newest.event.resource != resource);
    Registration { hint, ..newest }
}

fn on_nodes(mut registration: Registration, change: impl Fn(Action) -> Action) -> Registration {
    if registration.event.resource == EventResource::Node {
        registration.event.action = change(registration.event.action);
    }
    registration
}

#[cfg(test)]
mod tests {
    use kubestep_config::{FeatureGates, ProfileArgs};

    use super::*;

    const UP_TO_1_31: [RegistrationRules; 2] = [
        RegistrationRules { by_change: false, hints: false },
        RegistrationRules { by_change: false, hints: true },
    ];
    const WITHOUT_HINTS: RegistrationRules = RegistrationRules { by_change: true, hints: false };

    /// The actions that a plugin registers for one resource, and whether a hint judges them.
    fn of(
        rules: RegistrationRules,
        plugin: &str,
        resource: EventResource,
    ) -> Option<(Action, bool)> {
        let gates = FeatureGates::default();
        let plugin = crate::registry().build(plugin.into(), &ProfileArgs::default(), &gates);
        let plugin = plugin.unwrap();
        let mut newest = plugin.events().unwrap().into_iter();
        let one = newest.find(|one| one.event.resource == resource).unwrap();
        let older = plugin.older_registration()(rules, one)?;
        Some((older.event.action, older.hint.is_some()))
    }

    #[test]
    fn without_hints_labels_and_taints_count_for_those_whose_nodes_are_checked() {
        let both = Action::UPDATE_NODE_LABEL | Action::UPDATE_NODE_TAINT;
        let nodes = |plugin| of(WITHOUT_HINTS, plugin, EventResource::Node).unwrap().0;
        for plugin in ["NodeName", "VolumeRestrictions", "VolumeZone"] {
            assert_eq!(nodes(plugin), Action::ADD | both, "{plugin}");
        }
        let spread = Action::ADD | Action::DELETE | both;
        assert_eq!(nodes("PodTopologySpread"), spread);
    }

    #[test]
    fn in_1_31_all_updates_of_nodes_count() {
        for older in UP_TO_1_31 {
            let nodes = |plugin| of(older, plugin, EventResource::Node).unwrap().0;
            assert_eq!(nodes("NodeName"), Action::ADD | Action::UPDATE);
            assert_eq!(nodes("VolumeRestrictions"), Action::ADD | Action::UPDATE_NODE_TAINT);
        }
    }

    #[test]
    fn removed_gates_and_tolerations_need_hints() {
        let tolerations = Some((Action::UPDATE_POD_TOLERATION, true));
        let gates = Some((Action::UPDATE_POD_SCHEDULING_GATES_ELIMINATED, true));
        let [old, hinted] = UP_TO_1_31;
        for (older, expected) in
            [(old, [None; 3]), (WITHOUT_HINTS, [None; 3]), (hinted, [tolerations, gates, None])]
        {
            let names = ["TaintToleration", "SchedulingGates", "NodeUnschedulable"];
            assert_eq!(names.map(|name| of(older, name, EventResource::Pod)), expected);
        }
        let spread = of(WITHOUT_HINTS, "PodTopologySpread", EventResource::Pod).unwrap().0;
        assert!(!spread.overlaps(Action::UPDATE_POD_TOLERATION));
    }

    #[test]
    fn newer_hints_are_dropped() {
        let [_, hinted] = UP_TO_1_31;
        let has_hint = |plugin, resource| of(hinted, plugin, resource).unwrap().1;
        assert!(!has_hint("NodeVolumeLimits", EventResource::PersistentVolumeClaim));
        assert!(!has_hint("VolumeBinding", EventResource::CsiDriver));
        assert!(has_hint("VolumeBinding", EventResource::PersistentVolumeClaim));
        assert_eq!(of(hinted, "DynamicResources", EventResource::Pod), None);
    }
}
