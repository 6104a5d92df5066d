//! What the scheduler runs with at the debugger's position: settings, each profile's plugins in the order
//! they run with their weights, arguments, extenders, feature gates; what is not the default is marked.

use super::View;
use crate::tui::glyph::DIFFERS;
use crate::tui::layout::WidthTier;
use crate::tui::lines::DetailLine;
use crate::tui::model::Model;
use crate::tui::text::width;
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_config::manual;
use kubestep_config::rows::{About, Row};

/// Wider than any paragraph: the pane wraps by itself.
const UNWRAPPED: usize = 10_000;

/// Most columns of a value, and of a default: what is longer is a structure, which the details show.
const VALUE: usize = 12;
/// Columns of the sign before a default that is not in use.
const SIGN: usize = 2;

/// The rows of the configuration.
pub struct ConfigurationView<'a>(pub &'a Model);

impl ConfigurationView<'_> {
    fn row(&self, row: usize) -> Option<&Row> {
        self.0.configuration.rows.get(row)
    }

    /// Columns of the widest of what `width_of` measures of each row.
    fn widest(&self, width_of: impl Fn(&Row) -> usize) -> usize {
        self.0.configuration.rows.iter().map(width_of).max().unwrap_or(0)
    }
}

/// Blanks before a name: headings stand out, plugins are under their points.
fn indent(about: About) -> &'static str {
    match about {
        About::Heading => "",
        About::Plugin(_) | About::OtherPlugin => "    ",
        _ => "  ",
    }
}

fn scope(about: About) -> Scope {
    match about {
        About::Heading | About::Point(_) => Scope::TextStrong,
        About::Warning => Scope::MessageWarning,
        _ => Scope::Text,
    }
}

impl GridSource for ConfigurationView<'_> {
    fn rows(&self) -> usize {
        self.0.configuration.rows.len()
    }

    fn columns(&self) -> usize {
        4
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => {
                let name = |row: &Row| indent(row.about).len() + width(&row.name);
                GridColumn::fitted("setting", 34, self.widest(name))
            }
            1 => {
                let widest = self.widest(|row| width(&row.value)).clamp(5, VALUE);
                GridColumn::text("value", widest as u16)
            }
            2 => {
                let default = |row: &Row| row.default.as_deref().map_or(0, width) + SIGN;
                let widest = self.widest(default).clamp(7, VALUE);
                GridColumn::text("default", widest as u16)
            }
            _ => GridColumn::prose_in(self, column, "what it does", 20)
                .shown_from(WidthTier::Standard),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(row) = self.row(row) else { return };
        match column {
            0 => {
                out.set(indent(row.about), scope(row.about));
                out.text.push_str(&row.name);
            }
            1 => out.set(&row.value, Scope::Text),
            2 => {
                if let Some(default) = &row.default {
                    out.set(&format!("{DIFFERS} {default}"), Scope::VerdictWait);
                }
            }
            _ => out.set(&row.doc, Scope::TextDim),
        }
    }

    fn is_failure(&self, row: usize) -> bool {
        self.row(row).is_some_and(|row| row.default.is_some() || row.about == About::Warning)
    }
}

impl View for ConfigurationView<'_> {
    fn title(&self) -> String {
        let rows = &self.0.configuration.rows;
        match rows.iter().filter(|row| row.default.is_some()).count() {
            0 => "Configuration: all defaults".into(),
            n => format!("Configuration: {n} changed from the default; z shows them"),
        }
    }

    fn empty(&self) -> String {
        "No configuration is known here.".into()
    }

    fn failures(&self) -> &'static str {
        "changed only"
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(row) = self.row(row) else { return Vec::new() };
        let value = if row.value.is_empty() { String::new() } else { format!(": {}", row.value) };
        let mut lines = vec![DetailLine::heading(format!("{}{value}", row.name))];
        if let Some(default) = &row.default {
            let text = format!("default: {default}");
            lines.push(DetailLine::text(text).scoped(Scope::VerdictWait));
        } else if row.has_default {
            lines.push(DetailLine::text("the default").scoped(Scope::TextDim));
        }
        if !row.doc.is_empty() {
            lines.push(DetailLine::text(&row.doc));
        }
        lines.extend(self.more(row));
        lines
    }
}

impl ConfigurationView<'_> {
    /// Of a plugin its manual, of a gate what it needs.
    fn more(&self, row: &Row) -> Vec<DetailLine> {
        let gates = self.0.configuration.gates;
        match row.about {
            About::Plugin(plugin) | About::Argument(plugin) => {
                let text = manual::text(&plugin, &gates, UNWRAPPED);
                text.lines().map(DetailLine::text).collect()
            }
            About::Gate(feature) => {
                let Some(spec) = gates.spec(feature) else { return Vec::new() };
                let stage = spec.stage.name();
                let locked = if spec.locked { ", cannot be changed any more" } else { "" };
                let mut lines = vec![DetailLine::field("stage", format!("{stage}{locked}"))];
                let needs: Vec<&str> = feature.needs().iter().map(|gate| gate.name()).collect();
                if !needs.is_empty() {
                    lines.push(DetailLine::field("needs", needs.join(", ")));
                }
                if !spec.locked {
                    let on = gates.enabled(feature);
                    let other = if on { "off" } else { "on" };
                    let words = format!(":what-if feature {feature}={} runs with it {other}", !on);
                    lines.push(DetailLine::field("try", words));
                }
                lines
            }
            _ => Vec::new(),
        }
    }
}
