//! What the scheduler runs with at the debugger's position: settings, each profile's plugins in the order
//! they run with their weights, arguments, extenders, feature gates; what is not the default is marked.

use super::View;
use crate::tui::glyph::CHANGED;
use crate::tui::layout::WidthTier;
use crate::tui::lines::DetailLine;
use crate::tui::model::Model;
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_config::manual;
use kubestep_config::rows::{About, Row};

/// Wider than any paragraph: the pane wraps by itself.
const UNWRAPPED: usize = 10_000;

/// The rows of the configuration.
pub struct ConfigurationView<'a>(pub &'a Model);

impl ConfigurationView<'_> {
    fn row(&self, row: usize) -> Option<&Row> {
        self.0.configuration.rows.get(row)
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
            0 => GridColumn::name("setting", 34, 44),
            1 => GridColumn::name("value", 19, 26),
            2 => GridColumn::text("default", 9),
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
            2 => match row.changed {
                Some(true) => out.set(CHANGED, Scope::VerdictWait),
                Some(false) => out.set("default", Scope::TextDim),
                None => {}
            },
            _ => out.set(&row.doc, Scope::TextDim),
        }
    }

    fn is_failure(&self, row: usize) -> bool {
        self.row(row).is_some_and(|row| row.changed == Some(true) || row.about == About::Warning)
    }
}

impl View for ConfigurationView<'_> {
    fn title(&self) -> String {
        let rows = &self.0.configuration.rows;
        match rows.iter().filter(|row| row.changed == Some(true)).count() {
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
        lines.extend(match row.changed {
            Some(true) => Some(DetailLine::text("not the default").scoped(Scope::VerdictWait)),
            Some(false) => Some(DetailLine::text("the default").scoped(Scope::TextDim)),
            None => None,
        });
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
