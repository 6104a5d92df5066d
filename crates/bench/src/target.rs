//! Where a workload runs.

use std::collections::BTreeMap;

use crate::BenchError;
use crate::manifest::NewObject;
use crate::measure::Measurement;

/// A cluster with a scheduler.
///
/// Its clock is that of the measurement. The errors of its methods have no place; the caller adds it.
pub trait BenchTarget {
    /// Nanoseconds since the workload began.
    fn now(&self) -> u64;

    /// Creates objects, in their order as far as that matters, and returns their names.
    ///
    /// # Errors
    /// An object is not accepted.
    fn create(&mut self, objects: Vec<NewObject>) -> Result<Vec<String>, BenchError>;

    /// Replaces an object; with a subresource only that.
    ///
    /// # Errors
    /// The object does not exist, or the change is not accepted.
    fn update(&mut self, object: &NewObject, subresource: Option<&str>) -> Result<(), BenchError>;

    /// Deletes an object of the kind of `like`; it may be deleted already.
    ///
    /// # Errors
    /// It cannot be deleted.
    fn delete(&mut self, like: &NewObject, name: &str) -> Result<(), BenchError>;

    /// Deletes pods; they may be deleted already. `at_once`: without a grace period.
    ///
    /// # Errors
    /// They cannot be deleted.
    fn delete_pods(
        &mut self,
        namespace: &str,
        names: &[String],
        at_once: bool,
    ) -> Result<(), BenchError>;

    /// The nodes, by name.
    ///
    /// # Errors
    /// They cannot be listed.
    fn nodes(&mut self) -> Result<Vec<String>, BenchError>;

    /// The names of pods.
    ///
    /// # Errors
    /// They cannot be listed.
    fn pod_names(&mut self, which: &PodFilter) -> Result<Vec<String>, BenchError>;

    /// Counts pods by how far they are.
    ///
    /// # Errors
    /// They cannot be listed.
    fn count(&mut self, which: &PodFilter) -> Result<PodCounts, BenchError>;

    /// Allocates devices to all claims of a namespace, "" for all, that have none.
    ///
    /// # Errors
    /// A claim fits on no node.
    fn allocate_claims(&mut self, namespace: &str) -> Result<(), BenchError>;

    /// Lets the scheduler work for a moment, or time pass, but not beyond `limit`, which is a time
    /// as [`BenchTarget::now`] gives it.
    ///
    /// # Errors
    /// The scheduler cannot go on.
    fn turn(&mut self, limit: u64) -> Result<(), BenchError>;

    /// Begins to measure the pods of the filter.
    fn begin(&mut self, pods: PodFilter);

    /// Ends the measurement and returns what it saw.
    fn end(&mut self) -> Measurement;
}

/// Which pods an operation or measurement is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFilter {
    /// Their namespaces; none for all.
    pub namespaces: Vec<String>,
    /// Labels that they have.
    pub labels: BTreeMap<String, String>,
}

impl PodFilter {
    /// The pods of a namespace that have the labels.
    pub fn new(namespace: &str, labels: &BTreeMap<String, String>) -> PodFilter {
        PodFilter { namespaces: vec![namespace.to_owned()], labels: labels.clone() }
    }
}

/// Pods by how far they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodCounts {
    /// They have a node.
    pub scheduled: usize,
    /// They have none and were tried.
    pub attempted: usize,
    /// They have no node and were not tried.
    pub unattempted: usize,
    /// One that has no node, with what its condition says.
    pub pending: Option<String>,
}
