//! Changes of the scheduler's configuration, and the edits on offer for its rows. A change builds the
//! profiles again; cluster, queue and clock stay.

use std::fmt;
use std::sync::Arc;

use crate::edit::offers::EditOffer;
use crate::edit::{Applied, EditError, PolicyEdit};
use kubestep_cluster::World;
use kubestep_config::rows::{About, Row};
use kubestep_config::versions::Served;
use kubestep_config::{ExtensionPoint, FeatureGates, Overlay, Switch};
use kubestep_framework::registry::Registry;

/// A configuration to load, YAML or JSON.
#[derive(Clone, Default)]
pub struct NewConfiguration {
    /// The document as it was read or typed.
    pub text: String,
    /// The plugins that it can name; `None`: those that the cluster's configuration can.
    registry: Option<Arc<Registry>>,
    /// A sentence for each plugin that is missing.
    notes: Vec<String>,
}

impl NewConfiguration {
    /// The same with the plugins that it can name.
    pub(super) fn with_plugins<E>(
        mut self,
        find: impl FnOnce(&str) -> Result<(Registry, Vec<String>), E>,
    ) -> Result<NewConfiguration, E> {
        let (registry, notes) = find(&self.text)?;
        (self.registry, self.notes) = (Some(Arc::new(registry)), notes);
        Ok(self)
    }
}

impl From<String> for NewConfiguration {
    fn from(text: String) -> NewConfiguration {
        NewConfiguration { text, ..NewConfiguration::default() }
    }
}

/// The plugins follow from the document.
impl PartialEq for NewConfiguration {
    fn eq(&self, other: &NewConfiguration) -> bool {
        self.text == other.text
    }
}

impl Eq for NewConfiguration {}

impl fmt::Debug for NewConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

pub(super) fn apply(world: &mut World, edit: &PolicyEdit) -> Result<Applied, EditError> {
    let config = world.config();
    let mut text = config.text.clone();
    let mut overlays = config.overlays.clone();
    let mut features = config.features;
    let (mut notes, mut registry) = (Vec::new(), None);
    match edit {
        PolicyEdit::Overlay(overlay) => add(&mut overlays, overlay.clone()),
        PolicyEdit::Feature(name, on) => features = flipped(features, name, *on)?,
        PolicyEdit::Version(served) => features = at_version(features, served, &mut notes)?,
        PolicyEdit::Load(new) => {
            text = Some(new.text.clone());
            overlays.clear();
            registry.clone_from(&new.registry);
            notes.extend(new.notes.iter().cloned());
        }
    }
    let extenders = config.extenders.clone();
    let registry = registry.unwrap_or_else(|| world.shared_registry().clone());
    world
        .reconfigure_with(registry, text.as_deref(), overlays, &features)
        .map_err(|error| EditError(error.to_string()))?;
    if !world.config().extenders.is_empty() && world.config().extenders != extenders {
        notes.push("the new extenders are not called and count as unreachable".into());
    }
    Ok(Applied { notes })
}

/// A weight replaces an earlier one of the same plugin.
fn add(overlays: &mut Vec<Overlay>, overlay: Overlay) {
    let is_weight = |overlay: &Overlay| matches!(overlay.switch, Switch::Weight(_));
    if is_weight(&overlay) {
        overlays.retain(|other| {
            let same = (other.plugin, other.profile) == (overlay.plugin, overlay.profile);
            !(same && is_weight(other))
        });
    }
    overlays.push(overlay);
}

fn flipped(features: FeatureGates, name: &str, on: bool) -> Result<FeatureGates, EditError> {
    let flipped = features.with_pairs([(name, on)]);
    let flipped = flipped.map_err(|error| EditError(error.to_string()))?;
    if flipped == features {
        let state = if on { "on" } else { "off" };
        return Err(EditError(format!("feature gate {name} is already {state}")));
    }
    Ok(flipped)
}

/// The gates of another version, with those that are set as far as it takes them.
fn at_version(
    gates: FeatureGates,
    served: &Served,
    notes: &mut Vec<String>,
) -> Result<FeatureGates, EditError> {
    let (adopted, rejected) =
        served.gates().adopted(&gates.as_set()).map_err(|error| EditError(error.to_string()))?;
    if adopted == gates {
        return Err(EditError(format!("kube-scheduler is {} already", gates.version_words())));
    }
    notes.extend(served.notices());
    notes.extend(rejected.iter().map(|why| format!("a feature gate is not set any more: {why}")));
    Ok(adopted)
}

/// Decides by these gates from now on; configuration, cluster and queue are kept.
pub(crate) fn set_gates(world: &mut World, gates: FeatureGates) -> Result<(), EditError> {
    let (text, overlays) = (world.config().text.clone(), world.config().overlays.clone());
    world
        .reconfigure(text.as_deref(), overlays, &gates)
        .map_err(|error| EditError(error.to_string()))
}

/// The edits for a row, and the name of that row. Loading another configuration, or deciding as
/// another version, is on offer for every row.
pub fn offers(rows: &[Row], at: usize) -> (String, Vec<EditOffer>) {
    let row = rows.get(at);
    let mut found = match row.map(|row| row.about) {
        Some(About::Plugin(_) | About::OtherPlugin) => of_plugin(rows, at),
        Some(About::Gate(feature)) => {
            let on = row.is_some_and(|row| row.value == "off");
            vec![EditOffer::whole(format!("feature {}={on}", feature.name()))]
        }
        _ => Vec::new(),
    };
    found.push(EditOffer::begun("kube-version ".into(), "VERSION"));
    found.push(EditOffer::begun("config @".into(), "FILE"));
    (row.map_or_else(|| "configuration".into(), |row| row.name.clone()), found)
}

fn of_plugin(rows: &[Row], at: usize) -> Vec<EditOffer> {
    let above = rows.get(..=at).unwrap_or_default();
    let Some(name) = above.last().map(|row| &row.name) else { return Vec::new() };
    let point = above.iter().rev().find_map(|row| match row.about {
        About::Point(point) => Some(point),
        _ => None,
    });
    let profile = above.iter().rev().find_map(|row| row.name.strip_prefix("Profile "));
    let within = profile.map(|profile| format!(" in {profile}")).unwrap_or_default();
    let mut found = Vec::new();
    if point == Some(ExtensionPoint::Score) {
        found.push(EditOffer::begun(format!("weight {name}="), "NUMBER"));
    }
    found.extend(point.map(|point| EditOffer::whole(format!("disable {name} at {point}{within}"))));
    found.push(EditOffer::whole(format!("disable {name}{within}")));
    found
}
