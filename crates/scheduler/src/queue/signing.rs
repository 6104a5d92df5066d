//! Signatures: everything that a pod's placement depends on, as one text. It is computed when the
//! pod enters the queue or is updated there; 1.35 computes it in the cycle.
//!
//! Upstream: `signPod` in `pkg/scheduler/backend/queue/scheduling_queue.go`, and `SignPod` in
//! `pkg/scheduler/framework/runtime/framework.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubestep_api::shared::InternPool;
use kubestep_config::ExtensionPoint;
use kubestep_framework::plugin::{Plugin, QueueContext};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::runtime::Framework;

/// Extension points whose plugins must all support signing, or pods of the profile get no
/// signature.
const SIGNED_POINTS: [ExtensionPoint; 4] = [
    ExtensionPoint::PreFilter,
    ExtensionPoint::Filter,
    ExtensionPoint::PreScore,
    ExtensionPoint::Score,
];

/// Pods of a template have the same signature, which is stored once.
static POOL: InternPool<String> = InternPool::new();

/// The plugins of a profile that sign, without duplicates.
pub(super) fn signers(framework: &Framework) -> Vec<Arc<dyn Plugin>> {
    let mut signers: Vec<Arc<dyn Plugin>> = Vec::new();
    // In reverse order, because the plugins that most often cannot sign come last in a profile. The
    // order does not affect the result.
    for plugin in SIGNED_POINTS.iter().flat_map(|point| framework.at(*point).iter().rev()) {
        if signers.iter().all(|known| known.name() != plugin.name()) {
            signers.push(plugin.clone());
        }
    }
    signers
}

/// The signature by these plugins; `None` if one of them cannot sign the pod.
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
