//! The word at the right of the first line where a scheduler decides for real: what it does, or
//! why it does nothing.

use std::borrow::Cow;

use crate::live::attended::Standing;
use crate::tui::model::{Held, RealModel};
use crate::tui::text::{Cut, fit};
use crate::tui::theme::Scope;

/// Columns for the name of the context; the line below has all of it.
const NAME: usize = 20;

/// `runs`: it decides by itself at the moment.
pub(super) fn of_real(real: &RealModel, waiting: usize, runs: bool) -> (Cow<'static, str>, Scope) {
    let word = match (&real.standing, real.held) {
        (_, Some(Held::Branch)) => "WHAT-IF: nothing is written".into(),
        (Standing::Lost(_), _) => {
            return ("LEASE LOST: writes stopped".into(), Scope::ChipReplay);
        }
        (Standing::CutOff, _) => "CONNECTION LOST: writes stopped".into(),
        (Standing::Waits, _) => "NOT LEADER: waits for the lease".into(),
        (Standing::Leads, Some(_)) => format!("HELD: {waiting} news wait").into(),
        (Standing::Leads, None) => {
            let scope = if runs { Scope::ChipRunning } else { Scope::Chip };
            return (scheduling(real, runs).into(), scope);
        }
    };
    (word, Scope::ChipReplay)
}

fn scheduling(real: &RealModel, runs: bool) -> String {
    let paused = if runs { "" } else { ": paused" };
    match real.dry_run {
        true => format!("LIVE SCHEDULING (dry run){paused}"),
        false => format!("LIVE SCHEDULING {}{paused}", fit(&real.context, NAME, Cut::Middle)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_words() {
        use Standing::{CutOff, Leads, Lost, Waits};
        let word = |standing, held, runs, dry_run| {
            let real = RealModel { context: "lab".into(), dry_run, standing, held };
            of_real(&real, 3, runs).0.into_owned()
        };
        assert_eq!(word(Leads, None, true, false), "LIVE SCHEDULING lab");
        assert_eq!(word(Leads, None, false, false), "LIVE SCHEDULING lab: paused");
        assert_eq!(word(Leads, None, true, true), "LIVE SCHEDULING (dry run)");
        for held in [Held::Cycle, Held::Past, Held::Frozen] {
            assert_eq!(word(Leads, Some(held), true, false), "HELD: 3 news wait");
        }
        let what_if = "WHAT-IF: nothing is written";
        assert_eq!(word(Lost("late".into()), Some(Held::Branch), false, false), what_if);
        // That nothing can be written any more is said wherever one stands.
        let lost = word(Lost("late".into()), Some(Held::Past), false, false);
        assert_eq!(lost, "LEASE LOST: writes stopped");
        assert_eq!(
            word(CutOff, Some(Held::Cycle), false, false),
            "CONNECTION LOST: writes stopped"
        );
        assert_eq!(word(Waits, None, false, false), "NOT LEADER: waits for the lease");
    }
}
