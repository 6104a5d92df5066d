//! Going back in time: a restored state, a matrix that is computed again and a replayed future must
//! be byte-identical to the first time.

use std::fmt;
use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_cluster::World;
use kubestep_debug::edit::EditError;
use kubestep_debug::trace::{Entry, json};
use kubestep_debug::{Change, Input, Session};
use serde_json::Value;

use crate::case::{Case, Step};
use crate::random::Random;
use crate::run;

/// A step of a case that changes objects.
struct Deed(Arc<Case>, usize);

impl fmt::Debug for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}", self.1)
    }
}

impl Change for Deed {
    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn apply(&self, world: &mut World) -> Result<(), EditError> {
        run::act(world, &self.0.steps[self.1]).map(|_| ()).map_err(EditError)
    }
}

/// Runs all steps of a case and returns what was observed after each input.
fn play(case: &Arc<Case>, session: &mut Session) -> Result<Vec<Value>, String> {
    let mut seen = vec![run::seen(session.world(), &[])];
    for (number, step) in case.steps.iter().enumerate() {
        for input in inputs(case, session, (number, step)) {
            if session.apply(input).map_err(|error| error.to_string())? {
                seen.push(run::seen(session.world(), &[]));
            }
        }
    }
    Ok(seen)
}

fn inputs(case: &Arc<Case>, session: &Session, (number, step): (usize, &Step)) -> Vec<Input> {
    match step {
        Step::Run(cycles) => vec![Input::Cycle; *cycles],
        Step::Advance(seconds) => vec![Input::Advance(seconds * 1_000_000)],
        Step::Decide(allow) => {
            let waiting = session.world().scheduler().waiting().first();
            let Some(uid) = waiting.map(|pod| pod.pod().uid()) else { return Vec::new() };
            let plugin = Symbol::new("ManualPermit");
            vec![match allow {
                true => Input::Allow { uid, plugin: None },
                false => Input::Reject { uid, plugin, message: "not today".into() },
            }]
        }
        _ => vec![Input::Change(Arc::new(Deed(case.clone(), number)))],
    }
}

/// The whole recording, with dropped parts computed again.
fn records_of(session: &mut Session) -> Vec<Value> {
    let entries = session.history().entries().iter().cloned().collect::<Vec<_>>();
    let mut one = |entry: &Arc<Entry>| match entry.as_ref() {
        Entry::Cycle(record) => {
            let whole = session.whole_record(record.cycle);
            whole.map_or(Value::Null, |record| json::cycle(&record))
        }
        other => Value::from(format!("{other:?}")),
    };
    entries.iter().map(&mut one).collect()
}

/// Checks that the states and records of a case can be restored and that its future can be
/// replayed.
pub fn comes_back(seed: u64) -> Result<(), String> {
    Case::both(seed).into_iter().try_for_each(|case| case_comes_back(Arc::new(case), seed))
}

fn case_comes_back(case: Arc<Case>, seed: u64) -> Result<(), String> {
    let mut first = Session::new(case.world()?);
    let states = play(&case, &mut first)?;
    let expected = records_of(&mut first);
    let mut session = Session::new(case.world()?);
    // As few matrices and copies as possible.
    session.set_history_memory(0);
    run::compare(&states, &play(&case, &mut session)?)?;
    let mut random = Random::new(!seed);
    for _ in 0..12 {
        let step = random.below(states.len());
        let again = run::seen(&session.world_at(step), &[]);
        let same = run::compare(&states[step..=step], &[again]);
        same.map_err(|text| format!("state after step {step}: {text}"))?;
    }
    run::compare(&expected, &records_of(&mut session))
        .map_err(|text| format!("records: {text}"))?;
    goes_on(&mut session, random.below(states.len()), &expected)
}

/// Checks that the inputs after a step give the same results again.
fn goes_on(session: &mut Session, step: usize, expected: &[Value]) -> Result<(), String> {
    session.go_to_stop(session.timeline().last_stop_of(step));
    let rest: Vec<Input> =
        session.timeline().steps().from(step + 1).filter_map(|s| s.input.clone()).collect();
    let mut fork = session.fork();
    for input in rest {
        if !fork.apply(input).map_err(|error| error.to_string())? {
            return Err(format!("from step {step}: there is nothing to do any more"));
        }
    }
    let again = records_of(&mut fork);
    run::compare(expected, &again).map_err(|text| format!("from step {step}: {text}"))
}
