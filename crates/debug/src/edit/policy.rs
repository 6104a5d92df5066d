//! Changes of the scheduler's configuration: the profiles are built again; cluster, queue and clock
//! stay.

use crate::edit::{Applied, EditError, PolicyEdit};
use kubestep_cluster::World;
use kubestep_config::{FeatureGates, Overlay, Switch};

pub(super) fn apply(world: &mut World, edit: &PolicyEdit) -> Result<Applied, EditError> {
    let config = world.config();
    let mut text = config.text.clone();
    let mut overlays = config.overlays.clone();
    let mut features = config.features;
    match edit {
        PolicyEdit::Overlay(overlay) => add(&mut overlays, overlay.clone()),
        PolicyEdit::Feature(name, on) => features = flipped(features, name, *on)?,
        PolicyEdit::Load(new) => {
            text = Some(new.clone());
            overlays.clear();
        }
    }
    let extenders = config.extenders.clone();
    world.reconfigure(text.as_deref(), overlays, &features).map_err(EditError)?;
    let mut notes = Vec::new();
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
