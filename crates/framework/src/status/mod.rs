//! The status that a plugin returns: a code, the reasons, and the plugin.
//!
//! Success is the common case and costs nothing: a [`Status`] is one nullable pointer. Upstream:
//! `staging/src/k8s.io/kube-scheduler/framework/interface.go`.

pub mod node_statuses;

use std::fmt;
use std::sync::Arc;

use kubestep_api::intern::Symbol;

/// A status code, in upstream's numeric order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Code {
    /// The plugin has no objection, or did what was asked.
    #[default]
    Success = 0,
    /// An internal error; the pod is retried with error backoff.
    Error = 1,
    /// Rejected, but preemption could help.
    Unschedulable = 2,
    /// Rejected, and preemption can't help.
    UnschedulableAndUnresolvable = 3,
    /// Permit: the pod must wait.
    Wait = 4,
    /// The plugin has nothing to do in this cycle.
    Skip = 5,
    /// Rejected for now; the plugin itself will activate the pod.
    Pending = 6,
}

impl Code {
    /// All codes, in the order of their numbers.
    pub const ALL: [Code; 7] = [
        Code::Success,
        Code::Error,
        Code::Unschedulable,
        Code::UnschedulableAndUnresolvable,
        Code::Wait,
        Code::Skip,
        Code::Pending,
    ];

    /// The name as upstream prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Success => "Success",
            Code::Error => "Error",
            Code::Unschedulable => "Unschedulable",
            Code::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
            Code::Wait => "Wait",
            Code::Skip => "Skip",
            Code::Pending => "Pending",
        }
    }

    /// Whether the code is a rejection; Error, Wait and Skip are not.
    pub fn is_rejected(self) -> bool {
        matches!(self, Code::Unschedulable | Code::UnschedulableAndUnresolvable | Code::Pending)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(PartialEq, Eq, Hash, Debug, Clone)]
struct StatusContents {
    code: Code,
    reasons: Vec<Symbol>,
    plugin: Symbol,
}

/// The status that a plugin returns at an extension point.
///
/// Cloning is cheap. Two successes are equal whatever plugin returned them.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Status(Option<Arc<StatusContents>>);

impl Status {
    /// Success, without a message.
    pub const SUCCESS: Status = Status(None);

    /// A status with one reason. `Code::Success` gives [`Status::SUCCESS`].
    pub fn new(code: Code, reason: &str) -> Status {
        Status::with_reasons(code, vec![Symbol::new(reason)])
    }

    /// A status with any number of reasons, in order.
    pub fn with_reasons(code: Code, reasons: Vec<Symbol>) -> Status {
        if code == Code::Success {
            return Status::SUCCESS;
        }
        Status(Some(Arc::new(StatusContents { code, reasons, plugin: Symbol::EMPTY })))
    }

    /// `Unschedulable` with one reason.
    pub fn unschedulable(reason: &str) -> Status {
        Status::new(Code::Unschedulable, reason)
    }

    /// `UnschedulableAndUnresolvable` with one reason.
    pub fn unresolvable(reason: &str) -> Status {
        Status::new(Code::UnschedulableAndUnresolvable, reason)
    }

    /// `Error` with the text of an error.
    pub fn error(error: impl fmt::Display) -> Status {
        Status::new(Code::Error, &error.to_string())
    }

    /// `Skip`: nothing to do for this pod.
    pub fn skip() -> Status {
        Status::with_reasons(Code::Skip, Vec::new())
    }

    /// `Wait` without a reason: the requested operation is in progress.
    pub fn wait() -> Status {
        Status::with_reasons(Code::Wait, Vec::new())
    }

    /// The same status with `plugin` as its plugin. A success has none. It costs nothing if the
    /// plugin is already set, as in rejections that plugins build once.
    pub fn by(self, plugin: Symbol) -> Status {
        if self.plugin() == plugin {
            return self;
        }
        Status(self.0.map(|rejection| {
            let mut rejection = Arc::unwrap_or_clone(rejection);
            rejection.plugin = plugin;
            Arc::new(rejection)
        }))
    }

    /// Whether both share their contents in memory. `false` does not mean that they differ.
    pub fn is_shared_with(&self, other: &Status) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// The code; Success if nothing is set.
    pub fn code(&self) -> Code {
        self.0.as_ref().map_or(Code::Success, |rejection| rejection.code)
    }

    /// The reasons, in the order given. Empty for a success.
    pub fn reasons(&self) -> &[Symbol] {
        self.0.as_ref().map_or(&[], |rejection| &rejection.reasons)
    }

    /// The plugin that returned the status, empty if none is set.
    pub fn plugin(&self) -> Symbol {
        self.0.as_ref().map_or(Symbol::EMPTY, |rejection| rejection.plugin)
    }

    /// The reasons joined with `, `.
    pub fn message(&self) -> String {
        let reasons: Vec<&str> = self.reasons().iter().map(|reason| reason.as_str()).collect();
        reasons.join(", ")
    }

    /// Whether the code is Success.
    pub fn is_success(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the code is Skip.
    pub fn is_skip(&self) -> bool {
        self.code() == Code::Skip
    }

    /// Whether the code is Error.
    pub fn is_error(&self) -> bool {
        self.code() == Code::Error
    }

    /// Whether the code is Wait.
    pub fn is_wait(&self) -> bool {
        self.code() == Code::Wait
    }

    /// Whether the code is a rejection.
    pub fn is_rejected(&self) -> bool {
        self.code().is_rejected()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code())?;
        if !self.plugin().is_empty() {
            write!(f, " by {}", self.plugin())?;
        }
        if self.reasons().is_empty() { Ok(()) } else { write!(f, ": {}", self.message()) }
    }
}

/// The statuses of all nodes, which share a few.
#[derive(Clone, Debug)]
pub struct DistinctStatuses {
    /// The statuses; not every one needs to occur.
    pub statuses: Vec<Status>,
    /// By slot: the index of the node's status; any index where the slot holds no node.
    pub by_slot: Vec<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_is_free_and_anonymous() {
        assert_eq!(size_of::<Status>(), size_of::<usize>());
        assert_eq!(Status::new(Code::Success, "ignored"), Status::SUCCESS);
        assert_eq!(Status::SUCCESS.by("NodeName".into()).plugin(), "");
    }

    #[test]
    fn message_joins_reasons_in_order() {
        let reasons = vec![Symbol::new("Too many pods"), Symbol::new("Insufficient cpu")];
        let status =
            Status::with_reasons(Code::Unschedulable, reasons).by("NodeResourcesFit".into());
        assert_eq!(status.message(), "Too many pods, Insufficient cpu");
        assert_eq!(
            format!("{status:?}"),
            "Unschedulable by NodeResourcesFit: Too many pods, Insufficient cpu"
        );
    }

    #[test]
    fn only_three_codes_reject() {
        let rejected = [Code::Unschedulable, Code::UnschedulableAndUnresolvable, Code::Pending];
        let others = [Code::Success, Code::Error, Code::Wait, Code::Skip];
        assert!(rejected.iter().all(|code| code.is_rejected()));
        assert!(!others.iter().any(|code| code.is_rejected()));
    }
}
