//! Counters that the devices of a pool share.
//!
//! Upstream: `checkAvailableCounters` in `allocator_incubating.go`.

use std::collections::BTreeMap;

use crate::dynamic_resources::structured::pools::DevicePool;
use kubestep_api::intern::Symbol;
use kubestep_api::{Device, Quantity};
use kubestep_framework::dra::AllocatedDevices;

/// Amounts by counter set and counter.
pub type Counters = BTreeMap<Symbol, BTreeMap<Symbol, Quantity>>;

/// The pool's counters less the consumption of its allocated devices; amounts may be negative.
pub fn available(pool: &DevicePool, allocated: &AllocatedDevices) -> Counters {
    let sets = pool.counters.iter();
    let mut left: Counters = sets
        .map(|(name, set)| {
            let counters = set.counters.iter();
            (*name, counters.map(|(name, counter)| (*name, counter.value.clone())).collect())
        })
        .collect();
    for slice in pool.slices.iter().chain(&pool.other_node_slices) {
        let devices = slice.slice.spec.devices.iter();
        for device in devices.filter(|device| allocated.contains(&slice.id(device))) {
            release(&mut left, device);
        }
    }
    left
}

/// Adds the device's consumption.
pub fn consume(consumed: &mut Counters, device: &Device) {
    for consumption in &device.consumes_counters {
        let set = consumed.entry(consumption.counter_set).or_default();
        for (name, counter) in &consumption.counters {
            match set.get_mut(name) {
                Some(sum) => sum.add(&counter.value),
                None => {
                    set.insert(*name, counter.value.clone());
                }
            }
        }
    }
}

/// Subtracts the device's consumption from the counters that exist.
pub fn release(counters: &mut Counters, device: &Device) {
    for consumption in &device.consumes_counters {
        let Some(set) = counters.get_mut(&consumption.counter_set) else { continue };
        for (name, counter) in &consumption.counters {
            if let Some(sum) = set.get_mut(name) {
                sum.sub(&counter.value);
            }
        }
    }
}

/// Whether every counter suffices, including those that nothing was consumed of.
pub fn suffice(available: &Counters, consumed: &Counters) -> bool {
    available.iter().all(|(set, counters)| {
        let consumed = consumed.get(set);
        counters.iter().all(|(name, left)| match consumed.and_then(|set| set.get(name)) {
            Some(taken) => left >= taken,
            None => left.sign().is_ge(),
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn device(amount: &str) -> Device {
        serde_json::from_value(json!({"consumesCounters": [
            {"counterSet": "set", "counters": {"memory": {"value": amount}}},
        ]}))
        .unwrap()
    }

    fn counters(amount: &str) -> Counters {
        [("set".into(), [("memory".into(), amount.parse().unwrap())].into())].into()
    }

    #[test]
    fn consumption_adds_up_and_is_given_back() {
        let mut consumed = Counters::default();
        consume(&mut consumed, &device("3Gi"));
        consume(&mut consumed, &device("2Gi"));
        assert_eq!(consumed, counters("5Gi"));
        assert!(suffice(&counters("5Gi"), &consumed));
        assert!(!suffice(&counters("4Gi"), &consumed));
        release(&mut consumed, &device("2Gi"));
        assert_eq!(consumed, counters("3Gi"));
    }

    #[test]
    fn a_counter_below_zero_stops_every_device_of_the_pool() {
        assert!(suffice(&counters("0"), &Counters::default()));
        assert!(!suffice(&counters("-1"), &Counters::default()));
    }
}
