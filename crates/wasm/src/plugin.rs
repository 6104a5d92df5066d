//! A guest as a plugin of the scheduler.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubestep_framework::prelude::*;
use serde::Deserialize;

use crate::GuestError;
use crate::abi::Call;
use crate::module::GuestModule;
use crate::running::{GuestLimits, Image, PodGuest, Program};

/// The arguments of a guest, as kube-scheduler-wasm-extension has them.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GuestArgs {
    /// Where the module is.
    #[serde(rename = "guestURL")]
    pub guest_url: String,
    /// A text for the guest.
    guest_config: String,
    /// From which severity on the guest should log: 0 info, 1 warning, 2 error, 3 fatal.
    log_severity: i32,
}

/// A guest with its configuration.
pub(crate) struct GuestPlugin {
    name: Symbol,
    program: Program,
    /// What a cycle begins with.
    started: Arc<Image>,
    events: Vec<(EventResource, Action)>,
}

/// The guests of a cycle, by plugin.
#[derive(Clone, Default)]
struct Guests(BTreeMap<Symbol, PodGuest>);

impl GuestPlugin {
    /// Starts the guest.
    ///
    /// # Errors
    /// The guest fails at once.
    pub(crate) fn new(
        name: Symbol,
        module: GuestModule,
        args: GuestArgs,
        limits: GuestLimits,
    ) -> Result<GuestPlugin, GuestError> {
        let config = args.guest_config.as_str().into();
        let program = Program { module, config, severity: args.log_severity, limits };
        let started = Arc::new(program.start().map_err(GuestError::Start)?);
        let mut plugin = GuestPlugin { name, program, started, events: Vec::new() };
        if plugin.program.module.exports("enqueue") {
            let guest = PodGuest::new(plugin.started.clone());
            let called = guest.call(&plugin.program, "enqueue", Call::default());
            let (_, call) = called.map_err(|error| GuestError::Start(error.message()))?;
            plugin.events = call.events.into_iter().filter_map(event).collect();
        }
        Ok(plugin)
    }

    fn exports(&self, name: &str) -> bool {
        self.program.module.exports(name)
    }

    /// The guest of the cycle, for calls that change its state. Other copies of the state are not
    /// affected.
    fn own<'a>(&self, state: &'a mut CycleState) -> Option<&'a PodGuest> {
        state.read_mut::<Guests>().and_then(|guests| guests.0.get(&self.name))
    }

    /// Calls a function if the guest exports it; without it, the answer is success. If PreFilter did
    /// not run, which a profile can have, each call gets a guest of its own.
    fn call(
        &self,
        guest: Option<&PodGuest>,
        export: &str,
        call: Call,
    ) -> Result<(u64, Call), Status> {
        if !self.exports(export) {
            return Ok((0, call));
        }
        match guest {
            Some(guest) => guest.call(&self.program, export, call),
            None => PodGuest::new(self.started.clone()).call(&self.program, export, call),
        }
    }

    /// Calls a function that returns a code.
    fn ask(&self, guest: Option<&PodGuest>, export: &str, call: Call) -> Status {
        match self.call(guest, export, call) {
            Ok((code, call)) => status(code, &call),
            Err(failed) => failed,
        }
    }

    fn target(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        export: &str,
        target: &PodInfo,
        node: &NodeInfo,
    ) -> Status {
        if !self.exports(export) {
            return Status::SUCCESS; // without a copy of the guest
        }
        let call = Call { target: Some(target.pod.clone()), ..on_node(cx, node) };
        self.ask(self.own(state), export, call)
    }

    fn ask_in_cycle(
        &self,
        state: &CycleState,
        export: &str,
        call: Call,
    ) -> Result<(u64, Call), Status> {
        self.call(state.read::<Guests>().and_then(|guests| guests.0.get(&self.name)), export, call)
    }
}

fn cycle(cx: &CycleContext<'_>) -> Call {
    let pod = Some(cx.pod.pod.clone());
    Call { snapshot: cx.snapshot.clone(), pod, ..Call::default() }
}

fn on_node(cx: &CycleContext<'_>, node: &NodeInfo) -> Call {
    Call { node: node.name, ..cycle(cx) }
}

fn binding(cx: &BindContext<'_>) -> Call {
    let pod = Some(cx.pod.pod.clone());
    Call { snapshot: cx.snapshot.clone(), pod, node: cx.node, ..Call::default() }
}

/// A guest's mode of nomination that replaces the pod's nominated node.
const OVERRIDE: i32 = 1;

/// The low and the high half of a number.
fn halves(number: u64) -> (u64, i32) {
    let half = |number: u64| (number & u64::from(u32::MAX)) as u32;
    (half(number).into(), half(number >> 32).cast_signed())
}

/// The status for a code that a guest returned, with the reason that it handed over.
fn status(code: u64, call: &Call) -> Status {
    let known = usize::try_from(code).ok().and_then(|code| Code::ALL.get(code));
    match known {
        Some(known) => Status::new(*known, &call.reason),
        None => Status::error(format!("the guest returned the unknown status code {code}")),
    }
}

/// The events for which a guest registers: a resource by its number in the extension, and actions
/// by upstream's bits. Kinds that the scheduler does not know any more have none.
fn event((resource, actions): (u32, u32)) -> Option<(EventResource, Action)> {
    let resource = match resource {
        0 => EventResource::Pod,
        1 => EventResource::Node,
        2 => EventResource::PersistentVolume,
        3 => EventResource::PersistentVolumeClaim,
        5 => EventResource::ResourceClaim,
        6 => EventResource::StorageClass,
        7 => EventResource::CsiNode,
        8 => EventResource::CsiDriver,
        9 => EventResource::CsiStorageCapacity,
        10 => EventResource::Wildcard,
        _ => return None,
    };
    Some((resource, Action(actions)))
}

/// The events that requeue the pods of a guest that registers none.
const ALL_EVENTS: [EventResource; 6] = [
    EventResource::Pod,
    EventResource::Node,
    EventResource::CsiNode,
    EventResource::PersistentVolume,
    EventResource::PersistentVolumeClaim,
    EventResource::StorageClass,
];

impl Plugin for GuestPlugin {
    fn name(&self) -> Symbol {
        self.name
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let registration = |(resource, action)| Registration::always(resource, action);
        Some(match self.events.is_empty() {
            true => ALL_EVENTS.map(|resource| registration((resource, Action::ALL))).to_vec(),
            false => self.events.iter().copied().map(registration).collect(),
        })
    }

    fn filters_in_order(&self) -> bool {
        true
    }

    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        let guest = PodGuest::new(self.started.clone());
        if state.read::<Guests>().is_none() {
            state.write(Guests::default());
        }
        if let Some(guests) = state.read_mut::<Guests>() {
            guests.0.insert(self.name, guest);
        }
        match self.call(self.own(state), "prefilter", cycle(cx)) {
            Ok((code, call)) => PreFilterAnswer { status: status(code, &call), nodes: call.nodes },
            Err(failed) => failed.into(),
        }
    }

    fn add_pod(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        added: &PodInfo,
        node: &NodeInfo,
    ) -> Status {
        self.target(cx, state, "addpod", added, node)
    }

    fn remove_pod(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        removed: &PodInfo,
        node: &NodeInfo,
    ) -> Status {
        self.target(cx, state, "removepod", removed, node)
    }

    fn filter(&self, cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        match self.ask_in_cycle(state, "filter", on_node(cx, node)) {
            Ok((code, call)) => status(code, &call),
            Err(failed) => failed,
        }
    }

    fn post_filter(&self, cx: &mut PostFilterContext<'_>, state: &CycleState) -> PostFilterAnswer {
        let snapshot = cx.cycle.snapshot;
        let code = |node: &Arc<NodeInfo>| {
            cx.statuses.own(node.id).map(|status| (node.name, status.code() as u8))
        };
        let call = Call { codes: snapshot.iter().filter_map(code).collect(), ..cycle(&cx.cycle) };
        match self.ask_in_cycle(state, "postfilter", call) {
            Ok((number, call)) => {
                let (code, mode) = halves(number);
                let nominate = (mode == OVERRIDE).then_some(call.nominated);
                PostFilterAnswer {
                    status: status(code, &call),
                    nominate,
                    ..PostFilterAnswer::default()
                }
            }
            Err(status) => PostFilterAnswer { status, ..PostFilterAnswer::default() },
        }
    }

    fn pre_score(&self, cx: &CycleContext<'_>, state: &mut CycleState, nodes: &NodeList) -> Status {
        let names = nodes.iter().filter_map(|id| cx.snapshot.get(*id)).map(|node| node.name);
        let call = Call { filtered: names.collect(), ..cycle(cx) };
        self.ask(self.own(state), "prescore", call)
    }

    fn score(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Result<i64, Status> {
        let (number, call) = self.ask_in_cycle(state, "score", on_node(cx, node))?;
        let (code, score) = halves(number);
        match status(code, &call) {
            status if status.is_success() => Ok(score.into()),
            status => Err(status),
        }
    }

    fn normalize(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        nodes: &[NodeId],
        scores: &mut [i64],
    ) -> Status {
        let name = |id: &NodeId| cx.snapshot.get(*id).map(|node| node.name).unwrap_or_default();
        let names: Vec<Name> = nodes.iter().map(name).collect();
        let given = names.iter().copied().zip(scores.iter().copied()).collect();
        match self.ask_in_cycle(state, "normalizescore", Call { scores: given, ..cycle(cx) }) {
            Ok((code, call)) => {
                // Upstream takes the guest's scores in the order of a Go map, so that nodes get the
                // scores of others by chance. Here each node gets its own.
                for (name, score) in names.iter().zip(scores) {
                    *score = call.scores.get(name).copied().unwrap_or(*score);
                }
                status(code, &call)
            }
            Err(failed) => failed,
        }
    }

    fn reserve(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> Status {
        self.ask(self.own(state), "reserve", binding(cx))
    }

    fn unreserve(&self, cx: &mut BindContext<'_>, state: &mut CycleState) {
        // Upstream logs a failure.
        let _status = self.ask(self.own(state), "unreserve", binding(cx));
    }

    fn permit(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> PermitAnswer {
        match self.call(self.own(state), "permit", binding(cx)) {
            Ok((number, call)) => {
                let (milliseconds, code) = halves(number);
                let timeout = Duration::from_micros(milliseconds.cast_signed() * 1000);
                PermitAnswer { status: status(u64::from(code.cast_unsigned()), &call), timeout }
            }
            Err(failed) => failed.into(),
        }
    }

    fn pre_bind_pre_flight(&self, _: &BindContext<'_>, _: &CycleState) -> Status {
        match self.exports("prebind") {
            true => Status::SUCCESS,
            false => Status::skip(),
        }
    }

    fn pre_bind(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> Status {
        self.ask(self.own(state), "prebind", binding(cx))
    }

    fn bind(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> Status {
        match self.exports("bind") {
            true => self.ask(self.own(state), "bind", binding(cx)),
            false => Status::skip(),
        }
    }

    fn post_bind(&self, cx: &mut BindContext<'_>, state: &mut CycleState) {
        let _status = self.ask(self.own(state), "postbind", binding(cx));
    }
}
