//! Devices: ask for fewer or for others, tolerate a taint, or let their holders go.

use serde_json::{Value, json};

use super::{Need, Remedies, delete};
use crate::api::{Kind, ObjectKey, ResourceClaim};
use crate::debug::edit::Edit;
use crate::debug::why::cause::{DeviceCause, Devices, Holder};
use crate::engine::pod::NamespacedName;

pub(super) fn cannot_be_had(need: &Need<'_>, cause: &DeviceCause) -> Remedies {
    let DeviceCause::TooFew { request } = cause else { return Remedies::new() };
    let mut remedies: Remedies =
        in_claim(need, request).into_iter().flatten().map(|edit| vec![edit]).collect();
    let free: usize = request.wanted.saturating_sub(request.suitable).max(1);
    let holders = request.taken_by.iter().filter(|holder| !holder.pods.is_empty());
    let freed: Vec<Vec<Edit>> = holders.take(free).map(let_go).collect();
    if !freed.is_empty() {
        remedies.push(freed.concat());
    }
    remedies
}

/// Deletes the pods that use a claim, which frees its devices.
fn let_go(holder: &Holder) -> Vec<Edit> {
    let namespace = holder.claim.namespace;
    holder.pods.iter().map(|pod| delete(NamespacedName::new(namespace, *pod))).collect()
}

/// What the request itself could do without.
fn in_claim(need: &Need<'_>, request: &Devices) -> Option<Vec<Edit>> {
    let (key, claim) = claim(need, request)?;
    let (name, alternative) = match request.request.split_once('/') {
        Some((name, alternative)) => (name, Some(alternative)),
        None => (request.request.as_str(), None),
    };
    let requests = &claim.spec.devices.requests;
    let at = requests.iter().position(|one| one.name == name)?;
    let path = match alternative {
        None => format!("spec.devices.requests[{at}].exactly"),
        Some(alternative) => {
            let all = &requests.get(at)?.first_available;
            let sub = all.iter().position(|one| one.name == alternative)?;
            format!("spec.devices.requests[{at}].firstAvailable[{sub}]")
        }
    };
    let set = |field: &str, value: Option<Value>| {
        let object =
            ObjectKey { kind: Kind::ResourceClaim, namespace: key.namespace, name: key.name };
        Edit::Set { object, path: format!("{path}.{field}"), value }
    };
    let mut edits = Vec::new();
    if !request.unselected.is_empty() {
        edits.push(set("selectors", None));
    }
    if request.tainted > 0 {
        edits.push(set("tolerations", Some(json!([{"operator": "Exists"}]))));
    }
    if request.suitable > 0 {
        edits.push(set("count", Some(json!(request.suitable))));
    }
    Some(edits)
}

fn claim<'a>(need: &Need<'a>, request: &Devices) -> Option<(NamespacedName, &'a ResourceClaim)> {
    let (namespace, name) = request.claim.split_once('/')?;
    let key = NamespacedName::new(namespace.into(), name.into());
    Some((key, need.world.api().objects().resource_claims.get(&key)?.as_ref()))
}
