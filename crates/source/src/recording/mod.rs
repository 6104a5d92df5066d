//! Recordings: a cluster as it was listed and all its changes since, one JSON record per line, as
//! `schema/recording.v1.json` describes them.
//!
//! The first line is the header. Then follow expectations (only in bundles), the lists, with objects
//! that only help to explain, a line that ends them, and the changes in the order of their arrival. A truncated file, even if compressed
//! with gzip, is read up to its last complete record. A bundle has the same format: a recording
//! with expectations, or the lists alone.

mod read;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::captured::MissingKind;
use super::{Filter, Loaded, ObjectOrigin, ReadInput, SchedulerConfigText, check};
use kubestep_api::intern::Symbol;
use kubestep_api::{Object, ObjectKey, Time, admission};

pub use read::expectations;
pub(super) use read::{ReadRecording, looks_like, needed, read};

/// The schema that the header names.
pub const SCHEMA: &str = "kubestep/recording/v1";

/// The first line: what was recorded, which program recorded it, and the scheduler's settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordingHeader {
    /// [`SCHEMA`]; it comes first, because a recording is recognized by it.
    pub schema: String,
    /// Always `header`.
    pub record: String,
    /// The version of kubestep that wrote it.
    pub kubestep: String,
    /// The API server's version; empty if there was none.
    pub server_version: String,
    /// The context of the kubeconfig, or the files it was made from.
    pub context: String,
    /// When the lists were complete, by the server's clock; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<Time>,
    /// The recorded namespaces for kinds with a namespace; empty: all.
    pub namespaces: Vec<String>,
    /// The kinds that could not be read.
    pub missing: Vec<MissingKind>,
    /// The scheduler's configuration, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_config: Option<Value>,
    /// The version of the scheduler, if one was named; otherwise it is that of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_version: Option<String>,
    /// The version that the scheduler emulates, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulated_version: Option<String>,
    /// The feature gates in the format of `--feature-gates`, if any were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature_gates: Option<String>,
    /// Whether all names were replaced by pseudonyms.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

/// Any line after the header.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "record", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[allow(missing_docs, reason = "the schema says what each field is")]
pub enum RecordingLine {
    /// An object of the lists.
    Object { kind: &'static str, object: Value },
    /// An object that no scheduler reads, with `apiVersion` and `kind`; see [`crate::Auxiliary`].
    Auxiliary { object: Value },
    /// The lists are complete.
    Listed { objects: usize },
    /// An object was added or changed.
    Put { at: Time, kind: &'static str, object: Value },
    /// An object was deleted.
    Delete {
        at: Time,
        kind: &'static str,
        #[serde(skip_serializing_if = "str::is_empty")]
        namespace: String,
        name: String,
    },
    /// What the cluster's scheduler decided about a pod, derived from the change before this line.
    Decision {
        at: Time,
        pod: String,
        uid: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        nominated: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// An event that the cluster's scheduler reported.
    Event { at: Time, pod: String, uid: String, reporter: String, reason: String, message: String },
    /// A notice about the connection.
    Notice { at: Time, serious: bool, text: String },
    /// The expected results of running the cluster, as in a test.
    Expect { expect: Value },
    /// The recording was ended properly and is not truncated.
    End { at: Option<Time>, changes: usize },
}

/// The part of a recording after its lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The first line of the file.
    pub header: RecordingHeader,
    /// When the lists were complete.
    pub listed_at: Time,
    /// When the recording ends.
    pub ended_at: Time,
    /// The changes, in the order of their arrival.
    pub changes: Vec<RecordedChange>,
    /// Events and notices between the changes, in the order of their arrival.
    pub notes: Vec<TimedNote>,
    /// The expected results as YAML: the `expect` of a test.
    pub expect: Option<String>,
}

/// An event or notice, which changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedNote {
    /// When it arrived, by the server's clock.
    pub at: Time,
    /// The line of the file, from 1.
    pub line: u32,
    /// The event or notice.
    pub note: RecordedNote,
}

/// A record that does not change the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedNote {
    /// A scheduler reported an event about a pod.
    Event {
        /// The pod, `namespace/name`.
        pod: String,
        /// `metadata.uid` of the pod.
        uid: String,
        /// The component that reported it, such as `default-scheduler`.
        reporter: String,
        /// `Scheduled`, `FailedScheduling` and so on.
        reason: String,
        /// The message, for people.
        message: String,
    },
    /// A notice about the connection.
    Notice {
        /// Whether the display could be wrong or stale from then on.
        serious: bool,
        /// One sentence, as the status line showed it.
        text: String,
    },
}

/// A change and its time of arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedChange {
    /// When it arrived, by the server's clock.
    pub at: Time,
    /// The line of the file, from 1.
    pub line: u32,
    /// The object that was added, changed or deleted.
    pub what: ObjectChange,
}

/// What happened to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectChange {
    /// An object was added or changed.
    Put(Object),
    /// An object was deleted.
    Delete(ObjectKey),
}

/// Why a text is no time of a recording.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UntilError {
    /// It is neither a time nor a span.
    #[error(
        "{text:?} is neither a time, as in {example}, nor a span since the lists, as in 90s or 12m30s"
    )]
    Form {
        /// The time as it was typed.
        text: String,
        /// The end of the recording.
        example: Time,
    },
    /// The time is before the lists.
    #[error("{time} is before the recording begins: {start}")]
    TooEarly {
        /// The time as it was typed.
        time: Time,
        /// The time of the lists.
        start: Time,
    },
}

impl Recording {
    /// Parses `until`: a time, or a duration after the lists.
    ///
    /// # Errors
    /// It is neither, or before the lists.
    pub fn moment(&self, until: &str) -> Result<Time, UntilError> {
        let moment = match Time::parse(until) {
            Ok(moment) => moment,
            Err(_) => {
                let wrong = |_| UntilError::Form { text: until.to_owned(), example: self.ended_at };
                let span: jiff::SignedDuration = until.parse().map_err(wrong)?;
                Time(self.listed_at.0 + i64::try_from(span.as_micros()).unwrap_or(i64::MAX / 2))
            }
        };
        match moment < self.listed_at {
            true => Err(UntilError::TooEarly { time: moment, start: self.listed_at }),
            false => Ok(moment),
        }
    }

    /// The changes up to a time; `None`: all.
    pub fn until(&self, until: Option<Time>) -> &[RecordedChange] {
        let end = until.map_or(self.changes.len(), |until| {
            // Clocks may be set back, so the order of arrival decides.
            self.changes.iter().take_while(|change| change.at <= until).count()
        });
        self.changes.get(..end).unwrap_or_default()
    }

    /// The events and notices up to a time; `None`: all.
    pub fn notes_until(&self, until: Option<Time>) -> impl Iterator<Item = &TimedNote> {
        self.notes.iter().filter(move |noted| until.is_none_or(|until| noted.at <= until))
    }
}

impl Recording {
    /// Adds the header's data to the input, and becomes part of it.
    pub(super) fn describe(self, input: &mut ReadInput, file: Symbol) {
        let header = &self.header;
        input.captured.at = header.listed_at.map(|at| at.to_string()).unwrap_or_default();
        input.captured.server_version.clone_from(&header.server_version);
        input.captured.kube_version.clone_from(&header.kube_version);
        input.captured.emulated_version.clone_from(&header.emulated_version);
        input.captured.missing.clone_from(&header.missing);
        input.captured.feature_gates.clone_from(&header.feature_gates);
        if let (Some(config), None) = (&header.scheduler_config, &input.scheduler_config) {
            let origin = ObjectOrigin { file, document: 1, line: 1 };
            input.scheduler_config = Some(SchedulerConfigText { text: config.to_string(), origin });
        }
        input.recording = Some(self);
    }

    /// Removes the changes of objects that the filter excludes.
    pub(super) fn keep(&mut self, filter: &Filter) {
        for change in &mut self.changes {
            if let ObjectChange::Put(object) = &mut change.what {
                admission::identify(object);
            }
        }
        self.changes.retain(|change| match &change.what {
            ObjectChange::Put(object) => filter.takes(object),
            // Deleting an object that was never added has no effect.
            ObjectChange::Delete(_) => true,
        });
    }
}

impl ReadInput {
    /// Turns a recording into the cluster as it was at `until` (`None`: at its end): the changes up
    /// to then are applied to the objects, as if they had been listed at that time. Adds warnings
    /// for the user. Other inputs are unchanged.
    pub fn wind(&mut self, until: Option<Time>) {
        let Some(recording) = self.recording.take() else { return };
        let mut folding = Folding::default();
        let file = self.objects.first().map(|loaded| loaded.origin.file).unwrap_or_default();
        std::mem::take(&mut self.objects).into_iter().for_each(|loaded| folding.put(loaded));
        for change in recording.until(until) {
            let origin = ObjectOrigin { file, document: 1, line: change.line };
            match &change.what {
                ObjectChange::Put(object) => folding.put(Loaded { object: object.clone(), origin }),
                ObjectChange::Delete(key) => folding.delete(key),
            }
        }
        self.objects = folding.slots.into_iter().flatten().collect();
        self.recording = Some(recording);
        check::warn(self);
    }

    /// Keeps a recording as it was listed; the later changes are for a replay. Adds warnings for
    /// the user.
    pub fn begin(&mut self) {
        if let Some(recording) = &self.recording {
            let goes_on = !recording.changes.is_empty();
            self.listed_at = recording.header.listed_at;
            check::warn(self);
            if goes_on {
                self.warnings.retain(|warning| warning != check::NOTHING_PENDING);
            }
        }
    }
}

/// Applies changes to objects: each keeps the position at which it was added.
#[derive(Default)]
struct Folding {
    slots: Vec<Option<Loaded>>,
    at: HashMap<ObjectKey, usize>,
}

impl Folding {
    fn put(&mut self, loaded: Loaded) {
        let key = loaded.object.key();
        let is_same = |slot: &&mut Option<Loaded>| {
            let uid = loaded.object.metadata().uid;
            slot.as_ref().is_some_and(|old| old.object.metadata().uid == uid)
        };
        let slot = self.at.get(&key).and_then(|at| self.slots.get_mut(*at));
        match slot.filter(is_same) {
            Some(slot) => *slot = Some(loaded),
            // A recreated object is moved to the end.
            None => {
                self.delete(&key);
                self.at.insert(key, self.slots.len());
                self.slots.push(Some(loaded));
            }
        }
    }

    fn delete(&mut self, key: &ObjectKey) {
        let slot = self.at.remove(key).and_then(|at| self.slots.get_mut(at));
        slot.map(Option::take);
    }
}
