//! Moving the debugger: a letter goes forward, its capital goes back.

use super::{Action, ActionFn, ActionKind, Argument, COUNT, count};
use crate::tui::action_error::ActionError;
use crate::tui::app::{App, Effect};
use crate::tui::command::Command;
use crate::tui::model::Model;
use crate::tui::speed::Speed;
use crate::tui::view::RunTarget;
use crate::tui::widget::status_line::Severity;
use kubestep_api::duration::Duration;
use kubestep_source::fixtures;

/// An action that moves the debugger.
const fn moves(
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
    run: ActionFn,
) -> Action {
    Action::new(name, keys, help, run).kind(ActionKind::Move)
}

/// One that takes a count.
const fn counted(
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
    run: ActionFn,
) -> Action {
    moves(name, keys, help, run).takes(COUNT)
}

/// One that changes how the clock plays.
const fn pace(
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
    run: ActionFn,
) -> Action {
    Action::new(name, keys, help, run).kind(ActionKind::Pace)
}

/// The rows of the table.
#[rustfmt::skip]
pub const ACTIONS: &[Action] = &[
    counted("step", &["s", "f11"], "Step into: the next event at any depth",
        |app, _, text| go(app, Command::Step { count: count(text)?, back: false })).hint("step"),
    counted("step-back", &["S"], "Step back: the previous event",
        |app, _, text| go(app, Command::Step { count: count(text)?, back: true })),
    counted("next", &["n", "f10"], "Step over: the next plugin, point or cycle at this depth",
        |app, _, text| go(app, Command::Next { count: count(text)?, back: false })).hint("next"),
    counted("next-back", &["N"], "Step back over: the previous plugin, point or cycle at this depth",
        |app, _, text| go(app, Command::Next { count: count(text)?, back: true })),
    counted("finish", &["f", "shift-f11"], "Step out: to the end of what encloses the position",
        |app, _, text| go(app, Command::Finish { count: count(text)?, back: false })).hint("out"),
    counted("finish-back", &["F"], "Step back out: to the beginning of what encloses the position",
        |app, _, text| go(app, Command::Finish { count: count(text)?, back: true })),
    counted("next-cycle", &["}"], "To the next scheduling cycle, running it if it is new",
        |app, _, text| go(app, Command::Cycles { count: count(text)?, back: false })),
    counted("previous-cycle", &["{"], "Back to the previous cycle",
        |app, _, text| go(app, Command::Cycles { count: count(text)?, back: true })),
    moves("continue", &["c", "f5", "f8"], "Run until nothing is left to schedule",
        |app, _, _| go(app, Command::Continue { back: false })).hint("run"),
    moves("story", &["r"], "Show what the built-in story demonstrates: runs its commands",
        |_, model, _| story(model)).search("demo example try"),
    moves("continue-back", &["C"], "Back to the beginning of the recording",
        |app, _, _| go(app, Command::Continue { back: true })).search("reverse rewind"),
    moves("run-here", &["t"], "Run to the selected row: a moment, or a pod's next attempt",
        |app, model, _| run_here(app, model)).search("travel go to jump until"),
    pace("play", &["space"], "Play: run the clock and cycles with it; or pause",
        |app, model, _| play(app, model)),
    moves("repeat", &["."], "Repeat the last debugger command",
        |app, _, _| repeat(app)).search("again"),
    moves("cycle", &[], "Go to a recorded cycle by its number",
        |app, _, text| go_to_cycle(app, text)).takes(Argument::Required("NUMBER")),
    moves("next-attempt", &[")"], "To the next cycle of the same pod, running until there is one",
        |app, _, _| go(app, Command::Attempt { back: false })).search("retry"),
    moves("previous-attempt", &["("], "Back to the previous cycle of the same pod",
        |app, _, _| go(app, Command::Attempt { back: true })),
    moves("moment", &["@"], "Go to a time since the start, as 12m30s; timers expire one by one",
        |app, _, text| go(app, Command::GoToTime(duration(text)?.unwrap_or_default())))
        .takes(Argument::Required("TIME")),
    moves("continue-here", &["!"], "New branch from here; what was run after it is kept in the old one",
        |app, _, _| go(app, Command::ContinueHere)),
    moves("advance", &["+"], "Advance the clock at once: to the next timer, or by 30s, 5m",
        |app, _, text| go(app, Command::Advance(duration(text)?))).takes(Argument::Optional("TIME"))
        .search("wait sleep timer backoff timeout"),
    pace("faster", &["="], "Play faster: 0.5, 1, 2, 5, 10, 60, … times real time, or at once",
        |app, _, _| play_at(app, app.speed().faster())),
    pace("slower", &["_"], "Play slower", |app, _, _| play_at(app, app.speed().slower())),
    pace("speed", &[], "Play at 0.5, 60, … times real time; max does not wait",
        |app, _, text| play_at(app, text.parse()?)).takes(Argument::Required("FACTOR")),
];

/// The commands that show what the built-in story demonstrates.
fn story(model: &Model) -> Result<Effect, ActionError> {
    match fixtures::of_source(&model.source) {
        Some(story) => Ok(Effect::CommandLines(story.example())),
        None => Err("this is no built-in story; kubestep demo --list names them".into()),
    }
}

/// A move, which `.` repeats.
fn go(app: &mut App, command: Command) -> Result<Effect, ActionError> {
    app.remember(&command);
    Ok(Effect::Session(command))
}

fn repeat(app: &mut App) -> Result<Effect, ActionError> {
    let last = app.last_move().ok_or("nothing to repeat yet")?;
    go(app, last)
}

fn play(app: &mut App, model: &Model) -> Result<Effect, ActionError> {
    if model.scheduling().is_some() {
        app.toggle_play();
        if app.is_playing() {
            return go(app, Command::RunScheduler);
        }
        app.notify(Severity::Info, "paused: nothing is decided; Space goes on");
    } else if model.followed().is_some() {
        return Err("time passes by itself on a live cluster; Z freezes it".into());
    } else {
        app.toggle_play();
    }
    Ok(Effect::None)
}

fn play_at(app: &mut App, speed: Speed) -> Result<Effect, ActionError> {
    app.set_speed(speed);
    Ok(Effect::None)
}

fn run_here(app: &mut App, model: &Model) -> Result<Effect, ActionError> {
    let command = match app.selected_target(model) {
        Some(RunTarget::Position(position)) if model.position == Some(position) => {
            return Err("the debugger is there already".into());
        }
        Some(RunTarget::Position(position)) => Command::GoTo(position),
        Some(RunTarget::NextCycleOf(pod)) => Command::NextCycleOf(pod),
        None => return Err("nothing is recorded for this row yet".into()),
    };
    go(app, command)
}

fn go_to_cycle(app: &mut App, argument: &str) -> Result<Effect, ActionError> {
    let number = argument.trim().parse();
    go(
        app,
        Command::GoToCycle(number.map_err(|_| format!("{argument:?} is not a cycle's number"))?),
    )
}

/// Microseconds of `30s`, `5m`, `250ms`, `1h`, `12m30s`; seconds without a unit; `None` of nothing.
fn duration(argument: &str) -> Result<Option<i64>, ActionError> {
    let text = argument.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let unit = if text.ends_with(|c: char| c.is_ascii_digit()) { "s" } else { "" };
    let parsed = Duration::parse(&format!("{text}{unit}")).map(Duration::as_micros);
    let wrong = || format!("{text:?} is not a time; write 30s, 5m, 250ms, 1h or 12m30s");
    Ok(Some(parsed.filter(|micros| *micros >= 0).ok_or_else(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration(""), Ok(None));
        assert_eq!(duration("30s"), Ok(Some(30_000_000)));
        assert_eq!(duration("250ms"), Ok(Some(250_000)));
        assert_eq!(duration("2"), Ok(Some(2_000_000)));
        assert_eq!(duration("1h"), Ok(Some(3_600_000_000)));
        assert_eq!(duration("12m30s"), Ok(Some(750_000_000)));
        assert_eq!(duration("12m30"), Ok(Some(750_000_000)));
        assert_eq!(duration("1h2m3s4ms"), Ok(Some(3_723_004_000)));
        for wrong in ["s", "5d", "-3s", "99999999999999h", "5mm", "1h x"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
