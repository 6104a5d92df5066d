//! How [`PodEdit`]s change a pod.

use std::sync::Arc;

use crate::edit::{Applied, EditError, HostPort, PodEdit, TermRef, object, pod_key, resize};
use kubestep_api::admission::PriorityClasses;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Pod, PodSchedulingGate, PodSpec, SharedList, Toleration, TopologySpreadConstraint,
};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod::qos::qos_class;

pub(super) fn apply(
    world: &mut World,
    key: NamespacedName,
    edit: &PodEdit,
) -> Result<Applied, EditError> {
    let old = world.api().objects().pod(key).cloned();
    let old: Arc<Pod> = old.ok_or_else(|| EditError::missing(pod_key(key), world))?;
    let mut new = old.as_ref().clone();
    let changed = match edit {
        PodEdit::PriorityClass(class) => set_class(world, &mut new, *class),
        edit => change(&mut new, edit),
    };
    changed.map_err(|error| EditError(format!("pod {key}: {error}")))?;
    if new == *old {
        return Err(EditError(format!("pod {key}: nothing changes")));
    }
    Ok(object::store_pod(world, &old, new))
}

/// Sets all that a PriorityClass gives a pod.
fn set_class(world: &World, pod: &mut Pod, class: Symbol) -> Result<(), String> {
    pod.spec.priority_class_name = class;
    (pod.spec.priority, pod.spec.preemption_policy) = (None, None);
    let classes = world.api().objects().priority_classes.values().map(AsRef::as_ref);
    PriorityClasses::new(classes).admit(pod).map_err(|error| error.to_string())
}

fn change(pod: &mut Pod, edit: &PodEdit) -> Result<(), String> {
    match edit {
        PodEdit::Label(key, value) => {
            pod.metadata.labels.insert(*key, *value);
        }
        PodEdit::Unlabel(key) => {
            there(pod.metadata.labels.remove(*key).is_some(), "label", key)?;
        }
        PodEdit::Resize { container, resource, amount } => {
            resize::set_request(pod, *container, *resource, amount)?;
        }
        PodEdit::Priority(priority) => {
            pod.spec.priority = Some(*priority);
            // Otherwise the class would contradict it.
            pod.spec.priority_class_name = Symbol::EMPTY;
        }
        edit => change_spec(&mut pod.spec, edit)?,
    }
    Ok(())
}

fn change_spec(spec: &mut PodSpec, edit: &PodEdit) -> Result<(), String> {
    match edit {
        PodEdit::Tolerate(toleration) => tolerate(spec, toleration),
        PodEdit::Untolerate(toleration) => {
            let mut removed = false;
            spec.tolerations.update(|all| removed = remove(all, |other| other == toleration));
            there(removed, "toleration like that", &"")?;
        }
        PodEdit::Select(key, value) => {
            spec.node_selector.get_or_insert_default().insert(*key, *value);
        }
        PodEdit::Unselect(key) => {
            let removed = spec.node_selector.as_mut().and_then(|labels| labels.remove(*key));
            spec.node_selector.take_if(|labels| labels.is_empty());
            there(removed.is_some(), "node selector for", key)?;
        }
        PodEdit::Affinity(affinity) => {
            spec.affinity = affinity.as_deref().cloned().map(Into::into);
        }
        PodEdit::Relax(term) => relax(spec, *term)?,
        PodEdit::Spread(constraint) => add_spread(spec, constraint),
        PodEdit::Unspread(key) => {
            let mut removed = false;
            let constraints = &mut spec.topology_spread_constraints;
            constraints.update(|all| removed = remove(all, |other| other.topology_key == *key));
            there(removed, "spread constraint on", key)?;
        }
        PodEdit::Port(port) => add_port(spec, *port)?,
        PodEdit::Unport(port) => {
            let removed = remove_port(&mut spec.containers, *port)
                | remove_port(&mut spec.init_containers, *port);
            there(removed, "host port", port)?;
        }
        PodEdit::Gate(name) => spec.scheduling_gates.push(PodSchedulingGate { name: *name }),
        PodEdit::Ungate(name) => {
            let removed = remove(&mut spec.scheduling_gates, |gate| gate.name == *name);
            there(removed, "scheduling gate", name)?;
        }
        // Handled above.
        PodEdit::Label(..)
        | PodEdit::Unlabel(_)
        | PodEdit::Resize { .. }
        | PodEdit::Priority(_)
        | PodEdit::PriorityClass(_) => {}
    }
    Ok(())
}

fn tolerate(spec: &mut PodSpec, toleration: &Toleration) {
    spec.tolerations.update(|all| {
        if !all.contains(toleration) {
            all.push(toleration.clone());
        }
    });
}

/// Removes what matches. `false` if nothing does.
fn remove<T>(all: &mut Vec<T>, matches: impl Fn(&T) -> bool) -> bool {
    let before = all.len();
    all.retain(|item| !matches(item));
    all.len() < before
}

/// The error that a thing to be removed does not exist.
fn there(is_there: bool, what: &str, which: &dyn std::fmt::Display) -> Result<(), String> {
    let missing = || format!("it has no {what} {which}").trim_end().to_owned();
    is_there.then_some(()).ok_or_else(missing)
}

fn relax(spec: &mut PodSpec, term: TermRef) -> Result<(), String> {
    let mut affinity = spec.affinity.as_deref().cloned();
    there(term.remove_from(&mut affinity), "affinity term", &term)?;
    spec.affinity = affinity.map(Into::into);
    Ok(())
}

/// Adds a constraint, or replaces the one on the same key with the same `whenUnsatisfiable`.
fn add_spread(spec: &mut PodSpec, new: &TopologySpreadConstraint) {
    spec.topology_spread_constraints.update(|all| {
        let same = |other: &&mut TopologySpreadConstraint| {
            (other.topology_key, other.when_unsatisfiable)
                == (new.topology_key, new.when_unsatisfiable)
        };
        match all.iter_mut().find(same) {
            Some(there) => *there = new.clone(),
            None => all.push(new.clone()),
        }
    });
}

fn add_port(spec: &mut PodSpec, port: HostPort) -> Result<(), String> {
    there(!spec.containers.is_empty(), "container", &"")?;
    spec.containers.update(|containers| {
        if let Some(container) = containers.first_mut() {
            container.ports.push(kubestep_api::ContainerPort {
                container_port: port.port,
                host_port: port.port,
                host_ip: port.ip,
                protocol: port.protocol,
                ..Default::default()
            });
        }
    });
    Ok(())
}

/// Removes host ports; the container port stays.
fn remove_port(containers: &mut SharedList<kubestep_api::Container>, port: HostPort) -> bool {
    let mut removed = false;
    containers.update(|containers| {
        for found in containers.iter_mut().flat_map(|container| &mut container.ports) {
            let protocol = match found.protocol.is_unset() {
                true => kubestep_api::Protocol::Tcp,
                false => found.protocol,
            };
            let address = port.ip.is_empty() || found.host_ip == port.ip;
            if found.host_port == port.port && protocol == port.protocol && address {
                (found.host_port, found.host_ip) = (0, Symbol::EMPTY);
                removed = true;
            }
        }
    });
    removed
}

/// The immutable fields of a pod that differ, by name.
pub(super) fn fixed_fields(old: &Pod, new: &Pod) -> Vec<&'static str> {
    let (was, mut is) = (&old.spec, new.spec.clone());
    if was.tolerations.iter().all(|toleration| is.tolerations.contains(toleration)) {
        is.tolerations = was.tolerations.clone();
    }
    if is.scheduling_gates.iter().all(|gate| was.scheduling_gates.contains(gate)) {
        is.scheduling_gates = was.scheduling_gates.clone();
    }
    if !was.scheduling_gates.is_empty() && adds_only(was, &is) {
        is.node_selector = was.node_selector.clone();
    }
    if qos_class(old) == qos_class(new) {
        resize::level(&was.containers, &mut is.containers);
        resize::level(&was.init_containers, &mut is.init_containers);
        if is.resources.is_some() && was.resources.is_some() {
            is.resources = was.resources.clone();
        }
    }
    differing(was, &is)
}

/// Whether the node selector only gained labels.
fn adds_only(was: &PodSpec, is: &PodSpec) -> bool {
    let mut had = was.node_selector.iter().flat_map(|labels| labels.iter());
    had.all(|(key, value)| is.node_selector.as_ref().and_then(|now| now.get(key)) == Some(value))
}

fn differing(was: &PodSpec, is: &PodSpec) -> Vec<&'static str> {
    let mut fields = Vec::new();
    macro_rules! compare {
        ($($field:ident $name:literal),* $(,)?) => {
            $(if was.$field != is.$field { fields.push(concat!("spec.", $name)); })*
        };
    }
    compare!(
        scheduler_name "schedulerName", priority "priority",
        priority_class_name "priorityClassName", preemption_policy "preemptionPolicy",
        node_name "nodeName", node_selector "nodeSelector", affinity "affinity",
        tolerations "tolerations", topology_spread_constraints "topologySpreadConstraints",
        containers "containers", init_containers "initContainers", overhead "overhead",
        resources "resources", volumes "volumes", resource_claims "resourceClaims",
        scheduling_gates "schedulingGates", scheduling_group "schedulingGroup",
        workload_ref "workloadRef",
        host_network "hostNetwork", host_users "hostUsers", restart_policy "restartPolicy",
        runtime_class_name "runtimeClassName", service_account_name "serviceAccountName",
        os "os",
    );
    fields
}
