//! Reports to plugins which nodes they rejected in a cycle: they have no place to keep that while they
//! filter.

use crate::Scheduler;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_framework::record::CycleRecord;
use kubestep_framework::status::Status;

impl Scheduler {
    /// Reports them to the plugins of the pod's profile that handle events.
    pub(crate) fn report_rejections(&mut self, record: &mut CycleRecord, now: Time) {
        let handlers = self.profiles.handlers.clone();
        let own = handlers.iter().filter(|handler| handler.profiles.contains(&record.profile));
        for handler in own {
            let nodes = rejected_by(handler.plugin.name(), record);
            if !nodes.is_empty() {
                record.keeps_rejections = true;
                let cx = &mut self.handler_context(handler, now);
                handler.plugin.nodes_rejected(cx, &nodes);
            }
        }
    }
}

/// The nodes that a plugin rejected, also in a dry run of preemption.
fn rejected_by(plugin: Symbol, record: &CycleRecord) -> Vec<Symbol> {
    let is_own = |status: Option<&Status>| status.is_some_and(|status| status.plugin() == plugin);
    let rejected = record.nodes.order.iter().filter(|id| {
        let verdict = record.filter.verdicts.get(**id);
        let filtered = verdict.and_then(|verdict| record.verdicts.get(verdict));
        is_own(filtered) || is_own(record.dry_run.as_ref().and_then(|tried| tried.own(**id)))
    });
    rejected.map(|id| record.nodes.name(*id)).collect()
}
