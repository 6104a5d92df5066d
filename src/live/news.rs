//! News from a live cluster as a change of the session: done again later, it leads to the same
//! state, as it holds everything it needs.

use crate::api::{Kind, Object, Time};
use crate::debug::Change;
use crate::engine::pod::NamespacedName;
use crate::intern::Symbol;
use crate::sim::World;
use crate::sim::remote::Answer;

/// One thing to do with the simulated cluster.
#[derive(Clone, Debug)]
pub enum Op {
    /// An object is as the server has it.
    Accept(Object),
    /// The server does not have it any more.
    Forget(Kind, NamespacedName),
    /// Pods of that scheduler name are to be tried, by the first profile's rules.
    Serve(Symbol),
    /// The pod is to be tried.
    Activate(NamespacedName),
    /// A write was answered.
    Answer {
        /// The request's.
        ticket: u64,
        /// What became of it.
        answer: Answer,
        /// What was to be written, in a few words.
        what: String,
    },
    /// The pod is not to be tried until it changes; in whose name.
    Aside(NamespacedName, Symbol),
}

/// What happened up to a moment.
#[derive(Clone, Debug)]
pub struct News {
    /// The moment, by the server's clock.
    pub now: Time,
    /// What happened, in order.
    pub ops: Vec<Op>,
}

impl Change for News {
    fn words(&self) -> String {
        let accepted = |op: &&Op| matches!(op, Op::Accept(_) | Op::Forget(..) | Op::Answer { .. });
        match (self.ops.iter().filter(accepted).count(), self.ops.first()) {
            (1, Some(Op::Accept(object))) => format!("from the cluster: {}", object.key()),
            (1, Some(Op::Forget(kind, key))) => format!("from the cluster: {kind} {key} is gone"),
            (1, Some(Op::Answer { answer: Ok(_), what, .. })) => format!("written: {what}"),
            (1, Some(Op::Answer { answer: Err(error), what, .. })) => {
                format!("not written: {what}: {error}")
            }
            (0, _) => "time passed".into(),
            (count, _) => format!("from the cluster: {count} changes"),
        }
    }

    fn cannot_fail(&self) -> bool {
        true
    }

    fn apply(&self, world: &mut World) -> Result<(), String> {
        world.advance_to(self.now);
        for op in &self.ops {
            match op {
                Op::Accept(object) => world.accept(object.clone()),
                Op::Forget(kind, key) => world.forget(*kind, *key),
                // It was built before with the same arguments.
                Op::Serve(name) => world.serve(*name)?,
                Op::Activate(pod) => {
                    // A gated pod stays where it is.
                    let _active = world.activate(*pod);
                }
                Op::Answer { ticket, answer, .. } => world.answer(*ticket, answer.clone()),
                Op::Aside(pod, by) => world.put_aside(*pod, *by),
            }
        }
        Ok(())
    }
}
