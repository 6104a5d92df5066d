//! The ledgers of hard spread constraints that reject a node.

use super::names;
use crate::report::lines_shown;
use kubestep_api::words::count;
use kubestep_debug::why::Why;
use kubestep_debug::why::cause::CauseDetail;
use kubestep_debug::why::spread::SpreadCounts;

/// Domains that are listed in the short form.
const DOMAINS: usize = 6;

/// Every constraint in the wide form, otherwise those that reject a node.
pub(super) fn lines(why: &Why, wide: bool) -> Vec<String> {
    let rejects = |at: usize| {
        let mut causes = why.nodes.iter().flat_map(|node| node.causes());
        causes.any(|(_, cause)| match &cause.detail {
            CauseDetail::Spread(spread) => spread.constraint == at,
            _ => false,
        })
    };
    let shown = why.spread.iter().enumerate().filter(|(at, _)| wide || rejects(*at));
    shown.flat_map(|(_, ledger)| lines_of(ledger, wide)).collect()
}

fn lines_of(ledger: &SpreadCounts, wide: bool) -> Vec<String> {
    let own = if ledger.own == 0 { ", the pod itself does not count" } else { "" };
    let mut lines = vec![format!(
        "Spread over {}: pods with {}, maxSkew {}, smallest count {}{own}",
        ledger.topology_key, ledger.selector, ledger.max_skew, ledger.least
    )];
    if ledger.of_profile {
        lines.push(
            "  (the pod has no constraint; this is the profile's: defaultConstraints of \
             PodTopologySpread)"
                .to_owned(),
        );
    }
    let most = lines_shown(ledger.domains.len(), if wide { usize::MAX } else { DOMAINS });
    let mut domains: Vec<_> = ledger.domains.iter().collect();
    domains.sort_by_key(|domain| domain.count);
    for domain in domains.iter().take(most) {
        let verdict = if domain.skew > ledger.max_skew { "too many" } else { "allowed" };
        lines.push(format!(
            "  {}: {} on {}; with this pod the skew would be {}: {verdict}",
            domain.value,
            count(domain.count, "pod"),
            count(domain.nodes, "node"),
            domain.skew
        ));
    }
    if domains.len() > most {
        lines.push(format!("  and {}", count(domains.len() - most, "more domain")));
    }
    if ledger.too_few_domains {
        let (have, need) = (ledger.domains.len(), ledger.min_domains);
        lines.push(format!(
            "  {have} domains are fewer than minDomains {need}: the smallest count is 0"
        ));
    }
    for left in &ledger.left_out {
        lines.push(format!(
            "  excluded: {} ({}): {}",
            count(left.count, "node"),
            names(&left.nodes, 3),
            left.reason
        ));
    }
    lines
}
