//! The arguments: how nodes are scored, and what is known of zones between two reports.

use super::cache::ReportCache;
use super::score::ZoneScoring;
use crate::resources::{ResourceSpec, cpu_and_memory};
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::config::validation::Findings;
use kubestep_framework::config::{Arguments, FeatureGates, FieldPath, argument_object, arguments};

arguments! {
    /// How NodeResourceTopologyMatch scores, and what it knows of zones between two reports.
    #[derive(Eq)]
    pub struct NodeResourceTopologyMatchArgs for "NodeResourceTopologyMatch" {
        scoring_strategy: ScoringStrategy = ScoringStrategy::default(),
            put "scoringStrategy", "type, resources",
            "How nodes score: LeastAllocated, MostAllocated and BalancedAllocation look at the zone \
             with the lowest score, LeastNUMANodes at the number of zones that are needed. resources \
             lists the weights of resources; others have 1.";
        cache_resync_period_seconds: i64 = 0,
            put_some "cacheResyncPeriodSeconds", "a number",
            "If positive, what was reserved on a node counts against each of its zones until the \
             node's report has the same pods.";
        discard_reserved_nodes: bool = false,
            put_some "discardReservedNodes", "true or false",
            "Whether a node is rejected while a pod is on its way to it; takes precedence over \
             cacheResyncPeriodSeconds.";
        cache: CacheArgs = CacheArgs::default(),
            put "cache", "foreignPodsDetect, resyncMethod, informerMode, resyncScope",
            "Which pods of other schedulers make a node's report invalid, and which pods its \
             fingerprint counts.";
        preemption_mode: Symbol = Symbol::new("Disabled"),
            put "preemptionMode", "Disabled or Enabled",
            "With Enabled and cacheResyncPeriodSeconds, preemption adds what victims free to their zones, \
             if the node's agent reports where its containers are.";
    }
}

argument_object! {
    /// How nodes are scored.
    #[derive(Eq)]
    pub struct ScoringStrategy {
        /// LeastAllocated, MostAllocated, BalancedAllocation or LeastNUMANodes.
        strategy: Symbol, put_some "type";
        /// The weights of resources.
        resources: Vec<ResourceSpec>, put_some "resources";
    }
}

impl Default for ScoringStrategy {
    fn default() -> Self {
        let strategy = Symbol::new("LeastAllocated");
        ScoringStrategy { strategy, resources: cpu_and_memory(1, 1) }
    }
}

argument_object! {
    /// What is known of zones between two reports.
    #[derive(Eq)]
    pub struct CacheArgs {
        /// `All`, `None` or `OnlyExclusiveResources`.
        foreign_pods_detect: Symbol, put_some "foreignPodsDetect";
        /// `Autodetect`, `All` or `OnlyExclusiveResources`.
        resync_method: Symbol, put_some "resyncMethod";
        /// `Dedicated` or `Shared`: whether the cache has an informer of its own.
        informer_mode: Symbol, put_some "informerMode";
        /// `All` or `OnlyResources`: what a new report replaces.
        resync_scope: Symbol, put_some "resyncScope";
    }
}

impl Default for CacheArgs {
    fn default() -> Self {
        CacheArgs {
            foreign_pods_detect: Symbol::new("All"),
            resync_method: Symbol::new("Autodetect"),
            informer_mode: Symbol::new("Dedicated"),
            resync_scope: Symbol::EMPTY,
        }
    }
}

impl Arguments for NodeResourceTopologyMatchArgs {
    const CHECKED_WHEN_BUILT: bool = true;

    fn complete(&mut self, _: &FeatureGates) {
        if self.scoring_strategy.resources.is_empty() {
            self.scoring_strategy.resources = cpu_and_memory(1, 1);
        }
        for resource in self.scoring_strategy.resources.iter_mut().filter(|it| it.weight == 0) {
            resource.weight = 1;
        }
        let default = CacheArgs::default();
        for (given, default) in [
            (&mut self.cache.foreign_pods_detect, default.foreign_pods_detect),
            (&mut self.cache.resync_method, default.resync_method),
            (&mut self.cache.informer_mode, default.informer_mode),
        ] {
            if given.is_empty() {
                *given = default;
            }
        }
    }

    fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
        let strategy = &self.scoring_strategy.strategy;
        if ZoneScoring::by_name(strategy, &[]).is_none() {
            let path = path.field("scoringStrategy").field("type");
            found.invalid(&path, strategy.as_str(), "is not a scoring strategy");
        }
        if !["Disabled", "Enabled"].contains(&self.preemption_mode.as_str()) {
            let mode = self.preemption_mode.as_str();
            found.invalid(&path.field("preemptionMode"), mode, "must be Disabled or Enabled");
        }
    }
}

impl NodeResourceTopologyMatchArgs {
    pub(super) fn strategy(&self) -> ZoneScoring {
        let ScoringStrategy { strategy, resources } = &self.scoring_strategy;
        ZoneScoring::by_name(strategy, resources).unwrap_or_default()
    }

    pub(super) fn counts_victims(&self) -> bool {
        self.preemption_mode == "Enabled"
    }

    pub(super) fn cache(&self) -> ReportCache {
        match (self.discard_reserved_nodes, self.cache_resync_period_seconds) {
            (true, _) => ReportCache::DiscardReserved,
            (false, ..=0) => ReportCache::Passthrough,
            (false, _) => ReportCache::OverReserve {
                foreign: self.cache.foreign_pods_detect,
                method: self.cache.resync_method,
                dedicated: self.cache.informer_mode == "Dedicated",
                attributes: self.cache.resync_scope != "OnlyResources",
            },
        }
    }
}
