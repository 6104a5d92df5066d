//! Stories of answers that fold.

use crate::tui::testing::{LiveInterface, session, session_with};
use crate::tui::view::ViewId;

#[test]
fn why_is_a_view_that_folds_and_leads_to_the_matrix_and_back() {
    let mut live = LiveInterface::demo("fragmented").keys("c2gw");
    assert_eq!(live.interface.app.view(), ViewId::Why);
    live.golden("why-fragmented-80x24");
    assert!(live.text().contains("Why default/report?"), "{}", live.text());
    // The reasons unfold to the nodes, and a node leads to its cell.
    let mut live = live.keys("/4 nodes: NodeResourcesFit<Enter>gg<Enter><Esc>");
    assert!(live.text().contains("node-0: Insufficient cpu:"), "{}", live.text());
    let mut live = live.keys("/node-0: Insufficient<Enter>gg<Enter>");
    assert_eq!(live.interface.app.view(), ViewId::Filter);
    assert!(live.lines()[1].contains("inspecting cycle 1 of default/report"), "{}", live.text());
    let mut live = live.keys("-");
    assert_eq!(live.interface.app.view(), ViewId::Why);
    assert!(
        live.text().contains("node-0: Insufficient cpu"),
        "what was unfolded stays so: {}",
        live.text()
    );
    let live = live.keys("<Esc>G<Enter>");
    assert!(!live.interface.driver.is_searching());
}

#[test]
fn preemption_tells_candidates_criteria_and_who_is_none() {
    let mut live = LiveInterface::wide("preemption-budget").keys("c:cycle 1<Enter>8<Enter>");
    assert_eq!(live.interface.app.view(), ViewId::Why, "{}", live.text());
    let text = live.text();
    assert!(text.contains("Why default/payment?"), "{text}");
    assert!(text.contains("evictions violating a budget; chosen"), "{text}");
    assert!(text.contains("(priority "), "victims by priority: {text}");
    let mut back = live.keys("-");
    assert!(back.text().contains("Preemption for default/payment"));
    let escaped = back.keys("<Enter><Esc>").text();
    assert!(escaped.contains("Preemption for default/payment"), "{escaped}");
}

const GROUP: &str = "
kind: KubeSchedulerConfiguration
apiVersion: kubescheduler.config.k8s.io/v1
---
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}
---
kind: PodGroup
apiVersion: scheduling.k8s.io/v1alpha2
metadata: {name: train, namespace: ml}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
---
kind: Pod
metadata: {name: worker-0, namespace: ml}
spec: {schedulingGroup: {podGroupName: train}, containers: [{name: c}]}
---
kind: Pod
metadata: {name: worker-1, namespace: ml}
spec: {schedulingGroup: {podGroupName: train}, containers: [{name: c}]}
";

#[test]
fn a_group_says_how_short_it_is_of_its_quorum() {
    let mut live = LiveInterface::new(session(GROUP), (120, 24)).keys("cgp");
    assert_eq!(live.interface.app.view(), ViewId::Groups);
    let text = live.text();
    assert!(text.contains("ml/train: needs 3 pods, has 2: 1 missing"), "{text}");
    assert!(text.contains("worker-0:"), "{text}");
    let mut live = live.keys("gg<Enter>");
    assert!(!live.text().contains("worker-0:"), "{}", live.text());
    let mut live = live.keys("<Enter>j<Enter>");
    assert!(live.text().contains("Why ml/worker-0?"), "{}", live.text());
}

/// Nodes in racks, and a group of three that has to keep to one of them.
const RACKS: &str = "
kind: Node
metadata: {name: n1, labels: {rack: r1}}
status: {allocatable: {cpu: '2', memory: 8Gi, pods: '10'}}
---
kind: Node
metadata: {name: n2, labels: {rack: r2}}
status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}
---
kind: PodGroup
apiVersion: scheduling.k8s.io/v1alpha2
metadata: {name: train, namespace: ml}
spec:
  schedulingPolicy: {gang: {minCount: 3}}
  schedulingConstraints: {topology: [{key: rack}]}
";

/// A member of the group that wants a CPU.
fn members(names: &[&str]) -> String {
    let member = |name: &&str| {
        format!(
            "---\nkind: Pod\nmetadata: {{name: {name}, namespace: ml}}\nspec: {{schedulingGroup: \
             {{podGroupName: train}}, containers: [{{name: c, resources: {{requests: {{cpu: '1'}}}}}}]}}\n"
        )
    };
    names.iter().map(member).collect()
}

#[test]
fn a_group_tells_the_placements_that_were_tried() {
    let gates = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true";
    let cluster = format!("{RACKS}{}", members(&["w-0", "w-1", "w-2"]));
    let mut live = LiveInterface::new(session_with(&cluster, gates), (100, 30)).keys("cgp");
    live.golden("groups-placements-100x30");
    let text = live.text();
    assert!(text.contains("2 candidate placements"), "{text}");
    assert!(text.contains("✗ r1: 2 pods placed on 1 node"), "{text}");
    assert!(text.contains("✓ r2: 3 pods placed on 1 node") && text.contains("chosen"), "{text}");
    // A placement leads to its cycle.
    let live = live.keys("/r2:<Enter><Enter>");
    assert_eq!(live.interface.app.view(), ViewId::Cycle);
    // One more than any rack has room for: nobody starts, and each placement says why.
    let cluster = cluster.replace("minCount: 3", "minCount: 5");
    let cluster = format!("{cluster}{}", members(&["w-3", "w-4"]));
    let mut live = LiveInterface::new(session_with(&cluster, gates), (100, 30)).keys("ngp");
    let text = live.text();
    assert!(text.contains("needs 5 pods with a node, has 0"), "{text}");
    assert!(text.contains("✗ r1: 2 pods") && text.contains("✗ r2: 4 pods"), "{text}");
    assert!(live.keys("z").text().contains("pod group is unschedulable"));
}

#[test]
fn a_group_that_evicts_others_names_them() {
    let gates = "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true";
    let group = "
kind: PodGroup
apiVersion: scheduling.k8s.io/v1alpha2
metadata: {name: train, namespace: ml}
spec: {priority: 50, schedulingPolicy: {gang: {minCount: 2}}}
";
    let full = |node: &str| {
        format!(
            "---\nkind: Node\nmetadata: {{name: {node}}}\nstatus: {{allocatable: {{cpu: '1', pods: \
             '10'}}}}\n---\nkind: Pod\nmetadata: {{name: on-{node}, namespace: ml}}\nspec: {{nodeName: \
             {node}, priority: 1, containers: [{{name: c, resources: {{requests: {{cpu: '1'}}}}}}]}}\n"
        )
    };
    let cluster = format!("{group}{}{}{}", full("n1"), full("n2"), members(&["w-0", "w-1"]));
    let mut live = LiveInterface::new(session_with(&cluster, gates), (100, 30)).keys("ngp");
    let text = live.text();
    assert!(text.contains("preempted") && text.contains("ml/on-n1"), "{text}");
    assert!(text.contains("ml/on-n2"), "{text}");
}
