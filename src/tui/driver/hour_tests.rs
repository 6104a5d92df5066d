//! What hours of use leave behind: nothing that grows with them. Counted, not timed.

use super::tests::crowd;
use crate::tui::testing::{LiveInterface, session};

/// Pods of the cluster, and nodes.
const PODS: usize = 40;
const ROUNDS: usize = 36;
/// Copies of the cluster kept at most where there is no memory for them: those that are kept
/// whatever they take, and those of looking around.
const COPIES: usize = 8 + 16;
/// Records with matrices where there is no memory for them.
const WHOLE: usize = 8;
/// Branches kept at most where there is no memory for them: the original, the current and the newest
/// one.
const BRANCHES: usize = 3;

/// What one of the rounds of a person does: looks around, goes back and forth, asks what if.
fn round(number: usize) -> String {
    // Late enough that `{` four times does not lead to the beginning, where nothing is left to copy.
    let (cycle, node) = (number * 7 % (PODS - 5) + 6, number % PODS);
    let around = format!(":cycle {cycle}<Enter>ssSSnNfF}}}}{{{{)(0123456789BM");
    let searched = format!("5/n-{node}<Enter>/<Esc>6jjW<Esc>3lloo");
    let what_if = format!(":what-if cordon node n-{node}<Enter>cuU}}D<Esc>");
    let later = if number.is_multiple_of(3) { "!c" } else { "" };
    format!("{around}{searched}{what_if}:branch original<Enter>{later}")
}

#[test]
fn nothing_grows_however_long_it_is_used() {
    let mut session = session(&crowd(PODS));
    session.set_history_memory(0);
    let mut live = LiveInterface::new(session, (100, 30)).keys("c");
    let entries = live.interface.driver.session().history().len();
    for number in 0..ROUNDS {
        live = live.keys(&round(number));
        let session = live.interface.driver.session();
        let (copies, bytes) = session.copies();
        assert!(copies <= COPIES && bytes > 0, "round {number}: {copies} copies");
        let whole = session.history().cycles().filter(|record| record.is_whole()).count();
        assert!(whole <= WHOLE, "round {number}: {whole} whole records");
        let branches = live.interface.driver.branches.list(session).len();
        assert!(branches <= BRANCHES, "round {number}: {branches} branches");
        assert!(session.history().len() <= entries, "round {number}");
        let (shown, cycles) =
            (live.interface.driver.model.cycles.len(), session.history().cycle_count());
        assert_eq!((shown, cycles), (PODS, PODS), "round {number}");
        assert_eq!(live.interface.driver.model.events.len(), session.history().len() - cycles);
    }
    let text = live.keys("M").text();
    assert!(text.contains("was dropped: the branches took more than"), "{text}");
}
