//! The resources that nodes reserve for nominated pods.

use crate::report::lines_shown;
use kubestep_api::words::count;
use kubestep_debug::why::{Basis, Nomination, Why};

/// Nominations that are listed in the short form.
const MOST: usize = 6;

/// The pod's own nomination, and those of others.
pub(super) fn lines(why: &Why, wide: bool) -> Vec<String> {
    let (own, others): (Vec<_>, Vec<_>) = why.nominations.iter().partition(|kept| kept.own);
    // If it refers to the cycle that placed the pod, it is in the past.
    let is = if why.basis == Basis::Now { "is" } else { "was" };
    let mut lines: Vec<String> = own.into_iter().map(|kept| self::own(kept, is)).collect();
    if others.is_empty() {
        return lines;
    }
    let heading = if is == "is" { "Reserved" } else { "Was reserved" };
    lines.push(format!("{heading} for nominated pods:"));
    let most = lines_shown(others.len(), if wide { usize::MAX } else { MOST });
    lines.extend(others.iter().take(most).map(|kept| other(kept)));
    let more = others.len() - most;
    lines.extend((more > 0).then(|| format!("  and for {}", count(more, "more pod"))));
    lines
}

fn own(nomination: &Nomination, is: &str) -> String {
    let Nomination { node, kept, .. } = nomination;
    format!(
        "It {is} nominated to {node}: {kept} {is} reserved there; higher-priority pods may take it."
    )
}

fn other(nomination: &Nomination) -> String {
    let Nomination { node, pod, priority, kept, counts, .. } = nomination;
    let counts = if *counts { "" } else { "; this pod may take it (higher priority)" };
    format!("  {node}: {kept} for {pod} (priority {priority}){counts}")
}
