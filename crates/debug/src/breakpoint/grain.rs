//! The granularity of a breakpoint: queue moves, whole cycles, extension points, plugins, the
//! verdict of each node, or the verdict of each plugin on each node.

use crate::breakpoint::condition::Condition;
use crate::breakpoint::location::Location;
use crate::breakpoint::outcome::Event;
use crate::breakpoint::variables::Reach;
use kubestep_config::ExtensionPoint;

/// What a hit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grain {
    /// A move between queues.
    Move,
    /// The move that ends a wait at Permit by timeout.
    Timeout,
    /// An outcome of a cycle.
    Event(Event),
    /// A cycle.
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

impl Grain {
    /// What the breakpoint's hits are.
    ///
    /// # Errors
    /// The condition uses a variable that is never known there; the text is meant for people.
    pub fn of(location: &Location, condition: Option<&Condition>) -> Result<Grain, String> {
        let needs = |reach| condition.is_some_and(|condition| condition.needs(reach));
        if needs(Reach::Watch) {
            return Err("value and before exist only in watches".into());
        }
        let grain = find(location, &needs);
        check(grain, location, &needs)?;
        Ok(grain)
    }
}

fn find(location: &Location, needs: &impl Fn(Reach) -> bool) -> Grain {
    let placed = location.point.is_some() || location.plugin.is_some() || location.node.is_some();
    let cycles = placed || location.event.is_some();
    if location.queue.is_some() || (needs(Reach::Move) && !cycles) {
        return Grain::Move;
    }
    match location.event {
        Some(event) if event.comes_later() => return Grain::Timeout,
        Some(event) => return Grain::Event(event),
        None => {}
    }
    let by_node = location.node.is_some() || needs(Reach::Node);
    if needs(Reach::Score) || (location.point == Some(ExtensionPoint::Score) && by_node) {
        return match needs(Reach::Score) || location.plugin.is_some() {
            true => Grain::Score,
            false => Grain::Total,
        };
    }
    if needs(Reach::Total) {
        return if location.plugin.is_some() { Grain::Score } else { Grain::Total };
    }
    let asks = needs(Reach::Answer) || (needs(Reach::Message) && placed);
    match (location.plugin.is_some(), asks, by_node) {
        (true, _, true) | (true, true, _) => Grain::Answer,
        (false, _, true) => Grain::Turn,
        (false, true, false) => Grain::Answer,
        (true, false, false) => Grain::Plugin,
        (false, false, false) if location.point.is_some() => Grain::Point,
        (false, false, false) => Grain::Cycle,
    }
}

fn check(grain: Grain, location: &Location, needs: &impl Fn(Reach) -> bool) -> Result<(), String> {
    let moves = matches!(grain, Grain::Move | Grain::Timeout);
    if needs(Reach::Move) && !moves {
        return Err(
            "from, to and event are known where a pod moves between queues: add queue:NAME \
                    and leave the rest of the place out"
                .into(),
        );
    }
    let of_cycle = [Reach::Cycle, Reach::Score, Reach::Total, Reach::Node];
    if grain == Grain::Move && of_cycle.into_iter().any(needs) {
        return Err(
            "the condition asks for a cycle, but a pod enters a queue between the cycles; \
                    pod, plugin, from, to, event and seconds are known there"
                .into(),
        );
    }
    let at_score = location.point.is_none_or(|point| point == ExtensionPoint::Score);
    if matches!(grain, Grain::Score | Grain::Total) && !at_score {
        return Err("score, raw, weighted and total exist only at Score".into());
    }
    if grain == Grain::Turn && location.point.is_some_and(|p| p != ExtensionPoint::Filter) {
        return Err("only Filter and Score evaluate single nodes".into());
    }
    let scores = needs(Reach::Score) || needs(Reach::Total);
    if scores && matches!(grain, Grain::Event(_) | Grain::Timeout) {
        return Err("scores exist only at Score, not at the end of a cycle: omit on:".into());
    }
    Ok(())
}
