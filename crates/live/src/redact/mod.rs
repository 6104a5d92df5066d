//! Pseudonymizes a cluster: the result shows how a scheduler decides, but not whose cluster it is.
//!
//! Every occurrence of a name gets the same pseudonym: as a node's name, in a label's value, in an
//! expression and in a message. Pseudonyms sort like the names they replace (`names`), because some
//! decisions depend on the order. `treatment` defines how each field's text is replaced; unlisted
//! fields are replaced, so that an unknown field reveals nothing. Resources, labels and taints of
//! Kubernetes itself, drivers, plugins, and numbers are kept.

mod cel;
mod fields;
mod message;
mod names;
#[cfg(test)]
mod tests;
mod treatment;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::feed::{Delta, FeedEvent, Notice};
use crate::scheduler_events::SchedulerEvent;
use kubestep_api::{Kind, Object};
use kubestep_framework::pod::NamespacedName;
use kubestep_source::recording::{ObjectChange, RecordedChange, RecordedNote, RecordingHeader};
use kubestep_source::{MissingKind, ObjectOrigin, SchedulerConfigText};
use names::Names;

/// Replaces names by pseudonyms, consistently across all its inputs.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    names: Names,
    /// Words that are kept: plugins, drivers, attributes of devices.
    kept: BTreeSet<String>,
    /// Whether some expression depends on the characters of strings, so that device strings must be
    /// kept.
    keeps_attributes: bool,
    /// While names are collected: the names found, each with what it names.
    found: Option<BTreeMap<String, &'static str>>,
}

/// Whether a label, taint or annotation of this domain is Kubernetes' own.
fn is_well_known(domain: &str) -> bool {
    ["kubernetes.io", "k8s.io", "x-k8s.io"]
        .iter()
        .any(|own| domain == *own || domain.strip_suffix(own).is_some_and(|d| d.ends_with('.')))
}

/// What the name of an object of this kind names, as part of the pseudonym.
fn word_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Node | Kind::CsiNode => "node",
        Kind::Pod => "pod",
        Kind::Namespace => "namespace",
        Kind::PersistentVolume => "volume",
        Kind::PersistentVolumeClaim | Kind::ResourceClaim => "claim",
        Kind::StorageClass | Kind::DeviceClass => "class",
        Kind::PriorityClass => "priority",
        _ => "name",
    }
}

impl Redactor {
    /// Collects the names of these objects. Other objects may follow later.
    pub fn new<'a>(objects: impl Iterator<Item = &'a Object> + Clone) -> Redactor {
        let plugins = kubestep_scheduler_plugins::add_to(kubestep_plugins::registry());
        let plugins = plugins.descriptors();
        let plugins = plugins.into_iter().map(|plugin| plugin.name.to_string());
        let kinds = Kind::all().chain(Kind::all_custom()).map(|kind| kind.plural().to_owned());
        let kept = plugins.chain(kinds).collect();
        let found = Some(BTreeMap::new());
        let mut redactor = Redactor { kept, found, ..Redactor::default() };
        // The kind of an object describes a name best, so objects come first.
        for object in objects.clone().filter(|object| object.kind() != Kind::CsiDriver) {
            redactor.name(&object.metadata().namespace, "namespace");
            redactor.name(&object.metadata().name.text(), word_of(object.kind()));
        }
        for object in objects.clone() {
            redactor.object(object);
        }
        let found = redactor.found.take().unwrap_or_default();
        redactor.names = Names::new(found);
        for object in objects {
            redactor.note_made(object);
        }
        redactor
    }

    /// The object with pseudonyms; the same name gets the same pseudonym in every object.
    pub fn object(&mut self, object: &Object) -> Object {
        let kind = object.kind();
        let Ok(value) = object.to_json() else { return object.clone() };
        let value = self.fields(kind, value);
        // A value that does not deserialize after renaming is left empty.
        let empty = || Object::deserialize_as(kind, Value::Object(serde_json::Map::new()));
        match Object::deserialize_as(kind, value).or_else(|_| empty()) {
            Ok(object) => object,
            Err(_) => object.clone(),
        }
    }

    /// A pod's ephemeral volume creates a claim that is named after both.
    fn note_made(&mut self, object: &Object) {
        let Object::Pod(pod) = object else { return };
        for volume in pod.spec.volumes.iter().filter(|volume| volume.ephemeral.is_some()) {
            self.names.make(&pod.metadata.name.text(), volume.name.as_str());
        }
    }

    /// The pseudonym of a single name.
    fn name(&mut self, old: &str, word: &'static str) -> String {
        if old.is_empty() {
            return String::new();
        }
        match &mut self.found {
            Some(found) => {
                found.entry(old.to_owned()).or_insert(word);
                old.to_owned()
            }
            None => self.names.of(old, word),
        }
    }

    /// Renames both parts of `namespace/name`.
    fn key(&mut self, key: NamespacedName) -> NamespacedName {
        let namespace = self.name(&key.namespace, "namespace");
        let name = self.name(&key.name.text(), "name");
        NamespacedName::new(namespace.as_str().into(), name.as_str().into())
    }

    /// An event of a feed, pseudonymized.
    pub fn event(&mut self, event: &FeedEvent) -> FeedEvent {
        match event {
            FeedEvent::Delta(Delta::Put(object)) => {
                self.note_made(object);
                FeedEvent::Delta(Delta::Put(self.object(object)))
            }
            FeedEvent::Delta(Delta::Delete { kind, key }) => {
                let key = match kind {
                    Kind::CsiDriver => *key,
                    _ => self.key(*key),
                };
                FeedEvent::Delta(Delta::Delete { kind: *kind, key })
            }
            FeedEvent::Notice(notice) => {
                let (serious, text) = (notice.serious, self.message(&notice.text));
                FeedEvent::Notice(Notice { serious, text })
            }
        }
    }

    /// An event of a scheduler, pseudonymized.
    pub fn scheduler_event(&mut self, event: &SchedulerEvent) -> SchedulerEvent {
        let (namespace, name) = event.pod.split_once('/').unwrap_or(("", &event.pod));
        SchedulerEvent {
            pod: format!("{}/{}", self.name(namespace, "namespace"), self.name(name, "pod")),
            uid: self.name(&event.uid, "uid"),
            reporter: self.scheduler(&event.reporter),
            reason: event.reason.clone(),
            message: self.message(&event.message),
        }
    }

    fn scheduler(&mut self, name: &str) -> String {
        match name {
            "default-scheduler" => name.to_owned(),
            name => self.name(name, "scheduler"),
        }
    }

    /// Pseudonymizes the header line of a recording.
    pub fn header(&mut self, header: &mut RecordingHeader) {
        header.context = String::new();
        header.redacted = true;
        let namespaces = header.namespaces.iter();
        header.namespaces = namespaces.map(|name| self.name(name, "namespace")).collect();
        header.missing = self.missing(&header.missing);
        if let Some(config) = header.scheduler_config.take() {
            header.scheduler_config = Some(self.config(config));
        }
    }

    /// Pseudonymizes kinds that could not be read, such as `pods in shop`.
    pub fn missing(&mut self, missing: &[MissingKind]) -> Vec<MissingKind> {
        let of = |missing: &MissingKind| {
            let kind = match missing.kind.split_once(" in ") {
                Some((kind, namespace)) => {
                    format!("{kind} in {}", self.name(namespace, "namespace"))
                }
                None => missing.kind.clone(),
            };
            let reason = match missing.reason.as_str() {
                reason @ ("forbidden" | "not served") => reason.to_owned(),
                reason => self.message(reason),
            };
            MissingKind { kind, reason, uncertain: missing.uncertain.clone() }
        };
        missing.iter().map(of).collect()
    }

    /// Pseudonymizes a whole input: objects, recorded decisions, and the scheduler's configuration,
    /// which is part of `header`.
    pub fn input(read: &mut kubestep_source::ReadInput, header: &mut RecordingHeader) {
        let changes = read.recording.iter().flat_map(|recording| &recording.changes);
        let later = changes.filter_map(|change| match &change.what {
            ObjectChange::Put(object) => Some(object),
            ObjectChange::Delete(_) => None,
        });
        let objects = read.objects.iter().map(|loaded| &loaded.object);
        let mut redactor = Redactor::new(objects.chain(later));
        for loaded in &mut read.objects {
            loaded.object = redactor.object(&loaded.object);
        }
        if let Some(recording) = &mut read.recording {
            recording.changes.iter_mut().for_each(|change| redactor.change(change));
            recording.notes.iter_mut().for_each(|noted| redactor.note(&mut noted.note));
        }
        redactor.header(header);
        let (file, line) = (kubestep_source::STDIN.into(), 1);
        let origin = ObjectOrigin { file, document: 1, line };
        let config = header.scheduler_config.as_ref().map(Value::to_string);
        read.scheduler_config = config.map(|text| SchedulerConfigText { text, origin });
        read.captured.missing = redactor.missing(&read.captured.missing);
    }

    fn note(&mut self, note: &mut RecordedNote) {
        *note = match note.clone() {
            RecordedNote::Event { pod, uid, reporter, reason, message } => {
                let event =
                    self.scheduler_event(&SchedulerEvent { pod, uid, reporter, reason, message });
                let SchedulerEvent { pod, uid, reporter, reason, message } = event;
                RecordedNote::Event { pod, uid, reporter, reason, message }
            }
            RecordedNote::Notice { serious, text } => {
                RecordedNote::Notice { serious, text: self.message(&text) }
            }
        };
    }

    fn change(&mut self, change: &mut RecordedChange) {
        match &mut change.what {
            ObjectChange::Put(object) => *object = self.object(object),
            ObjectChange::Delete(key) if key.kind == Kind::CsiDriver => {}
            ObjectChange::Delete(key) => {
                let new = self.key(NamespacedName::new(key.namespace, key.name));
                (key.namespace, key.name) = (new.namespace, new.name);
            }
        }
    }
}
