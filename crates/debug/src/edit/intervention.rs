//! Manual scheduling decisions, manual queue moves, and injected faults.

use crate::edit::{Applied, Edit, EditError, Fault, FaultKind, pod_key};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, ObjectKey};
use kubestep_cluster::World;
use kubestep_cluster::faults::BindFault;
use kubestep_config::suggest::closest;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::record::QueueName;
use kubestep_framework::record::intervention::Intervention;
use kubestep_scheduler::what_if::{HoldRule, PendingIntervention, PodSelection};

pub(super) fn apply(world: &mut World, edit: &Edit) -> Result<Applied, EditError> {
    match edit {
        Edit::Decide(pod, what) => decide(world, *pod, *what),
        Edit::Activate(pod) => moved(world, *pod, "is moved to the active queue", World::activate),
        Edit::Requeue(pod) => moved(world, *pod, "waits for an event", World::retry),
        Edit::Hold(rule) => Ok(hold(world, rule)),
        Edit::Release(pods) => release(world, pods.as_ref()),
        Edit::Fail(fault) => fail(world, fault),
        Edit::Heal => heal(world),
        _ => Ok(Applied::default()),
    }
}

fn decide(
    world: &mut World,
    pod: NamespacedName,
    what: Intervention,
) -> Result<Applied, EditError> {
    if let Intervention::Choose(node) | Intervention::Force(node) | Intervention::Veto(node) = what
        && world.api().node(node).is_none()
    {
        let key = ObjectKey { kind: Kind::Node, namespace: Symbol::EMPTY, name: node };
        return Err(EditError::missing(key, world));
    }
    pending(world, pod)?;
    let pending = PendingIntervention { pod: Some(pod), what, lasting: false };
    world.scheduler_mut().interventions_mut().add(pending);
    Ok(Applied { notes: vec![format!("in the next cycle of pod {pod}")] })
}

fn hold(world: &mut World, rule: &HoldRule) -> Applied {
    world.scheduler_mut().interventions_mut().hold(rule.clone());
    let time = rule.timeout;
    let pending = world.api().objects().pods.values();
    let pending = pending.filter(|pod| pod.spec.node_name.is_empty());
    let pods = pending.filter(|pod| rule.pods.matches(&PodInfo::new((*pod).clone()))).count();
    let note = match pods {
        0 => format!("no pending pod matches; future ones are held up to {time}"),
        1 => format!("1 pending pod matches; it is held up to {time}"),
        n => format!("{n} pending pods match; each is held up to {time}"),
    };
    Applied { notes: vec![note] }
}

fn release(world: &mut World, pods: Option<&PodSelection>) -> Result<Applied, EditError> {
    let holds = world.scheduler().interventions().holds();
    let written: Vec<String> = holds.iter().map(|rule| rule.pods.to_string()).collect();
    let note = match (world.release(pods), written.as_slice()) {
        ((false, 0), []) => return Err(EditError("no pod is held manually".into())),
        ((false, 0), written) => {
            let written = written.join(" and of ");
            return Err(EditError(format!("no such hold; there is the hold of {written}")));
        }
        ((_, 0), _) => "no pod was waiting for it".to_owned(),
        ((_, 1), _) => "1 waiting pod continues".to_owned(),
        ((_, n), _) => format!("{n} waiting pods continue"),
    };
    let left = world.scheduler().interventions().holds();
    let kept = left.iter().map(|rule| format!("the hold of {} remains", rule.pods));
    Ok(Applied { notes: std::iter::once(note).chain(kept).collect() })
}

/// Checks that a pod exists and has no node yet.
fn pending(world: &World, pod: NamespacedName) -> Result<(), EditError> {
    let found = world.api().objects().pod(pod);
    let found = found.ok_or_else(|| EditError::missing(pod_key(pod), world))?;
    match found.spec.node_name.text().as_str() {
        "" => Ok(()),
        node => Err(EditError(format!("pod {pod} is already on {node}"))),
    }
}

fn moved(
    world: &mut World,
    pod: NamespacedName,
    condition: &str,
    to: impl FnOnce(&mut World, NamespacedName) -> bool,
) -> Result<Applied, EditError> {
    pending(world, pod)?;
    let place = world.scheduler().queue().queue_of(pod);
    let rejected = |why: &str| Err(EditError(format!("pod {pod} {why}")));
    match place {
        QueueName::None => return rejected("is in no queue: no profile serves its scheduler name"),
        QueueName::Active => return rejected("is already in the active queue"),
        QueueName::InFlight => return rejected("is in its cycle, waiting to be bound"),
        _ => {}
    }
    if to(world, pod) {
        return Ok(Applied::default());
    }
    let held = world.scheduler().queue().get(pod).and_then(|queued| queued.gating_plugin);
    match held {
        Some(plugin) => rejected(&format!("is held by {plugin}")),
        None => rejected(&format!("is {}: only a pod that {condition} can", place.as_str())),
    }
}

fn fail(world: &mut World, fault: &Fault) -> Result<Applied, EditError> {
    if let Some(pod) = fault.pod {
        pending(world, pod)?;
    }
    let lasting = fault.lasting;
    match &fault.what {
        FaultKind::Bind => {
            world.api_mut().faults_mut().fail_binding(BindFault { pod: fault.pod, lasting });
        }
        FaultKind::Plugin(plugin, point) => {
            let frameworks = world.scheduler().frameworks().values();
            let mut at_point = frameworks.flat_map(|framework| framework.at(*point));
            if !at_point.any(|other| other.name() == *plugin) {
                let known = world.registry().descriptors();
                let near = closest(plugin, known.iter().map(|known| known.name));
                let near = near.filter(|near| *near != plugin.as_str());
                let near = near.map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
                return Err(EditError(format!("no plugin {plugin} runs at {point}{near}")));
            }
            let what = Intervention::Fail(*point, *plugin);
            let pending = PendingIntervention { pod: fault.pod, what, lasting };
            world.scheduler_mut().interventions_mut().add(pending);
        }
        FaultKind::Extender(url) => {
            let extenders = &world.config().extenders;
            let index = extenders.iter().position(|extender| extender.url_prefix == *url);
            let known: Vec<&str> = extenders.iter().map(|one| one.url_prefix.as_str()).collect();
            let index = index.ok_or_else(|| match known.as_slice() {
                [] => EditError("the configuration has no extenders".into()),
                known => EditError(format!("no extender at {url}; there is {}", known.join(", "))),
            })?;
            world.api_mut().faults_mut().take_down(index);
        }
    }
    Ok(Applied::default())
}

fn heal(world: &mut World) -> Result<Applied, EditError> {
    let faults = !world.api().faults().is_empty();
    world.api_mut().faults_mut().clear();
    match world.scheduler_mut().interventions_mut().clear() || faults {
        true => Ok(Applied::default()),
        false => Err(EditError("there is nothing to undo".into())),
    }
}
