//! The plugins that handle events themselves, as upstream's plugins add handlers to informers.

use std::sync::Arc;

use crate::Scheduler;
use crate::events::Change;
use crate::profiles::Handler;
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Object, Time};
use kubestep_framework::events::EventObjects;
use kubestep_framework::plugin::HandlerContext;

impl Scheduler {
    /// Reports a change to the plugins that handle events.
    pub(crate) fn run_event_handlers(&mut self, change: &Change, now: Time) {
        let handlers = self.profiles.handlers.clone();
        if handlers.is_empty() {
            return;
        }
        if let Some(objects) = watched(change) {
            handlers.iter().for_each(|handler| self.run_event_handler(handler, &objects, now));
        }
    }

    /// Reports all objects to the plugins that handle events and are not in `before`, as to
    /// plugins that start.
    pub(crate) fn start_event_handlers(&mut self, before: &[Symbol], now: Time) {
        let handlers = self.profiles.handlers.clone();
        let objects = self.cluster.objects.clone();
        let kinds = Kind::all_custom().chain([Kind::Pod]);
        let all: Vec<Object> = kinds
            .flat_map(|kind| {
                let mut keys = objects.keys(kind);
                keys.sort_unstable();
                keys.into_iter().filter_map(|key| objects.get(kind, key)).collect::<Vec<_>>()
            })
            .collect();
        for handler in handlers.iter().filter(|handler| !before.contains(&handler.plugin.name())) {
            for object in &all {
                let added = EventObjects { old: None, new: Some(object.clone()) };
                self.run_event_handler(handler, &added, now);
            }
        }
    }

    /// The names of the plugins that handle events.
    pub(crate) fn event_handlers(&self) -> Vec<Symbol> {
        let handlers: &Arc<[Handler]> = &self.profiles.handlers;
        handlers.iter().map(|handler| handler.plugin.name()).collect()
    }

    fn run_event_handler(&mut self, handler: &Handler, objects: &EventObjects, now: Time) {
        let cluster = &mut self.cluster;
        let mut cx = HandlerContext {
            objects: &cluster.objects,
            features: &cluster.features,
            shared: &mut cluster.shared,
            profiles: &handler.profiles,
            now,
        };
        handler.plugin.handle_event(&mut cx, objects);
    }
}

/// The change as an informer reports it that does not watch pods that succeeded or failed.
fn watched(change: &Change) -> Option<EventObjects> {
    let ended = |object: &Object| matches!(object, Object::Pod(pod) if pod.is_terminal());
    let (old, new) = match change {
        Change::Add(new) => (None, Some(new)),
        Change::Update { old, new } => (Some(old), Some(new)),
        Change::Delete(old) => (Some(old), None),
    };
    let known = |object: Option<&Object>| object.filter(|object| !ended(object)).cloned();
    let objects = EventObjects { old: known(old), new: known(new) };
    (objects.old.is_some() || objects.new.is_some()).then_some(objects)
}
