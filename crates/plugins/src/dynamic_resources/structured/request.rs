//! A request of a claim, or an alternative of a prioritized list, as the search sees it.
//!
//! Upstream: `requestAccessor` and `requestData` in `allocator_incubating.go`.

use std::rc::Rc;
use std::sync::Arc;

use crate::dynamic_resources::structured::constraint::RequestName;
use crate::dynamic_resources::structured::device::DeviceRef;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    CapacityRequirements, DeviceAllocationMode, DeviceClass, DeviceRequest, DeviceSelector,
    DeviceSubRequest, DeviceToleration, ExactDeviceRequest, Name,
};
use kubestep_cel::Expression;

/// The fields that requests and alternatives have in common.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    /// The name; for an alternative, with the name of its request.
    pub name: RequestName,
    pub class: Name,
    pub mode: DeviceAllocationMode,
    pub count: i64,
    pub admin_access: bool,
    /// Whether it names admin access, even as false.
    pub names_admin_access: bool,
    pub selectors: &'a [DeviceSelector],
    pub tolerations: &'a [DeviceToleration],
    pub capacity: Option<&'a CapacityRequirements>,
}

impl<'a> RequestView<'a> {
    /// The view of a request without alternatives.
    pub fn exact(request: &'a DeviceRequest, exactly: &'a ExactDeviceRequest) -> RequestView<'a> {
        RequestView {
            name: RequestName { base: request.name, sub: None },
            class: exactly.device_class_name,
            mode: exactly.allocation_mode,
            count: exactly.count,
            admin_access: exactly.admin_access == Some(true),
            names_admin_access: exactly.admin_access.is_some(),
            selectors: &exactly.selectors,
            tolerations: &exactly.tolerations,
            capacity: exactly.capacity.as_ref(),
        }
    }

    /// The view of an alternative.
    pub fn alternative(request: &'a DeviceRequest, sub: &'a DeviceSubRequest) -> RequestView<'a> {
        RequestView {
            name: RequestName { base: request.name, sub: Some(sub.name) },
            class: sub.device_class_name,
            mode: sub.allocation_mode,
            count: sub.count,
            admin_access: false,
            names_admin_access: false,
            selectors: &sub.selectors,
            tolerations: &sub.tolerations,
            capacity: sub.capacity.as_ref(),
        }
    }

    /// All views of the request: one, or one for each alternative.
    pub fn all(request: &'a DeviceRequest) -> Vec<RequestView<'a>> {
        if !request.first_available.is_empty() {
            let alternatives = request.first_available.iter();
            return alternatives.map(|sub| RequestView::alternative(request, sub)).collect();
        }
        request.exactly.iter().map(|exactly| RequestView::exact(request, exactly)).collect()
    }

    /// The name in error messages: for an alternative, its own name alone.
    pub fn short_name(&self) -> Symbol {
        self.name.sub.unwrap_or(self.name.base)
    }

    /// Whether the mode is `All`.
    pub(crate) fn wants_all(&self) -> bool {
        self.mode == DeviceAllocationMode::All
    }
}

/// A request, prepared for the search.
#[derive(Clone)]
pub struct RequestData<'a> {
    pub view: RequestView<'a>,
    pub class: &'a Arc<DeviceClass>,
    /// The compiled selectors of the class, then those of the request.
    pub class_selectors: Rc<[Arc<Expression>]>,
    pub selectors: Rc<[Arc<Expression>]>,
    /// The number of devices to allocate.
    pub wanted: usize,
    /// The devices to allocate if the mode is `All`.
    pub all: Rc<[DeviceRef<'a>]>,
}

/// A request prepared for the search: one entry for each alternative, and the chosen one.
#[derive(Clone, Default)]
pub struct Alternatives<'a> {
    pub data: Vec<RequestData<'a>>,
    pub taken: usize,
    /// Whether the request is a prioritized list, even with a single alternative.
    pub is_list: bool,
}

impl<'a> Alternatives<'a> {
    /// The alternative that the search takes at present.
    pub fn chosen(&self) -> Option<&RequestData<'a>> {
        self.data.get(self.taken)
    }
}
