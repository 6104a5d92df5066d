//! Devices: request fewer or others, tolerate a taint, drop a constraint, or delete the pods that
//! use them.

use serde_json::{Value, json};

use super::{Obstacle, Remedies, delete};
use crate::edit::{Edit, PodEdit};
use crate::why::cause::{DeviceCause, Devices, Holder, UnmetConstraint};
use kubestep_api::{Kind, ObjectKey, Quantity, QuantityFormat, ResourceClaim};
use kubestep_framework::pod::NamespacedName;

pub(super) fn unavailable(need: &Obstacle<'_>, cause: &DeviceCause) -> Remedies {
    match cause {
        DeviceCause::TooFew { request } => {
            let own = in_claim(need, request).into_iter().flatten().map(|edit| vec![edit]);
            own.chain(fewer_of_resource(need, request)).chain(freed(&[request])).collect()
        }
        DeviceCause::NotTogether { requests, constraints } if constraints.is_empty() => {
            freed(&requests.iter().collect::<Vec<_>>()).into_iter().collect()
        }
        DeviceCause::NotTogether { constraints, .. } => {
            let unset: Option<Vec<Edit>> =
                constraints.iter().rev().map(|one| without(need, one)).collect();
            unset.into_iter().collect()
        }
        _ => Remedies::new(),
    }
}

/// Deletes the fewest pods that free enough devices for the requests.
fn freed(requests: &[&Devices]) -> Option<Vec<Edit>> {
    let wanted: usize = requests.iter().map(|request| request.wanted).sum();
    let suitable = requests.iter().map(|request| request.suitable).max().unwrap_or(0);
    let short = wanted.saturating_sub(suitable).max(1);
    let holders = requests.iter().flat_map(|request| &request.taken_by);
    let mut holders: Vec<&Holder> = holders.filter(|holder| !holder.pods.is_empty()).collect();
    let order = |one: &Holder| (std::cmp::Reverse(one.devices.len()), one.pods.len(), one.claim);
    holders.sort_by_key(|holder| order(holder));
    holders.dedup_by_key(|holder| holder.claim);
    let (mut devices, mut edits) = (0, Vec::new());
    for holder in holders {
        if devices >= short {
            break;
        }
        devices += holder.devices.len();
        edits.extend(let_go(holder));
    }
    (!edits.is_empty()).then_some(edits)
}

/// The claim without the constraint that its devices cannot meet.
fn without(need: &Obstacle<'_>, unmet: &UnmetConstraint) -> Option<Edit> {
    let (key, _) = claim(need, &unmet.claim)?;
    let path = format!("spec.devices.constraints[{}]", unmet.index);
    Some(Edit::Set { object: object(key), path, value: None })
}

/// Requests only as many of an extended resource as there are devices.
fn fewer_of_resource(need: &Obstacle<'_>, request: &Devices) -> Option<Vec<Edit>> {
    let resource = request.resource.filter(|_| request.suitable > 0)?;
    let amount = i64::try_from(request.suitable).ok()?;
    let amount = Quantity::new(amount, QuantityFormat::DecimalSi);
    Some(vec![need.pod(PodEdit::Resize { container: None, resource, amount })])
}

fn object(claim: NamespacedName) -> ObjectKey {
    ObjectKey { kind: Kind::ResourceClaim, namespace: claim.namespace, name: claim.name }
}

/// Deletes the pods that use a claim, which frees its devices.
fn let_go(holder: &Holder) -> Vec<Edit> {
    let namespace = holder.claim.namespace;
    holder.pods.iter().map(|pod| delete(NamespacedName::new(namespace, *pod))).collect()
}

/// Relaxes the request itself.
fn in_claim(need: &Obstacle<'_>, request: &Devices) -> Option<Vec<Edit>> {
    let (key, claim) = claim(need, &request.claim)?;
    let (path, wanted) = place(claim, &request.request)?;
    let set = |field: &str, value: Option<Value>| Edit::Set {
        object: object(key),
        path: format!("{path}{field}"),
        value,
    };
    let mut edits = Vec::new();
    if !request.unselected.is_empty() {
        edits.push(set(".selectors", None));
    }
    if request.tainted > 0 {
        edits.push(set(".tolerations", Some(json!([{"operator": "Exists"}]))));
    }
    if request.suitable > 0 {
        edits.push(match (request.all, wanted) {
            (false, _) => set(".count", Some(json!(request.suitable))),
            // Mode and count can only be changed together.
            (true, mut wanted) => {
                wanted["allocationMode"] = json!("ExactCount");
                wanted["count"] = json!(request.suitable);
                set("", Some(wanted))
            }
        });
    }
    Some(edits)
}

/// The path of a request in its claim, and its value.
fn place(claim: &ResourceClaim, request: &str) -> Option<(String, Value)> {
    let (name, alternative) = match request.split_once('/') {
        Some((name, alternative)) => (name, Some(alternative)),
        None => (request, None),
    };
    let requests = &claim.spec.devices.requests;
    let at = requests.iter().position(|one| one.name == name)?;
    let found = requests.get(at)?;
    let path = format!("spec.devices.requests[{at}]");
    match alternative {
        None => {
            Some((format!("{path}.exactly"), serde_json::to_value(found.exactly.as_ref()?).ok()?))
        }
        Some(alternative) => {
            let all = &found.first_available;
            let sub = all.iter().position(|one| one.name == alternative)?;
            Some((format!("{path}.firstAvailable[{sub}]"), serde_json::to_value(&all[sub]).ok()?))
        }
    }
}

/// A claim without a controller: an edit of one that a controller created is lost when the
/// controller creates the next.
fn claim<'a>(need: &Obstacle<'a>, name: &str) -> Option<(NamespacedName, &'a ResourceClaim)> {
    let (namespace, name) = name.split_once('/')?;
    let key = NamespacedName::new(namespace.into(), name.into());
    let claim = need.world.api().objects().resource_claims.get(&key)?;
    claim.metadata.controller().is_none().then_some((key, claim.as_ref()))
}
