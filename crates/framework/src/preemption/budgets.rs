//! Disruption budgets: which evictions would violate one.
//!
//! Upstream: `filterPodsWithPDBViolation` in
//! `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go`.

use std::sync::Arc;

use crate::objects::Objects;
use crate::pod::PodInfo;
use crate::preemption::group_victims::Unit;
use kubestep_api::selector::Selector;
use kubestep_api::{Pod, PodDisruptionBudget};

/// All disruption budgets that can match a pod, compiled once per search.
#[derive(Default, Debug)]
pub struct DisruptionBudgets {
    budgets: Vec<(Selector, Arc<PodDisruptionBudget>)>,
}

impl DisruptionBudgets {
    /// The budgets of the cluster. One without a selector, or with an empty or invalid one, matches
    /// nothing and is left out.
    pub fn new(objects: &Objects) -> DisruptionBudgets {
        let compile = |budget: &Arc<PodDisruptionBudget>| {
            let selector = Selector::new(budget.spec.selector.as_ref()).ok()?;
            let matches_something = !selector.is_everything() && selector != Selector::Nothing;
            matches_something.then(|| (selector, budget.clone()))
        };
        DisruptionBudgets {
            budgets: objects.pod_disruption_budgets.values().filter_map(compile).collect(),
        }
    }

    /// Whether no budget can match a pod.
    pub fn is_empty(&self) -> bool {
        self.budgets.is_empty()
    }

    /// Splits `pods` into those whose eviction violates a budget and the others. Each pod, in
    /// order, counts down the budgets that match it. Both lists keep the order.
    pub fn split(&self, pods: Vec<Arc<PodInfo>>) -> (Vec<Arc<PodInfo>>, Vec<Arc<PodInfo>>) {
        let mut allowed = self.allowed();
        pods.into_iter().partition(|pod| self.take(&mut allowed, &pod.pod))
    }

    /// The same for units that are evicted as a whole: a unit violates a budget if one of its pods
    /// does, and then, as upstream, the rest of its pods is not counted.
    pub(crate) fn split_units(&self, units: Vec<Unit>) -> (Vec<Unit>, Vec<Unit>) {
        let mut allowed = self.allowed();
        let mut violates = |pod: &Arc<PodInfo>| {
            let mut budgets = self.matching(&pod.pod);
            budgets.any(|at| {
                allowed[at] = allowed[at].wrapping_sub(1);
                allowed[at] < 0
            })
        };
        units.into_iter().partition(|unit| unit.pods.iter().any(&mut violates))
    }

    fn allowed(&self) -> Vec<i32> {
        self.budgets.iter().map(|(_, budget)| budget.status.disruptions_allowed).collect()
    }

    /// The budgets that match the pod.
    pub fn of<'a>(
        &'a self,
        pod: &'a Pod,
    ) -> impl Iterator<Item = &'a Arc<PodDisruptionBudget>> + 'a {
        self.matching(pod).filter_map(|at| self.budgets.get(at)).map(|(_, budget)| budget)
    }

    /// Counts the pod in every budget that matches it. `true` if one is exceeded.
    fn take(&self, allowed: &mut [i32], pod: &Pod) -> bool {
        let mut violated = false;
        for at in self.matching(pod) {
            allowed[at] = allowed[at].wrapping_sub(1);
            violated |= allowed[at] < 0;
        }
        violated
    }

    /// Positions of the budgets that match the pod.
    fn matching<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = usize> + 'a {
        let matches = |budget: &PodDisruptionBudget, selector: &Selector| {
            !pod.metadata.labels.is_empty()
                && budget.metadata.namespace == pod.metadata.namespace
                && selector.matches(&pod.metadata.labels)
                // The API server has already counted these pods.
                && !budget.status.disrupted_pods.contains_key(&pod.metadata.name)
        };
        let budgets = self.budgets.iter().enumerate();
        budgets.filter_map(move |(at, (selector, budget))| matches(budget, selector).then_some(at))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Cluster, PodBuilder, info, object, pod};

    fn budget(name: &str, allowed: i32, selector: Value, disrupted: &[&str]) -> Value {
        let disrupted: serde_json::Map<String, Value> =
            disrupted.iter().map(|pod| (pod.to_string(), "2026-01-01T00:00:00Z".into())).collect();
        json!({
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": selector},
            "status": {"disruptionsAllowed": allowed, "disruptedPods": disrupted},
        })
    }

    /// The names of the pods that violate the budgets, and of those that do not.
    fn split(budgets: &[Value], pods: Vec<Pod>) -> (Vec<String>, Vec<String>) {
        let mut cluster = Cluster::default();
        for budget in budgets {
            cluster.objects.insert(object(budget.clone()));
        }
        let pods = pods.into_iter().map(info).collect();
        let (violating, others) = DisruptionBudgets::new(&cluster.objects).split(pods);
        let names =
            |pods: Vec<Arc<PodInfo>>| pods.iter().map(|pod| pod.key().to_string()).collect();
        (names(violating), names(others))
    }

    fn web(name: &str) -> Pod {
        pod(name).label("app", "web")
    }

    #[test]
    fn a_budget_counts_down_in_order() {
        let selector = json!({"matchLabels": {"app": "web"}});
        let pods = || vec![web("a"), pod("plain"), web("b"), web("c"), web("shop/d")];
        let (violating, others) = split(&[budget("one", 1, selector.clone(), &[])], pods());
        assert_eq!(violating, ["default/b", "default/c"]);
        assert_eq!(others, ["default/a", "default/plain", "shop/d"]);
        let (violating, _) = split(&[budget("one", 1, selector, &["a", "b"])], pods());
        assert!(violating.is_empty(), "a and b are already accounted for");
    }

    #[test]
    fn every_matching_budget_counts() {
        let by_app = json!({"matchLabels": {"app": "web"}});
        let by_tier = json!({"matchLabels": {"tier": "front"}});
        let budgets = [budget("app", 2, by_app, &[]), budget("tier", 0, by_tier, &[])];
        let pods = vec![web("a").label("tier", "front"), web("b"), web("c")];
        let (violating, others) = split(&budgets, pods);
        assert_eq!(violating, ["default/a", "default/c"]);
        assert_eq!(others, ["default/b"]);
    }

    #[test]
    fn selectors_that_say_nothing_match_nothing() {
        let invalid = json!({"matchExpressions": [{"key": "app", "operator": "Sometimes"}]});
        for selector in [Value::Null, json!({}), invalid] {
            let (violating, others) = split(&[budget("b", 0, selector, &[])], vec![web("a")]);
            assert!(violating.is_empty());
            assert_eq!(others, ["default/a"]);
        }
    }
}
