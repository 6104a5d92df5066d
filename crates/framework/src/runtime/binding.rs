//! Running Reserve, Permit, PreBind, Bind and PostBind.
//!
//! Upstream: `pkg/scheduler/framework/runtime/framework.go`.

use crate::cycle_state::CycleState;
use crate::plugin::BindContext;
use crate::record::PluginStatus;
use crate::runtime::{Framework, run_plugin, wrap};
use crate::status::{Code, Status};
use kubestep_api::Duration;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_config::versions::Switch;

/// The maximum wait at Permit: 15 minutes.
pub const MAX_PERMIT_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The combined result of all Permit plugins.
#[derive(Default, Debug)]
pub struct PermitOutcome {
    /// Success, Wait or the failure.
    pub status: Status,
    /// The plugins that wait, with their timeouts.
    pub waits: Vec<(Symbol, Duration)>,
    /// The answer of each plugin that ran, in order.
    pub answers: Vec<PluginStatus>,
}

impl PermitOutcome {
    /// Adds a wait of at most `timeout` to the result, unless a plugin rejected the
    /// pod or failed. `name` takes the place of a plugin's name.
    pub fn add_wait(&mut self, name: Symbol, reason: &str, timeout: Duration) {
        if !self.status.is_success() && !self.status.is_wait() {
            return;
        }
        let status = Status::new(Code::Wait, reason).by(name);
        self.answers.push(PluginStatus::new(name, status.clone()));
        self.waits.push((name, timeout));
        if self.status.is_success() {
            self.status = status;
        }
    }
}

impl Framework {
    /// Runs Reserve until one plugin fails. The caller then unreserves all plugins.
    pub fn run_reserve(
        &self,
        cx: &mut BindContext<'_>,
        state: &mut CycleState,
    ) -> (Vec<PluginStatus>, Status) {
        let mut answers = Vec::new();
        let (point, timer) = (ExtensionPoint::Reserve, cx.shared.timer.clone());
        for plugin in self.at(point) {
            let name = plugin.name();
            let fault = state.fault(point, name);
            let status = run_plugin((point, name), fault, &timer, || plugin.reserve(cx, state));
            let status = status.by(name);
            answers.push(PluginStatus::new(name, status.clone()));
            if !status.is_success() {
                return (answers, failure("Reserve", status, name));
            }
        }
        (answers, Status::SUCCESS)
    }

    /// Runs Unreserve of all Reserve plugins in reverse order, including those whose Reserve did
    /// not run.
    pub fn run_unreserve(&self, cx: &mut BindContext<'_>, state: &mut CycleState) {
        for plugin in self.at(ExtensionPoint::Reserve).iter().rev() {
            plugin.unreserve(cx, state);
        }
    }

    /// Runs Permit until a plugin rejects the pod or fails. If any plugin waits, the result is
    /// Wait.
    pub fn run_permit(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> PermitOutcome {
        let mut outcome = PermitOutcome::default();
        let mut last_wait = Status::SUCCESS;
        let (point, timer) = (ExtensionPoint::Permit, cx.shared.timer.clone());
        for plugin in self.at(point) {
            let name = plugin.name();
            let fault = state.fault(point, name);
            let answer = run_plugin((point, name), fault, &timer, || plugin.permit(cx, state));
            let status = answer.status.by(name);
            outcome.answers.push(PluginStatus::new(name, status.clone()));
            match status.code() {
                Code::Success => {}
                Code::Wait => {
                    outcome.waits.push((name, answer.timeout.min(MAX_PERMIT_TIMEOUT)));
                    last_wait = status;
                }
                code => {
                    outcome.waits.clear();
                    outcome.status = match code.is_rejected() {
                        true => status,
                        false => wrap(&format!("running Permit plugin {name:?}"), &status, name),
                    };
                    return outcome;
                }
            }
        }
        if !outcome.waits.is_empty() {
            let mut reasons = last_wait.reasons().to_vec();
            reasons.push("one or more plugins asked to wait and no plugin rejected pod".into());
            outcome.status = Status::with_reasons(Code::Wait, reasons).by(last_wait.plugin());
        }
        outcome
    }

    /// Asks every PreBind plugin whether it will do something. Those that skip do not run PreBind.
    pub fn run_pre_bind_pre_flight(&self, cx: &BindContext<'_>, state: &mut CycleState) -> Status {
        let mut answer = Status::skip();
        let mut skipping = Vec::new();
        for plugin in self.at(ExtensionPoint::PreBind) {
            let name = plugin.name();
            let status = plugin.pre_bind_pre_flight(cx, state);
            match status.code() {
                Code::Success => answer = Status::SUCCESS,
                Code::Skip => skipping.push(name),
                Code::Error => {
                    return wrap(&format!("running PreBindPreFlight {name:?}"), &status, name);
                }
                code => {
                    return Status::error(format!(
                        "PreBindPreFlight {name} returned {:?}, which is unsupported. It is \
                         supposed to return Success, Skip, or Error status",
                        code.as_str()
                    ));
                }
            }
        }
        state.skip_pre_bind = skipping;
        state.pre_flight_done = true;
        answer
    }

    /// Runs PreBind of the plugins that did not skip. Wait means that a plugin must run again
    /// later. Adjacent plugins that allow it run in parallel, as in upstream's
    /// `getPreBindPluginGroups`; finished ones do not run again.
    pub fn run_pre_bind(
        &self,
        cx: &mut BindContext<'_>,
        state: &mut CycleState,
    ) -> (Vec<PluginStatus>, Status) {
        let mut answers = Vec::new();
        let mut waits: Option<Status> = None;
        let parallel = state.pre_flight_done && cx.features.has(Switch::PreBindInParallel);
        let (point, timer) = (ExtensionPoint::PreBind, cx.shared.timer.clone());
        for plugin in self.at(point) {
            let name = plugin.name();
            let in_parallel = parallel && plugin.pre_binds_in_parallel();
            if waits.is_some() && !in_parallel {
                break;
            }
            let fault = state.fault(point, name);
            if fault.is_none() && state.skips_pre_bind(name) {
                continue;
            }
            let status = run_plugin((point, name), fault, &timer, || plugin.pre_bind(cx, state));
            let status = status.by(name);
            answers.push(PluginStatus::new(name, status.clone()));
            match status.code() {
                Code::Success => state.skip_pre_bind.push(name),
                Code::Wait if in_parallel => waits = waits.or(Some(status)),
                Code::Wait => return (answers, status),
                _ => return (answers, failure("PreBind", status, name)),
            }
        }
        (answers, waits.unwrap_or(Status::SUCCESS))
    }

    /// Runs Bind until a plugin does not skip. Wait means that it must run again.
    pub fn run_bind(
        &self,
        cx: &mut BindContext<'_>,
        state: &mut CycleState,
    ) -> (Vec<PluginStatus>, Status) {
        let mut answers = Vec::new();
        let mut last = Status::skip();
        let (point, timer) = (ExtensionPoint::Bind, cx.shared.timer.clone());
        for plugin in self.at(point) {
            let name = plugin.name();
            let fault = state.fault(point, name);
            let status = run_plugin((point, name), fault, &timer, || plugin.bind(cx, state));
            let status = status.by(name);
            answers.push(PluginStatus::new(name, status.clone()));
            last = match status.code() {
                Code::Skip | Code::Success => status,
                // The answer is pending: the plugin must run again.
                Code::Wait => return (Vec::new(), status),
                code if code.is_rejected() => status,
                _ => wrap(&format!("running Bind plugin {name:?}"), &status, name),
            };
            if !last.is_skip() {
                break;
            }
        }
        (answers, last)
    }

    /// Runs PostBind of all plugins.
    pub fn run_post_bind(&self, cx: &mut BindContext<'_>, state: &mut CycleState) {
        for plugin in self.at(ExtensionPoint::PostBind) {
            let timer = cx.shared.timer.clone();
            timer.time(ExtensionPoint::PostBind, plugin.name(), || plugin.post_bind(cx, state));
        }
    }
}

/// A rejection is returned as it is; any other failure becomes an error of the extension point.
fn failure(point: &str, status: Status, plugin: Symbol) -> Status {
    match status.is_rejected() {
        true => status,
        false => wrap(&format!("running {point} plugin {plugin:?}"), &status, plugin),
    }
}
