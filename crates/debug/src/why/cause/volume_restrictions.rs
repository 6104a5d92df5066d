//! VolumeRestrictions: the pod that uses the disk, or the claim that only one pod may use.

use serde::Serialize;

use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_framework::pod::NamespacedName;
use kubestep_plugins::volume_restrictions::{VolumeConflict, reasons};

/// A volume that another pod uses.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeTaken {
    /// The claim with access mode ReadWriteOncePod; `None` for a disk on the node.
    pub claim: Option<NamespacedName>,
    /// The pod that uses it.
    pub by: NamespacedName,
}

impl CauseText for VolumeTaken {
    fn gist(&self) -> String {
        match self.claim {
            Some(claim) => {
                format!("claim {claim} is ReadWriteOncePod, and pod {} uses it", self.by)
            }
            None => "a pod on the node uses the same disk".to_owned(),
        }
    }

    fn text(&self) -> String {
        match self.claim {
            Some(_) => self.gist(),
            None => format!("pod {} on the node uses the same disk", self.by),
        }
    }
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let found = reasons(&case.probe.cx(), case.state, case.node).into_iter();
    let cause = |reason| match reason {
        VolumeConflict::Disk { holder } => VolumeTaken { claim: None, by: holder },
        VolumeConflict::Claim { claim, holder } => VolumeTaken { claim: Some(claim), by: holder },
    };
    found.map(|reason| Cause::new(cause(reason), 1.0, Outlook::Cluster)).collect()
}
