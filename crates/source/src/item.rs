//! The text of one object within a file, and its decoding.

use super::fields::UnexpectedField;
use super::{LIMITS, api_versions, auxiliary, fields};
use kubestep_api::decode::{
    DecodeError, Decoded, Text, api_version, decode, decode_in, from_value, has_versions,
    json_error, yaml_error,
};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Object, custom};

/// The kind of document that holds the scheduler's configuration.
const SCHEDULER_CONFIG: &str = "KubeSchedulerConfiguration";

/// The field of a capture with the objects that no scheduler reads, but that help to explain.
pub const AUXILIARY_FIELD: &str = "auxiliary";

/// The fields of a snapshot with the kinds that they list: those of kube-scheduler-simulator's
/// export under its names, and all other kinds.
pub const SNAPSHOT_FIELDS: &[(Kind, &str)] = &[
    (Kind::Namespace, "namespaces"),
    (Kind::PriorityClass, "priorityClasses"),
    (Kind::Node, "nodes"),
    (Kind::StorageClass, "storageClasses"),
    (Kind::CsiDriver, "csiDrivers"),
    (Kind::CsiNode, "csiNodes"),
    (Kind::CsiStorageCapacity, "csiStorageCapacities"),
    (Kind::PersistentVolume, "pvs"),
    (Kind::PersistentVolumeClaim, "pvcs"),
    (Kind::VolumeAttachment, "volumeAttachments"),
    (Kind::Service, "services"),
    (Kind::ReplicationController, "replicationControllers"),
    (Kind::ReplicaSet, "replicaSets"),
    (Kind::StatefulSet, "statefulSets"),
    (Kind::PodDisruptionBudget, "podDisruptionBudgets"),
    (Kind::DeviceClass, "deviceClasses"),
    (Kind::ResourceSlice, "resourceSlices"),
    (Kind::DeviceTaintRule, "deviceTaintRules"),
    (Kind::ResourceClaimTemplate, "resourceClaimTemplates"),
    (Kind::ResourceClaim, "resourceClaims"),
    (Kind::Workload, "workloads"),
    (Kind::PodGroup, "podGroups"),
    (Kind::Pod, "pods"),
];

/// An object's text and its position.
pub(super) struct SourceItem<'a> {
    /// The document within the file, from 1.
    pub document: u32,
    /// The line in which the text starts, from 1.
    pub line: u32,
    pub content: ItemText<'a>,
    pub expected: Expected,
}

/// What an item is if its text does not contain its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Expected {
    /// The text has to contain the kind.
    Anything,
    /// An item of a typed list or of a simulator export.
    Kind(Kind),
    /// An item of a typed list in this API version, of a kind whose shape depends on it.
    KindIn(Kind, Symbol),
    /// An item of a typed list, of a kind that the scheduler does not read.
    Unread(Symbol),
    /// The scheduler configuration in a simulator export.
    SchedulerConfig,
    /// A field that describes the capture itself.
    Note(CaptureField),
}

/// A field in which a capture describes itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CaptureField {
    CapturedAt,
    ServerVersion,
    Missing,
    KubeVersion,
    EmulatedVersion,
    FeatureGates,
    Leases,
    LeaseCandidates,
}

/// The text of an item, or its value.
pub(super) enum ItemText<'a> {
    /// JSON that starts after `column` characters of its line.
    Json { text: &'a str, column: usize },
    /// YAML with lines indented by `indent`; the indentation of the first may contain a dash.
    Yaml { text: &'a str, indent: usize },
    /// A value of a document that could not be split by its text.
    Value(serde_json::Value),
}

/// The result of decoding an item.
#[derive(Debug)]
pub(super) enum DecodedItem {
    /// An object, and its unexpected fields, each with its line and column in the file.
    Object(Object, Vec<((usize, usize), UnexpectedField)>),
    /// The same, of a kind that not every version of Kubernetes serves in this API version.
    InVersion(Box<DecodedItem>, Symbol),
    /// An object of an alpha API whose shape is not known, with what is wrong.
    LeftOut(DecodeError),
    /// Of a kind that the scheduler does not read.
    Unread(Symbol),
    /// The same, of a kind that helps to explain.
    Auxiliary(Symbol, serde_json::Value),
    /// The text of a scheduler configuration.
    SchedulerConfig(String),
    /// A field that describes the capture, as written.
    Note(CaptureField, String),
    /// The item is `null`.
    Nothing,
}

/// How a document contains its objects.
pub(super) enum Envelope {
    /// It is an object itself.
    Single,
    /// The items of a list.
    List(Expected),
    /// The fields of a simulator's export or a capture.
    Export,
}

impl Envelope {
    /// The envelope of a document of that kind, which is empty if it has none: an array counts as
    /// items without a kind. `is_export`: whether it has a field of an export.
    pub fn of(api_version: &str, kind: &str, has_items: bool, is_export: bool) -> Envelope {
        let may_be_list = kind.is_empty() || kind.ends_with("List");
        match has_items && may_be_list {
            true => Envelope::List(Expected::of_list(api_version, kind)),
            false if kind.is_empty() && is_export => Envelope::Export,
            false => Envelope::Single,
        }
    }
}

impl Expected {
    /// The kind of a typed list's items: pods for a `PodList`.
    pub(crate) fn of_list(api_version: &str, list_kind: &str) -> Expected {
        match list_kind.strip_suffix("List") {
            None | Some("") => Expected::Anything,
            Some(kind) => match Kind::of(api_version, kind) {
                Some(kind) => Expected::KindIn(kind, api_version.into()),
                None => Expected::Unread(kind.into()),
            },
        }
    }

    /// The contents of a field of a kube-scheduler-simulator export.
    pub(crate) fn of_simulator_field(field: &str) -> Option<Expected> {
        if let Some((kind, _)) = SNAPSHOT_FIELDS.iter().find(|(_, name)| *name == field) {
            return Some(Expected::Kind(*kind));
        }
        if let Some(kind) = custom::declared().into_iter().find(|kind| kind.full_name() == field) {
            return Some(Expected::Kind(Kind::Custom(kind)));
        }
        Some(match field {
            "schedulerConfig" => Expected::SchedulerConfig,
            "capturedAt" => Expected::Note(CaptureField::CapturedAt),
            "serverVersion" => Expected::Note(CaptureField::ServerVersion),
            "kubeVersion" => Expected::Note(CaptureField::KubeVersion),
            "emulatedVersion" => Expected::Note(CaptureField::EmulatedVersion),
            "missing" => Expected::Note(CaptureField::Missing),
            "featureGates" => Expected::Note(CaptureField::FeatureGates),
            "leases" => Expected::Note(CaptureField::Leases),
            "leaseCandidates" => Expected::Note(CaptureField::LeaseCandidates),
            AUXILIARY_FIELD => Expected::Anything,
            _ => return None,
        })
    }

    /// Whether the field holds one value, as opposed to a list of objects.
    pub(crate) fn is_single(self) -> bool {
        matches!(self, Expected::SchedulerConfig | Expected::Note(_))
    }
}

impl SourceItem<'_> {
    pub fn decode(&self, is_checked: bool) -> Result<DecodedItem, DecodeError> {
        let (kind, version) = match self.expected {
            Expected::Unread(kind) => return Ok(self.unread(kind)),
            Expected::SchedulerConfig => return Ok(self.scheduler_config()),
            Expected::Note(note) => return Ok(DecodedItem::Note(note, self.text())),
            Expected::Anything => (None, Symbol::EMPTY),
            Expected::Kind(kind) => (Some(kind), Symbol::EMPTY),
            Expected::KindIn(kind, version) => (Some(kind), version),
        };
        if matches!(self.content, ItemText::Yaml { text, .. } if text.len() > LIMITS.object) {
            let message = format!("is longer than {} MiB", LIMITS.object >> 20);
            return Err(DecodeError { message, ..DecodeError::default() });
        }
        let decoded = match &self.content {
            ItemText::Json { text, .. } => decode_in(Text::Json(text), kind, version),
            ItemText::Yaml { text, indent: 0 } => decode_in(Text::Yaml(text), kind, version),
            ItemText::Yaml { text, indent } => {
                decode_in(Text::Yaml(&dedent(text, *indent)), kind, version)
            }
            ItemText::Value(value) => decode_value(value, kind, version),
        };
        match decoded {
            // The text itself is valid if the field is known.
            Err(error) if error.api_version.contains("/v1alpha") && !error.path.is_empty() => {
                Ok(DecodedItem::LeftOut(error))
            }
            decoded => decoded.map(|decoded| self.outcome(decoded, is_checked)),
        }
    }

    /// What a decoded item comes to.
    pub fn outcome(&self, decoded: Decoded, is_checked: bool) -> DecodedItem {
        match decoded {
            Decoded::Object(object) => {
                let unexpected =
                    if is_checked { self.unexpected_fields(object.kind()) } else { Vec::new() };
                let version = self.api_version(object.kind());
                let outcome = DecodedItem::Object(object, unexpected);
                match version {
                    Some(version) => DecodedItem::InVersion(Box::new(outcome), version),
                    None => outcome,
                }
            }
            Decoded::Unread(kind) if kind == SCHEDULER_CONFIG => self.scheduler_config(),
            Decoded::Unread(kind) if is_list(&kind) => DecodedItem::Nothing,
            Decoded::Unread(kind) => self.unread(kind),
        }
    }

    fn unread(&self, kind: Symbol) -> DecodedItem {
        let is_read = match &self.content {
            ItemText::Json { text, .. } | ItemText::Yaml { text, .. } => {
                auxiliary::is_read(&kind, text)
            }
            ItemText::Value(value) => auxiliary::is_read(&kind, &value.to_string()),
        };
        match is_read.then(|| self.value()) {
            Some(Ok(value)) if value.is_object() => DecodedItem::Auxiliary(kind, value),
            _ => DecodedItem::Unread(kind),
        }
    }

    fn unexpected_fields(&self, kind: Kind) -> Vec<((usize, usize), UnexpectedField)> {
        if matches!(kind, Kind::Custom(_)) {
            return Vec::new(); // only kinds of Kubernetes have shapes
        }
        let found = match &self.content {
            ItemText::Json { text, .. } => fields::unexpected_fields(Text::Json(text), kind),
            ItemText::Yaml { text, indent: 0 } => fields::unexpected_fields(Text::Yaml(text), kind),
            ItemText::Yaml { text, indent } => {
                fields::unexpected_fields(Text::Yaml(&dedent(text, *indent)), kind)
            }
            ItemText::Value(value) => fields::unexpected_fields_of(value, kind.as_str()),
        };
        found.into_iter().map(|field| (self.place(field.position), field)).collect()
    }

    /// The item as a tree of values.
    pub fn value(&self) -> Result<serde_json::Value, DecodeError> {
        match &self.content {
            ItemText::Json { text, .. } => {
                serde_json::from_str(text).map_err(|error| json_error(&error))
            }
            ItemText::Yaml { text, indent } => kubestep_api::yaml::from_str(&dedent(text, *indent))
                .map_err(|error| yaml_error(&error)),
            ItemText::Value(value) => Ok(value.clone()),
        }
    }

    fn text(&self) -> String {
        match &self.content {
            ItemText::Json { text, .. } => (*text).to_string(),
            ItemText::Yaml { text, indent } => dedent(text, *indent),
            ItemText::Value(value) => value.to_string(),
        }
    }

    /// The API version of an object whose kind had several versions.
    fn api_version(&self, kind: Kind) -> Option<Symbol> {
        if !api_versions::has_history(kind) {
            return None;
        }
        let named = match &self.content {
            ItemText::Json { text, .. } => api_version(Text::Json(text)),
            ItemText::Yaml { text, indent } => api_version(Text::Yaml(&dedent(text, *indent))),
            ItemText::Value(value) => value["apiVersion"].as_str().unwrap_or_default().into(),
        };
        match self.expected {
            Expected::KindIn(_, of_list) if named.is_empty() => Some(of_list),
            _ => Some(named),
        }
        .filter(|version| !version.is_empty())
    }

    fn scheduler_config(&self) -> DecodedItem {
        let text = self.text();
        match text.trim() {
            "" | "null" | "~" => DecodedItem::Nothing,
            _ => DecodedItem::SchedulerConfig(with_header(text)),
        }
    }

    /// Converts a position in the decoder's text to a position in the file.
    pub fn place(&self, position: Option<(usize, usize)>) -> (usize, usize) {
        let start = self.line as usize;
        let Some((line, column)) = position else { return (start, 0) };
        match self.content {
            ItemText::Json { column: before, .. } if line <= 1 => (start, column + before),
            ItemText::Json { .. } => (start + line - 1, column),
            ItemText::Yaml { indent, .. } => (start + line.max(1) - 1, column + indent),
            ItemText::Value(_) => (start, 0),
        }
    }
}

/// The outcome for a list without items.
pub(super) fn is_list(kind: &str) -> bool {
    let item = kind.strip_suffix("List");
    item.is_some_and(|item| item.is_empty() || Kind::by_name(item).is_some())
}

/// A simulator export may omit `apiVersion` and `kind` of the configuration.
fn with_header(text: String) -> String {
    let Ok(serde_yaml::Value::Mapping(mut fields)) = kubestep_api::yaml::from_str(&text) else {
        return text;
    };
    let is_set = |value: Option<&serde_yaml::Value>| value.is_some_and(|value| !value.is_null());
    if is_set(fields.get("kind")) && is_set(fields.get("apiVersion")) {
        return text;
    }
    fields.insert("kind".into(), SCHEDULER_CONFIG.into());
    fields.insert("apiVersion".into(), "kubescheduler.config.k8s.io/v1".into());
    serde_yaml::to_string(&fields).unwrap_or(text)
}

fn decode_value(
    value: &serde_json::Value,
    kind: Option<Kind>,
    version: Symbol,
) -> Result<Decoded, DecodeError> {
    let field = |name: &str| value[name].as_str().unwrap_or_default();
    let (api_version, name) = (field("apiVersion"), field("kind"));
    let kind = match (name, kind) {
        (_, Some(kind)) if has_versions(kind) => {
            return decode_in(Text::Json(&value.to_string()), Some(kind), version);
        }
        ("", Some(kind)) => kind,
        // This also reports a missing kind.
        ("", None) => return decode(Text::Json(&value.to_string()), None),
        (name, None) if Kind::of(api_version, name).is_some_and(has_versions) => {
            return decode(Text::Json(&value.to_string()), None);
        }
        _ => match Kind::of(api_version, name) {
            Some(kind) => kind,
            None => return Ok(Decoded::Unread(name.into())),
        },
    };
    from_value(kind, value.clone()).map(Decoded::Object)
}

/// Removes the indentation, including a dash in it, from each line. Lines with less indentation are
/// blank or comments.
fn dedent(text: &str, indent: usize) -> String {
    let mut dedented = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let blank = line.bytes().take_while(|byte| matches!(byte, b' ' | b'-')).count();
        dedented.push_str(&line[blank.min(indent)..]);
    }
    dedented
}
