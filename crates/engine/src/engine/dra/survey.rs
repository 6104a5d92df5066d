//! Why claims cannot be allocated on a node, request by request, for people: of all devices in
//! reach, how many fail which selector, are taken, tainted or too small. The search itself only
//! says that it found nothing.

use std::sync::Arc;

use crate::api::{Node, ResourceClaim};
use crate::engine::dra::DeviceId;
use crate::engine::dra::allocator::Allocator;
use crate::engine::dra::device::DeviceRef;
use crate::engine::dra::pools::PoolState;
use crate::engine::dra::request::RequestData;
use crate::engine::dra::search::{Search, full_name, is_kept_off};
use crate::intern::Symbol;

/// What the devices in reach of a node come to for a request.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Survey {
    /// The claim.
    pub claim: String,
    /// The request, with the alternative behind a slash.
    pub request: String,
    /// The device class.
    pub class: Symbol,
    /// How many devices are asked for; 0 for all there are.
    pub wanted: usize,
    /// Devices in reach of the node.
    pub devices: usize,
    /// Devices that a selector does not select, by the first such selector.
    pub unselected: Vec<(Symbol, usize)>,
    /// Devices that other claims have.
    pub taken: Vec<DeviceId>,
    /// Devices with a taint that is not tolerated.
    pub tainted: usize,
    /// Devices with too little capacity left.
    pub too_small: usize,
    /// Devices that suit this request by itself.
    pub suitable: usize,
    /// Pools that cannot be used: their slices are not all there, or contradict each other.
    pub unusable_pools: usize,
}

impl Survey {
    /// Whether enough devices suit this request by itself.
    pub fn is_enough(&self) -> bool {
        self.suitable >= self.wanted.max(1)
    }

    fn unselected_by(&mut self, selector: Symbol) {
        match self.unselected.iter_mut().find(|(known, _)| *known == selector) {
            Some((_, count)) => *count += 1,
            None => self.unselected.push((selector, 1)),
        }
    }
}

impl Allocator {
    /// Looks at every device in reach of the node for every request. Nothing if the claims
    /// themselves are not as they should be.
    pub fn survey(&self, node: &Node, claims: &[Arc<ResourceClaim>]) -> Vec<Survey> {
        let Ok(pools) = self.slices.pools(node, self.features().partitionable) else {
            return Vec::new();
        };
        let mut search = Search::new(self, node, claims, &pools);
        if search.prepare().is_err() {
            return Vec::new();
        }
        let requests = std::mem::take(&mut search.requests);
        let mut surveys = Vec::new();
        for (claim, requests) in claims.iter().zip(&requests) {
            for data in requests.iter().flat_map(|request| &request.data) {
                surveys.push(search.survey(claim, data));
            }
        }
        surveys
    }
}

impl<'a> Search<'a> {
    fn survey(&self, claim: &ResourceClaim, data: &RequestData<'a>) -> Survey {
        let name = data.view.name;
        let sub = name.sub.map(|sub| format!("/{sub}")).unwrap_or_default();
        let unusable = self.pools.iter().filter(|pool| pool.state != PoolState::Usable);
        let mut survey = Survey {
            claim: full_name(claim),
            request: format!("{}{sub}", name.base),
            class: data.view.class,
            wanted: if data.view.wants_all() { 0 } else { data.wanted },
            unusable_pools: unusable.count(),
            ..Survey::default()
        };
        for (pool, known) in self.pools.iter().enumerate() {
            for slice in &known.slices {
                for (index, device) in slice.slice.spec.devices.iter().enumerate() {
                    let id = slice.id(device);
                    let device = DeviceRef { id, device, slice, index, pool };
                    self.count(&mut survey, data, device);
                }
            }
        }
        survey
    }

    fn count(&self, survey: &mut Survey, data: &RequestData<'a>, device: DeviceRef<'a>) {
        if !device.slice.device_reaches(device.index, self.node).unwrap_or(false) {
            return;
        }
        survey.devices += 1;
        let features = self.allocator.features();
        if let Some(selector) = unmet_selector(data, device) {
            survey.unselected_by(selector);
        } else if !data.view.admin_access
            && self.allocator.allocated().dedicated.contains(&device.id)
        {
            survey.taken.push(device.id);
        } else if features.taints && is_kept_off(device, data.view.tolerations) {
            survey.tainted += 1;
        } else if !self.has_capacity(data, device) {
            survey.too_small += 1;
        } else {
            survey.suitable += 1;
        }
    }
}

/// The first selector, of the class or the request, that does not select the device. One that
/// fails on it counts as not selecting.
fn unmet_selector(data: &RequestData<'_>, device: DeviceRef<'_>) -> Option<Symbol> {
    let texts = data.class.spec.selectors.iter().chain(data.view.selectors);
    let texts = texts.filter_map(|selector| Some(selector.cel.as_ref()?.expression));
    let compiled = data.class_selectors.iter().chain(data.selectors.iter());
    let mut pairs = texts.zip(compiled);
    let unmet = pairs
        .find(|(_, selector)| !selector.matches(device.id.driver, device.device).unwrap_or(false));
    unmet.map(|(text, _)| text)
}
