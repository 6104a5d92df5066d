//! The debugger's position from the outside in; at the same time its call stack: `Esc` drops the last one.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Paint;
use crate::tui::glyph::CRUMB;
use crate::tui::sanitize;
use crate::tui::text::{Cut, fit, width};
use crate::tui::theme::Scope;

/// Draws the crumbs with `right` (the clock) at the other end. What does not fit loses its middle: the
/// outermost and the innermost say most.
pub fn draw(buffer: &mut Buffer, area: Rect, crumbs: &[String], right: &str, paint: &Paint) {
    if area.height == 0 {
        return;
    }
    let right = sanitize::clean(right);
    let clock_width = width(&right) as u16;
    let clock_x = area.right().saturating_sub(clock_width + 1);
    paint.put(buffer, area, clock_x, area.y, &right, Scope::TextDim);
    let room = Rect { width: clock_x.saturating_sub(area.x + 1), ..area };
    let shown = fitting(crumbs, usize::from(room.width.saturating_sub(1)));
    let mut x = area.x + 1;
    for (i, crumb) in shown.iter().enumerate() {
        let last = i + 1 == shown.len();
        let scope = if last { Scope::CrumbCurrent } else { Scope::Crumb };
        x = paint.put(buffer, room, x, area.y, crumb, scope);
        if !last {
            x = paint.put(buffer, room, x, area.y, CRUMB, Scope::Crumb);
        }
    }
}

/// Drops crumbs from the middle until the rest fits; at last the innermost is cut.
fn fitting(crumbs: &[String], room: usize) -> Vec<String> {
    let total = |list: &[String]| {
        let gaps = list.len().saturating_sub(1) * width(CRUMB);
        list.iter().map(|c| width(c)).sum::<usize>() + gaps
    };
    let mut shown: Vec<String> = crumbs.iter().map(|c| sanitize::clean(c).into_owned()).collect();
    let mut gap = None;
    while total(&shown) > room && shown.len() > 2 + usize::from(gap.is_some()) {
        let at = *gap.get_or_insert(1);
        match shown.get_mut(at) {
            Some(crumb) if crumb.as_str() != "…" => *crumb = "…".to_owned(),
            _ => drop(shown.remove(at + 1)),
        }
    }
    if total(&shown) > room
        && let Some(last) = shown.pop()
    {
        let left = room.saturating_sub(total(&shown) + width(CRUMB));
        shown.push(fit(&last, left, Cut::Middle).into_owned());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_and_the_innermost_stay() {
        let crumbs = ["cycle 3 default/web", "Filter", "NodeResourcesFit", "node-1"];
        let crumbs = crumbs.map(str::to_owned);
        assert_eq!(fitting(&crumbs, 100), crumbs);
        assert_eq!(fitting(&crumbs, 40), ["cycle 3 default/web", "…", "node-1"]);
        assert_eq!(fitting(&crumbs, 31), ["cycle 3 default/web", "…", "no…-1"]);
    }
}
