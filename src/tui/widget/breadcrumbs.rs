//! The debugger's position from the outside in; at the same time its call stack: `Esc` drops the last one.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Paint;
use crate::tui::glyph::CRUMB;
use crate::tui::sanitize;
use crate::tui::text::{Truncation, fit, width};
use crate::tui::theme::Scope;

/// A crumb's number, unless it stands for several, and its text.
type Crumb = (Option<usize>, String);

/// Draws the crumbs with `right` (the clock) at the other end; gives the room between them. What does
/// not fit loses its middle: the outermost and the innermost say most.
pub fn draw(
    buffer: &mut Buffer,
    area: Rect,
    crumbs: &[String],
    right: &str,
    paint: &Paint,
) -> Rect {
    if area.height == 0 {
        return area;
    }
    let right = sanitize::clean(right);
    let clock_x = clock_at(area.right(), &right);
    paint.put(buffer, area, clock_x, area.y, &right, Scope::TextDim);
    let room = Rect { width: clock_x.saturating_sub(area.x + 1), ..area };
    let shown = fitting(crumbs, usize::from(room.width.saturating_sub(1)));
    let mut x = area.x + 1;
    for (i, (_, crumb)) in shown.iter().enumerate() {
        let last = i + 1 == shown.len();
        let scope = if last { Scope::CrumbCurrent } else { Scope::Crumb };
        x = paint.put(buffer, room, x, area.y, crumb, scope);
        if !last {
            x = paint.put(buffer, room, x, area.y, CRUMB, Scope::Crumb);
        }
    }
    Rect { x, width: room.right().saturating_sub(x), ..area }
}

/// Where the clock begins on a line that ends at `end`.
fn clock_at(end: u16, clock: &str) -> u16 {
    end.saturating_sub(width(clock) as u16 + 1)
}

/// The crumb at column `x` of a line of `line_width` that is drawn with these.
pub fn hit(x: u16, line_width: u16, crumbs: &[String], right: &str) -> Option<usize> {
    let room = clock_at(line_width, &sanitize::clean(right)).saturating_sub(2);
    let mut end = 1;
    for (crumb, text) in fitting(crumbs, usize::from(room)) {
        end += width(&text);
        if usize::from(x) < end {
            return (x > 0).then_some(crumb)?;
        }
        end += width(CRUMB);
    }
    None
}

/// Drops crumbs from the middle until the rest fits; at last the innermost is cut.
fn fitting(crumbs: &[String], room: usize) -> Vec<Crumb> {
    let total = |list: &[Crumb]| {
        let gaps = list.len().saturating_sub(1) * width(CRUMB);
        list.iter().map(|(_, text)| width(text)).sum::<usize>() + gaps
    };
    let clean = |(at, text): (usize, &String)| (Some(at), sanitize::clean(text).into_owned());
    let mut shown: Vec<Crumb> = crumbs.iter().enumerate().map(clean).collect();
    let mut gap = None;
    while total(&shown) > room && shown.len() > 2 + usize::from(gap.is_some()) {
        let at = *gap.get_or_insert(1);
        match shown.get_mut(at) {
            Some(crumb) if crumb.1 != "…" => *crumb = (None, "…".to_owned()),
            _ => drop(shown.remove(at + 1)),
        }
    }
    if total(&shown) > room
        && let Some((at, last)) = shown.pop()
    {
        let left = room.saturating_sub(total(&shown) + width(CRUMB));
        shown.push((at, fit(&last, left, Truncation::Middle).into_owned()));
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
        let texts = |room| -> Vec<String> {
            fitting(&crumbs, room).into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(100), crumbs);
        assert_eq!(texts(40), ["cycle 3 default/web", "…", "node-1"]);
        assert_eq!(texts(31), ["cycle 3 default/web", "…", "no…-1"]);
    }

    #[test]
    fn a_place_on_the_line_is_a_crumb() {
        let crumbs = ["cycle 3 default/web", "Filter", "NodeName"].map(str::to_owned);
        let at = |x| hit(x, 80, &crumbs, "demo +1s");
        assert_eq!(
            [0, 1, 19, 20, 24, 30].map(at),
            [None, Some(0), Some(0), Some(1), Some(1), Some(2)]
        );
        assert_eq!([45, 79].map(at), [None, None]);
    }
}
