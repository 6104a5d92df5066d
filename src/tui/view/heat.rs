//! A heat map of the cluster in place of rows: a line for each zone, a cell for each node, coloured by
//! what the view under it says of the node. The selected cell's node is described beside it.

use std::collections::{BTreeMap, HashMap};

use super::{OnEnter, RunTarget, View, label_key, shared};
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::text::width;
use crate::tui::theme::Scope;
use crate::tui::widget::bar::StyledParts;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;

/// Most columns for the names of zones.
const ZONES: usize = 20;
/// Most nodes in a line, also where the terminal has more room.
const MOST: usize = 200;
/// What stands for nodes without a zone.
const NO_ZONE: &str = "no zone";

/// The map over the rows of another view.
pub struct HeatView<'a> {
    inner: Box<dyn View + 'a>,
    map: usize,
    /// A zone in each, with as many of its rows as fit, and the line's number within the zone.
    lines: Vec<MapLine>,
    columns: usize,
    zone_width: usize,
    /// Blanks between two cells.
    gap: u16,
}

struct MapLine {
    zone: String,
    /// The number of nodes of the whole zone.
    nodes: usize,
    number: usize,
    rows: Vec<usize>,
}

impl<'a> HeatView<'a> {
    /// The rows of a view as its heat map with that number, in `room` terminal columns and lines. Cells have
    /// a blank between them where all lines fit so.
    pub fn new(
        model: &'a Model,
        inner: Box<dyn View + 'a>,
        map: usize,
        (room, height): (u16, u16),
    ) -> HeatView<'a> {
        let zones = by_zone(model, &*inner);
        let widest = zones.keys().map(|zone| width(zone)).max().unwrap_or(0);
        let zone_width = widest.clamp(4, ZONES);
        // Beside marks and the zone with the blank behind it.
        let cells = usize::from(room).saturating_sub(3 + zone_width);
        // The legend and the header.
        let lines_above = 2;
        let fit = |columns: usize| {
            let lines = zones.values().map(|rows| rows.len().div_ceil(columns)).sum::<usize>();
            lines + lines_above <= usize::from(height)
        };
        let spaced = (cells / 2).clamp(8, MOST);
        let gap = u16::from(fit(spaced));
        let columns = if gap > 0 { spaced } else { cells.clamp(8, MOST) };
        let lines = zones.iter().flat_map(|(zone, rows)| lines_of(zone, rows, columns)).collect();
        HeatView { map, lines, columns, zone_width, gap, inner }
    }

    fn row(&self, line: usize, column: usize) -> Option<usize> {
        self.lines.get(line)?.rows.get(column.checked_sub(1)?).copied()
    }
}

/// The rows of each zone, in their order.
fn by_zone(model: &Model, inner: &dyn View) -> BTreeMap<String, Vec<usize>> {
    let (key, none) = (Symbol::new(label_key("zone")), Name::new(NO_ZONE));
    let mut rows: HashMap<Name, Vec<usize>> = HashMap::new();
    for row in 0..inner.rows() {
        let labels = inner.node_of(row, 0).and_then(|node| shared::labels_of(model, node));
        let zone = labels.and_then(|labels| labels.get(key)).copied().unwrap_or(none);
        rows.entry(zone).or_default().push(row);
    }
    rows.into_iter().map(|(zone, rows)| (zone.to_string(), rows)).collect()
}

fn lines_of(zone: &str, rows: &[usize], columns: usize) -> Vec<MapLine> {
    let line = |(number, part): (usize, &[usize])| MapLine {
        zone: zone.to_owned(),
        nodes: rows.len(),
        number,
        rows: part.to_vec(),
    };
    rows.chunks(columns).enumerate().map(line).collect()
}

impl GridSource for HeatView<'_> {
    fn rows(&self) -> usize {
        self.lines.len()
    }

    fn columns(&self) -> usize {
        1 + self.lines.iter().map(|line| line.rows.len()).max().unwrap_or(0).min(self.columns)
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => {
                let width = self.zone_width as u16 + 1 - self.gap;
                GridColumn::name("zone", width, width)
            }
            _ => GridColumn::text("", 1),
        }
    }

    fn cell(&self, line: usize, column: usize, out: &mut CellWriter) {
        if column > 0 {
            if let Some(row) = self.row(line, column) {
                let (sign, scope) = self.inner.map_cell(row, self.map);
                out.set(sign, scope);
            }
            return;
        }
        match self.lines.get(line) {
            Some(line) if line.number == 0 => out.set(&line.zone, Scope::TextStrong),
            _ => {}
        }
    }

    fn gap(&self) -> u16 {
        self.gap
    }

    fn is_map(&self) -> bool {
        true
    }

    /// A filter looks for zones and nodes.
    fn searched(&self, line: usize, column: usize, out: &mut CellWriter) {
        match (column, self.row(line, column)) {
            (0, _) => self.lines.get(line).into_iter().for_each(|l| out.set(&l.zone, Scope::Text)),
            (_, Some(row)) => self.inner.searched(row, 0, out),
            _ => {}
        }
    }

    fn key(&self, line: usize) -> u64 {
        self.lines
            .get(line)
            .map_or(0, |line| shared::key_of_text(&line.zone).wrapping_add(line.number as u64))
    }

    fn is_current(&self, line: usize) -> bool {
        self.inner
            .current()
            .is_some_and(|(row, _)| self.lines.get(line).is_some_and(|l| l.rows.contains(&row)))
    }
}

impl View for HeatView<'_> {
    fn title(&self) -> String {
        self.inner.title()
    }

    fn note(&self) -> Option<String> {
        Some("map (H)".to_owned())
    }

    fn extent(&self) -> Option<String> {
        Some(count(self.lines.iter().map(|line| line.rows.len()).sum::<usize>(), "node"))
    }

    fn empty(&self) -> String {
        self.inner.empty()
    }

    fn banner(&self, _width: u16) -> Vec<StyledParts> {
        vec![self.inner.map_legend(self.map)]
    }

    fn detail(&self, line: usize, column: usize) -> Vec<DetailLine> {
        if let Some(row) = self.row(line, column) {
            return self.inner.detail(row, 0);
        }
        let Some(line) = self.lines.get(line) else { return Vec::new() };
        vec![
            DetailLine::heading(format!("{}: {}", line.zone, count(line.nodes, "node"))),
            DetailLine::key("h l j k", "choose a node; H shows the next map, then rows again"),
        ]
    }

    fn current(&self) -> Option<(usize, Option<usize>)> {
        let (row, _) = self.inner.current()?;
        let place = |(at, line): (usize, &MapLine)| {
            let cell = line.rows.iter().position(|r| *r == row)?;
            Some((at, Some(cell + 1)))
        };
        self.lines.iter().enumerate().find_map(place)
    }

    fn node_of(&self, line: usize, column: usize) -> Option<Name> {
        self.inner.node_of(self.row(line, column)?, 0)
    }

    fn moment(&self, line: usize, column: usize) -> Option<CyclePosition> {
        self.inner.moment(self.row(line, column)?, 0)
    }

    fn run_to(&self, line: usize, column: usize) -> Option<RunTarget> {
        self.inner.run_to(self.row(line, column)?, 0)
    }

    fn location(&self, line: usize, column: usize) -> Option<String> {
        self.inner.location(self.row(line, column)?, 0)
    }

    fn open(&self, line: usize, column: usize) -> OnEnter {
        self.row(line, column).map_or(OnEnter::Describe, |row| self.inner.open(row, 0))
    }
}
