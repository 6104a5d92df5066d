//! No key is silent: in every view every action does something that can be seen, or says why not.

use crate::tui::action::{self, Action};
use crate::tui::app::Effect;
use crate::tui::model::Model;
use crate::tui::testing::{InterfaceStory, model};
use crate::tui::view::ViewId;

/// What one sees and what is asked for, before and after an action, differ.
fn acts(mut story: InterfaceStory, spec: &Action) -> bool {
    let before = story.draw();
    let key = spec.keys.first().map(|key| bracketed(key));
    // An action without a key is typed.
    let keys = key.unwrap_or_else(|| format!(":{}<Enter>", spec.name));
    let mut story = story.keys(&keys);
    story.effects.iter().any(|effect| *effect != Effect::None) || story.draw() != before
}

/// A sequence of keys as a story writes it.
fn bracketed(keys: &str) -> String {
    let one = |key: &str| match key.chars().count() {
        1 => key.to_owned(),
        _ => format!("<{key}>"),
    };
    keys.split(' ').map(one).collect()
}

fn silent(story: impl Fn() -> InterfaceStory, view: ViewId, place: &str) -> Vec<String> {
    let at = || {
        let mut story = story();
        if story.app.view() != view {
            story.app.show(view);
            story.refresh();
        }
        story
    };
    let quiet = action::all().filter(|spec| !acts(at(), spec));
    quiet.map(|spec| format!("{} in {}, {place}", spec.name, view.title())).collect()
}

#[test]
fn every_action_acts_in_every_view_or_says_why_it_cannot() {
    let mut found = Vec::new();
    for view in ViewId::all() {
        found.extend(silent(|| InterfaceStory::new(model()), view, "a session"));
    }
    for view in [ViewId::Queues, ViewId::Filter, ViewId::Timeline, ViewId::Messages] {
        found.extend(silent(|| InterfaceStory::new(Model::default()), view, "nothing there"));
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn no_action_is_silent_while_a_window_is_open() {
    let mut found = Vec::new();
    for keys in ["?", "d"] {
        for spec in action::all() {
            let story = InterfaceStory::new(model()).keys("6").keys(keys);
            if !acts(story, spec) {
                found.push(format!("{} over {keys}", spec.name));
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn keys_without_a_meaning_say_so_and_where_they_have_one() {
    let mut story = InterfaceStory::new(model()).keys("3a");
    let line = story.lines()[22].clone();
    let (waiting, breakpoints) =
        ("allow works in: Waiting (7)", "break-switch works in: Breakpoints (B)");
    assert!(line.starts_with(" a: ") && line.contains(waiting), "{line}");
    assert!(line.contains(breakpoints), "{line}");
    let mut story = story.keys("~");
    assert_eq!(story.lines()[22], " nothing is bound to ~; ? lists the keys");
    assert!(!story.keys("M").text().contains("is bound to"), "such words are not kept");
}

#[test]
fn keys_of_other_editors_are_a_command_away_and_in_the_help() {
    let mut story = InterfaceStory::new(model()).keys("5:keys emacs<Enter>");
    assert!(story.lines()[22].contains("keys: emacs"), "{}", story.lines()[22]);
    let mut story = story.keys("<Ctrl-n><Ctrl-n>");
    assert!(story.lines()[2].contains("3/5"), "{}", story.lines()[2]);
    let mut help = story.keys("?");
    assert!(help.text().contains("Keys and commands (emacs), Nodes first"), "{}", help.text());
    let mut story = help.keys("<Ctrl-g>:keys plain<Enter>j");
    assert_eq!(story.lines()[22], " nothing is bound to j; ? lists the keys");
    let mut story = story.keys("<Down>");
    assert!(story.lines()[2].contains("4/5"), "{}", story.lines()[2]);
    let mut story = story.keys(":keys<Enter>");
    assert!(story.lines()[22].contains("keys: vi"), "{}", story.lines()[22]);
    assert!(story.keys(":keys wordstar<Enter>").lines()[22].contains("there are no keys"));
}

#[test]
fn labels_filter_what_has_labels_and_elsewhere_it_is_said() {
    let mut story = InterfaceStory::new(model()).keys("2/-l app=cart-1<Enter>");
    assert!(story.lines()[2].contains("1 of 4"), "{}", story.lines()[2]);
    let mut story = InterfaceStory::new(model()).keys("7/-l app=api-1<Enter>");
    assert!(story.lines()[2].contains("1/1"), "{}", story.lines()[2]);
    let mut story = InterfaceStory::new(model()).keys("1/-l app=x<Enter>");
    assert!(story.lines()[22].contains("rows of this view have no labels"));
    // What is kept out is asked for with an exclamation mark, in every view.
    for view in ViewId::all() {
        let mut story = InterfaceStory::new(model());
        story.app.show(view);
        story.refresh();
        let all = story.app.grid(view).total();
        let mut story = story.keys("/!nothing-is-called-so<Enter>");
        assert_eq!(story.app.grid(view).shown(), all, "{}", view.title());
        story = story.keys("<Esc>/nothing-is-called-so<Enter>");
        assert_eq!(story.app.grid(view).shown(), 0, "{}", view.title());
    }
}

#[test]
fn every_view_sorts_by_every_column_both_ways() {
    for view in ViewId::all() {
        let mut story = InterfaceStory::new(model()).resized(200, 50);
        story.app.show(view);
        story.refresh();
        if story.app.grid(view).total() == 0 {
            assert!(story.keys("o").lines()[48].contains("there are no rows here"));
            continue;
        }
        let columns = story.app.source(&story.model).columns();
        for _ in 0..columns {
            // A drawing may stand above the header.
            let header = |story: &mut InterfaceStory| story.lines()[3..5].join("\n");
            story = story.keys("o");
            assert!(header(&mut story).contains('▲'), "{}: {}", view.title(), header(&mut story));
            story = story.keys("o");
            assert!(header(&mut story).contains('▼'), "{}: {}", view.title(), header(&mut story));
            story = story.keys("ol");
        }
    }
}
