//! What is read from a cluster: every kind with the API versions it is looked up in, who needs it,
//! and what is uncertain without it. Requests, roles, captures and notices are all derived from
//! this table.

use std::sync::{Mutex, PoisonError};

use kubestep_api::{Kind, custom};

/// Who needs a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindReader {
    /// kube-scheduler itself watches it.
    Scheduler,
    /// kube-scheduler watches it only with a feature gate that is off by default.
    Gate(&'static str),
    /// A plugin of this name reads it; kube-scheduler itself does not have the plugin.
    Plugin(&'static str),
    /// Only the debugger: to apply the defaults that an API server applies when objects are
    /// created.
    Debugger,
}

/// A kind to be read.
#[derive(Clone, Copy, Debug)]
pub struct ReadKind {
    /// The kind that is listed and watched.
    pub kind: Kind,
    /// Its versions, the preferred one first. A server that has none of them does not serve the
    /// kind.
    pub versions: &'static [&'static str],
    /// Who reads it; decides whether it may be missing.
    pub reader: KindReader,
    /// Field selector, escaped for a query. Like kube-scheduler's informer, it excludes pods that
    /// succeeded or failed.
    pub selector: &'static str,
    /// What is uncertain without it, as the end of a sentence.
    pub without: &'static str,
}

const V1: &[&str] = &["v1"];
const DEVICES: &[&str] = &["v1", "v1beta2", "v1beta1", "v1alpha3"];
const RULES: &[&str] = &["v1", "v1beta2", "v1alpha3"];
// No server has both of the first two: 1.37 removed the first.
const GROUPS: &[&str] = &["v1alpha2", "v1beta1", "v1alpha3"];
const WORKLOADS: &[&str] = &["v1alpha2", "v1beta1", "v1alpha3", "v1alpha1"];

const NOT_ENDED: &str = "status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

const fn selector(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => NOT_ENDED,
        _ => "",
    }
}

macro_rules! table {
    ($($kind:ident $versions:ident $reader:expr, $without:literal;)*) => {
        &[$(ReadKind {
            kind: Kind::$kind,
            versions: $versions,
            reader: $reader,
            selector: selector(Kind::$kind),
            without: $without,
        }),*]
    };
}

use KindReader::{Debugger, Gate, Scheduler};

/// All kinds that kube-scheduler and the debugger read; a kind comes after those it refers to.
pub const TABLE: &[ReadKind] = table! {
    Namespace V1 Scheduler, "namespace selectors of pod affinity match nothing";
    PriorityClass V1 Debugger, "pods that you add get priority 0";
    Node V1 Scheduler, "there is no node to schedule to";
    StorageClass V1 Scheduler, "pods with unbound claims appear unschedulable";
    CsiDriver V1 Scheduler, "storage capacity and the migration of volumes are ignored";
    CsiNode V1 Scheduler, "limits on volumes per node are ignored";
    CsiStorageCapacity V1 Scheduler, "storage capacity is ignored";
    PersistentVolume V1 Scheduler, "volumes of bound claims appear missing";
    PersistentVolumeClaim V1 Scheduler, "pods with volume claims appear unschedulable";
    VolumeAttachment V1 Scheduler, "volumes that are still attached do not count towards limits";
    Service V1 Scheduler, "default spread constraints ignore services";
    ReplicationController V1 Scheduler, "default spread constraints ignore their pods";
    ReplicaSet V1 Scheduler, "default spread constraints ignore their pods";
    StatefulSet V1 Scheduler, "default spread constraints ignore their pods";
    PodDisruptionBudget V1 Scheduler, "preemption ignores disruption budgets";
    DeviceClass DEVICES Scheduler, "resource claims cannot be allocated";
    ResourceSlice DEVICES Scheduler, "nodes appear to have no devices";
    DeviceTaintRule RULES Gate("DRADeviceTaintRules"), "taints from rules are ignored";
    ResourceClaimTemplate DEVICES Debugger, "no resource claims are created for pods that you add";
    ResourceClaim DEVICES Scheduler, "pods with resource claims appear unschedulable";
    Workload WORKLOADS Gate("GenericWorkload"), "up to 1.35, pods of groups wait for a missing workload";
    PodGroup GROUPS Gate("GenericWorkload"), "pods of groups wait for a missing group";
    Pod V1 Scheduler, "nodes appear empty and no pod is pending";
};

/// All kinds, also those that plugins declared. Pods are last.
pub fn all() -> &'static [ReadKind] {
    static ALL: Mutex<&[ReadKind]> = Mutex::new(&[]);
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let declared = custom::declared();
    // Computed again only after a kind was declared, which happens before the first call.
    if all.len() != TABLE.len() + declared.len() {
        let custom = declared.into_iter().map(|kind| ReadKind {
            kind: Kind::Custom(kind),
            versions: kind.versions(),
            reader: KindReader::Plugin(kind.plugin()),
            selector: "",
            without: kind.without(),
        });
        let is_pod = |row: &&ReadKind| row.kind == Kind::Pod;
        let others = TABLE.iter().filter(|row| !is_pod(row)).copied();
        *all =
            Vec::leak(others.chain(custom).chain(TABLE.iter().filter(is_pod).copied()).collect());
    }
    *all
}

/// The row of a kind.
pub fn row(kind: Kind) -> Option<&'static ReadKind> {
    all().iter().find(|row| row.kind == kind)
}

impl ReadKind {
    /// The path of the kind's list with the first part of its query.
    pub fn query(&self, version: &str, namespace: Option<&str>) -> String {
        let path = self.path(version, namespace);
        match self.selector {
            "" => format!("{path}?"),
            selector => format!("{path}?fieldSelector={selector}&"),
        }
    }

    /// The path of the kind's list, in all namespaces or in one.
    pub fn path(&self, version: &str, namespace: Option<&str>) -> String {
        let root = match self.kind.group() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        match namespace.filter(|_| self.kind.is_namespaced()) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.kind.plural()),
            None => format!("{root}/{}", self.kind.plural()),
        }
    }

    /// The `apiVersion` of an object in `version`.
    pub fn api_version(&self, version: &str) -> String {
        match self.kind.group() {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_once() {
        let mut listed: Vec<Kind> = TABLE.iter().map(|row| row.kind).collect();
        listed.sort();
        let mut all: Vec<Kind> = Kind::all().collect();
        all.sort();
        assert_eq!(listed, all);
    }

    #[test]
    fn paths_are_the_apis() {
        let path = |kind, version, namespace| row(kind).unwrap().path(version, namespace);
        assert_eq!(path(Kind::Pod, "v1", None), "/api/v1/pods");
        assert_eq!(path(Kind::Pod, "v1", Some("shop")), "/api/v1/namespaces/shop/pods");
        assert_eq!(path(Kind::Node, "v1", Some("shop")), "/api/v1/nodes");
        assert_eq!(
            path(Kind::ResourceSlice, "v1beta1", None),
            "/apis/resource.k8s.io/v1beta1/resourceslices"
        );
        assert_eq!(
            row(Kind::PodGroup).unwrap().api_version("v1alpha2"),
            "scheduling.k8s.io/v1alpha2"
        );
    }
}
