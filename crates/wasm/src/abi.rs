//! The functions of the scheduler that a guest can import, as kube-scheduler-wasm-extension has
//! them: modules `k8s.io/api`, `k8s.io/scheduler` and `k8s.io/klog`.
//!
//! Texts and objects are copied into a buffer that the guest passes. If it is too small, nothing is
//! copied, and the guest learns the length from the result. A guest sees no waiting pods, and its
//! logs and events are not written.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubestep_framework::api::{Name, Pod};
use kubestep_framework::snapshot::Snapshot;
use serde_json::{Value, json};
use wasmi::errors::LinkerError;
use wasmi::{Caller, Engine, Error, Extern, Linker, Memory, Module, StoreLimits};

use crate::{proto, wasi};

const API: &str = "k8s.io/api";
const KLOG: &str = "k8s.io/klog";
const SCHEDULER: &str = "k8s.io/scheduler";

/// What a byte costs that a guest gets: about as many instructions as writing it takes.
const FUEL_PER_BYTE: u64 = 10;

/// What the functions read and write.
#[derive(Default)]
pub(crate) struct HostState {
    pub limits: StoreLimits,
    /// `guestConfig` of the plugin's arguments.
    pub config: Arc<str>,
    /// `logSeverity` of the plugin's arguments.
    pub severity: i32,
    pub call: Call,
    /// What the guest printed during the call: the text of a panic.
    pub output: String,
}

/// Parameters and results of one call of the guest.
#[derive(Default)]
pub(crate) struct Call {
    pub snapshot: Snapshot,
    pub pod: Option<Arc<Pod>>,
    /// The pod that AddPod and RemovePod are about.
    pub target: Option<Arc<Pod>>,
    pub node: Name,
    /// The nodes that passed the filters, for PreScore.
    pub filtered: Vec<Name>,
    /// The code of each node that was rejected, for PostFilter.
    pub codes: BTreeMap<Name, u8>,
    /// The scores, for NormalizeScore, and its result.
    pub scores: BTreeMap<Name, i64>,
    pub reason: String,
    /// The nodes to which PreFilter limits the pod; `None` for all.
    pub nodes: Option<Vec<Name>>,
    pub nominated: Name,
    /// Numbers of resource and actions of each event.
    pub events: Vec<(u32, u32)>,
}

/// The guest that calls.
pub(crate) type Guest<'a> = Caller<'a, HostState>;
type Content = fn(&HostState) -> Vec<u8>;
type NodeContent = fn(&Snapshot, Name) -> Vec<u8>;
type Take = fn(&mut Call, &[u8]) -> Result<(), Error>;

/// The linker with all functions, for a module.
pub(crate) fn linker(engine: &Engine, module: &Module) -> Result<Linker<HostState>, LinkerError> {
    let mut linker = Linker::new(engine);
    gives(&mut linker)?;
    gives_of_nodes(&mut linker)?;
    takes(&mut linker)?;
    waiting_pods(&mut linker)?;
    logs(&mut linker)?;
    wasi::link(&mut linker, module)?;
    Ok(linker)
}

/// What a guest can ask for.
fn gives(linker: &mut Linker<HostState>) -> Result<(), LinkerError> {
    let functions: [(&str, &str, Content); 8] = [
        (API, "nodeList", |state| {
            let nodes = state.call.snapshot.iter().filter_map(|info| info.node.as_ref());
            proto::node_list(nodes.map(|node| proto::node(node)))
        }),
        (SCHEDULER, "get_config", |state| state.config.as_bytes().to_vec()),
        (SCHEDULER, "currentNodeName", |state| state.call.node.text().into()),
        (SCHEDULER, "currentPod", |state| pod(&state.call.pod)),
        (SCHEDULER, "targetPod", |state| pod(&state.call.target)),
        (SCHEDULER, "filteredNodeList", |state| text(&json!(state.call.filtered))),
        (SCHEDULER, "nodeToStatusMap", |state| text(&json!(state.call.codes))),
        (SCHEDULER, "nodeScoreList", |state| text(&json!(state.call.scores))),
    ];
    for (module, name, content) in functions {
        linker.func_wrap(module, name, move |mut guest: Guest<'_>, to: u32, limit: u32| {
            let content = content(guest.data());
            give(&mut guest, &content, to, limit)
        })?;
    }
    Ok(())
}

/// What a guest can ask for of a node, by its name.
fn gives_of_nodes(linker: &mut Linker<HostState>) -> Result<(), LinkerError> {
    let functions: [(&str, &str, NodeContent); 2] =
        [(API, "node", node), (SCHEDULER, "nodeImageStates", image_states)];
    for (module, name, content) in functions {
        let function = move |mut guest: Guest<'_>, from: u32, length: u32, to: u32, limit: u32| {
            let name = lossy(&read(&guest, from, length)?);
            let content = content(&guest.data().call.snapshot, name.as_str().into());
            give(&mut guest, &content, to, limit)
        };
        linker.func_wrap(module, name, function)?;
    }
    Ok(())
}

/// What a guest hands over.
fn takes(linker: &mut Linker<HostState>) -> Result<(), LinkerError> {
    let functions: [(&str, Take); 6] = [
        ("result.status_reason", |call, bytes| {
            call.reason = lossy(bytes);
            Ok(())
        }),
        ("result.nominated_node_name", |call, bytes| {
            call.nominated = lossy(bytes).as_str().into();
            Ok(())
        }),
        ("result.node_names", |call, bytes| {
            call.nodes = node_names(bytes);
            Ok(())
        }),
        ("result.cluster_events", |call, bytes| {
            call.events = events(bytes);
            Ok(())
        }),
        ("result.normalized_score_list", |call, bytes| {
            // Go writes an empty map as null; without scores, those of Score stay.
            let scores: Option<BTreeMap<Name, i64>> =
                serde_json::from_slice(bytes).map_err(|error| {
                    Error::new(format!("its normalized scores are not a map of numbers: {error}"))
                })?;
            call.scores = scores.unwrap_or_default();
            Ok(())
        }),
        ("handle.eventrecorder.eventf", |_, _| Ok(())),
    ];
    for (name, take) in functions {
        let function = move |mut guest: Guest<'_>, from: u32, length: u32| {
            let bytes = read(&guest, from, length)?;
            take(&mut guest.data_mut().call, &bytes)
        };
        linker.func_wrap(SCHEDULER, name, function)?;
    }
    Ok(())
}

/// Both answer that the pod does not wait, by a number of 64 bits in the guest's buffer.
fn waiting_pods(linker: &mut Linker<HostState>) -> Result<(), LinkerError> {
    for name in ["handle.get_waiting_pod", "handle.reject_waiting_pod"] {
        let function = |mut guest: Guest<'_>, _uid: u32, _length: u32, to: u32, _limit: u32| {
            write(&mut guest, to, &[0; 8])
        };
        linker.func_wrap(SCHEDULER, name, function)?;
    }
    Ok(())
}

/// What guests log is dropped.
fn logs(linker: &mut Linker<HostState>) -> Result<(), LinkerError> {
    linker.func_wrap(KLOG, "log", |_: Guest<'_>, _: u32, _: u32, _: u32| {})?;
    linker.func_wrap(KLOG, "logs", |_: Guest<'_>, _: u32, _: u32, _: u32, _: u32, _: u32| {})?;
    linker.func_wrap(KLOG, "severity", |guest: Guest<'_>| guest.data().severity)?;
    Ok(())
}

fn pod(pod: &Option<Arc<Pod>>) -> Vec<u8> {
    pod.as_ref().map(|pod| proto::pod(pod)).unwrap_or_default()
}

fn node(snapshot: &Snapshot, name: Name) -> Vec<u8> {
    let node = snapshot.by_name(name).and_then(|info| info.node.as_ref());
    node.map(|node| proto::node(node)).unwrap_or_default()
}

fn image_states(snapshot: &Snapshot, name: Name) -> Vec<u8> {
    let Some(node) = snapshot.by_name(name) else { return text(&Value::Null) };
    let states = node.image_states.iter().map(|image| {
        (image.name.to_string(), json!({"Size": image.size, "NumNodes": image.num_nodes}))
    });
    text(&Value::Object(states.collect()))
}

fn text(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Names that each end with a zero byte; `None` if there are none.
fn node_names(bytes: &[u8]) -> Option<Vec<Name>> {
    let ends = bytes.iter().rposition(|byte| *byte == 0)?;
    let names = bytes[..ends].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let mut names: Vec<Name> = names.map(|name| lossy(name).as_str().into()).collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then_some(names)
}

/// Pairs of numbers of 32 bits, the low byte first.
fn events(bytes: &[u8]) -> Vec<(u32, u32)> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    bytes.chunks_exact(8).map(|pair| (number(&pair[..4]), number(&pair[4..]))).collect()
}

fn memory(guest: &Guest<'_>) -> Result<Memory, Error> {
    let memory = guest.get_export("memory").and_then(Extern::into_memory);
    memory.ok_or_else(|| Error::new("its memory is not exported"))
}

/// Bytes of the guest's memory.
pub(crate) fn read(guest: &Guest<'_>, from: u32, length: u32) -> Result<Vec<u8>, Error> {
    let (from, memory) = (from as usize, memory(guest)?.data(guest));
    let bytes = memory.get(from..from.saturating_add(length as usize));
    bytes.map(<[u8]>::to_vec).ok_or_else(|| Error::new("it passed a range outside its memory"))
}

/// Writes to the guest's memory.
pub(crate) fn write(guest: &mut Guest<'_>, to: u32, bytes: &[u8]) -> Result<(), Error> {
    let memory = memory(guest)?;
    let written = memory.write(guest, to as usize, bytes);
    written.map_err(|_| Error::new("it passed a buffer outside its memory"))
}

/// Copies into a buffer of the guest, if it is large enough, and returns the length.
fn give(guest: &mut Guest<'_>, content: &[u8], to: u32, limit: u32) -> Result<u32, Error> {
    // The work for it counts, too: nothing but the guest's own limit ends a loop of calls.
    let left = guest.get_fuel()?.saturating_sub(FUEL_PER_BYTE * content.len() as u64);
    guest.set_fuel(left)?;
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    if length <= limit {
        write(guest, to, content)?;
    }
    Ok(length)
}
