//! The word at the right of the first line on a live cluster: whether it is followed, and where a
//! scheduler decides live, what it does, or why it does nothing.

use std::borrow::Cow;

use crate::tui::model::{HoldReason, LiveModel, SchedulingModel};
use crate::tui::text::{Truncation, fit, width};
use crate::tui::theme::Scope;
use kubestep_live::Outage;
use kubestep_live::scheduling::LeaderStatus;

/// Columns for the name of the context; the line below has all of it.
const NAME: usize = 20;

/// A cluster that is followed, in so many columns.
pub(super) fn of_followed(live: &LiveModel, room: usize) -> (Cow<'static, str>, Scope) {
    match (&live.outage, live.frozen) {
        (Some(outage), frozen) => {
            let word = if frozen { "FROZEN" } else { "RECONNECTING" };
            (of_outage(word, outage, room).into(), Scope::ChipReplay)
        }
        (None, true) => ("LIVE (frozen)".into(), Scope::ChipReplay),
        (None, false) if live.no_scheduler.is_some() => {
            let reason = live.no_scheduler.as_deref().unwrap_or_default();
            let text = format!("LIVE: {reason}");
            let short = "LIVE: no scheduler is running";
            let text = if width(&text) <= room { text } else { short.to_owned() };
            (text.into(), Scope::ChipReplay)
        }
        (None, false) => ("LIVE (shadow)".into(), Scope::ChipRunning),
    }
}

/// As much of it as there is room for.
fn of_outage(word: &str, outage: &Outage, room: usize) -> String {
    let Outage { what, reason, retry_in } = outage;
    let retry = match retry_in {
        0 => "retrying".to_owned(),
        seconds => format!("retry in {seconds}s"),
    };
    let texts =
        [format!("{word} ({what}: {reason}, {retry})"), format!("{word} ({reason}, {retry})")];
    let fits = texts.into_iter().find(|text| width(text) <= room);
    fits.unwrap_or_else(|| format!("{word} ({retry})"))
}

/// `runs`: it decides by itself at the moment.
pub(super) fn of_scheduling(
    model: &SchedulingModel,
    waiting: usize,
    runs: bool,
) -> (Cow<'static, str>, Scope) {
    let word = match (&model.leader_status, model.held) {
        (_, Some(HoldReason::Branch)) => "WHAT-IF: nothing is written".into(),
        (LeaderStatus::Lost(_), _) => {
            return ("LEASE LOST: writes stopped".into(), Scope::ChipReplay);
        }
        (LeaderStatus::CutOff, _) => "CONNECTION LOST: writes stopped".into(),
        (LeaderStatus::Waits, _) => "NOT LEADER: waits for the lease".into(),
        (LeaderStatus::Leads, Some(_)) => format!("HELD: {waiting} updates queued").into(),
        (LeaderStatus::Leads, None) => {
            let scope = if runs { Scope::ChipRunning } else { Scope::Chip };
            return (scheduling(model, runs).into(), scope);
        }
    };
    (word, Scope::ChipReplay)
}

fn scheduling(model: &SchedulingModel, runs: bool) -> String {
    let paused = if runs { "" } else { ": paused" };
    match model.dry_run {
        true => format!("LIVE SCHEDULING (dry run){paused}"),
        false => {
            format!("LIVE SCHEDULING {}{paused}", fit(&model.context, NAME, Truncation::Middle))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_is_said_only_of_what_is_followed() {
        let word = |outage: Option<(&str, &str)>, frozen, room| {
            let outage = outage.map(|(what, reason)| {
                let (what, reason) = (what.to_owned(), reason.to_owned());
                Outage { what, reason, retry_in: 4 }
            });
            let live = LiveModel { outage, frozen, ..LiveModel::default() };
            of_followed(&live, room).0.into_owned()
        };
        assert_eq!(word(None, false, 38), "LIVE (shadow)");
        assert_eq!(word(None, true, 38), "LIVE (frozen)");
        let expired = Some(("pods", "410"));
        assert_eq!(word(expired, false, 38), "RECONNECTING (pods: 410, retry in 4s)");
        assert_eq!(word(expired, false, 36), "RECONNECTING (410, retry in 4s)");
        assert_eq!(word(expired, true, 36), "FROZEN (pods: 410, retry in 4s)");
        let many = Some(("20 kinds", "watch ends at once"));
        let all = "RECONNECTING (20 kinds: watch ends at once, retry in 4s)";
        assert_eq!(word(many, false, 60), all);
        assert_eq!(word(many, false, 50), "RECONNECTING (watch ends at once, retry in 4s)");
        assert_eq!(word(many, false, 38), "RECONNECTING (retry in 4s)");
    }

    #[test]
    fn each_state_has_its_words() {
        use LeaderStatus::{CutOff, Leads, Lost, Waits};
        let word = |leader_status, held, runs, dry_run| {
            let model = SchedulingModel { context: "lab".into(), dry_run, leader_status, held };
            of_scheduling(&model, 3, runs).0.into_owned()
        };
        assert_eq!(word(Leads, None, true, false), "LIVE SCHEDULING lab");
        assert_eq!(word(Leads, None, false, false), "LIVE SCHEDULING lab: paused");
        assert_eq!(word(Leads, None, true, true), "LIVE SCHEDULING (dry run)");
        for held in [HoldReason::Cycle, HoldReason::Past, HoldReason::Frozen] {
            assert_eq!(word(Leads, Some(held), true, false), "HELD: 3 updates queued");
        }
        let what_if = "WHAT-IF: nothing is written";
        assert_eq!(word(Lost("late".into()), Some(HoldReason::Branch), false, false), what_if);
        // That nothing can be written any more is said wherever one stands.
        let lost = word(Lost("late".into()), Some(HoldReason::Past), false, false);
        assert_eq!(lost, "LEASE LOST: writes stopped");
        assert_eq!(
            word(CutOff, Some(HoldReason::Cycle), false, false),
            "CONNECTION LOST: writes stopped"
        );
        assert_eq!(word(Waits, None, false, false), "NOT LEADER: waits for the lease");
    }
}
