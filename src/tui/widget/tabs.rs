//! The first line: the views with their digits, and the mode at the right.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Paint;
use crate::tui::text::width;
use crate::tui::theme::Scope;
use crate::tui::view::ViewId;

/// Draws the line. Where not all names fit, the last views show their digit only.
pub fn draw(buffer: &mut Buffer, area: Rect, active: ViewId, mode: (&str, Scope), paint: &Paint) {
    let chip = format!(" {} ", mode.0);
    let right = area.right().saturating_sub(width(&chip) as u16);
    let room = Rect { width: right.saturating_sub(area.x + 1), ..area };
    let mut x = area.x;
    for (view, text) in labels(active, usize::from(room.width)) {
        let scope = if view == active { Scope::TabActive } else { Scope::Tab };
        x = paint.put(buffer, room, x, area.y, &text, scope);
    }
    paint.put(buffer, area, right, area.y, &chip, mode.1);
}

/// The view whose name is at column `x` of a line of `width`, given the mode's word.
pub fn hit(x: u16, line_width: u16, active: ViewId, mode: &str) -> Option<ViewId> {
    let room = usize::from(line_width).saturating_sub(width(mode) + 3);
    let mut end = 0;
    let mut within = labels(active, room).into_iter().map(|(view, text)| {
        end += width(&text);
        (view, end)
    });
    within.find(|(_, end)| usize::from(x) < *end).map(|(view, _)| view)
}

/// The columns for the mode's word in a line of so many columns if all views have their digit.
pub fn room_for_mode(columns: u16, active: ViewId) -> usize {
    let taken: usize = labels(active, 0).iter().map(|(_, label)| width(label)).sum();
    usize::from(columns).saturating_sub(taken + 3)
}

/// The views by digit, and the active one if it has none.
fn shown(active: ViewId) -> Vec<ViewId> {
    let other = Some(active).filter(|active| !ViewId::ALL.contains(active));
    ViewId::ALL.into_iter().chain(other).collect()
}

/// What stands for each view: names from the left on while there is room for the digits of the rest; the
/// active view always has its name.
fn labels(active: ViewId, room: usize) -> Vec<(ViewId, String)> {
    let digit = |view: ViewId| format!(" {} ", view.keys());
    let name = |view: ViewId| format!(" {} {} ", view.keys(), view.title());
    let more = |view| width(&name(view)) - width(&digit(view));
    let views = shown(active);
    let digits: usize = views.iter().map(|v| width(&digit(*v))).sum();
    let mut left = room.saturating_sub(digits + more(active));
    let mut full = true;
    let mut label = |view: ViewId| {
        full &= view == active || more(view) <= left;
        if view == active {
            return name(view);
        }
        left = if full { left - more(view) } else { left };
        if full { name(view) } else { digit(view) }
    };
    views.into_iter().map(|view| (view, label(view))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(active: ViewId, room: usize) -> String {
        labels(active, room).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn names_give_way_from_the_right_and_never_the_active_one() {
        let wide = line(ViewId::Cycle, 120);
        assert!(wide.ends_with(" 8 Preemption  9 Events "), "{wide}");
        assert_eq!(
            line(ViewId::Events, 71),
            " 0 Cycle  1 Timeline  2 Queues  3 Filter  4  5  6  7  8  9 Events "
        );
        assert_eq!(hit(2, 80, ViewId::Events, "IDLE"), Some(ViewId::Cycle));
        assert_eq!(hit(11, 80, ViewId::Events, "IDLE"), Some(ViewId::Timeline));
        assert_eq!(hit(79, 80, ViewId::Events, "IDLE"), None);
        assert_eq!(room_for_mode(80, ViewId::Queues), 80 - " 0  1  2 Queues ".len() - 3 * 7 - 3);
        for view in ViewId::ALL {
            assert!(line(view, 51).contains(view.title()));
            assert!(width(&line(view, 71)) <= 71);
        }
    }
}
