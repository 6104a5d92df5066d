//! VolumeRestrictions: who has the disk, or the claim that only one pod may use.

use serde::Serialize;

use super::{Case, Cause, Outlook, Words};
use crate::engine::plugins::volume_restrictions::taken;
use crate::engine::pod::NamespacedName;

/// A volume that another pod has.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeTaken {
    /// The claim with access mode ReadWriteOncePod; absent for a disk on the node.
    pub claim: Option<NamespacedName>,
    /// The pod that has it.
    pub by: NamespacedName,
}

impl Words for VolumeTaken {
    fn gist(&self) -> String {
        match self.claim {
            Some(claim) => {
                format!(
                    "claim {claim} is for one pod only (ReadWriteOncePod), and {} has it",
                    self.by
                )
            }
            None => "a pod on the node has the same disk".to_owned(),
        }
    }

    fn words(&self) -> String {
        match self.claim {
            Some(_) => self.gist(),
            None => format!("{} on the node has the same disk", self.by),
        }
    }
}

pub(super) fn explain(case: &Case<'_>) -> Vec<Cause> {
    let (disks, claims) = taken(&case.probe.cx(), case.state, case.node);
    let disks = disks.into_iter().map(|by| VolumeTaken { claim: None, by });
    let claims = claims.into_iter().map(|(claim, by)| VolumeTaken { claim: Some(claim), by });
    disks.chain(claims).map(|cause| Cause::new(cause, 1.0, Outlook::Cluster)).collect()
}
