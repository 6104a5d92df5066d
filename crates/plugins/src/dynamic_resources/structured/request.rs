//! A request of a claim, whether plain or an alternative of a list, as the search sees it.
//!
//! Upstream: `requestAccessor` and `requestData` in `allocator_incubating.go`.

use std::rc::Rc;
use std::sync::Arc;

use crate::dynamic_resources::structured::constraint::RequestName;
use crate::dynamic_resources::structured::device::DeviceRef;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    CapacityRequirements, DeviceAllocationMode, DeviceClass, DeviceRequest, DeviceSelector,
    DeviceSubRequest, DeviceToleration, ExactDeviceRequest,
};
use kubestep_cel::Expression;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    /// The name, with that of the list it is in.
    pub name: RequestName,
    pub class: Symbol,
    pub mode: DeviceAllocationMode,
    pub count: i64,
    pub admin_access: bool,
    pub selectors: &'a [DeviceSelector],
    pub tolerations: &'a [DeviceToleration],
    pub capacity: Option<&'a CapacityRequirements>,
}

impl<'a> RequestView<'a> {
    /// A request without alternatives.
    pub fn exact(request: &'a DeviceRequest, exactly: &'a ExactDeviceRequest) -> RequestView<'a> {
        RequestView {
            name: RequestName { base: request.name, sub: None },
            class: exactly.device_class_name,
            mode: exactly.allocation_mode,
            count: exactly.count,
            admin_access: exactly.admin_access == Some(true),
            selectors: &exactly.selectors,
            tolerations: &exactly.tolerations,
            capacity: exactly.capacity.as_ref(),
        }
    }

    /// An alternative.
    pub fn alternative(request: &'a DeviceRequest, sub: &'a DeviceSubRequest) -> RequestView<'a> {
        RequestView {
            name: RequestName { base: request.name, sub: Some(sub.name) },
            class: sub.device_class_name,
            mode: sub.allocation_mode,
            count: sub.count,
            admin_access: false,
            selectors: &sub.selectors,
            tolerations: &sub.tolerations,
            capacity: sub.capacity.as_ref(),
        }
    }

    /// The request's views: one, or one for each alternative.
    pub fn all(request: &'a DeviceRequest) -> Vec<RequestView<'a>> {
        if !request.first_available.is_empty() {
            let alternatives = request.first_available.iter();
            return alternatives.map(|sub| RequestView::alternative(request, sub)).collect();
        }
        request.exactly.iter().map(|exactly| RequestView::exact(request, exactly)).collect()
    }

    /// The name by which errors call it: that of the alternative alone.
    pub fn short_name(&self) -> Symbol {
        self.name.sub.unwrap_or(self.name.base)
    }

    /// Whether all devices are asked for that there are.
    pub fn wants_all(&self) -> bool {
        self.mode == DeviceAllocationMode::All
    }
}

/// A request with what its search needs.
#[derive(Clone)]
pub struct RequestData<'a> {
    pub view: RequestView<'a>,
    pub class: &'a Arc<DeviceClass>,
    /// The selectors of the class, then those of the request, ready to run.
    pub class_selectors: Rc<[Arc<Expression>]>,
    pub selectors: Rc<[Arc<Expression>]>,
    /// How many devices it is for.
    pub wanted: usize,
    /// The devices, if it is for all of them.
    pub all: Rc<[DeviceRef<'a>]>,
}

/// A request of a claim: its data, one for each alternative, and the one that was taken.
#[derive(Clone, Default)]
pub struct Alternatives<'a> {
    pub data: Vec<RequestData<'a>>,
    pub taken: usize,
    /// Whether the request is a list, maybe of one.
    pub is_list: bool,
}

impl<'a> Alternatives<'a> {
    /// What was taken of it.
    pub fn chosen(&self) -> Option<&RequestData<'a>> {
        self.data.get(self.taken)
    }
}
