//! The allocation found by the search, as it is written into the status of claims.
//!
//! Upstream: the second half of `Allocate` in `allocator_incubating.go`.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::dynamic_resources::structured::SearchRules;
use crate::dynamic_resources::structured::node_selector::node_selector;
use crate::dynamic_resources::structured::request::Alternatives;
use crate::dynamic_resources::structured::search::{DeviceSearch, Pick};
use kubestep_api::admission::derived_uid;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    AllocationConfigSource, AllocationResult, DeviceAllocationConfiguration,
    DeviceAllocationResult, DeviceRequestAllocationResult, Name, ResourceClaim, Uid,
};
use kubestep_framework::dra::DeviceId;
use kubestep_framework::error::PluginError;

impl DeviceSearch<'_> {
    /// The allocations, one for each claim.
    ///
    /// # Errors
    /// A slice's node selector cannot be expressed.
    pub fn outcome(&self) -> Result<Vec<AllocationResult>, PluginError> {
        let claims = self.claims.iter().zip(&self.picks).zip(&self.requests);
        claims
            .map(|((claim, picks), requests)| {
                let devices = picks.iter().map(|pick| pick.device);
                let binds = !self.allocator.features().is_stable();
                let selector = node_selector(devices, self.node.metadata.name, binds);
                let selector = selector.map_err(|error| {
                    format!("create NodeSelector for claim {}: {error}", claim.metadata.name)
                })?;
                let results = picks.iter().enumerate();
                let results = results.map(|(at, pick)| self.result(claim, at, pick)).collect();
                let rules = &self.allocator.features().rules;
                let mut config = class_config(requests, rules);
                config.extend(claim_config(claim, requests, rules));
                Ok(AllocationResult {
                    devices: DeviceAllocationResult { results, config },
                    node_selector: selector,
                    allocation_timestamp: None,
                })
            })
            .collect()
    }

    fn result(
        &self,
        claim: &ResourceClaim,
        at: usize,
        pick: &Pick<'_>,
    ) -> DeviceRequestAllocationResult {
        let features = self.allocator.features();
        let DeviceId { driver, pool, device } = pick.device.id;
        let is_shared = features.consumable_capacity && pick.device.is_shared();
        let mut result = DeviceRequestAllocationResult {
            request: pick.request.full(),
            driver,
            pool,
            device,
            admin_access: pick.admin_access.then_some(true),
            tolerations: pick.tolerations.to_vec(),
            share_id: is_shared.then(|| share_id(claim.metadata.uid, pick.device.id, at)),
            consumed_capacity: pick.consumed.clone(),
            ..DeviceRequestAllocationResult::default()
        };
        if features.binding_conditions {
            result.binding_conditions.clone_from(&pick.device.device.binding_conditions);
            let failure = &pick.device.device.binding_failure_conditions;
            result.binding_failure_conditions.clone_from(failure);
        }
        result
    }
}

/// A unique name for a share of a device. Upstream's is random; this one is the same in every
/// run.
fn share_id(claim: Uid, device: DeviceId, at: usize) -> Name {
    derived_uid(&format!("{claim}/{device}/{at}")).to_string().into()
}

/// The configurations of the requests' classes: each class once, with all of its requests. Older
/// patch releases: for each request, without its name.
fn class_config(
    requests: &[Alternatives<'_>],
    rules: &SearchRules,
) -> Vec<DeviceAllocationConfiguration> {
    let mut config: Vec<DeviceAllocationConfiguration> = Vec::new();
    let mut of_class: BTreeMap<Name, Range<usize>> = BTreeMap::new();
    for data in requests.iter().filter_map(Alternatives::chosen) {
        let (class, name) = (data.class, data.view.name.full());
        let known = of_class.get(&class.metadata.name).filter(|_| rules.class_config_by_request);
        if let Some(known) = known {
            config[known.clone()].iter_mut().for_each(|entry| entry.requests.push(name));
            continue;
        }
        let start = config.len();
        config.extend(class.spec.config.iter().map(|entry| DeviceAllocationConfiguration {
            source: AllocationConfigSource::FromClass,
            requests: rules.class_config_by_request.then_some(name).into_iter().collect(),
            opaque: entry.opaque.clone(),
        }));
        of_class.insert(class.metadata.name, start..config.len());
    }
    config
}

/// The configurations of the claim: those for all requests once, the others once for each of
/// their requests that was allocated. Up to 1.32: each once.
fn claim_config(
    claim: &ResourceClaim,
    requests: &[Alternatives<'_>],
    rules: &SearchRules,
) -> Vec<DeviceAllocationConfiguration> {
    let mut config = Vec::new();
    for entry in &claim.spec.devices.config {
        let names = |name: Symbol| entry.requests.contains(&name);
        let concerns = |request: &&Alternatives<'_>| {
            let chosen = request.chosen().map(|data| data.view.name);
            chosen
                .is_some_and(|name| names(name.base) || (name.sub.is_some() && names(name.full())))
        };
        let times = match entry.requests.is_empty() || !rules.claim_config_by_request {
            true => 1,
            false => requests.iter().filter(concerns).count(),
        };
        let copy = DeviceAllocationConfiguration {
            source: AllocationConfigSource::FromClaim,
            requests: entry.requests.clone(),
            opaque: entry.opaque.clone(),
        };
        config.extend(std::iter::repeat_n(copy, times));
    }
    config
}
