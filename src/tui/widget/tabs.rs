//! The first line: the views with their keys, and the mode at the right.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Paint;
use crate::tui::text::width;
use crate::tui::theme::Scope;

/// A view's name and key on the first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tab {
    /// The key that shows it.
    pub key: String,
    /// Its name.
    pub title: &'static str,
    /// The same in fewer letters.
    pub short: &'static str,
}

/// The tabs of the first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tabs {
    /// From left to right.
    pub tabs: Vec<Tab>,
    /// Index of the view on screen.
    pub active: usize,
}

impl Tabs {
    /// Draws the line. Where not all names fit, all are shortened as in the last line of `mc` and `htop`; on
    /// lines that are too narrow even for that, the last views show their key only.
    pub fn draw(&self, buffer: &mut Buffer, area: Rect, mode: (&str, Scope), paint: &Paint) {
        let chip = format!(" {} ", mode.0);
        let right = area.right().saturating_sub(width(&chip) as u16);
        let room = Rect { width: right.saturating_sub(area.x + 1), ..area };
        let mut x = area.x;
        for (at, text) in self.labels(usize::from(room.width)).iter().enumerate() {
            let scope = if at == self.active { Scope::TabActive } else { Scope::Tab };
            x = paint.put(buffer, room, x, area.y, text, scope);
        }
        paint.put(buffer, area, right, area.y, &chip, mode.1);
    }

    /// The index of the tab at column `x` of a line of `line_width`, given the mode's word.
    pub fn hit(&self, x: u16, line_width: u16, mode: &str) -> Option<usize> {
        let room = usize::from(line_width).saturating_sub(width(mode) + 3);
        let mut end = 0;
        self.labels(room).iter().position(|text| {
            end += width(text);
            usize::from(x) < end
        })
    }

    /// The columns for the mode's word in a line of so many columns if all views have their key.
    pub fn room_for_mode(&self, columns: u16) -> usize {
        let taken: usize = self.labels(0).iter().map(|label| width(label)).sum();
        usize::from(columns).saturating_sub(taken + 3)
    }

    /// What stands for each view.
    fn labels(&self, room: usize) -> Vec<String> {
        let labels = |label: fn(&Tab) -> String| self.tabs.iter().map(label).collect::<Vec<_>>();
        let full = labels(|tab| format!(" {} {} ", tab.key, tab.title));
        let short = labels(|tab| format!("{}{} ", tab.key, tab.short));
        let fits =
            |labels: &[String]| labels.iter().map(|label| width(label)).sum::<usize>() <= room;
        match (fits(&full), fits(&short)) {
            (true, _) => full,
            (false, true) => short,
            (false, false) => self.from_the_left(room),
        }
    }

    /// Names from the left on while there is room for the keys of the rest; the active view always has
    /// its name.
    fn from_the_left(&self, room: usize) -> Vec<String> {
        let key = |tab: &Tab| format!(" {} ", tab.key);
        let name = |tab: &Tab| format!(" {} {} ", tab.key, tab.title);
        let more = |tab: &Tab| width(&name(tab)) - width(&key(tab));
        let keys: usize = self.tabs.iter().map(|tab| width(&key(tab))).sum();
        let active = self.tabs.get(self.active).map_or(0, more);
        let mut left = room.saturating_sub(keys + active);
        let mut full = true;
        let label = |(at, tab): (usize, &Tab)| {
            full &= at == self.active || more(tab) <= left;
            if at == self.active {
                return name(tab);
            }
            left = if full { left - more(tab) } else { left };
            if full { name(tab) } else { key(tab) }
        };
        self.tabs.iter().enumerate().map(label).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLES: [&str; 10] = [
        "Cycle",
        "Timeline",
        "Queues",
        "Filter",
        "Scores",
        "Nodes",
        "Pods",
        "Waiting",
        "Preemption",
        "Events",
    ];

    fn tabs(active: usize) -> Tabs {
        let tab = |(at, title): (usize, &&'static str)| {
            let short = title.split_at(title.len().min(7)).0;
            Tab { key: at.to_string(), title, short }
        };
        Tabs { tabs: TITLES.iter().enumerate().map(tab).collect(), active }
    }

    #[test]
    fn names_give_way_from_the_right_and_never_the_active_one() {
        let wide = tabs(0).labels(120).concat();
        assert!(wide.ends_with(" 8 Preemption  9 Events "), "{wide}");
        assert_eq!(
            tabs(9).labels(71).concat(),
            " 0 Cycle  1 Timeline  2 Queues  3 Filter  4  5  6  7  8  9 Events "
        );
        assert_eq!(tabs(9).hit(2, 80, "IDLE"), Some(0));
        assert_eq!(tabs(9).hit(11, 80, "IDLE"), Some(1));
        assert_eq!(tabs(9).hit(79, 80, "IDLE"), None);
        assert_eq!(tabs(2).room_for_mode(80), 80 - " 0  1  2 Queues ".len() - 3 * 7 - 3);
        for (active, title) in TITLES.iter().enumerate() {
            assert!(tabs(active).labels(51).concat().contains(title));
            assert!(width(&tabs(active).labels(71).concat()) <= 71);
        }
    }
}
