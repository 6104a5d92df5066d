//! Where the time goes: what each plugin takes at each extension point, in the cycle at the position and in
//! the whole session, and how many nodes it rejected.
//!
//! The times are those of this program on this computer, not of the cluster's scheduler. Filter is measured
//! with every plugin on every node, also behind a node's first rejection.

use std::fmt::Write as _;

use super::{View, shared};
use crate::tui::layout::WidthTier;
use crate::tui::lines::DetailLine;
use crate::tui::model::{Model, TimesRow};
use crate::tui::theme::Scope;
use crate::tui::widget::bar;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_api::words::count;
use kubestep_config::ExtensionPoint;
use kubestep_framework::stopwatch::Spent;

/// Cells of a full bar.
const BAR: usize = 10;

/// The rows of the times.
pub struct TimesView<'a>(pub &'a Model);

impl TimesView<'_> {
    fn row(&self, row: usize) -> Option<&TimesRow> {
        self.0.times.rows.get(row)
    }

    /// Nanoseconds of all plugins together.
    fn sum(&self) -> u64 {
        self.0.times.rows.iter().map(|row| row.all.nanos).sum()
    }

    /// The share of the plugin in all time, in percent.
    fn share(&self, row: &TimesRow) -> u64 {
        row.all.nanos.saturating_mul(100) / self.sum().max(1)
    }
}

/// Nanoseconds as people read them: a number below a thousand, with one place after the point.
fn time(nanos: u64) -> String {
    match nanos {
        0..=999 => format!("{nanos}ns"),
        1_000..=999_999 => format!("{}.{}µs", nanos / 1_000, nanos / 100 % 10),
        1_000_000..=999_999_999 => format!("{}.{}ms", nanos / 1_000_000, nanos / 100_000 % 10),
        _ => format!("{}.{}s", nanos / 1_000_000_000, nanos / 100_000_000 % 10),
    }
}

/// `rejected/evaluated`, of Filter plugins.
fn rejected(spent: &Spent) -> String {
    match spent.point {
        ExtensionPoint::Filter => format!("{}/{}", spent.rejected, spent.nodes),
        _ => String::new(),
    }
}

impl GridSource for TimesView<'_> {
    fn rows(&self) -> usize {
        self.0.times.rows.len()
    }

    fn columns(&self) -> usize {
        8
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => GridColumn::name("plugin", 16, 31),
            1 => GridColumn::text("point", 10),
            2 => GridColumn::number("cycle", 7),
            3 => GridColumn::number("session", 7),
            4 => GridColumn::text("share of session", 16),
            5 => GridColumn::number("rejected", 11),
            6 => GridColumn::number("in cycle", 11).shown_from(WidthTier::Standard),
            _ => GridColumn::number("calls", 7).shown_from(WidthTier::Standard),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(row) = self.row(row) else { return };
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => out.write_str(&row.all.plugin),
            1 => out.write_str(row.all.point.name()),
            2 => out.write_str(&row.here.map(|here| time(here.nanos)).unwrap_or_default()),
            3 => out.write_str(&time(row.all.nanos)),
            4 => {
                let share = self.share(row);
                out.scope = Scope::of_score(share as i64 * 2);
                let (own, all) = (row.all.nanos as i64, self.sum() as i64);
                write!(out, "{share:>3}% {}", bar::plain(own, all, BAR))
            }
            5 => out.write_str(&rejected(&row.all)),
            6 => out.write_str(&row.here.map(|here| rejected(&here)).unwrap_or_default()),
            _ => write!(out, "{}", row.all.turns),
        };
    }

    fn amount(&self, row: usize, column: usize) -> Option<i64> {
        let row = self.row(row)?;
        let here = |of: fn(&Spent) -> u64| row.here.as_ref().map_or(0, of);
        let amount = match column {
            1 => row.all.point.index() as u64,
            2 => here(|spent| spent.nanos),
            3 | 4 => row.all.nanos,
            5 => row.all.rejected,
            6 => here(|spent| spent.rejected),
            7 => row.all.turns,
            _ => return None,
        };
        Some(amount as i64)
    }

    fn key(&self, row: usize) -> u64 {
        let key =
            |row: &TimesRow| shared::key_of_text(&row.all.plugin) ^ row.all.point.index() as u64;
        self.row(row).map_or(0, key)
    }

    fn is_failure(&self, row: usize) -> bool {
        self.row(row).is_some_and(|row| row.all.rejected > 0)
    }
}

impl View for TimesView<'_> {
    fn title(&self) -> String {
        match self.0.times.cycle {
            Some(cycle) => format!("Times: cycle {cycle} and the session, {}", time(self.sum())),
            None => format!("Times of the session, {} in all", time(self.sum())),
        }
    }

    fn empty(&self) -> String {
        match self.0.times.is_on {
            true => "Nothing ran yet: n runs the next cycle.".into(),
            false => "Nothing is measured here: only the interface on a terminal measures.".into(),
        }
    }

    fn failures(&self) -> &'static str {
        "with rejections only"
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(row) = self.row(row) else { return Vec::new() };
        let all = &row.all;
        let mut lines = vec![DetailLine::heading(format!("{} at {}", all.plugin, all.point))];
        if let (Some(here), Some(cycle)) = (&row.here, self.0.times.cycle) {
            lines.push(DetailLine::field(&format!("cycle {cycle}"), text_of(here)));
        }
        let share = format!(", {}% of all plugins", self.share(row));
        lines.push(DetailLine::field("session", text_of(all) + &share));
        let about = "Measured by kubestep, not in the cluster. A call of Filter or Score covers all \
                     nodes; answers reused from a similar pod take no time.";
        lines.push(DetailLine::text(about).scoped(Scope::TextDim));
        lines
    }
}

fn text_of(spent: &Spent) -> String {
    let calls = count(spent.turns, "call");
    let mean = time(spent.nanos / spent.turns.max(1));
    let nodes = match (spent.nodes, spent.point) {
        (0, _) => String::new(),
        (n, ExtensionPoint::Filter) => format!("; {} of {n} nodes rejected", spent.rejected),
        (n, _) => format!("; {n} nodes scored"),
    };
    format!("{} in {calls}, {mean} each{nodes}", time(spent.nanos))
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_a_unit_one_can_read() {
        let shown = [7, 1_250, 12_345_678, 61_500_000_000].map(time);
        assert_eq!(shown, ["7ns", "1.2µs", "12.3ms", "61.5s"]);
    }
}
