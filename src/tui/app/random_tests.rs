//! Random keys and sizes by seed, over real sessions: nothing panics, every frame can be drawn, and
//! the way out is always open.

use crate::tui::action;
use crate::tui::testing::{LiveInterface, session};
use kubestep_source::fixtures;

const SEEDS: u64 = 24;
const KEYS: usize = 60;

/// What people type behind `:`, in the right and in the wrong place.
const COMMANDS: [&str; 16] = [
    "break on:unschedulable",
    "break Filter if attempts > 1 log",
    "watch queue:active",
    "hold *",
    "release",
    "advance 20s",
    "moment 1m",
    "cycle 2",
    "next 7",
    "what-if cordon node a-0",
    "what-if delete pod web-0",
    "fork other",
    "branch original",
    "allow Nobody",
    "break clear",
    "nonsense",
];

/// A generator that says what it did when a test fails: the seed is all there is to know.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Every key of the table as a story writes it, except those that leave.
fn keys() -> Vec<String> {
    let leaves = ["q", "Ctrl-c", "Ctrl-z"];
    let all = action::all().flat_map(|spec| spec.keys).filter(|keys| !leaves.contains(keys));
    let story = |keys: &&str| {
        let one = |key: &str| if key.chars().count() > 1 { format!("<{key}>") } else { key.into() };
        keys.split(' ').map(one).collect::<String>()
    };
    all.map(story).collect()
}

fn walk(mut live: LiveInterface, chance: &mut Chance) -> LiveInterface {
    let keys = keys();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for _ in 0..KEYS {
        live = match chance.below(12) {
            0 => live.resized(1 + chance.below(220) as u16, 1 + chance.below(60) as u16),
            1 => live.keys(&format!("<Esc><Esc>:{}<Enter>", chance.of(&COMMANDS))),
            2 => live.keys("<Enter>"),
            3 => live.keys("<Esc>"),
            _ => live.keys_at_once(chance.of(&keys)),
        };
    }
    live
}

#[test]
fn random_keys_over_every_story_never_panic_and_lead_out() {
    for seed in 1..=SEEDS {
        let mut chance = Chance(seed);
        let story = &fixtures::STORIES[chance.below(fixtures::STORIES.len())];
        let live = walk(LiveInterface::new(session(story.cluster), (80, 24)), &mut chance);
        let mut live = live.keys("<Esc><Esc><Esc><Esc><Esc>").resized(80, 24);
        let lines = live.lines();
        assert!(lines[0].contains("Cycle"), "seed {seed}, {}:\n{}", story.name, lines.join("\n"));
    }
}

#[test]
fn random_keys_over_a_recording_never_panic() {
    let lab = include_str!("../../../tests/recordings/lab.jsonl");
    for seed in 1..=SEEDS / 4 {
        let live = walk(LiveInterface::recording(lab, (80, 24)), &mut Chance(seed));
        assert!(live.resized(80, 24).lines()[0].contains("Cycle"), "seed {seed}");
    }
}
