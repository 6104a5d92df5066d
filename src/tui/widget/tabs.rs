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
    /// Title of the view.
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

/// What stands for a view on the line: its key and its name, each as they are drawn.
struct TabLabel {
    key: String,
    name: String,
}

impl TabLabel {
    fn width(&self) -> usize {
        width(&self.key) + width(&self.name)
    }
}

impl Tab {
    /// ` 1 Timeline `.
    fn full(&self) -> TabLabel {
        TabLabel { key: format!(" {} ", self.key), name: format!("{} ", self.title) }
    }

    /// The label without the title's end: `1 Time `.
    fn short(&self) -> TabLabel {
        TabLabel { key: format!("{} ", self.key), name: format!("{} ", self.short) }
    }

    /// `1Time `, as in the last line of `mc` and `htop`; a letter is kept apart from the name.
    fn shortest(&self) -> TabLabel {
        let is_digit = self.key.chars().all(|c| c.is_ascii_digit());
        let gap = if is_digit { "" } else { " " };
        TabLabel { key: format!("{}{gap}", self.key), name: format!("{} ", self.short) }
    }

    /// The key alone: `1 `.
    fn key_only(&self) -> TabLabel {
        TabLabel { key: format!("{} ", self.key), name: String::new() }
    }
}

impl Tabs {
    /// Draws the line. Where not all names fit, all are shortened; on lines that are too narrow even for
    /// that, the last views show their key only.
    pub fn draw(&self, buffer: &mut Buffer, area: Rect, mode: (&str, Scope), paint: &Paint) {
        let chip = format!(" {} ", mode.0);
        let right = area.right().saturating_sub(width(&chip) as u16);
        let room = Rect { width: right.saturating_sub(area.x + 1), ..area };
        let (start, labels) = self.labels(usize::from(room.width));
        let mut x = area.x + start;
        for (at, label) in labels.iter().enumerate() {
            let (key, name) = match (at == self.active, start) {
                (true, _) => (Scope::TabActive, Scope::TabActive),
                (false, 0) => (Scope::Tab, Scope::Tab),
                // Where there is little room, colour parts them.
                (false, _) => (Scope::HintKey, Scope::Tab),
            };
            if at == self.active && start > 0 {
                paint.put(buffer, room, x - 1, area.y, " ", Scope::TabActive);
            }
            x = paint.put(buffer, room, x, area.y, &label.key, key);
            x = paint.put(buffer, room, x, area.y, &label.name, name);
        }
        paint.put(buffer, area, right, area.y, &chip, mode.1);
    }

    /// The index of the tab at column `x` of a line of `line_width`, given the mode's word.
    pub fn hit(&self, x: u16, line_width: u16, mode: &str) -> Option<usize> {
        let room = usize::from(line_width).saturating_sub(width(mode) + 3);
        let (start, labels) = self.labels(room);
        let mut end = usize::from(start);
        labels.iter().position(|label| {
            end += label.width();
            usize::from(x) < end
        })
    }

    /// The columns for the mode's word in a line of so many columns if all views have their key.
    pub fn room_for_mode(&self, columns: u16) -> usize {
        let (start, labels) = self.labels(0);
        let taken: usize = labels.iter().map(TabLabel::width).sum();
        usize::from(columns).saturating_sub(taken + usize::from(start) + 3)
    }

    /// The first column, and what stands for each view.
    fn labels(&self, room: usize) -> (u16, Vec<TabLabel>) {
        let labels = |label: fn(&Tab) -> TabLabel| self.tabs.iter().map(label).collect::<Vec<_>>();
        let fits = |labels: &[TabLabel]| labels.iter().map(TabLabel::width).sum::<usize>() <= room;
        let (full, short) = (labels(Tab::full), labels(Tab::short));
        match (fits(&full), fits(&short)) {
            (true, _) => (0, full),
            // The blank before the first stands for the one behind the last.
            (false, true) => (1, short),
            (false, false) => (1, self.shortest(room.saturating_sub(1))),
        }
    }

    /// Short names from the left on while there is room for the keys of the rest; the active view always
    /// has its name. The blank behind the last one may be missing.
    fn shortest(&self, room: usize) -> Vec<TabLabel> {
        let more = |tab: &Tab| tab.shortest().width() - tab.key_only().width();
        let keys: usize = self.tabs.iter().map(|tab| tab.key_only().width()).sum();
        let active = self.tabs.get(self.active).map_or(0, more);
        let mut left = (room + 1).saturating_sub(keys + active);
        let mut named = true;
        let label = |(at, tab): (usize, &Tab)| {
            if at == self.active {
                return tab.shortest();
            }
            named &= more(tab) <= left;
            if !named {
                return tab.key_only();
            }
            left -= more(tab);
            tab.shortest()
        };
        self.tabs.iter().enumerate().map(label).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLES: [(&str, &str); 10] = [
        ("Cycle", "Cycle"),
        ("Timeline", "Time"),
        ("Queues", "Queue"),
        ("Filter", "Filter"),
        ("Scores", "Score"),
        ("Nodes", "Nodes"),
        ("Pods", "Pods"),
        ("Waiting", "Wait"),
        ("Preemption", "Preempt"),
        ("Events", "Event"),
    ];

    fn tabs(active: usize) -> Tabs {
        let tab = |(at, (title, short)): (usize, &(&'static str, &'static str))| Tab {
            key: at.to_string(),
            title,
            short,
        };
        Tabs { tabs: TITLES.iter().enumerate().map(tab).collect(), active }
    }

    #[test]
    fn names_give_way_from_the_right_and_never_the_active_one() {
        let line = |active: usize, room: usize| {
            let (start, labels) = tabs(active).labels(room);
            let labels = labels.into_iter().map(|label| label.key + &label.name);
            " ".repeat(usize::from(start)) + &labels.collect::<String>()
        };
        assert!(line(0, 120).ends_with(" 8 Preemption  9 Events "), "{}", line(0, 120));
        let short = " 0Cycle 1Time 2Queue 3Filter 4Score 5Nodes 6Pods 7Wait 8Preempt 9Event ";
        assert_eq!(line(9, 70), short);
        let spaced =
            " 0 Cycle 1 Time 2 Queue 3 Filter 4 Score 5 Nodes 6 Pods 7 Wait 8 Preempt 9 Event ";
        assert_eq!(line(9, 80), spaced);
        assert_eq!(line(9, 50), " 0Cycle 1Time 2Queue 3Filter 4Score 5 6 7 8 9Event ");
        assert_eq!(tabs(9).hit(2, 80, "IDLE"), Some(0));
        assert_eq!(tabs(9).hit(8, 80, "IDLE"), Some(1));
        assert_eq!(tabs(9).hit(79, 80, "IDLE"), None);
        assert_eq!(tabs(2).room_for_mode(80), 80 - " 0 1 2Queue 3 4 5 6 7 8 9 ".len() - 3);
        for (active, (_, short)) in TITLES.iter().enumerate() {
            assert!(line(active, 51).contains(short));
            assert!(line(active, 71).trim_end().len() <= 71);
        }
    }
}
