//! How the search of older versions differs.
//!
//! Upstream: `staging/src/k8s.io/dynamic-resource-allocation/structured/allocator.go`, up to 1.33,
//! and `internal/incubating/allocator_incubating.go` of 1.34 and 1.35.

use kubestep_config::versions::Switch;
use kubestep_config::{Feature, FeatureGates};

/// What happens if a device of a request for all devices is taken, or if the search has to go back
/// behind such a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllDevices {
    /// A taken device is left out; going back is an error. None is enough.
    Available,
    /// The search ends if a device is taken, and keeps the others when it goes back. None is enough.
    Ending,
    /// The search goes back, and keeps the others.
    Keeping,
    /// The search goes back, and releases the others.
    Releasing,
}

/// The rules of the search that depend on the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub struct SearchRules {
    /// Requests for all devices.
    pub all: AllDevices,
    /// Whether incomplete and invalid pools are skipped.
    pub skips_unusable: bool,
    /// Whether each alternative can ask for all devices.
    pub all_in_alternatives: bool,
    /// Whether requests with admin access are an error: the gate exists and is off.
    pub rejects_admin_access: bool,
    /// Whether the requests with admin access of one claim get different devices, and keep others of
    /// theirs from being allocated.
    pub admin_once: bool,
    /// Whether binding conditions of devices are known: the gate exists.
    pub knows_conditions: bool,
    /// Whether an allocation has the configuration of a class once.
    pub class_config_by_request: bool,
    /// Whether an allocation has a configuration of the claim once for each of its requests.
    pub claim_config_by_request: bool,
}

impl SearchRules {
    /// Those of a version.
    pub fn of(gates: &FeatureGates) -> SearchRules {
        let is_off = |gate: Feature| gates.spec(gate).is_some() && !gates.enabled(gate);
        SearchRules {
            all: all_devices(gates),
            skips_unusable: gates.has(Switch::UnusablePoolsSkipped),
            all_in_alternatives: gates.has(Switch::AlternativesOfAllDevices),
            rejects_admin_access: is_off(Feature::DRAAdminAccess),
            admin_once: gates.has(Switch::AdminAccessOncePerClaim),
            knows_conditions: gates.spec(Feature::DRADeviceBindingConditions).is_some(),
            class_config_by_request: gates.has(Switch::ClassConfigByRequest),
            claim_config_by_request: gates.has(Switch::ClaimConfigByRequest),
        }
    }
}

fn all_devices(gates: &FeatureGates) -> AllDevices {
    if gates.has(Switch::AllDevicesReleased) {
        return AllDevices::Releasing;
    }
    match (gates.has(Switch::AllDevicesBacktrack), gates.has(Switch::AllDevicesMustBeFree)) {
        (true, _) => AllDevices::Keeping,
        (false, true) => AllDevices::Ending,
        (false, false) => AllDevices::Available,
    }
}
