//! NodeVolumeLimits: the driver, its number of volumes on the node and its limit.

use serde::Serialize;

use super::volume_binding::{VolumeCause, VolumeProblem};
use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_api::intern::Symbol;
use kubestep_plugins::node_volume_limits::{LimitReason, OverLimit, reason};
use kubestep_plugins::volumes;

/// A CSI driver that has no capacity for the pod's volumes, or is not on the node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeLimit {
    /// Name of the driver.
    pub driver: Symbol,
    /// The arithmetic; `None` if the driver is not on the node.
    pub count: Option<VolumeCount>,
}

/// The arithmetic of a driver's volumes on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeCount {
    /// The limit of the node.
    pub limit: i64,
    /// The number of attached volumes.
    pub attached: i64,
    /// The number of the pod's new volumes.
    pub new: i64,
}

impl CauseText for VolumeLimit {
    fn gist(&self) -> String {
        match self.count {
            Some(_) => format!("volume limit of {} reached", self.driver),
            None => format!("CSI driver {} is not on the node", self.driver),
        }
    }

    fn text(&self) -> String {
        let Some(VolumeCount { limit, attached, new }) = self.count else { return self.gist() };
        format!(
            "volumes of {}: {limit} at most − {attached} attached = {} free, {new} needed",
            self.driver,
            limit - attached
        )
    }
}

/// Missing claims cannot be counted.
fn missing_claims(case: &RejectedCase<'_>) -> Vec<Cause> {
    let known = &case.probe.cx().objects.persistent_volume_claims;
    let claims = volumes::claims(&case.probe.pod().pod).map(|claim| claim.key);
    let missing = claims.filter(|claim| !known.contains_key(claim));
    let cause = |claim| VolumeCause { claim, problem: VolumeProblem::ClaimMissing };
    missing.map(|claim| Cause::new(cause(claim), 1.0, Outlook::Manual)).collect()
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let over = match reason(&case.probe.cx(), case.state, case.node) {
        Err(_) => return missing_claims(case),
        Ok(None) => return Vec::new(),
        Ok(Some(LimitReason::MissingDriver(driver))) => {
            return vec![Cause::new(VolumeLimit { driver, count: None }, 1.0, Outlook::Manual)];
        }
        Ok(Some(LimitReason::OverLimit(over))) => over,
    };
    let cause = |over: OverLimit| {
        let OverLimit { driver, limit, attached, new } = over;
        let part = (attached + new - limit) as f64 / new.max(1) as f64;
        let outlook = if new > limit { Outlook::Mismatch } else { Outlook::Cluster };
        let count = Some(VolumeCount { limit, attached, new });
        Cause::new(VolumeLimit { driver, count }, part, outlook)
    };
    over.into_iter().map(cause).collect()
}
