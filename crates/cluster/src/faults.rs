//! Injected faults outside of the scheduler: bindings at the API server, and extenders.
//!
//! Their errors say that they were injected, so that they are recognizable in a status, a condition
//! or an event.

use kubestep_framework::cycle_state::FAULT;
use kubestep_framework::pod::NamespacedName;

/// The faults in force.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Faults {
    bindings: Vec<BindFault>,
    /// Extenders that are down, by index in the effective order.
    extenders: Vec<usize>,
}

/// A binding that fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BindFault {
    /// The pod that cannot be bound; `None`: any pod.
    pub pod: Option<NamespacedName>,
    /// Whether every binding fails, or only the next one.
    pub lasting: bool,
}

impl Faults {
    /// Lets bindings fail, of one pod or of any, once or lastingly.
    pub fn fail_binding(&mut self, fault: BindFault) {
        self.bindings.push(fault);
    }

    /// Takes an extender down.
    pub fn take_down(&mut self, extender: usize) {
        if !self.extenders.contains(&extender) {
            self.extenders.push(extender);
        }
    }

    /// Whether no fault is injected.
    pub fn is_empty(&self) -> bool {
        *self == Faults::default()
    }

    /// Removes the faults that are still to come.
    pub fn clear(&mut self) {
        *self = Faults::default();
    }

    /// Fails if a fault applies to the binding of this pod.
    pub(super) fn bind(&mut self, pod: NamespacedName) -> Result<(), String> {
        let concerns = |fault: &BindFault| fault.pod.is_none_or(|only| only == pod);
        let Some(at) = self.bindings.iter().position(concerns) else { return Ok(()) };
        if !self.bindings[at].lasting {
            self.bindings.remove(at);
        }
        Err(format!("{FAULT}: pod {pod} cannot be bound"))
    }

    /// Fails if this extender is down.
    pub(super) fn extender(&self, index: usize) -> Result<(), String> {
        match self.extenders.contains(&index) {
            true => Err(format!("{FAULT}: extender {index} is down")),
            false => Ok(()),
        }
    }
}
