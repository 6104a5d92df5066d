//! The times of plugins over a real session, with a clock that ticks when it is looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::tui::testing::LiveInterface;
use kubestep_framework::stopwatch::Clock;

/// Every look takes a hundred microseconds.
struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn nanos(&self) -> u64 {
        self.0.fetch_add(100_000, Ordering::Relaxed)
    }
}

fn measured(name: &str) -> LiveInterface {
    let mut live = LiveInterface::demo(name);
    live.interface.driver.measure_with(Arc::new(Ticks(AtomicU64::new(0))));
    live
}

#[test]
fn each_plugin_has_its_time_at_each_point_and_the_nodes_it_rejected() {
    let mut live = measured("tainted").keys("gt");
    assert!(live.text().contains("Nothing ran yet"), "{}", live.text());
    let mut live = live.keys("n/tainttol filter<Enter>");
    let line = live.lines()[4].clone();
    assert!(line.contains("TaintToleration") && line.contains("100.0µs"), "{line}");
    let record = live.interface.driver.model().cycles[0].clone();
    let column = record.filter.plugins.iter().find(|c| c.plugin == "TaintToleration").unwrap();
    let rejected = column.verdicts.iter().filter(|id| id.is_status()).count();
    let all = record.nodes.order.len();
    assert!(rejected > 0 && line.contains(&format!(" {rejected}/{all}")), "{line}");
    let mut live = live.keys("<Esc>");
    live.golden("times-of-a-story-80x24");
}

#[test]
fn the_past_has_its_own_times_and_looking_back_counts_nothing() {
    let mut live = measured("tour").keys("nnngt");
    assert!(live.text().contains("Times: cycle 3 and the session"), "{}", live.text());
    let sum = |live: &mut LiveInterface| live.lines()[2].split(", ").nth(1).unwrap().to_owned();
    let before = sum(&mut live);
    let mut live = live.keys("{{gt");
    assert!(live.text().contains("Times: cycle 1 and the session"), "{}", live.text());
    assert_eq!(sum(&mut live), before);
    // Trying changes runs cycles on copies, which are not counted either.
    let mut live = live.keys("}}X<Esc>gt");
    assert_eq!(sum(&mut live), before);
}

#[test]
fn without_a_clock_the_view_says_why_it_is_empty() {
    let mut live = LiveInterface::demo("tainted").keys("ngt");
    assert!(live.text().contains("Nothing is measured here"), "{}", live.text());
}
