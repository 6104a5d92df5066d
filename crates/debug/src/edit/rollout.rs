//! Rollouts of workloads: `rollout deployment shop/web image=web:2 cpu=500m`.

use std::fmt;

use super::display::written;
use super::parse::{ParseResult, WordsLeft, assignment, quantity};
use super::resize::set_request;
use super::{Applied, EditError};
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_api::{Pod, Quantity};
use kubestep_cluster::World;
use kubestep_cluster::rollout::{RolloutState, RolloutStep, Strategy, WorkloadKind, WorkloadName};
use kubestep_config::Feature;
use kubestep_framework::pod::NamespacedName;

/// What changes in the template of a workload. Without a change, its pods are only replaced, as
/// `kubectl rollout restart` does.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TemplateEdit {
    /// The container; `None`: the only one for an image, all together for a request.
    pub container: Option<Symbol>,
    /// The container's image in the new template.
    pub image: Option<Symbol>,
    /// New requests, by resource.
    pub requests: Vec<(Symbol, Quantity)>,
}

/// The workload and the changes of its template.
pub(super) fn parse(words: &mut WordsLeft<'_>) -> ParseResult<(WorkloadName, TemplateEdit)> {
    let kind = words.need("the kind")?;
    let kind = WorkloadKind::by_name(kind)
        .ok_or_else(|| format!("{kind:?} is not deployment, statefulset or daemonset"))?;
    let name = words.need("the name")?;
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    let key = NamespacedName::new(namespace.into(), name.into());
    let mut template = TemplateEdit::default();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            None if template == TemplateEdit::default() => template.container = Some(word.into()),
            None => return Err(format!("{word:?} has no equals sign")),
            Some(("image", _)) => template.image = Some(assignment(word)?.1.into()),
            Some(_) => template.requests.push(quantity(word)?),
        }
    }
    match template {
        TemplateEdit { container: Some(container), image: None, ref requests }
            if requests.is_empty() =>
        {
            Err(format!("nothing changes in container {container}"))
        }
        template => Ok((WorkloadName { kind, key }, template)),
    }
}

/// ` c image=web:2 cpu=0.5`, with a space before each part.
impl fmt::Display for TemplateEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(container) = self.container {
            write!(f, " {container}")?;
        }
        if let Some(image) = self.image {
            write!(f, " image={image}")?;
        }
        for (resource, amount) in &self.requests {
            write!(f, " {resource}={}", written(*resource, amount))?;
        }
        Ok(())
    }
}

/// Begins the rollout; its pods are replaced as time passes.
pub(super) fn apply(
    world: &mut World,
    workload: WorkloadName,
    template: &TemplateEdit,
) -> Result<Applied, EditError> {
    let is_known = world
        .rollout(workload, |pod| template.change(pod))
        .map_err(|error| EditError(error.to_string()))?;
    let mut notes = Vec::new();
    if !is_known {
        notes.push(format!("{workload} itself is not in the input: its strategy is the default"));
    }
    notes.extend(unused_limit(world, workload));
    let rollout = world.disruptions().and_then(|all| all.rollouts().last());
    let Some(rollout) = rollout else { return Ok(Applied { notes }) };
    let is_deleted = |step: &&RolloutStep| step.deleted_from.is_some();
    let deleted = rollout.steps().iter().filter(is_deleted).count();
    let created = rollout.steps().len() - deleted;
    let is_complete = matches!(rollout.state(), RolloutState::Complete(_));
    notes.push(match rollout.strategy() {
        Strategy::OnDelete { .. } => "its pods are replaced only when they are deleted".into(),
        strategy => format!(
            "{strategy}: {} created and {deleted} deleted at once{}",
            count(created, "pod"),
            if is_complete { "; complete" } else { "" }
        ),
    });
    Ok(Applied { notes })
}

/// That the controller does not read a StatefulSet's `maxUnavailable`.
fn unused_limit(world: &World, workload: WorkloadName) -> Option<String> {
    let is_set = workload.kind == WorkloadKind::StatefulSet;
    let set = world.api().objects().stateful_sets.get(&workload.key).filter(|_| is_set)?;
    let update = set.spec.update_strategy.rolling_update.as_ref()?;
    let gate = Feature::MaxUnavailableStatefulSet;
    let is_unused = update.max_unavailable.is_some() && !world.scheduler().features().enabled(gate);
    is_unused.then(|| {
        let name = gate.name();
        format!("maxUnavailable is ignored without the feature gate: --feature-gates {name}=true")
    })
}

impl TemplateEdit {
    fn change(&self, pod: &mut Pod) -> Result<(), String> {
        if let Some(image) = self.image {
            self.set_image(pod, image)?;
        }
        let mut requests = self.requests.iter();
        requests
            .try_for_each(|(resource, amount)| set_request(pod, self.container, *resource, amount))
    }

    fn set_image(&self, pod: &mut Pod, image: Symbol) -> Result<(), String> {
        let names: Vec<String> =
            pod.spec.containers.iter().map(|container| container.name.to_string()).collect();
        let wanted = match (self.container, names.as_slice()) {
            (Some(name), _) => name.to_string(),
            (None, [only]) => only.clone(),
            (None, _) => {
                return Err(format!("it has several containers: name one of {}", names.join(", ")));
            }
        };
        if !names.contains(&wanted) {
            return Err(format!("it has no container {wanted}"));
        }
        pod.spec.containers.update(|containers| {
            let named = containers.iter_mut().filter(|one| *one.name == *wanted);
            named.for_each(|one| one.image = image);
        });
        Ok(())
    }
}
