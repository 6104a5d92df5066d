//! What the dry runs of preemption found on each node, kept from cycle to cycle for pods that are
//! alike.

use super::PluginAnswers;
use super::cache::{AnswerKey, CachedColumn};
use super::matrix::FilterCycle;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::preemption::kept::KeptDryRuns;

impl PluginAnswers {
    /// What is known for pods like the cycle's, up to date, and the key to keep it under. `None` if
    /// it depends on more than the class, the node and the pods nominated to it.
    pub(crate) fn take_dry_runs(
        &mut self,
        cycle: FilterCycle<'_>,
    ) -> Option<(AnswerKey, KeptDryRuns)> {
        let (profile, point) = (cycle.framework.name(), ExtensionPoint::PostFilter);
        let key = AnswerKey { profile, plugin: Symbol::EMPTY, point, pod: class(cycle)? };
        let (mut kept, stale) = match self.cache.take(&key) {
            Some((CachedColumn::DryRuns(kept), stale)) => (kept, stale),
            _ => (KeptDryRuns::default(), Vec::new()),
        };
        kept.refresh(&stale, &cycle.cx);
        Some((key, kept))
    }

    /// Keeps what is known now.
    pub(crate) fn put_dry_runs(&mut self, key: AnswerKey, kept: KeptDryRuns) {
        self.cache.put(key, CachedColumn::DryRuns(kept));
    }
}

/// What the filter plugins that run look at in the pod, and its priority. `None` if one of them
/// looks at more than a node, or is made to fail.
fn class(cycle: FilterCycle<'_>) -> Option<String> {
    let FilterCycle { framework, cx, state } = cycle;
    let point = ExtensionPoint::Filter;
    if cx.snapshot.assumed_placement().is_some() {
        return None;
    }
    let mut class = cx.pod.priority().to_string();
    for plugin in framework.at(point).iter().filter(|plugin| !state.skips_filter(plugin.name())) {
        let key = plugin.filter_key(cx.pod)?;
        if state.fault(point, plugin.name()).is_some() {
            return None;
        }
        class.extend(["\n", plugin.name().as_str(), " ", &key]);
    }
    Some(class)
}
