//! A plugin that checks CPU alone, for tests that need a filter that depends on a node's pods.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_config::{ExtensionPoint, PluginDescriptor};

use crate::cycle_state::CycleState;
use crate::node::NodeInfo;
use crate::plugin::{CycleContext, Plugin};
use crate::registry::{Entry, Registry};
use crate::runtime::Framework;
use crate::status::Status;

struct CpuFit;

impl Plugin for CpuFit {
    fn name(&self) -> Symbol {
        "CpuFit".into()
    }

    fn filter(&self, cx: &CycleContext<'_>, _state: &CycleState, node: &NodeInfo) -> Status {
        let free = node.allocatable.milli_cpu - node.requested.milli_cpu;
        match cx.pod.resource.resource.milli_cpu <= free {
            true => Status::SUCCESS,
            false => Status::unschedulable("Insufficient cpu"),
        }
    }
}

/// A profile of one plugin, `CpuFit`, which rejects a node without enough free CPU.
pub fn cpu_fit() -> Framework {
    let descriptor = PluginDescriptor::new("CpuFit", &[ExtensionPoint::Filter]);
    let entry = Entry::new(descriptor, |_, _| Ok(Arc::new(CpuFit)));
    super::framework_of(&Registry::of([entry]).unwrap())
}
