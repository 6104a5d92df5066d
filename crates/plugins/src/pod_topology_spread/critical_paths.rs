//! The minimum count over all domains, updated incrementally from only two domains.
//!
//! Upstream: `criticalPaths` in `filtering.go`. After several updates the minimum can be too
//! large, as a third domain may have a smaller count; this is replicated.
use kubestep_api::Name;

/// Two domains with small counts; the first count is never larger than the second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CriticalPaths([(Name, i64); 2]);

impl Default for CriticalPaths {
    fn default() -> CriticalPaths {
        CriticalPaths([(Name::EMPTY, i64::from(i32::MAX)); 2])
    }
}

impl CriticalPaths {
    /// The minimum count over the domains.
    pub fn least(&self) -> i64 {
        self.0[0].1
    }

    /// Sets the count of a domain.
    pub fn update(&mut self, domain: Name, count: i64) {
        let [first, second] = &mut self.0;
        if domain == first.0 {
            first.1 = count;
        } else if domain == second.0 {
            second.1 = count;
        } else if count < first.1 {
            *second = *first;
            *first = (domain, count);
        } else if count < second.1 {
            *second = (domain, count);
        }
        if self.0[0].1 > self.0[1].1 {
            self.0.swap(0, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_least_domains_are_kept() {
        let mut paths = CriticalPaths::default();
        for (domain, count) in [("a", 3), ("b", 1), ("c", 2)] {
            paths.update(domain.into(), count);
        }
        assert_eq!(paths.0, [("b".into(), 1), ("c".into(), 2)]);
        paths.update("b".into(), 4);
        assert_eq!(paths.0, [("c".into(), 2), ("b".into(), 4)]);
        // After c grows, a's 3 is the real minimum; upstream does not notice.
        paths.update("c".into(), 5);
        assert_eq!(paths.least(), 4);
    }

    #[test]
    fn of_equal_counts_the_first_domain_stays_first() {
        let mut paths = CriticalPaths::default();
        paths.update("a".into(), 1);
        paths.update("b".into(), 1);
        assert_eq!(paths.0, [("a".into(), 1), ("b".into(), 1)]);
    }
}
