//! Workloads of small suites, on the embedded scheduler with a clock that ticks at each look.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{WorkloadResult, run};
use crate::BenchError;
use crate::embedded::Embedded;
use crate::suite::Suite;
use kubestep_api::{Kind, Pod};
use kubestep_cluster::World;
use kubestep_config::{self as config, FeatureGates};
use kubestep_framework::stopwatch::Clock;

/// Nanoseconds between two looks at the clock.
const TICK: u64 = 10_000;

struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn nanos(&self) -> u64 {
        self.0.fetch_add(TICK, Ordering::Relaxed)
    }
}

/// The files of the suites.
fn read(path: &Path) -> Result<String, BenchError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let pod = |head: &str, spec: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{{head}}}\nspec:\n  containers: [{{name: c, \
             image: i, resources: {{requests: {{cpu: 1}}}}}}]\n{spec}"
        )
    };
    let device = |rest: &str| format!("apiVersion: resource.k8s.io/v1\n{rest}");
    Ok(match name {
        "pod.yaml" => pod("generateName: pod-, labels: {kind: plain}", ""),
        "picky.yaml" => pod("name: 'picky-{{.Index}}'", "  nodeSelector: {disk: ssd}\n"),
        "easy.yaml" => pod("name: 'picky-{{.Index}}'", "  nodeSelector: {disk: ssd}\n  priority: 0\n"),
        "short.yaml" => pod("generateName: short-", "  terminationGracePeriodSeconds: 0\n"),
        "claiming.yaml" => pod(
            "generateName: dra-",
            "  terminationGracePeriodSeconds: 0\n  resourceClaims: [{name: r, \
             resourceClaimTemplateName: t}]\n",
        ),
        "node.yaml" => "apiVersion: v1\nkind: Node\nmetadata: {name: 'n-{{.Index}}'}\nstatus: \
                        {capacity: {cpu: 4, memory: 32Gi, pods: 110}}\n"
            .into(),
        "ssd.yaml" => "apiVersion: v1\nkind: Node\nmetadata: {name: 'n-{{.Index}}', labels: \
                       {disk: ssd}}\nstatus: {capacity: {cpu: 64, memory: 32Gi, pods: 110}}\n"
            .into(),
        "service.yaml" => {
            "apiVersion: v1\nkind: Service\nmetadata: {generateName: s-}\nspec: {selector: {a: b}}\n"
                .into()
        }
        "class.yaml" => device("kind: DeviceClass\nmetadata: {name: c}\nspec: {}\n"),
        "claim.yaml" => device(
            "kind: ResourceClaim\nmetadata: {name: 'held-{{.Index}}'}\nspec: {devices: {requests: \
             [{name: r, exactly: {deviceClassName: c}}]}}\n",
        ),
        "template.yaml" => device(
            "kind: ResourceClaimTemplate\nmetadata: {name: t}\nspec: {spec: {devices: {requests: \
             [{name: r, exactly: {deviceClassName: c}}]}}}\n",
        ),
        "pv.yaml" => "spec: {accessModes: [ReadOnlyMany], capacity: {storage: 1Gi}, csi: {driver: d}}".into(),
        "pvc.yaml" => "metadata: {annotations: {pv.kubernetes.io/bind-completed: 'true'}}\nspec: \
                       {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}"
            .into(),
        _ => return Err(format!("{}: there is no such file", path.display()).into()),
    })
}

/// Runs the operations with the parameter `pods: 6` and the threshold 1.
fn ran(operations: &str) -> (Result<WorkloadResult, String>, World) {
    let text = format!(
        "- name: Case\n  defaultPodTemplatePath: pod.yaml\n  workloadTemplate:\n{operations}\n  \
         workloads:\n  - name: w\n    threshold: 1\n    params: {{pods: 6}}\n"
    );
    let suite = Suite::parse(Path::new("suite.yaml"), &text).unwrap();
    let (registry, gates) = (kubestep_plugins::registry(), FeatureGates::default());
    let resolved = config::resolve(None, &gates, &registry.descriptors()).unwrap();
    let world = World::new(&resolved, gates, &registry).unwrap();
    let mut target = Embedded::new(world, Arc::new(Ticks(AtomicU64::new(0))));
    let case = &suite.cases[0];
    let done = run(suite.folder(), (case, &case.workloads[0]), "t", &read, &mut target);
    (done.map_err(|error| error.to_string()), target.world().clone())
}

/// The pods that the closure takes.
fn count(world: &World, takes: impl Fn(&Pod) -> bool) -> usize {
    world.api().objects().pods.values().filter(|pod| takes(pod)).count()
}

#[test]
fn pods_are_scheduled_and_measured() {
    let (done, world) = ran("
  - {opcode: createNodes, count: 2, nodeTemplatePath: node.yaml}
  - {opcode: createPods, count: 2}
  - {opcode: createPods, countParam: $pods, collectMetrics: true}
");
    let done = done.unwrap();
    let [measured] = &done.measured[..] else { panic!("{done:?}") };
    assert_eq!((measured.name.as_str(), measured.scheduled), ("namespace-2", 6));
    let check = measured.threshold.as_ref().unwrap();
    assert!(check.is_met() && check.value == measured.throughput("Average"), "{check:?}");
    assert!(measured.figure("scheduler_scheduling_attempt_duration_seconds").is_some());
    assert!(measured.busy_seconds.unwrap() <= measured.seconds);
    assert_eq!(count(&world, |pod| pod.metadata.namespace == "namespace-1"), 2);
    assert_eq!(count(&world, |pod| !pod.spec.node_name.is_empty()), 8);
    assert_eq!(done.unused, [""; 0]);
}

#[test]
fn nodes_get_what_their_strategy_says() {
    let (done, world) = ran("
  - opcode: createNodes
    count: 3
    labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}
  - opcode: createNodes
    count: 1
    nodeTemplatePath: node.yaml
    nodeAllocatableStrategy:
      nodeAllocatable: {example.com/foo: '39'}
      csiNodeAllocatable: {d: {count: 39}}
  - opcode: createNodes
    count: 2
    uniqueNodeLabelStrategy: {labelKey: unique}
  - {opcode: createPods, countParam: $pods, collectMetrics: true}
");
    assert_eq!(done.unwrap().measured.len(), 1);
    let nodes = || world.api().nodes().map(|node| &node.metadata);
    let having = |key: &str, value: &str| {
        nodes().filter(|it| it.labels.get_str(key).is_some_and(|own| own == value)).count()
    };
    assert_eq!((having("zone", "a"), having("zone", "b")), (2, 1));
    assert_eq!(having("kubernetes.io/hostname", "n-0"), 1);
    let unique: Vec<_> = nodes().filter_map(|it| it.labels.get_str("unique")).collect();
    assert!(unique.len() == 2 && unique[0] != unique[1]);
    let node = world.api().node("n-0".into()).unwrap().to_owned();
    let amounts = node.status.allocatable.as_ref().unwrap();
    assert!(amounts.get_str("example.com/foo").is_some() && amounts.get_str("cpu").is_some());
    let csi_nodes = world.api().objects().csi_nodes.values().map(|it| it.spec.drivers.len());
    assert_eq!(csi_nodes.collect::<Vec<_>>(), [1]);
}

#[test]
fn a_barrier_waits_for_attempts_and_an_update_wakes_the_pods() {
    let (done, world) = ran("
  - {opcode: createNodes, count: 1, nodeTemplatePath: node.yaml}
  - opcode: startCollectingMetrics
    name: late
    namespaces: [here]
  - opcode: createPods
    countParam: $pods
    namespace: here
    podTemplatePath: picky.yaml
    skipWaitToCompletion: true
  - {opcode: barrier, stageRequirement: Attempted, namespaces: [here]}
  - {opcode: updateAny, templatePath: ssd.yaml, updatePerSecond: 10}
  - {opcode: barrier}
  - {opcode: stopCollectingMetrics}
");
    let done = done.unwrap();
    let measured = &done.measured[0];
    assert_eq!((measured.name.as_str(), measured.scheduled), ("late", 6));
    // The update comes after a tenth of a second, which the scheduler does not work.
    assert!(measured.seconds > 0.1 && measured.busy_seconds.unwrap() < 0.05, "{measured:?}");
    let attempts = measured.figures.iter().filter(|it| it.labels.contains_key("result"));
    let results: Vec<_> = attempts.map(|it| it.labels["result"].as_str()).collect();
    assert_eq!(results, ["scheduled", "unschedulable"]);
    assert_eq!(count(&world, |pod| pod.spec.node_name == "n-0"), 6);
}

#[test]
fn pods_that_fit_nowhere_are_named() {
    let (done, _) = ran("
  - {opcode: createNodes, count: 1, nodeTemplatePath: node.yaml}
  - {opcode: createPods, countParam: $pods, collectMetrics: true}
");
    let error = done.unwrap_err();
    let expected = "operation 1, createPods: 4 of 6 pods in namespace namespace-1 are scheduled \
                    after 600 s; pod namespace-1/pod-";
    assert!(error.starts_with(expected), "{error}");
    assert!(error.contains("0/1 nodes are available: 1 Insufficient cpu."), "{error}");
}

#[test]
fn what_is_wrong_is_said_with_its_operation() {
    for (operation, expected) in [
        (
            "{opcode: createNodes, countParam: $nodes}",
            "operation 0, createNodes: the workload has \
            no parameter \"nodes\"; it has pods",
        ),
        (
            "{opcode: createAny, templatePath: nowhere.yaml}",
            "operation 0, createAny: nowhere.yaml: \
            there is no such file",
        ),
        (
            "{opcode: createAny, templatePath: pod.yaml}",
            "operation 0, createAny: pod.yaml: a Pod \
            needs a namespace",
        ),
        ("{opcode: barrier, namespaces: [a]}", "operation 0, barrier: there is no namespace \"a\""),
        (
            "{opcode: stopCollectingMetrics}",
            "operation 0, stopCollectingMetrics: \
            startCollectingMetrics is missing before it",
        ),
    ] {
        let (done, _) = ran(&format!("  - {operation}\n  - opcode: stopCollectingMetrics"));
        assert_eq!(done.unwrap_err(), expected, "{operation}");
    }
}

#[test]
fn a_steady_state_replaces_its_pods() {
    let (done, world) = ran("
  - {opcode: createNodes, count: 1, nodeTemplatePath: ssd.yaml}
  - {opcode: createPods, count: 3, steadyState: true, duration: 10ms, collectMetrics: true}
  - {opcode: createPods, countParam: $pods}
");
    let measured = &done.unwrap().measured[0];
    // There are never more than 3 at a time.
    assert!(measured.scheduled > 20 && measured.seconds >= 0.01, "{measured:?}");
    assert_eq!(count(&world, |pod| pod.metadata.namespace == "namespace-1"), 3);
}

#[test]
fn churn_and_deletions_go_on_in_the_background() {
    let (done, world) = ran("
  - {opcode: createNodes, count: 1, nodeTemplatePath: ssd.yaml}
  - opcode: churn
    mode: recreate
    number: 1
    intervalMilliseconds: 100
    templatePaths: [service.yaml]
  - opcode: churn
    mode: create
    number: 2
    namespace: more
    templatePaths: [short.yaml]
  - {opcode: createPods, countParam: $pods, podTemplatePath: short.yaml, namespace: old}
  - {opcode: deletePods, namespace: old, deletePodsPerSecond: 10, skipWaitToCompletion: true}
  - {opcode: createPods, count: 1, collectMetrics: true}
  - {opcode: sleep, duration: 350ms}
");
    done.unwrap();
    let services = || world.api().objects().services.len();
    // Created after 100 and 300 ms, deleted after 200.
    assert_eq!(services(), 1);
    assert_eq!(count(&world, |pod| pod.metadata.namespace == "old"), 3);
    assert_eq!(count(&world, |pod| pod.metadata.namespace == "more"), 0);
}

#[test]
fn volumes_are_bound_to_the_claims_of_the_pods() {
    let (done, world) = ran("
  - {opcode: createNodes, count: 1, nodeTemplatePath: ssd.yaml}
  - opcode: createPods
    countParam: $pods
    persistentVolumeTemplatePath: pv.yaml
    persistentVolumeClaimTemplatePath: pvc.yaml
    collectMetrics: true
");
    assert_eq!(done.unwrap().measured[0].scheduled, 6);
    let volumes = world.api().objects().persistent_volumes.values();
    let bound = volumes.filter(|it| it.spec.claim_ref.is_some());
    assert_eq!(bound.count(), 6);
    assert_eq!(count(&world, |pod| pod.spec.volumes.len() == 1), 6);
}

#[test]
fn claims_get_devices() {
    let (done, world) = ran("
  - {opcode: createNodes, count: 3, nodeTemplatePath: ssd.yaml}
  - {opcode: createResourceDriver, driverName: d, nodes: 'n-*', maxClaimsPerNode: 4}
  - {opcode: createAny, templatePath: class.yaml}
  - {opcode: createAny, templatePath: claim.yaml, namespace: held, count: 4}
  - {opcode: allocResourceClaims, namespace: held}
  - {opcode: createAny, templatePath: template.yaml, namespace: here}
  - opcode: createPods
    countParam: $pods
    namespace: here
    podTemplatePath: claiming.yaml
    collectMetrics: true
  - {opcode: createNamespaces, prefix: there, count: 2}
  - {opcode: createResourceClaims, templatePath: claim.yaml, namespace: there-0, count: 2}
  - {opcode: deletePods, namespace: here}
");
    assert_eq!(done.unwrap().measured[0].scheduled, 6);
    let claims = |namespace: &str| {
        let claims = world.api().objects().resource_claims.values();
        let claims = claims.filter(|claim| claim.metadata.namespace == namespace);
        claims.map(|claim| claim.status.allocation.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(claims("held"), [true; 4]);
    assert_eq!(claims("there-0"), [false; 2]);
    // The pods are deleted, and their claims with them.
    assert_eq!(claims("here"), [true; 0]);
    assert_eq!(world.api().objects().keys(Kind::Namespace).len(), 4);
}
