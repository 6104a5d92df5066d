//! Lists and watches against the stand-in: whatever happens to the connection, the final state
//! equals the server's, and no older version arrives after a newer one.

use std::sync::Arc;
use std::time::Duration;

use kubestep_api::Kind;
use kubestep_live::{Feed, LinkError, NamespaceScope, Pace};
use serde_json::json;

use crate::mirror::Mirror;
use crate::random::Random;
use crate::standin::StandIn;

/// Very short retry delays.
const PACE: Pace = Pace {
    watch_seconds: 1,
    idle: Duration::from_secs(2),
    lived: Duration::from_millis(50),
    pause: Duration::from_millis(5),
    longest_pause: Duration::from_millis(40),
    refused: Duration::from_millis(50),
    seed: 1,
};

const KINDS: [Kind; 4] = [Kind::Node, Kind::Pod, Kind::Service, Kind::CsiNode];

fn open(server: &StandIn) -> (Mirror, Feed) {
    let (snapshot, feed) = Feed::open(server.target(), NamespaceScope::default(), PACE).unwrap();
    (Mirror::new(&snapshot), feed)
}

/// Waits until the state equals the server's, and for a notice with that prefix; "" for none.
fn settle(mirror: &mut Mirror, feed: &mut Feed, server: &StandIn, notice: &str) {
    let said = |mirror: &Mirror| {
        notice.is_empty() || mirror.notices.iter().any(|text| text.starts_with(notice))
    };
    mirror.follow(feed, |mirror| said(mirror) && mirror.contents() == server.contents());
}

#[test]
fn long_lists_come_in_pages() {
    let server = StandIn::start();
    (0..1_234).for_each(|at| server.put(Kind::Pod, &format!("pod-{at}"), json!({})));
    server.misbehave(|faults| faults.expire_pages = 1);
    let (mirror, _feed) = open(&server);
    assert_eq!(mirror.contents(), server.contents());
    let pages = server.requests().iter().filter(|r| *r == "GET /api/v1/pods").count();
    // Two of the list whose continuation expired, three of the next, and perhaps one watch.
    assert!(pages >= 5, "{pages}");
}

#[test]
fn changes_are_followed() {
    let server = StandIn::start();
    server.put(Kind::Node, "a", json!({}));
    let (mut mirror, mut feed) = open(&server);
    server.put(Kind::Node, "a", json!({"spec": {"unschedulable": true}}));
    server.put(Kind::Node, "b", json!({}));
    server.put(Kind::Pod, "web", json!({}));
    server.delete(Kind::Node, "b");
    settle(&mut mirror, &mut feed, &server, "");
    assert_eq!(mirror.contents().len(), 2);
}

#[test]
fn a_forgotten_version_is_listed_again_and_only_the_difference_is_reported() {
    let server = StandIn::start();
    (0..10).for_each(|at| server.put(Kind::Node, &format!("n{at}"), json!({})));
    let (mut mirror, mut feed) = open(&server);
    server.misbehave(|faults| faults.down = true);
    // Long enough for every watch to be cut without the later events.
    mirror.follow(&mut feed, |mirror| !mirror.notices.is_empty());
    std::thread::sleep(Duration::from_millis(500));
    server.delete(Kind::Node, "n3");
    server.put(Kind::Node, "n4", json!({"spec": {}}));
    server.compact();
    server.misbehave(|faults| faults.down = false);
    settle(&mut mirror, &mut feed, &server, "relisting ");
}

#[test]
fn an_outage_is_said_once_and_its_end_too() {
    let server = StandIn::start();
    server.put(Kind::Node, "a", json!({}));
    let (mut mirror, mut feed) = open(&server);
    server.misbehave(|faults| faults.down = true);
    mirror.follow(&mut feed, |mirror| !mirror.notices.is_empty());
    std::thread::sleep(Duration::from_millis(200));
    server.put(Kind::Node, "b", json!({}));
    server.misbehave(|faults| faults.down = false);
    settle(&mut mirror, &mut feed, &server, "all watches work again");
    assert_eq!(mirror.notices.len(), 2, "{:?}", mirror.notices);
    assert!(mirror.notices[0].contains("not followed"), "{:?}", mirror.notices);
}

#[test]
fn an_expired_token_is_read_again() {
    let server = StandIn::start();
    server.misbehave(|faults| faults.token = Some("token-1".into()));
    let (mut mirror, mut feed) = open(&server);
    server.write_kubeconfig("token-2");
    server.misbehave(|faults| faults.token = Some("token-2".into()));
    server.put(Kind::Pod, "late", json!({}));
    settle(&mut mirror, &mut feed, &server, "");
}

#[test]
fn a_token_that_is_not_accepted_is_no_way_in() {
    let server = StandIn::start();
    server.misbehave(|faults| faults.token = Some("another".into()));
    let error = Feed::open(server.target(), NamespaceScope::default(), PACE).err().unwrap();
    assert!(matches!(error, LinkError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("the credentials are not accepted"), "{error}");
}

#[test]
fn what_is_rejected_is_missing_until_it_is_allowed() {
    let server = StandIn::start();
    server.put(Kind::CsiNode, "a", json!({}));
    server.put(Kind::Node, "a", json!({}));
    server.misbehave(|faults| faults.refused.extend(["csinodes"]));
    let (snapshot, mut feed) =
        Feed::open(server.target(), NamespaceScope::default(), PACE).unwrap();
    let refused: Vec<String> =
        snapshot.missing.iter().map(|m| format!("{} {}", m.what(), m.why())).collect();
    assert_eq!(refused, ["csinodes forbidden", "workloads not served", "podgroups not served"]);
    let mut mirror = Mirror::new(&snapshot);
    assert_eq!(mirror.contents().len(), 1);
    server.misbehave(|faults| faults.refused.clear());
    settle(&mut mirror, &mut feed, &server, "csinodes is readable now");
}

#[test]
fn a_busy_server_is_asked_again() {
    let server = StandIn::start();
    server.put(Kind::Node, "a", json!({}));
    server.misbehave(|faults| faults.busy = 3);
    // The first request is not retried; it may reach the busy server.
    let opened =
        (0..4).find_map(|_| Feed::open(server.target(), NamespaceScope::default(), PACE).ok());
    let (snapshot, _feed) = opened.unwrap();
    assert_eq!(snapshot.objects().count(), 1);
}

#[test]
fn cut_slow_and_repeated_watches_end_in_the_servers_state() {
    for seed in 0..24 {
        let server = StandIn::start();
        change(&server, &mut Random::new(seed), 40);
        server.misbehave(|faults| faults.seed = Some(seed));
        let (mut mirror, mut feed) = open(&server);
        let changing = server.clone();
        let changer = std::thread::spawn(move || disturb(&changing, seed));
        mirror.follow(&mut feed, |_| changer.is_finished());
        changer.join().unwrap();
        server.misbehave(|faults| faults.seed = None);
        settle(&mut mirror, &mut feed, &server, "");
        let writes = server.requests().into_iter().filter(|r| !r.starts_with("GET "));
        assert_eq!(writes.count(), 0);
    }
}

/// Random changes, with outages and compactions between them.
fn disturb(server: &Arc<StandIn>, seed: u64) {
    let mut random = Random::new(seed ^ 0xabcd);
    for _ in 0..30 {
        change(server, &mut random, 10);
        match random.below(10) {
            0 => server.compact(),
            1 => {
                server.misbehave(|faults| faults.down = true);
                std::thread::sleep(Duration::from_millis(10));
                server.misbehave(|faults| faults.down = false);
            }
            _ => std::thread::sleep(Duration::from_millis(random.below(8))),
        }
    }
}

fn change(server: &StandIn, random: &mut Random, count: usize) {
    for _ in 0..count {
        let kind = KINDS[random.below(KINDS.len() as u64) as usize];
        let name = format!("x{}", random.below(15));
        match random.below(4) {
            0 => server.delete(kind, &name),
            _ => server.put(kind, &name, json!({"status": {}})),
        }
    }
}
