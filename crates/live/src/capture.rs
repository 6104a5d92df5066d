//! A snapshot as a file: the export format of kube-scheduler-simulator with additional fields, so
//! that each tool reads the other's file. `-f` reads it back to the same decisions.

use serde_json::Value;

use crate::minimal;
use crate::record::missing_kinds;
use crate::snapshot::ClusterSnapshot;
use kubestep_api::{Kind, Object, custom};
use kubestep_output::clean::escape_json;
use kubestep_source::{AUXILIARY_FIELD, MissingKind, SNAPSHOT_FIELDS};

/// What is written in addition to the objects.
#[derive(Clone, Debug, Default)]
pub struct CaptureSettings {
    /// The scheduler's configuration, if one was named.
    pub scheduler_config: Option<Value>,
    /// The version of the scheduler, if one was named.
    pub kube_version: Option<String>,
    /// The version that it emulates, if one was named.
    pub emulated_version: Option<String>,
    /// The feature gates, if some were named.
    pub feature_gates: Option<String>,
    /// The missing kinds; `None`: those of the snapshot.
    pub missing: Option<Vec<MissingKind>>,
}

/// The capture as a JSON document with one object a line, so that captures can be compared
/// line by line.
///
/// # Errors
/// An object cannot be serialized; no such object is known.
pub fn text(snapshot: &ClusterSnapshot, settings: &CaptureSettings) -> serde_json::Result<String> {
    let missing = settings.missing.clone().unwrap_or_else(|| missing_kinds(snapshot));
    let mut fields = vec![
        ("apiVersion", Value::from("kubestep/v1")),
        ("capturedAt", snapshot.taken_at.to_string().into()),
        ("serverVersion", snapshot.server_version.clone().into()),
        ("missing", serde_json::to_value(&missing)?),
        ("schedulerConfig", settings.scheduler_config.clone().unwrap_or_default()),
    ];
    if let Some(leases) = &snapshot.leases {
        fields.push(("leases", serde_json::to_value(&leases.leases)?));
        fields.push(("leaseCandidates", serde_json::to_value(&leases.candidates)?));
    }
    let named = [
        ("kubeVersion", &settings.kube_version),
        ("emulatedVersion", &settings.emulated_version),
        ("featureGates", &settings.feature_gates),
    ];
    fields
        .extend(named.into_iter().filter_map(|(name, value)| Some((name, value.clone()?.into()))));
    let mut parts: Vec<String> =
        fields.into_iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    // Pods come last: they refer to the others.
    let (pods, others) =
        SNAPSHOT_FIELDS.iter().partition::<Vec<_>, _>(|(kind, _)| *kind == Kind::Pod);
    for &(kind, name) in others {
        parts.push(list(name, snapshot, kind)?);
    }
    for kind in custom::declared() {
        let (name, kind) = (kind.full_name(), Kind::Custom(kind));
        if snapshot.of_kind(kind).next().is_some() {
            parts.push(list(&name, snapshot, kind)?);
        }
    }
    for &(kind, name) in pods {
        parts.push(list(name, snapshot, kind)?);
    }
    parts.push(lines(AUXILIARY_FIELD, &snapshot.auxiliary.objects()?));
    Ok(escape_json(format!("{{\n{}\n}}\n", parts.join(",\n"))))
}

fn list(name: &str, snapshot: &ClusterSnapshot, kind: Kind) -> serde_json::Result<String> {
    let objects: Result<Vec<Value>, _> = snapshot.of_kind(kind).map(minimal::json).collect();
    Ok(lines(name, &objects?))
}

/// A field with one object a line.
fn lines(name: &str, objects: &[Value]) -> String {
    let lines: Vec<String> = objects.iter().map(Value::to_string).collect();
    let inside =
        if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join(",\n")) };
    format!("\"{name}\": [{inside}]")
}

/// The object with `apiVersion` and `kind`, as a document of its own.
///
/// # Errors
/// As [`text`].
pub fn document(object: &Object, api_version: &str) -> serde_json::Result<Value> {
    let mut value = object.to_json()?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".into(), api_version.into());
        fields.insert("kind".into(), object.kind().as_str().into());
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::MissingKindAccess;
    use crate::failure::RequestFailure;
    use crate::kinds;
    use crate::list::ListScope;
    use kubestep_source::fixtures::STORIES;
    use kubestep_source::{Filter, Loaded};

    fn objects(input: kubestep_source::ReadInput) -> Vec<Object> {
        input.objects.into_iter().map(|Loaded { object, .. }| object).collect()
    }

    #[test]
    fn every_story_is_read_back_as_it_was() {
        kubestep_scheduler_plugins::declare_kinds();
        for story in STORIES {
            let read =
                kubestep_source::read_text(story.name, story.cluster.into(), &Filter::default());
            let snapshot = ClusterSnapshot::of_objects(objects(read.unwrap()));
            let expected: Vec<Object> = snapshot.objects().cloned().collect();
            let text = text(&snapshot, &CaptureSettings::default()).unwrap();
            let back =
                kubestep_source::read_text("c.json", text.into(), &Filter::default()).unwrap();
            assert_eq!(objects(back), expected, "{}", story.name);
        }
    }

    #[test]
    fn what_is_missing_is_said_when_it_is_read_back() {
        let place = ListScope { row: kinds::row(Kind::CsiNode).unwrap(), namespace: None };
        let mut snapshot =
            ClusterSnapshot { server_version: "v1.36.2".into(), ..ClusterSnapshot::default() };
        snapshot
            .missing
            .push(MissingKindAccess { place, failure: RequestFailure::Refused("no".into()) });
        let settings = CaptureSettings {
            feature_gates: Some("GangScheduling=true".into()),
            scheduler_config: Some(serde_json::json!({"parallelism": 3})),
            kube_version: Some("1.34".into()),
            emulated_version: Some("1.33".into()),
            missing: None,
        };
        let text = text(&snapshot, &settings).unwrap();
        let back = kubestep_source::read_text("c.json", text.into(), &Filter::default()).unwrap();
        assert_eq!(back.captured.server_version, "v1.36.2");
        assert_eq!(back.captured.kube_version, settings.kube_version);
        assert_eq!(back.captured.emulated_version, settings.emulated_version);
        assert_eq!(back.captured.feature_gates, settings.feature_gates);
        assert!(back.scheduler_config.unwrap().text.contains("parallelism: 3"));
        let said =
            "the capture has no csinodes (forbidden): limits on volumes per node are ignored";
        assert_eq!(back.warnings[0], said);
    }
}
