//! A cluster that is followed for long: what is kept stays within bounds, and who goes back to
//! where it begins is reported.

use crate::tui::testing::LiveInterface;
use kubestep_api::{Kind, Object};
use kubestep_framework::testing::{PodBuilder as _, key, pod};
use kubestep_live::scheduling::stand_in::StandIn;

const CLUSTER: &str = "---
kind: Node
apiVersion: v1
metadata: {name: n1}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 200}}
";
/// Steps kept at most where there is no memory for them.
const STEPS: usize = 7 * 256;

/// Creates a pod that is on a node, or changes its label.
fn put(server: &StandIn, number: usize) {
    let mut pod = pod(&format!("p-{}", number % 30)).on("n1").label("version", &number.to_string());
    pod.metadata.uid = format!("uid-{}", number % 30).as_str().into();
    server.put(Object::from(pod));
}

/// So many changes, one at a time, and a pod to decide about now and then.
fn follow(
    mut live: LiveInterface,
    server: &StandIn,
    changes: std::ops::Range<usize>,
) -> LiveInterface {
    for number in changes {
        put(server, number);
        if number.is_multiple_of(5) {
            let mut new = pod(&format!("new-{}", number % 40));
            new.metadata.uid = format!("uid-new-{number}").as_str().into();
            server.put(new.into());
        }
        live = live.turn();
    }
    live
}

#[test]
fn nothing_grows_however_long_a_cluster_is_followed() {
    let (mut live, server) = LiveInterface::scheduling(CLUSTER);
    live.interface.driver.session.set_history_memory(0);
    live = live.keys(" ");
    let mut cycles = Vec::new();
    for round in 0..8 {
        live = follow(live, &server, round * 150..(round + 1) * 150);
        let (session, model) = (live.interface.driver.session(), &live.interface.driver.model);
        let (timeline, history) = (session.timeline(), session.history());
        assert!(timeline.steps().count() <= STEPS, "round {round}");
        let kept = history.cycles().count();
        assert_eq!(model.cycles.len(), kept, "round {round}");
        assert_eq!(model.events.len(), history.entries().count() - kept, "round {round}");
        let first = model.events.first().map(|(at, _)| *at as usize);
        assert!(first >= Some(history.entries().start()), "round {round}");
        cycles.push((history.cycle_count(), kept));
    }
    let (all, kept) = cycles[7];
    assert!(all >= 240 && kept < all / 2, "{cycles:?}");
}

#[test]
fn going_back_to_the_beginning_shows_that_it_was_dropped() {
    let (live, server) = LiveInterface::scheduling(CLUSTER);
    let mut live = live.keys(" ");
    server.with(|server| server.passed = 90_000_000);
    live = follow(live, &server, 0..600);
    let mut live = live.keys(" C");
    assert!(live.text().contains("this is the beginning of the recording"), "{}", live.text());
    live.interface.driver.session.set_history_memory(0);
    let mut live = follow(live.keys("c "), &server, 600..800);
    let first = live.interface.driver.model.cycles[0].cycle;
    assert!(first > 1);
    let reported = "the history before +1m30s was dropped; a larger --history-memory keeps more";
    for keys in [" C", "S", "{", ":cycle 1<Enter>", "@10s<Enter>"] {
        live = live.keys(keys);
        let text = live.text();
        assert!(text.contains(reported), "{keys}: {text}");
    }
    // From there on all is as ever, forward too, and the timeline begins there.
    let mut live = live.keys("}5");
    assert!(live.text().contains("n1"), "{}", live.text());
    assert_eq!(live.interface.driver.session().record().map(|record| record.cycle), Some(first));
    let mut live = live.keys(":cycle 100000<Enter>");
    assert!(live.text().contains("no cycle 100000 is recorded"), "{}", live.text());
}

#[test]
fn what_queues_up_while_frozen_has_a_limit_and_what_is_dropped_is_said() {
    let (live, server) = LiveInterface::scheduling(CLUSTER);
    let live = live.keys("Z");
    (0..50_010).for_each(|number| put(&server, number));
    server.put(pod("brief").into());
    server.delete(Kind::Pod, key("brief"));
    let live = live.turn();
    let waiting = live.interface.driver.model.live.as_ref().map(|live| live.waiting);
    assert!(waiting.is_some_and(|waiting| (1..200).contains(&waiting)), "{waiting:?}");
    let live = live.keys("Z").turn();
    assert!(live.interface.driver.session().world().api().objects().pod(key("brief")).is_none());
    let text = live.keys("M").text();
    assert!(text.contains("older versions of objects were dropped from the queue"), "{text}");
}
