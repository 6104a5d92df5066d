//! Signatures: everything of a pod that its placement depends on, as one text, made when the
//! pod enters the queue or changes there (FW-221, FW-224, FW-225).
//!
//! Upstream: `signPod` in `pkg/scheduler/backend/queue/scheduling_queue.go`, and `SignPod` in
//! `pkg/scheduler/framework/runtime/framework.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubestep_api::shared::Pool;
use kubestep_config::ExtensionPoint;
use kubestep_framework::plugin::{Plugin, QueueContext};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::runtime::Framework;

/// The points whose plugins must all be able to sign a pod (FW-220).
const SIGNED_POINTS: [ExtensionPoint; 4] = [
    ExtensionPoint::PreFilter,
    ExtensionPoint::Filter,
    ExtensionPoint::PreScore,
    ExtensionPoint::Score,
];

/// Pods of a template have the same signature, which is kept once.
static POOL: Pool<String> = Pool::new();

/// The plugins of a profile that sign, each once.
pub(super) fn signers(framework: &Framework) -> Vec<Arc<dyn Plugin>> {
    let mut signers: Vec<Arc<dyn Plugin>> = Vec::new();
    // The plugins that refuse most come last in a profile. The order does not show.
    for plugin in SIGNED_POINTS.iter().flat_map(|point| framework.at(*point).iter().rev()) {
        if signers.iter().all(|known| known.name() != plugin.name()) {
            signers.push(plugin.clone());
        }
    }
    signers
}

/// What these plugins sign; `None` for a pod of which one cannot say what it depends on.
pub(super) fn sign(
    signers: &[Arc<dyn Plugin>],
    cx: &QueueContext<'_>,
    pod: &PodInfo,
) -> Option<Arc<String>> {
    let mut fragments = BTreeMap::new();
    for plugin in signers {
        fragments.extend(plugin.sign(cx, pod).ok()?);
    }
    let lines = fragments.iter().map(|(key, text)| format!("{key}={text}\n"));
    Some(POOL.share(lines.collect()))
}
