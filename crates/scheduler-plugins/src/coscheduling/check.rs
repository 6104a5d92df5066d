//! What PreFilter checks: whether the group is in backoff, complete, free of gates, and whether its
//! `minResources` are free.
//!
//! Upstream: `PreFilter` in `pkg/coscheduling/core/core.go`.

use super::group::{PodGroup, missing_resources};
use super::state::{GroupTimes, Members};
use super::{Coscheduling, lookup};
use kubestep_framework::api::Duration;
use kubestep_framework::effects::StateUpdate;
use kubestep_framework::plugin::{CycleContext, Explanation};
use kubestep_framework::pod::NamespacedName;

/// How long a group counts as permitted if the arguments allow no wait, in seconds.
const DEFAULT_PERMITTED: i64 = 3;

/// The result, unless there is nothing to check.
pub enum Checked {
    /// Why the pod is rejected, in upstream's words, and in more detail.
    Rejected(String, Explanation),
    /// The resources were found, which need not be checked again for some time.
    Permitted(StateUpdate),
}

impl Coscheduling {
    /// Checks the group of the cycle's pod.
    pub(super) fn check(&self, cx: &CycleContext<'_>) -> Option<Checked> {
        let (group, spec) = lookup(cx.objects, &cx.pod.pod)?;
        let (spec, plugins) = (spec?, &cx.shared.plugins);
        let (times, members) = (plugins.get::<GroupTimes>(), plugins.get::<Members>());
        in_backoff(cx, group, times)
            .or_else(|| incomplete(cx, group, spec, members))
            .or_else(|| gated(cx, group, spec, members))
            .map(|(reason, explanation)| Checked::Rejected(reason, explanation))
            .or_else(|| self.resources(cx, group, spec, times))
    }

    fn resources(
        &self,
        cx: &CycleContext<'_>,
        group: NamespacedName,
        spec: &PodGroup,
        times: Option<&GroupTimes>,
    ) -> Option<Checked> {
        if times.is_some_and(|times| times.is_permitted(group, cx.now)) {
            return None;
        }
        if let Some(missing) = missing_resources(cx.snapshot, spec, group)? {
            let amounts = missing.describe();
            let text = format!("the cluster lacks {amounts} of minResources of pod group {group}");
            let explanation = Explanation::new("minResources are not free", text);
            return Some(Checked::Rejected(
                format!("resource gap: {}", missing.as_go()),
                explanation,
            ));
        }
        let seconds = match self.0.permit_waiting_time_seconds {
            0 => DEFAULT_PERMITTED,
            seconds => seconds,
        };
        let now = cx.now;
        let end = now + Duration::from_secs(seconds);
        let permit = move |times: &mut GroupTimes| times.permitted(group, end, now);
        Some(Checked::Permitted(StateUpdate::new(permit)))
    }
}

fn in_backoff(
    cx: &CycleContext<'_>,
    group: NamespacedName,
    times: Option<&GroupTimes>,
) -> Option<(String, Explanation)> {
    let times = times?;
    let end = times.backoff_end(group, cx.now)?;
    let nanos = (end - cx.now).nanos.saturating_add(Duration::SECOND.nanos - 1);
    let left = Duration::from_secs(nanos / Duration::SECOND.nanos);
    let because = match times.failing(group) {
        Some(pod) if pod == cx.pod.key() => {
            ": with the other pods of its group placed, it found no node".to_owned()
        }
        Some(pod) => format!(": its pod {pod} found no node"),
        None => String::new(),
    };
    let text = format!("pod group {group} is in backoff for another {left}{because}");
    let explanation = Explanation::new("the pod group is in backoff", text);
    Some((format!("podGroup {group} failed recently"), explanation))
}

fn incomplete(
    cx: &CycleContext<'_>,
    group: NamespacedName,
    spec: &PodGroup,
    members: Option<&Members>,
) -> Option<(String, Explanation)> {
    let all = members.map_or(0, |members| members.count(group));
    let (needed, pod) = (spec.min_member(), cx.pod.key().name);
    if all as i64 >= i64::from(needed) {
        return None;
    }
    let text = format!("pod group {group} has {all} of the {needed} pods that it needs");
    let reason = format!(
        "pre-filter pod {pod} cannot find enough sibling pods, current pods number: {all}, \
         minMember of group: {needed}"
    );
    Some((reason, Explanation::new("the pod group is incomplete", text)))
}

fn gated(
    cx: &CycleContext<'_>,
    group: NamespacedName,
    spec: &PodGroup,
    members: Option<&Members>,
) -> Option<(String, Explanation)> {
    let members = members?;
    let (needed, pod) = (spec.min_member(), cx.pod.key().name);
    let ready = members.count(group) - members.gated(group, cx.objects);
    if ready as i64 >= i64::from(needed) {
        return None;
    }
    let text =
        format!("pod group {group} needs {needed} pods without scheduling gates and has {ready}");
    let reason =
        format!("pre-filter pod {pod} cannot proceed due to gated pods in the same PodGroup");
    Some((reason, Explanation::new("pods of the group are gated", text)))
}
