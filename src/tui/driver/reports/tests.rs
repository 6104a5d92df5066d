//! Stories of losses and upgrades: what is asked, in the background, stopped, from the menu.

use std::time::Duration;

use crate::tui::testing::LiveInterface;

/// A story on a screen where the whole answer fits.
fn story(name: &str) -> LiveInterface {
    LiveInterface::story(name).resized(120, 50)
}

fn assert_shows(live: &mut LiveInterface, words: &[&str]) {
    let text = live.text();
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_zone_is_lost_after_the_other() {
    let answer = [
        "What if any one zone is lost?",
        "without topology.kubernetes.io/zone=zone-a:",
        "default/database-0 (lost from a-0) pending",
        "budget default/web violated: needs 2 healthy pods, fell to 1, has 3 in the end",
        "has volume disk-1, which is only for topology.kubernetes.io/zone=zone-a",
        "losing 1 of 3 leaves pods without a node",
    ];
    for keys in ["r", "R", ":survive<Enter>", ":survive zone<Enter>"] {
        assert_shows(&mut story("zone-loss").keys(keys), &answer);
    }
    // The same is asked again: it is known. Another position is another question.
    let live = story("zone-loss").keys(":survive<Enter>");
    let mut live = live.keys("<Esc>c:survive<Enter>");
    assert_shows(&mut live, &answer);
}

#[test]
fn one_node_or_zone_is_lost_from_the_menu_of_a_node() {
    let mut live = story("zone-loss").keys("5m");
    assert_shows(&mut live, &[":survive node a-0", ":survive zone=zone-a", "lose node a-0"]);
    let mut live = live.keys("G<Enter>");
    assert_shows(
        &mut live,
        &["What if zone=zone-a is lost?", "losing topology.kubernetes.io/zone=zone-a leaves pods"],
    );
    let mut live = live.keys("<Esc>:survive node c-0<Enter>");
    assert_shows(&mut live, &["What if node c-0 is lost?", "no pod is lost"]);
    // Nothing of that is done in the session.
    let mut live = live.keys("<Esc>:branch<Enter>");
    assert_shows(&mut live, &["* original"]);
}

#[test]
fn what_cannot_be_lost_is_said() {
    let cases = [
        (":survive rack<Enter>", "no node has a label rack"),
        (":survive zone=zone-x<Enter>", "there is zone-a, zone-b, zone-c"),
        (":upgrade 1.36<Enter>", "nothing differs between 1.36 and 1.36"),
        (":upgrade latest<Enter>", "is not a version of Kubernetes"),
        (":upgrade 1.33 1.34 1.35<Enter>", "name at most two versions"),
    ];
    for (keys, said) in cases {
        assert_shows(&mut story("zone-loss").keys(keys), &[said]);
    }
}

#[test]
fn a_search_for_losses_can_be_stopped_and_is_not_kept() {
    let mut live = story("zone-loss");
    live.interface.driver.freshness.patience = Duration::ZERO;
    let live = live.keys_at_once(":survive<Enter>");
    assert!(live.interface.driver.is_searching());
    let mut live = live.keys("<Esc>");
    assert!(!live.interface.driver.is_searching());
    // It ended before or after it was asked to; asked again, the answer is whole.
    live.draw();
    let mut live = live.keys("<Esc>:survive<Enter>");
    assert_shows(&mut live, &["losing 1 of 3 leaves pods without a node"]);
}

#[test]
fn an_answer_does_not_open_over_what_is_read() {
    let mut live = story("zone-loss");
    live.interface.driver.freshness.patience = Duration::ZERO;
    let mut live = live.keys_at_once(":survive zone<Enter>").keys("?");
    assert_shows(&mut live, &["Keys and commands", "the answer is ready; :survive zone shows it"]);
    assert_shows(&mut live.keys("<Esc>:survive zone<Enter>"), &["What if any one zone is lost?"]);
}

#[test]
fn an_upgrade_names_the_change_behind_each_difference() {
    let answer = [
        "kube-scheduler 1.33 → 1.36: 1 pod becomes schedulable, 1 pod becomes pending",
        "Because of BalancedAllocationGain (NodeResourcesBalanced",
        "default/web-0: on memory-0 → on compute-0",
        "Because of PodLevelResources (feature gate, off → on)",
    ];
    for keys in ["r", ":upgrade 1.33<Enter>", ":upgrade 1.33 1.36<Enter>", "c:upgrade 1.33<Enter>"]
    {
        assert_shows(&mut story("upgrade").keys(keys), &answer);
    }
    // From a branch that decides as 1.33, to the default version.
    let mut live = story("upgrade").keys(":what-if kube-version 1.33<Enter>c:upgrade<Enter>");
    assert_shows(&mut live, &answer);
    // A downgrade is named in this order; without a name, the version before is compared.
    let mut live = story("upgrade").keys(":upgrade 1.36 1.33<Enter>");
    assert_shows(&mut live, &["kube-scheduler 1.36 → 1.33: "]);
    let mut live = story("upgrade").keys("P");
    assert_shows(&mut live, &["kube-scheduler 1.35 → 1.36: "]);
}
