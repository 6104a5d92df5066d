//! The granularity of a breakpoint: queue moves, whole cycles, extension points, plugins, the
//! verdict of each node, or the verdict of each plugin on each node.

use crate::breakpoint::BreakpointError;
use crate::breakpoint::condition::Condition;
use crate::breakpoint::location::Location;
use crate::breakpoint::outcome::CycleEvent;
use crate::breakpoint::variables::Reach;
use kubestep_config::ExtensionPoint;

/// What a hit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HitUnit {
    /// A move between queues.
    Move,
    /// The move that ends a wait at Permit by timeout.
    Timeout,
    /// An outcome of a cycle.
    Event(CycleEvent),
    /// A cycle as a whole.
    Cycle,
    /// An extension point that a cycle reached.
    Point,
    /// A plugin that ran.
    Plugin,
    /// The Filter verdict of a node.
    Turn,
    /// A plugin's status; at Filter one for each node.
    Answer,
    /// A plugin's score of a node.
    Score,
    /// A node's total score.
    Total,
}

impl HitUnit {
    /// What the breakpoint's hits are.
    ///
    /// # Errors
    /// The condition uses a variable that is never known there.
    pub fn of(
        location: &Location,
        condition: Option<&Condition>,
    ) -> Result<HitUnit, BreakpointError> {
        let needs = |reach| condition.is_some_and(|condition| condition.needs(reach));
        if needs(Reach::Watch) {
            return Err(BreakpointError::Combination("value and before exist only in watches"));
        }
        let grain = find(location, &needs);
        check(grain, location, &needs)?;
        Ok(grain)
    }
}

fn find(location: &Location, needs: &impl Fn(Reach) -> bool) -> HitUnit {
    let placed = location.point.is_some() || location.plugin.is_some() || location.node.is_some();
    let cycles = placed || location.event.is_some();
    if location.queue.is_some() || (needs(Reach::Move) && !cycles) {
        return HitUnit::Move;
    }
    match location.event {
        Some(event) if event.comes_later() => return HitUnit::Timeout,
        Some(event) => return HitUnit::Event(event),
        None => {}
    }
    let by_node = location.node.is_some() || needs(Reach::Node);
    if needs(Reach::Score) || (location.point == Some(ExtensionPoint::Score) && by_node) {
        return match needs(Reach::Score) || location.plugin.is_some() {
            true => HitUnit::Score,
            false => HitUnit::Total,
        };
    }
    if needs(Reach::Total) {
        return if location.plugin.is_some() { HitUnit::Score } else { HitUnit::Total };
    }
    let asks = needs(Reach::Answer) || (needs(Reach::Message) && placed);
    match (location.plugin.is_some(), asks, by_node) {
        (true, _, true) | (true, true, _) => HitUnit::Answer,
        (false, _, true) => HitUnit::Turn,
        (false, true, false) => HitUnit::Answer,
        (true, false, false) => HitUnit::Plugin,
        (false, false, false) if location.point.is_some() => HitUnit::Point,
        (false, false, false) => HitUnit::Cycle,
    }
}

fn check(
    grain: HitUnit,
    location: &Location,
    needs: &impl Fn(Reach) -> bool,
) -> Result<(), BreakpointError> {
    let moves = matches!(grain, HitUnit::Move | HitUnit::Timeout);
    if needs(Reach::Move) && !moves {
        return Err(BreakpointError::Combination(
            "from, to and event are known where a pod moves between queues: add queue:NAME and \
             leave the rest of the location out",
        ));
    }
    let of_cycle = [Reach::Cycle, Reach::Score, Reach::Total, Reach::Node];
    if grain == HitUnit::Move && of_cycle.into_iter().any(needs) {
        return Err(BreakpointError::Combination(
            "the condition asks for a cycle, but a pod enters a queue between the cycles; pod, \
             plugin, from, to, event and seconds are known there",
        ));
    }
    let at_score = location.point.is_none_or(|point| point == ExtensionPoint::Score);
    if matches!(grain, HitUnit::Score | HitUnit::Total) && !at_score {
        return Err(BreakpointError::Combination(
            "score, raw, weighted and total exist only at Score",
        ));
    }
    if grain == HitUnit::Turn && location.point.is_some_and(|p| p != ExtensionPoint::Filter) {
        return Err(BreakpointError::Combination("only Filter and Score evaluate single nodes"));
    }
    let scores = needs(Reach::Score) || needs(Reach::Total);
    if scores && matches!(grain, HitUnit::Event(_) | HitUnit::Timeout) {
        return Err(BreakpointError::Combination(
            "scores exist only at Score, not at the end of a cycle: omit on:",
        ));
    }
    Ok(())
}
