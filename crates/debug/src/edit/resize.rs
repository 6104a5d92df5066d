//! Resizing: sets a request of one container or of the whole pod, and knows what the API lets
//! change in an existing pod.

use kubestep_api::intern::Symbol;
use kubestep_api::{Container, Pod, Quantity, QuantityFormat, ResourceRequirements, SharedList};
use kubestep_framework::pod::requests::is_sidecar;

/// The resources whose requests can change in an existing pod (ValidatePodResize).
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// Sets a request. Without a container, the containers keep their shares.
pub(super) fn set_request(
    pod: &mut Pod,
    container: Option<Symbol>,
    resource: Symbol,
    amount: &Quantity,
) -> Result<(), String> {
    if amount.sign().is_lt() {
        return Err(format!("{resource}: a request cannot be negative"));
    }
    match container {
        Some(name) => {
            let mut found = false;
            for containers in [&mut pod.spec.containers, &mut pod.spec.init_containers] {
                containers.update(|all| {
                    for one in all.iter_mut().filter(|one| one.name == name) {
                        set(&mut one.resources, resource, amount);
                        found = true;
                    }
                });
            }
            if !found {
                return Err(format!("it has no container {name}"));
            }
        }
        None => set_all(pod, resource, amount)?,
    }
    Ok(())
}

fn set_all(pod: &mut Pod, resource: Symbol, amount: &Quantity) -> Result<(), String> {
    if pod.spec.containers.is_empty() {
        return Err("it has no container".into());
    }
    let whole = pod.spec.resources.as_deref_mut();
    let whole = whole.filter(|whole| whole.request(resource).is_some());
    let of_pod = whole.map(|whole| set(whole, resource, amount)).is_some();
    let asked = running(pod, resource);
    // With a pod-level request, the containers only must not exceed it together.
    if !of_pod || asked.iter().sum::<i64>() > units(resource, Some(amount)) {
        set_running(pod, resource, shares(resource, amount, &asked));
    }
    cap_init_containers(pod, resource, amount);
    Ok(())
}

/// The requests of the containers that run together: containers, then sidecars.
fn running(pod: &Pod, resource: Symbol) -> Vec<i64> {
    let sidecars = pod.spec.init_containers.iter().filter(|one| is_sidecar(one));
    pod.spec.containers.iter().chain(sidecars).map(|one| asks(one, resource)).collect()
}

fn set_running(pod: &mut Pod, resource: Symbol, shares: Vec<Quantity>) {
    let mut shares = shares.into_iter();
    let mut set_next = |one: &mut Container| {
        if let Some(share) = shares.next() {
            set(&mut one.resources, resource, &share);
        }
    };
    pod.spec.containers.update(|all| all.iter_mut().for_each(&mut set_next));
    pod.spec.init_containers.update(|all| {
        all.iter_mut().filter(|one| is_sidecar(one)).for_each(&mut set_next);
    });
}

/// Caps each init container, together with the sidecars started before it, at the amount.
fn cap_init_containers(pod: &mut Pod, resource: Symbol, amount: &Quantity) {
    let whole = units(resource, Some(amount));
    pod.spec.init_containers.update(|all| {
        let mut before = 0;
        for one in all {
            let own = asks(one, resource);
            if is_sidecar(one) {
                before += own;
            } else if before + own > whole {
                let left = (whole - before).max(0);
                set(&mut one.resources, resource, &quantity(resource, left, amount.format()));
            }
        }
    });
}

/// The request of a container, in the resource's smallest unit.
pub(crate) fn asks(container: &Container, resource: Symbol) -> i64 {
    units(resource, container.resources.request(resource))
}

fn quantity(resource: Symbol, amount: i64, format: QuantityFormat) -> Quantity {
    match resource.as_str() {
        "cpu" => Quantity::new_milli(amount, format),
        _ => Quantity::new(amount, format),
    }
}

/// A request in the resource's smallest unit: millicores for CPU, whole units for others.
fn units(resource: Symbol, request: Option<&Quantity>) -> i64 {
    request.map_or(0, |request| match resource.as_str() {
        "cpu" => request.milli_value(),
        _ => request.value(),
    })
}

/// `amount` in the proportions of `asked`; all to the first if nothing was requested.
fn shares(resource: Symbol, amount: &Quantity, asked: &[i64]) -> Vec<Quantity> {
    let total: i128 = asked.iter().map(|share| i128::from(*share)).sum();
    let none = Quantity::new(0, amount.format());
    let holders = asked.iter().filter(|share| **share > 0).count();
    if total == 0 || holders == 1 {
        let holder = asked.iter().position(|share| *share > 0).unwrap_or(0);
        let share = |at: usize| if at == holder { amount.clone() } else { none.clone() };
        return (0..asked.len()).map(share).collect();
    }
    let whole = units(resource, Some(amount));
    let mut left = whole;
    let last = asked.iter().rposition(|share| *share > 0).unwrap_or(0);
    let mut share = |at: usize, asked: i64| {
        let part = i128::from(whole) * i128::from(asked) / total;
        let part = if at == last { left } else { i64::try_from(part).unwrap_or(left) };
        left -= part;
        quantity(resource, part, amount.format())
    };
    asked.iter().enumerate().map(|(at, asked)| share(at, *asked)).collect()
}

/// Sets a request, and the limit if it would be too low or must be equal: an API server rejects a
/// resize that changes the QoS class.
fn set(resources: &mut ResourceRequirements, resource: Symbol, amount: &Quantity) {
    let old = resources.request(resource).cloned();
    let was_equal = |limit: &Quantity| !amount.is_zero() && old.as_ref() == Some(limit);
    let limit = resources.limits.as_mut().and_then(|limits| limits.get_mut(resource));
    let may_differ = ["cpu", "memory", "ephemeral-storage"].contains(&resource.as_str());
    let has_limit = limit.is_some();
    if let Some(limit) = limit
        && (!may_differ || *limit < *amount || was_equal(limit))
    {
        *limit = amount.clone();
    }
    // With a limit, a missing request defaults to the limit.
    if amount.is_zero() && !has_limit {
        if let Some(requests) = &mut resources.requests {
            requests.remove(resource);
        }
        return;
    }
    resources.requests.get_or_insert_default().insert(resource, amount.clone());
}

/// Resets the images and the CPU and memory requests and limits of containers of the same names to
/// the old ones: those are the fields that the API lets change.
pub(super) fn level(was: &SharedList<Container>, is: &mut SharedList<Container>) {
    if was.len() != is.len() {
        return;
    }
    is.update(|all| {
        for (old, new) in was.iter().zip(all) {
            new.image = old.image;
            for name in RESIZABLE.map(Symbol::new) {
                copy(&old.resources.requests, &mut new.resources.requests, name);
                copy(&old.resources.limits, &mut new.resources.limits, name);
            }
        }
    });
}

fn copy(
    from: &Option<kubestep_api::ResourceList>,
    to: &mut Option<kubestep_api::ResourceList>,
    name: Symbol,
) {
    match from.as_ref().and_then(|amounts| amounts.get(name)) {
        Some(amount) => {
            to.get_or_insert_default().insert(name, amount.clone());
        }
        None => {
            if let Some(amounts) = to {
                amounts.remove(name);
            }
        }
    }
    if from.is_none() {
        to.take_if(|amounts| amounts.is_empty());
    }
}
