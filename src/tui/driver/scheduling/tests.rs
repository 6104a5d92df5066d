//! Live scheduling, as a person does it, on a cluster in memory.

use crate::tui::testing::LiveInterface;
use crate::tui::view::ViewId;
use kubestep_api::Object;
use kubestep_framework::testing::pod;
use kubestep_live::scheduling::LeaderStatus;
use kubestep_live::scheduling::stand_in::StandIn;

const NODE: &str = "---
kind: Node
apiVersion: v1
metadata: {name: n1}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 20}}
";

/// A node with four CPUs, and pods `a`, `b`, … that want one each.
fn cluster(pods: &[&str]) -> String {
    let pods = pods.iter().map(|name| {
        format!(
            "---
kind: Pod
apiVersion: v1
metadata: {{name: {name}, namespace: default, uid: uid-{name}}}
spec:
  schedulerName: default-scheduler
  containers: [{{name: c, image: i, resources: {{requests: {{cpu: 1}}}}}}]
"
        )
    });
    format!("{NODE}{}", pods.collect::<String>())
}

fn start(pods: &[&str]) -> (LiveInterface, StandIn) {
    LiveInterface::scheduling(&cluster(pods))
}

fn chip(live: &mut LiveInterface) -> String {
    live.lines()[0].clone()
}

#[track_caller]
fn assert_chip(live: &mut LiveInterface, expected: &str) {
    let line = chip(live);
    assert!(line.ends_with(expected), "{line}");
}

fn status(live: &mut LiveInterface) -> String {
    live.lines()[28].clone()
}

/// A new pod in the cluster.
fn new_pod(name: &str) -> Object {
    let mut pod = pod(name);
    pod.metadata.uid = format!("uid-{name}").as_str().into();
    pod.into()
}

#[test]
fn nothing_is_decided_until_it_is_asked_for_and_a_step_over_writes_one_cycle() {
    let (live, server) = start(&["a", "b"]);
    let mut live = live.turn();
    assert_chip(&mut live, "LIVE SCHEDULING lab: paused");
    assert!(server.writes().is_empty());
    let mut live = live.keys("n").turn();
    assert_eq!(server.writes(), ["bind default/a to n1"]);
    assert!(status(&mut live).contains("cycle 1 of default/a is decided and sent: bind default/a"));
    // The answer and the watch have come in, and who stands at the end went along.
    assert_chip(&mut live, "LIVE SCHEDULING lab: paused");
    let mut live = live.keys("6").turn();
    assert!(live.text().contains("on n1"), "{}", live.text());
    assert_eq!(live.keys("}").turn().interface.app.view(), ViewId::Pods);
    assert_eq!(server.writes().len(), 2);
}

#[test]
fn a_cycle_that_is_stepped_into_is_held_before_its_writes_until_its_end() {
    let (live, server) = start(&["a", "b"]);
    let mut live = live.keys("s").turn();
    assert!(status(&mut live).contains("cycle 1 of default/a is held: bind default/a to n1"));
    assert_chip(&mut live, "HELD: 0 updates queued");
    server.put(new_pod("c"));
    let mut live = live.keys("ss").turn();
    assert_chip(&mut live, "HELD: 1 updates queued");
    assert!(!live.keys_at_once("2").text().contains("default/c"));
    let (live, server) = start(&["a", "b"]);
    let mut live = live.keys("s").turn();
    for _ in 0..200 {
        if !server.writes().is_empty() {
            break;
        }
        live = live.keys("s").turn();
    }
    assert_eq!(server.writes(), ["bind default/a to n1"]);
    assert!(status(&mut live).contains("sent: bind default/a to n1"), "{}", status(&mut live));
    assert_chip(&mut live, "LIVE SCHEDULING lab: paused");
    // Nothing more leaves by itself, and the next step is about the next pod.
    let mut live = live.turn().keys("s").turn();
    assert!(status(&mut live).contains("cycle 2 of default/b is held"));
    assert_eq!(server.writes().len(), 1);
    assert_eq!(live.interface.driver.left().unsent, "bind default/b to n1");
}

#[test]
fn out_and_over_send_what_is_held_and_decide_nothing_more() {
    for keys in ["n", "f", "}"] {
        let (live, server) = start(&["a", "b"]);
        let mut live = live.keys("sss").keys(keys);
        while server.writes().is_empty() {
            live = live.keys(keys);
        }
        let live = live.turn();
        assert_eq!(server.writes(), ["bind default/a to n1"], "{keys}");
        assert_eq!(live.interface.driver.session().history().cycle_count(), 1, "{keys}");
    }
}

#[test]
fn space_lets_it_decide_by_itself_until_it_is_pressed_again() {
    let (live, server) = start(&["a", "b"]);
    let mut live = live.keys(" ").turn();
    assert_chip(&mut live, "LIVE SCHEDULING lab");
    assert_eq!(server.writes().len(), 2);
    server.put(new_pod("c"));
    let mut live = live.keys("62").turn();
    assert_chip(&mut live, "LIVE SCHEDULING lab");
    assert_eq!(server.writes().len(), 3, "looking around does not stop it");
    let live = live.keys(" ").turn();
    server.put(new_pod("d"));
    let mut live = live.turn();
    assert_chip(&mut live, "LIVE SCHEDULING lab: paused");
    assert_eq!(server.writes().len(), 3);
    let live = live.keys("c").turn();
    assert_eq!(server.writes().len(), 4);
    server.put(new_pod("e"));
    live.turn();
    assert_eq!(server.writes().len(), 4, "c ends when nothing is left");
}

#[test]
fn a_breakpoint_holds_the_real_cycle_before_its_writes() {
    let (live, server) = start(&["a", "b"]);
    let mut live = live.keys(":break Filter if pod.name == \"b\"<Enter> ").turn();
    assert!(status(&mut live).contains("breakpoint 1"), "{}", status(&mut live));
    assert_eq!(server.writes(), ["bind default/a to n1"]);
    // The answer to the first binding waits with the rest.
    let line = chip(&mut live);
    assert!(line.contains("HELD: ") && line.ends_with("updates queued"), "{line}");
    let live = live.keys(" ").turn();
    assert_eq!(server.writes().len(), 2);
    drop(live);
    let (live, server) = start(&["a"]);
    let live = live.keys(":break Filter<Enter>n").turn();
    assert!(server.writes().is_empty(), "stepping over stops at it, too");
    live.keys("c").turn();
    assert_eq!(server.writes().len(), 1);
}

#[test]
fn in_the_past_all_is_held_and_what_comes_waits() {
    let (live, server) = start(&["a", "b", "c"]);
    let live = live.keys("n").turn().keys("n").turn().keys("{{").turn();
    server.put(new_pod("d"));
    let mut live = live.turn();
    assert_chip(&mut live, "HELD: 1 updates queued");
    // Going through what was recorded writes nothing again.
    let live = live.keys("ssssssss").turn();
    assert_eq!(server.writes().len(), 2);
    let mut live = live.keys("x").turn();
    assert_eq!(server.writes().len(), 2);
    live = live.keys("c").turn();
    assert!(status(&mut live).contains("this is the newest state"), "{}", status(&mut live));
    assert_chip(&mut live, "LIVE SCHEDULING lab: paused");
    assert_eq!(server.writes().len(), 2);
    let mut live = live.keys("2").turn();
    assert!(live.text().contains("default/d"));
    let mut live = live.keys("C");
    assert_chip(&mut live, "HELD: 0 updates queued");
}

#[test]
fn a_branch_writes_nothing_and_the_original_goes_on_where_it_was() {
    let (live, server) = start(&["a", "b"]);
    let mut live = live.keys(" ").keys(":fork<Enter>").turn();
    assert_chip(&mut live, "WHAT-IF: nothing is written");
    assert!(!live.interface.app.is_playing());
    let before = server.writes();
    server.put(new_pod("c"));
    let mut live = live.keys(":what-if cordon node n1<Enter>cn").turn();
    assert_eq!(server.writes(), before);
    assert_chip(&mut live, "WHAT-IF: nothing is written");
    // Its clock is its own.
    let mut live = live.keys("+").turn();
    assert!(!status(&mut live).contains("live cluster"), "{}", status(&mut live));
    let live = live.keys(":branch original<Enter>").turn().keys("c").turn();
    let mut writes = server.writes();
    writes.sort();
    let bound = ["a", "b", "c"].map(|name| format!("bind default/{name} to n1"));
    assert_eq!(writes, bound, "each once");
    drop(live);
}

#[test]
fn what_was_begun_in_a_branch_does_not_go_on_live() {
    let (live, server) = start(&["a", "b"]);
    let live = live.keys(":fork<Enter>").keys_in_a_hurry("c");
    assert!(live.interface.app.is_running());
    let live = live.keys_in_a_hurry(":branch original<Enter>");
    assert!(!live.interface.app.is_running());
    let live = live.turn().keys(":branch what-if-1<Enter> ");
    assert!(live.interface.app.is_playing());
    let mut live = live.keys(":branch original<Enter>").turn();
    assert_chip(&mut live, "LIVE SCHEDULING lab: paused");
    assert!(server.writes().is_empty());
}

#[test]
fn an_edit_of_an_object_never_reaches_the_cluster() {
    let (live, server) = start(&["a"]);
    let mut live = live.keys(":what-if delete pod default/a<Enter>").turn();
    assert_chip(&mut live, "WHAT-IF: nothing is written");
    let mut live = live.keys(":branch original<Enter>").turn().keys("6").turn();
    assert!(live.text().contains("default/a"), "{}", live.text());
    assert!(server.writes().is_empty());
    let live = live.keys("!").turn();
    assert!(server.writes().is_empty());
    drop(live);
}

#[test]
fn who_waits_at_permit_is_allowed_and_rejected_live() {
    let (live, server) = start(&["a", "b"]);
    let live = live.keys(":hold *<Enter>").turn().keys("c").turn();
    // As upstream: while a pod waits at Permit, its node is nominated.
    assert_eq!(server.writes(), ["nominate n1 for default/a", "nominate n1 for default/b"]);
    let mut live = live.keys("7").turn();
    assert!(live.text().contains("default/a") && live.text().contains("default/b"));
    live = live.keys("A").turn();
    assert!(status(&mut live).contains("it is being bound to n1"), "{}", status(&mut live));
    assert_eq!(server.writes()[2..], ["bind default/a to n1"]);
    let live = live.keys("xnot today<Enter><Esc>").turn();
    let written = server.writes();
    assert_eq!(written[3..], ["condition PodScheduled of pod default/b"], "and nothing else");
    drop(live);
    // In a branch it is a what-if.
    let (live, server) = start(&["a"]);
    let live = live.keys(":hold *<Enter>n").turn().keys(":fork<Enter>7A").turn();
    assert!(live.keys("6").text().contains("on n1"));
    assert_eq!(server.writes(), ["nominate n1 for default/a"]);
}

#[test]
fn by_hand_nothing_is_done_in_the_past_or_while_a_cycle_is_held() {
    let (live, server) = start(&["a", "b"]);
    let mut live = live.keys(":hold default/a<Enter>n").turn().keys("s").turn().keys("7A");
    assert!(status(&mut live).contains("cycle 2 of default/b is held: } sends it first"));
    let mut live = live.keys("}").turn().keys("{").turn().keys("7A").turn();
    assert!(status(&mut live).contains("this is the past: c returns"), "{}", status(&mut live));
    assert_eq!(server.writes(), ["nominate n1 for default/a", "bind default/b to n1"]);
}

#[test]
fn without_the_lease_or_the_connection_nothing_is_decided_wherever_one_stands() {
    let (live, server) = start(&["a", "b"]);
    server.with(|server| server.leader_status = Some(LeaderStatus::Waits));
    let mut live = live.turn().keys("n").turn();
    assert_chip(&mut live, "NOT LEADER: waits for the lease");
    assert!(status(&mut live).contains("not leading: no cycle runs"), "{}", status(&mut live));
    server.with(|server| server.leader_status = None);
    let live = live.turn().keys("s").turn();
    server.with(|server| server.leader_status = Some(LeaderStatus::CutOff));
    let mut live = live.turn();
    assert_chip(&mut live, "CONNECTION LOST: writes stopped");
    for keys in ["n", " ", "Zn", "Zc"] {
        live = live.keys(keys).turn();
        assert!(server.writes().is_empty(), "{keys}");
        assert_eq!(
            live.interface.driver.left().unsent,
            "bind default/a to n1",
            "it is kept: {keys}"
        );
        assert!(!live.interface.app.is_playing(), "{keys}");
    }
    assert!(live.keys("n").turn().text().contains("cycle 1 of default/a stays held; the connec"));
    let (live, server) = start(&["a", "b"]);
    let live = live.keys("s").turn();
    server.with(|server| server.leader_status = Some(LeaderStatus::Lost("late".into())));
    let mut live = live.turn();
    assert_chip(&mut live, "LEASE LOST: writes stopped");
    assert!(status(&mut live).contains("writing stopped: late"));
    assert!(server.writes().is_empty());
    assert!(live.interface.driver.left().lost);
}

#[test]
fn frozen_is_frozen_and_time_is_the_clusters() {
    let (live, server) = start(&["a"]);
    let mut live = live.keys("Zn").turn();
    assert!(status(&mut live).contains("frozen: Z resumes updates"), "{}", status(&mut live));
    assert_chip(&mut live, "HELD: 0 updates queued");
    let mut live = live.keys("Z+").turn();
    assert!(status(&mut live).contains("time passes by itself"), "{}", status(&mut live));
    let mut live = live.keys("@1h<Enter>").turn();
    assert!(status(&mut live).contains("still to come"), "{}", status(&mut live));
    assert!(server.writes().is_empty());
    drop(live);
    let (mut live, _) = LiveInterface::scheduling_with(&cluster(&["a"]), true);
    assert_chip(&mut live, "LIVE SCHEDULING (dry run): paused");
}

#[test]
fn a_hold_that_runs_out_is_written_when_its_time_has_come() {
    let (live, server) = start(&["a"]);
    let live = live.keys(":hold * for 1m<Enter>n").turn();
    server.with(|server| server.passed += 61_000_000);
    // Time stands still for who looks at the past.
    let live = live.keys("{s").turn();
    assert_eq!(server.writes(), ["nominate n1 for default/a"]);
    live.keys("c").turn();
    assert_eq!(server.writes()[1..], ["condition PodScheduled of pod default/a"]);
}

/// What people may type, and what happens in the cluster meanwhile.
const ANYTHING: [&str; 26] = [
    "s",
    "s",
    "s",
    "n",
    "f",
    "}",
    "{",
    "S",
    "N",
    "c",
    "C",
    " ",
    " ",
    "Z",
    "+",
    "7aA<Esc>",
    "7xno<Enter><Esc>",
    ":hold *<Enter>",
    ":release<Enter>",
    ":fork<Enter>",
    ":branch original<Enter>",
    ":branch what-if-1<Enter>",
    ":what-if cordon node n1<Enter>",
    "u",
    "!",
    ":break Filter<Enter>",
];

#[test]
fn whatever_is_typed_each_pod_is_bound_once_and_branches_write_nothing() {
    for seed in 0..12 {
        let (mut live, server) = start(&["a", "b", "c"]);
        let mut random = seed * 2 + 1;
        for turn in 0..40 {
            random = 6_364_136_223_846_793_005_u64.wrapping_mul(random).wrapping_add(1_442_695_041);
            let keys = ANYTHING[(random >> 33) as usize % ANYTHING.len()];
            if turn % 10 == 5 {
                server.put(new_pod(&format!("late-{turn}")));
            }
            server.with(|server| server.passed += 400_000);
            let scheduled_live = live.interface.driver.schedules_live();
            let before = server.writes();
            live = live.keys(keys).turn();
            if !scheduled_live && !live.interface.driver.schedules_live() {
                assert_eq!(server.writes(), before, "seed {seed}: {keys}");
            }
        }
        let back = "<Esc><Esc>:branch original<Enter>:break clear<Enter>";
        live = live.keys(back).turn();
        if live.interface.driver.held() == Some(crate::tui::model::HoldReason::Frozen) {
            live = live.keys("Z").turn();
        }
        // To the present, then until nothing is left to decide.
        live = live.keys("c").turn().keys("c").turn().keys(":release<Enter>").turn();
        // Those that were rejected are tried again after five minutes.
        for _ in 0..3 {
            server.with(|server| server.passed += 400_000_000);
            live = live.turn().keys("c").turn().keys("c").turn();
        }
        let mut bound = server.writes();
        bound.retain(|line| line.starts_with("bind"));
        bound.sort();
        let pods = ["a", "b", "c", "late-15", "late-25", "late-35", "late-5"];
        let expected: Vec<String> =
            pods.iter().map(|pod| format!("bind default/{pod} to n1")).collect();
        assert_eq!(bound, expected, "seed {seed}: {}", live.text());
    }
}
