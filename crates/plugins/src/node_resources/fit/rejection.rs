//! The rejections of one cycle. Thousands of nodes share few different ones, so each is built when
//! first needed and then shared.

use super::check::{Demand, Lacking, Shortfall};
use kubestep_api::intern::Symbol;
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;
use kubestep_framework::status::{Code, Status};
use std::sync::OnceLock;

/// The reasons that the table covers; rejections of pods with more scalars are not shared.
const TABLE_REASONS: usize = 8;

/// The rejections of a pod that were needed so far.
pub struct FitRejections {
    plugin: Symbol,
    /// Whether a request above the allocatable amount makes the rejection unresolvable.
    distinguishes: bool,
    /// By the bits of the reasons, then by whether the rejection is unresolvable.
    table: Box<[OnceLock<Status>]>,
}

impl FitRejections {
    pub fn new(plugin: Symbol, distinguishes: bool, demand: &Demand) -> FitRejections {
        let reasons = 4 + demand.scalars.len();
        let len = if reasons <= TABLE_REASONS { 2 << reasons } else { 0 };
        FitRejections { plugin, distinguishes, table: (0..len).map(|_| OnceLock::new()).collect() }
    }

    /// The rejection of a node with these reasons.
    pub fn status(&self, lacking: &Lacking, demand: &Demand) -> Status {
        let at = lacking.reasons as usize * 2 + usize::from(lacking.unresolvable);
        match self.table.get(at) {
            Some(known) => known.get_or_init(|| self.build(lacking, demand)).clone(),
            None => self.build(lacking, demand),
        }
    }

    fn build(&self, lacking: &Lacking, demand: &Demand) -> Status {
        let bits = 0..4 + demand.scalars.len();
        let bits = bits.filter(|bit| lacking.reasons & (1 << (*bit).min(63)) != 0);
        let resources = bits.map(|bit| demand.resource(bit));
        status(resources, lacking.unresolvable && self.distinguishes).by(self.plugin)
    }
}

/// Filter's status for a node that lacks these.
pub fn rejection(shortfalls: &[Shortfall], features: &FeatureGates) -> Status {
    let distinguishes = features.has(Switch::RequestAboveAllocatableUnresolvable);
    let is_larger = |short: &Shortfall| {
        distinguishes && short.resource != "pods" && short.needed > short.allocatable
    };
    let resources = shortfalls.iter().map(|short| short.resource);
    status(resources, shortfalls.iter().any(is_larger))
}

fn status(resources: impl Iterator<Item = Symbol>, unresolvable: bool) -> Status {
    let reason = |resource: Symbol| match resource.as_str() {
        "pods" => Symbol::new("Too many pods"),
        name => Symbol::new(&format!("Insufficient {name}")),
    };
    let code = match unresolvable {
        true => Code::UnschedulableAndUnresolvable,
        false => Code::Unschedulable,
    };
    Status::with_reasons(code, resources.map(reason).collect())
}
