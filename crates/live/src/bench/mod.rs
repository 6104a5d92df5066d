//! A real cluster as the target of a benchmark: creates the objects of a workload through the API
//! server, watches what the cluster's scheduler does with the pods, and deletes everything again.
//!
//! Only what the workload creates is changed or deleted: a namespace or object that exists already
//! is an error.

mod allocating;
mod requests;
mod resources;
mod watching;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::iter;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::failure::RequestFailure;
use crate::link::{KubeconfigTarget as LinkTarget, Link, LinkError};
use crate::runtime;
use kubestep_bench::BenchError;
use kubestep_bench::manifest::NewObject;
use kubestep_bench::measure::Measurement;
use kubestep_bench::target::{BenchTarget, PodCounts, PodFilter};
use kubestep_config::FeatureGates;
use requests::Requests;
use resources::{ResourcePath, Resources};
use watching::{SeenPods, Watching};

/// Requests at once, as upstream's pod creator.
const AT_ONCE: usize = 30;
/// How long a turn waits.
const TURN: Duration = Duration::from_millis(20);
/// How long a deleted namespace may take to disappear.
const NAMESPACE_GONE: Duration = Duration::from_secs(30);

/// A real cluster, as the target of a benchmark.
pub struct ClusterTarget {
    runtime: Runtime,
    requests: Requests,
    resources: Resources,
    begun: Instant,
    pods: SeenPods,
    /// Follows the pods as long as it is there.
    _watch: JoinHandle<()>,
    /// The paths of what was created, in order.
    created: Vec<String>,
    measuring: Option<(PodFilter, u64)>,
    /// Whether the user wants to stop.
    interrupted: Arc<AtomicBool>,
    /// The gates that decide whether and how devices are allocated.
    gates: FeatureGates,
}

impl ClusterTarget {
    /// Connects to a cluster. `interrupted` is set when the user wants to stop.
    ///
    /// # Errors
    /// The cluster cannot be reached, or its pods cannot be listed.
    pub fn open(
        target: LinkTarget,
        gates: FeatureGates,
        interrupted: Arc<AtomicBool>,
    ) -> Result<ClusterTarget, LinkError> {
        let failed = |error: std::io::Error| LinkError::Config {
            from: "the benchmark".into(),
            problem: error.to_string(),
        };
        let runtime = runtime::new().map_err(failed)?;
        let begun = Instant::now();
        let link = runtime.block_on(Link::new(target.clone()))?;
        let pods = SeenPods::default();
        let seen = pods.clone();
        let follow =
            move |opened| async move { Watching::new(seen, begun).run(target, opened).await };
        let ((), watch) = runtime::begin("pods", "following the pods", follow)?;
        Ok(ClusterTarget {
            runtime,
            requests: Requests::new(link),
            resources: Resources::default(),
            begun,
            pods,
            _watch: watch,
            created: Vec::new(),
            measuring: None,
            interrupted,
            gates,
        })
    }

    /// The context's name and the server's address.
    pub fn names(&self) -> (&str, &str) {
        (self.requests.link().name(), self.requests.link().server())
    }

    /// The scheduler's pods: how many exist that the benchmark did not create.
    pub fn pods_before(&self) -> usize {
        self.pods.count()
    }

    /// Deletes everything that was created, the newest first, and waits until its namespaces are
    /// deleted. Returns what could not be deleted, one sentence each.
    pub fn clean_up(&mut self) -> Vec<String> {
        let created = std::mem::take(&mut self.created);
        // Pods first: their namespaces disappear only after them.
        let (namespaces, others): (Vec<String>, Vec<String>) =
            created.into_iter().rev().partition(|path| is_namespace(path));
        let problems = self.delete_all(&others, true);
        let more = self.delete_all(&namespaces, true);
        let deadline = Instant::now() + NAMESPACE_GONE;
        let mut left = namespaces;
        while !left.is_empty() && Instant::now() < deadline {
            left.retain(|path| self.runtime.block_on(self.requests.exists(path)));
            if !left.is_empty() {
                std::thread::sleep(TURN);
            }
        }
        let stays = left.iter().map(|path| format!("{path} was deleted but does not disappear"));
        problems.into_iter().chain(more).chain(stays).collect()
    }

    /// Deletes objects by their paths, without finalizers if `wholly`.
    fn delete_all(&mut self, paths: &[String], wholly: bool) -> Vec<String> {
        let requests = &self.requests;
        let one = |path: &String| {
            let path = path.clone();
            async move { requests.delete(&path, wholly).await.map_err(|why| format!("{path}: {why}")) }
        };
        let work = iter(paths).map(one).buffer_unordered(AT_ONCE).collect::<Vec<_>>();
        self.runtime.block_on(work).into_iter().filter_map(Result::err).collect()
    }

    fn resource(&mut self, object: &NewObject) -> Result<ResourcePath, BenchError> {
        let (version, kind) = (object.api_version(), object.kind());
        let found = self.resources.find(&self.requests, version, kind);
        self.runtime.block_on(found).map_err(|why| format!("{kind}: {why}").into())
    }

    /// Creates objects of one kind, many at once.
    fn create_of(
        &mut self,
        resource: &ResourcePath,
        objects: &[NewObject],
    ) -> Result<Vec<String>, BenchError> {
        let requests = &self.requests;
        let one = |object: &NewObject| {
            let (path, body) =
                (resource.path(&object.namespace), body(object, resource.namespaced));
            let has_status = resource.has_own_status && body["status"].is_object();
            async move {
                let name = requests.create(&path, &body).await?;
                if has_status {
                    let status = serde_json::json!({"status": body["status"]});
                    requests.patch(&format!("{path}/{name}/status"), &status).await?;
                }
                Ok::<_, RequestFailure>((format!("{path}/{name}"), name))
            }
        };
        let work = iter(objects).map(one).buffered(AT_ONCE).collect::<Vec<_>>();
        let mut names = Vec::new();
        let mut problem = None;
        for done in self.runtime.block_on(work) {
            match done {
                Ok((path, name)) => {
                    self.created.push(path);
                    names.push(name);
                }
                Err(failure) => problem = Some(format!("{}: {failure}", resource.plural)),
            }
        }
        problem.map_or(Ok(names), |problem| Err(problem.into()))
    }

    fn check_interrupt(&self) -> Result<(), BenchError> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err("interrupted".to_owned().into()),
            false => Ok(()),
        }
    }

    fn pod_path(namespace: &str, name: &str) -> String {
        format!("/api/v1/namespaces/{namespace}/pods/{name}")
    }
}

/// What is sent for an object.
fn body(object: &NewObject, namespaced: bool) -> Value {
    let mut value = Value::clone(&object.value);
    let metadata = &mut value["metadata"];
    if let Some(name) = &object.name {
        metadata["name"] = name.as_str().into();
    }
    if namespaced && !object.namespace.is_empty() {
        metadata["namespace"] = object.namespace.as_str().into();
    }
    value
}

fn is_namespace(path: &str) -> bool {
    path.strip_prefix("/api/v1/namespaces/").is_some_and(|name| !name.contains('/'))
}

impl BenchTarget for ClusterTarget {
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn create(&mut self, objects: Vec<NewObject>) -> Result<Vec<String>, BenchError> {
        self.check_interrupt()?;
        let mut kinds: BTreeMap<(String, String), Vec<NewObject>> = BTreeMap::new();
        let is_one_kind = objects.windows(2).all(|pair| pair[0].kind() == pair[1].kind());
        for object in objects {
            let key = (object.api_version().to_owned(), object.kind().to_owned());
            kinds.entry(key).or_default().push(object);
        }
        let mut names = Vec::new();
        // Claims before volumes, which name them: alphabetical order has it the other way round.
        for objects in kinds.into_values().rev() {
            let Some(first) = objects.first() else { continue };
            let resource = self.resource(first)?;
            names.extend(self.create_of(&resource, &objects)?);
        }
        Ok(if is_one_kind { names } else { Vec::new() })
    }

    fn update(&mut self, object: &NewObject, subresource: Option<&str>) -> Result<(), BenchError> {
        self.check_interrupt()?;
        let resource = self.resource(object)?;
        let path = format!("{}/{}", resource.path(&object.namespace), object.name());
        let body = body(object, resource.namespaced);
        let to = subresource.map(|it| format!("{path}/{it}")).unwrap_or_else(|| path.clone());
        let work = async {
            self.requests.replace(&to, &body).await?;
            // As upstream, the status is updated too; some kinds have none.
            match self.requests.replace(&format!("{path}/status"), &body).await {
                Err(RequestFailure::Absent(_)) => Ok(()),
                done => done,
            }
        };
        self.runtime.block_on(work).map_err(|failure| format!("{to}: {failure}").into())
    }

    fn delete(&mut self, like: &NewObject, name: &str) -> Result<(), BenchError> {
        let resource = self.resource(like)?;
        let path = format!("{}/{name}", resource.path(&like.namespace));
        self.delete_all(&[path], false).pop().map_or(Ok(()), |problem| Err(problem.into()))
    }

    fn delete_pods(
        &mut self,
        namespace: &str,
        names: &[String],
        at_once: bool,
    ) -> Result<(), BenchError> {
        self.check_interrupt()?;
        let query = if at_once { "?gracePeriodSeconds=0" } else { "" };
        let paths: Vec<String> =
            names.iter().map(|name| Self::pod_path(namespace, name) + query).collect();
        self.delete_all(&paths, false).pop().map_or(Ok(()), |problem| Err(problem.into()))
    }

    fn nodes(&mut self) -> Result<Vec<String>, BenchError> {
        let names = self.runtime.block_on(self.requests.names("/api/v1/nodes"));
        names.map_err(|failure| format!("nodes: {failure}").into())
    }

    fn pod_names(&mut self, which: &PodFilter) -> Result<Vec<String>, BenchError> {
        Ok(self.pods.names(which))
    }

    fn count(&mut self, which: &PodFilter) -> Result<PodCounts, BenchError> {
        Ok(self.pods.counts(which))
    }

    fn allocate_claims(&mut self, namespace: &str) -> Result<(), BenchError> {
        self.allocate(namespace)
    }

    fn turn(&mut self, limit: u64) -> Result<(), BenchError> {
        self.check_interrupt()?;
        let left = Duration::from_nanos(limit.saturating_sub(self.now()));
        std::thread::sleep(left.min(TURN));
        Ok(())
    }

    fn begin(&mut self, pods: PodFilter) {
        self.measuring = Some((pods, self.now()));
    }

    fn end(&mut self) -> Measurement {
        let Some((pods, begin)) = self.measuring.take() else { return Measurement::default() };
        Measurement { begin, end: self.now(), ..self.pods.measured(&pods, begin) }
    }
}
