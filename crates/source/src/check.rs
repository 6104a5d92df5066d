//! Checks after everything is read: duplicate names, and input that is valid but suspicious.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::error::SourceError;
use super::files::FileText;
use super::{Loaded, ReadInput, UnexpectedFieldAt};
use indexmap::IndexMap;
use kubestep_api::words::count;
use kubestep_api::{Kind, Object, ObjectKey, Pod, TaintEffect};

/// The warning about an input without a pending pod.
pub const NOTHING_PENDING: &str = "no pod is pending: there is nothing to schedule";
/// The warning about an input that a scheduler reads nothing of.
pub const NOTHING_READ: &str = "the input holds no object that the scheduler reads";
/// Names listed in a warning; further ones are only counted.
const LISTED: usize = 3;
/// The most unexpected fields that are listed.
const UNEXPECTED_LISTED: usize = 10;

/// Rejects two objects with the same key, of which one would silently replace the other.
pub(super) fn duplicates(objects: &[Loaded], files: &[FileText]) -> Result<(), Box<SourceError>> {
    let mut seen: HashMap<ObjectKey, usize> = HashMap::with_capacity(objects.len());
    for (at, loaded) in objects.iter().enumerate() {
        let key = loaded.object.key();
        let nameless = loaded.object.metadata().name.is_empty();
        let message = match seen.insert(key, at) {
            _ if nameless => "has no name".to_string(),
            Some(first) => format!("is already defined at {}", objects[first].origin),
            None => continue,
        };
        let help = if nameless {
            "give it a metadata.name"
        } else {
            "keep one of the two, or exclude both with --exclude"
        };
        let error = SourceError {
            file: loaded.origin.file.to_string(),
            document: loaded.origin.document,
            line: loaded.origin.line as usize,
            object: if nameless { key.kind.to_string() } else { key.to_string() },
            message,
            help: help.into(),
            ..Default::default()
        };
        // The text of large files is not kept.
        let file = files.iter().find(|file| file.name == error.file.as_str());
        return Err(match file {
            Some(file) => error.with_snippet(&file.piece()),
            None => Box::new(error),
        });
    }
    Ok(())
}

/// The first unexpected field, as an error.
pub(super) fn strict(input: &ReadInput, files: &[FileText]) -> Result<(), Box<SourceError>> {
    let Some(UnexpectedFieldAt { object, origin, column, field }) = input.unexpected_fields.first()
    else {
        return Ok(());
    };
    let error = SourceError {
        file: origin.file.to_string(),
        document: origin.document,
        line: origin.line as usize,
        column: *column,
        object: object.to_string(),
        message: field.to_string(),
        help: "correct the name, or remove the field".into(),
        ..Default::default()
    };
    let file = files.iter().find(|file| file.name == error.file.as_str());
    Err(match file {
        Some(file) => error.with_snippet(&file.piece()),
        None => Box::new(error),
    })
}

/// Unexpected fields: one line for all objects of a kind that have the same.
fn unexpected_fields(input: &mut ReadInput) {
    let mut found: IndexMap<(Kind, String), (&UnexpectedFieldAt, usize)> = IndexMap::new();
    for unexpected in &input.unexpected_fields {
        let key = (unexpected.object.kind, without_indexes(&unexpected.field.to_string()));
        found.entry(key).or_insert((unexpected, 0)).1 += 1;
    }
    let line = |(first, times): &(&UnexpectedFieldAt, usize)| {
        let UnexpectedFieldAt { object, origin, field, .. } = first;
        let more = match times {
            1 => String::new(),
            times => format!(" ({} more like it)", times - 1),
        };
        format!("{origin}: {object}: {field}{more}")
    };
    let mut lines: Vec<String> = found.values().take(UNEXPECTED_LISTED).map(line).collect();
    if found.len() > UNEXPECTED_LISTED {
        lines.push(count(found.len() - UNEXPECTED_LISTED, "more such field"));
    }
    input.warnings.extend(lines);
}

/// A field's path with `[]` for each place in a list.
fn without_indexes(path: &str) -> String {
    let mut parts = path.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts
        .fold(first, |path, part| path + "[]" + part.split_once(']').map_or(part, |(_, rest)| rest))
}

/// Adds warnings about input that is probably not intended.
pub(super) fn warn(input: &mut ReadInput) {
    unexpected_fields(input);
    if input.filtered > 0 {
        let filtered = input.filtered;
        input
            .warnings
            .push(format!("{} excluded by -n, -l or --exclude", count(filtered, "object")));
    }
    if input.objects.is_empty() {
        input.warnings.push(NOTHING_READ.into());
        return;
    }
    unknown_nodes(input);
    unknown_effects(input);
    composite_groups(input);
    if !pods(input).any(|pod| pod.spec.node_name.is_empty() && !pod.is_terminal()) {
        input.warnings.push(NOTHING_PENDING.into());
    }
    if !input.objects.iter().any(|loaded| loaded.object.kind() == Kind::Node) {
        input.warnings.push("there is no node: no pod can be scheduled".into());
    }
}

/// Reports pod groups that are part of larger ones, which only 1.37 has.
fn composite_groups(input: &mut ReadInput) {
    let parent = |loaded: &Loaded| match &loaded.object {
        Object::PodGroup(group) => group.spec.parent_composite_pod_group_name,
        _ => None,
    };
    let number = input.objects.iter().filter_map(parent).count();
    if number > 0 {
        input.warnings.push(format!(
            "{} of a CompositePodGroup: kubestep schedules each on its own, because no recorded \
             decision shows yet how kube-scheduler treats them as a whole",
            count(number, "pod group")
        ));
    }
}

/// Warns about excluded running pods: their nodes look emptier than they are.
pub(super) fn note_filtered(input: &mut ReadInput, object: &Object) {
    const WARNING: &str = "running pods were excluded: they use no capacity of their nodes";
    if let Object::Pod(pod) = object
        && !pod.spec.node_name.is_empty()
        && !pod.is_terminal()
        && !input.warnings.iter().any(|warning| warning == WARNING)
    {
        input.warnings.push(WARNING.into());
    }
}

fn pods(input: &ReadInput) -> impl Iterator<Item = &Pod> {
    input.objects.iter().filter_map(|loaded| match &loaded.object {
        Object::Pod(pod) => Some(&**pod),
        _ => None,
    })
}

/// Reports pods on nodes that do not exist. The pods keep their node, and the engine caches it
/// without a node object, as upstream.
fn unknown_nodes(input: &mut ReadInput) {
    let nodes = input.objects.iter().filter(|loaded| loaded.object.kind() == Kind::Node);
    let nodes: HashSet<_> = nodes.map(|loaded| loaded.object.metadata().name).collect();
    let lost: Vec<_> = pods(input)
        .map(|pod| pod.spec.node_name)
        .filter(|name| !name.is_empty() && !nodes.contains(name))
        .collect();
    if lost.is_empty() {
        return;
    }
    let names: BTreeSet<_> = lost.iter().collect();
    let mut listed: Vec<String> = names.iter().take(LISTED).map(|name| name.to_string()).collect();
    let more = format!("{} more", names.len().saturating_sub(LISTED));
    if names.len() > LISTED {
        listed.push(more);
    }
    let verb = if lost.len() == 1 { "is" } else { "are" };
    input.warnings.push(format!(
        "{} {verb} on {} that the input does not contain: {}",
        count(lost.len(), "pod"),
        count(names.len(), "node"),
        listed.join(", ")
    ));
}

/// Reports unknown taint effects, which Kubernetes ignores: most likely typos.
fn unknown_effects(input: &mut ReadInput) {
    let is_unknown = |effect: &TaintEffect| matches!(effect, TaintEffect::Other(_));
    let mut found = Vec::new();
    for Loaded { object, origin } in &input.objects {
        let effect = match object {
            Object::Node(node) => {
                node.spec.taints.iter().map(|taint| taint.effect).find(is_unknown)
            }
            Object::Pod(pod) => pod
                .spec
                .tolerations
                .iter()
                .map(|toleration| toleration.effect)
                .find(|effect| is_unknown(effect) && !effect.is_unset()),
            _ => None,
        };
        if let Some(effect) = effect {
            let (key, effect) = (object.key(), effect.as_str());
            found.push(format!(
                "{key} at {origin}: {effect:?} is not a taint effect and is ignored"
            ));
        }
    }
    let more = found.len().saturating_sub(LISTED);
    found.truncate(LISTED);
    input.warnings.extend(found);
    if more > 0 {
        input.warnings.push(format!("{} more with such an effect", count(more, "object")));
    }
}
