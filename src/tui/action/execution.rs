//! Moving the debugger: a letter goes forward, its capital goes back.

use super::{Action, Argument, Spec};
use crate::tui::app::{App, Effect, Request};
use crate::tui::model::Model;
use crate::tui::speed::Speed;
use crate::tui::view::Target;
use crate::tui::widget::status_line::Severity;

/// Actions that move the debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Execution {
    /// Into: the next recorded event at any depth.
    Step,
    /// The event before this one.
    StepBack,
    /// Over: the next one at this depth.
    Next,
    /// The one before at this depth.
    NextBack,
    /// Out: the end of what encloses this.
    Finish,
    /// The beginning of what encloses this.
    FinishBack,
    /// On until nothing is left to schedule.
    Continue,
    /// Back to the first cycle.
    ContinueBack,
    /// To the first event of the next cycle.
    NextCycle,
    /// To the cycle before.
    PreviousCycle,
    /// To the selected row's moment.
    RunHere,
    /// Step by step until stopped.
    Play,
    /// The last of these again.
    Repeat,
    /// To a cycle by number.
    Cycle,
    /// To the next cycle of the same pod.
    NextAttempt,
    /// To the cycle of the same pod before this one.
    PreviousAttempt,
    /// To a moment of virtual time.
    Moment,
    /// Plays faster.
    Faster,
    /// Plays slower.
    Slower,
    /// Plays at a speed.
    Speed,
    /// Virtual time passes.
    Advance,
    /// The position becomes the end; what came after it is forgotten.
    ContinueHere,
}

impl Execution {
    /// Whether playing goes on after it.
    pub fn keeps_playing(self) -> bool {
        matches!(self, Execution::Play | Execution::Faster | Execution::Slower | Execution::Speed)
    }
}

/// A row that is valid everywhere.
const fn spec(
    action: Execution,
    name: &'static str,
    keys: &'static [&'static str],
    argument: Argument,
    hint: &'static str,
    help: &'static str,
) -> Spec {
    Spec { argument, hint, ..Spec::new(Action::Execution(action), name, keys, help) }
}

const COUNT: Argument = Argument::Optional("COUNT");

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec(Execution::Step, "step", &["s", "f11"], COUNT, "step", "Step into: the next event at any depth"),
    spec(Execution::StepBack, "step-back", &["S"], COUNT, "", "Step back: the previous event"),
    spec(Execution::Next, "next", &["n", "f10"], COUNT, "next", "Step over: the next plugin, point or cycle at this depth"),
    spec(Execution::NextBack, "next-back", &["N"], COUNT, "", "Step back over: the previous plugin, point or cycle at this depth"),
    spec(Execution::Finish, "finish", &["f", "shift-f11"], COUNT, "out", "Step out: to the end of what encloses the position"),
    spec(Execution::FinishBack, "finish-back", &["F"], COUNT, "", "Step back out: to the beginning of what encloses the position"),
    spec(Execution::NextCycle, "next-cycle", &["}"], COUNT, "", "To the next scheduling cycle, running it if it is new"),
    spec(Execution::PreviousCycle, "previous-cycle", &["{"], COUNT, "", "Back to the previous cycle"),
    spec(Execution::Continue, "continue", &["c", "f5", "f8"], Argument::None, "run", "Run until nothing is left to schedule"),
    spec(Execution::ContinueBack, "continue-back", &["C"], Argument::None, "", "Back to the beginning of the recording"),
    spec(Execution::RunHere, "run-here", &["t"], Argument::None, "", "Run to the selected row: a moment, or a pod's next attempt"),
    spec(Execution::Play, "play", &["space"], Argument::None, "", "Play: run the clock and cycles with it; or pause"),
    spec(Execution::Repeat, "repeat", &["."], Argument::None, "", "Repeat the last debugger command"),
    spec(Execution::Cycle, "cycle", &[], Argument::Required("NUMBER"), "", "Go to a recorded cycle by its number"),
    spec(Execution::NextAttempt, "next-attempt", &[")"], Argument::None, "", "To the next cycle of the same pod, running until there is one"),
    spec(Execution::PreviousAttempt, "previous-attempt", &["("], Argument::None, "", "Back to the previous cycle of the same pod"),
    spec(Execution::Moment, "moment", &["@"], Argument::Required("TIME"), "", "Go to a time since the start, as 12m30s; timers expire one by one"),
    spec(Execution::ContinueHere, "continue-here", &["!"], Argument::None, "", "New branch from here; what was run after it is kept in the old one"),
    spec(Execution::Advance, "advance", &["+"], Argument::Optional("TIME"), "", "Advance the clock at once: to the next timer, or by 30s, 5m"),
    spec(Execution::Faster, "faster", &["="], Argument::None, "", "Play faster: 0.5, 1, 2, 5, 10, 60, … times real time, or at once"),
    spec(Execution::Slower, "slower", &["_"], Argument::None, "", "Play slower"),
    spec(Execution::Speed, "speed", &[], Argument::Required("FACTOR"), "", "Play at 0.5, 60, … times real time; max does not wait"),
];

/// Does it.
pub fn apply(action: Execution, app: &mut App, model: &Model, argument: &str) -> Effect {
    let request = match action {
        Execution::Repeat => return app.repeat(),
        Execution::Play if model.scheduling().is_some() => {
            app.toggle_play();
            return match app.is_playing() {
                true => Effect::Session(Request::LetRun),
                false => {
                    app.say(Severity::Info, "paused: nothing is decided; Space goes on");
                    Effect::None
                }
            };
        }
        Execution::Play if model.followed().is_some() => {
            return app.fail("time passes by itself on a live cluster; Z freezes it".into());
        }
        Execution::Play => {
            app.toggle_play();
            return Effect::None;
        }
        Execution::Faster => return play_at(app, app.speed().faster()),
        Execution::Slower => return play_at(app, app.speed().slower()),
        Execution::Speed => match argument.parse() {
            Ok(speed) => return play_at(app, speed),
            Err(problem) => return app.fail(problem),
        },
        _ => match request(action, app, model, argument) {
            Ok(request) => request,
            Err(problem) => return app.fail(problem),
        },
    };
    app.remember(&request);
    Effect::Session(request)
}

fn play_at(app: &mut App, speed: Speed) -> Effect {
    app.set_speed(speed);
    Effect::None
}

fn request(action: Execution, app: &App, model: &Model, argument: &str) -> Result<Request, String> {
    let count = || count(argument);
    Ok(match action {
        Execution::Step => Request::Step { count: count()?, back: false },
        Execution::StepBack => Request::Step { count: count()?, back: true },
        Execution::Next => Request::Next { count: count()?, back: false },
        Execution::NextBack => Request::Next { count: count()?, back: true },
        Execution::Finish => Request::Finish { count: count()?, back: false },
        Execution::FinishBack => Request::Finish { count: count()?, back: true },
        Execution::NextCycle => Request::Cycles { count: count()?, back: false },
        Execution::PreviousCycle => Request::Cycles { count: count()?, back: true },
        Execution::Continue => Request::Continue { back: false },
        Execution::ContinueBack => Request::Continue { back: true },
        Execution::RunHere => match app.selected_target(model) {
            Some(Target::Moment(position)) if model.position == Some(position) => {
                return Err("the debugger stands there already".into());
            }
            Some(Target::Moment(position)) => Request::GoTo(position),
            Some(Target::NextOf(pod)) => Request::NextOf(pod),
            None => return Err("nothing was done here yet that one could run to".into()),
        },
        Execution::NextAttempt => Request::Attempt { back: false },
        Execution::PreviousAttempt => Request::Attempt { back: true },
        Execution::Moment => Request::Moment(duration(argument)?.unwrap_or_default()),
        Execution::Cycle => {
            let number = argument.trim().parse();
            Request::GoToCycle(number.map_err(|_| format!("{argument:?} is not a cycle's number"))?)
        }
        Execution::Advance => Request::Advance(duration(argument)?),
        Execution::ContinueHere => Request::ContinueHere,
        Execution::Play
        | Execution::Repeat
        | Execution::Faster
        | Execution::Slower
        | Execution::Speed => return Err("not a move".into()),
    })
}

/// `""` is one; anything else a positive number.
fn count(argument: &str) -> Result<u32, String> {
    match argument.trim() {
        "" => Ok(1),
        text => text
            .parse()
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| format!("{text:?} is not a count; write a number like 5")),
    }
}

/// Microseconds of `30s`, `5m`, `250ms`, `1h`, `12m30s`; `None` of nothing.
fn duration(argument: &str) -> Result<Option<i64>, String> {
    let text = argument.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let (mut rest, mut micros) = (text, Some(0_i64));
    while !rest.is_empty() {
        let (part, after) = first_part(rest);
        micros = micros.zip(part).and_then(|(sum, part)| sum.checked_add(part));
        rest = after;
    }
    let wrong = || format!("{text:?} is not a time; write 30s, 5m, 250ms, 1h or 12m30s");
    micros.map(Some).ok_or_else(wrong)
}

/// Microseconds of a number with its unit, and what follows it.
fn first_part(text: &str) -> (Option<i64>, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(letters);
    let unit = match unit {
        "ms" => Some(1_000_i64),
        "" | "s" => Some(1_000_000),
        "m" => Some(60_000_000),
        "h" => Some(3_600_000_000),
        _ => None,
    };
    let micros = unit.zip(number.parse::<i64>().ok()).and_then(|(unit, n)| unit.checked_mul(n));
    (micros, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_positive_numbers() {
        assert_eq!(count(""), Ok(1));
        assert_eq!(count(" 5 "), Ok(5));
        assert!(count("0").is_err() && count("-1").is_err() && count("x").is_err());
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration(""), Ok(None));
        assert_eq!(duration("30s"), Ok(Some(30_000_000)));
        assert_eq!(duration("250ms"), Ok(Some(250_000)));
        assert_eq!(duration("2"), Ok(Some(2_000_000)));
        assert_eq!(duration("1h"), Ok(Some(3_600_000_000)));
        assert_eq!(duration("12m30s"), Ok(Some(750_000_000)));
        assert_eq!(duration("1h2m3s4ms"), Ok(Some(3_723_004_000)));
        for wrong in ["s", "5d", "-3s", "99999999999999h", "5mm", "1h x"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
