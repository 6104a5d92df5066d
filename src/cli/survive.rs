//! `kubestep run --survive KEY`: loses each failure domain in turn, on a copy of the cluster.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, anyhow};

use crate::cli::waiting::Steps;
use crate::report::outcome::{self, Pending};
use crate::report::survive::{LostDomain, SurviveReport};
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_cluster::World;
use kubestep_debug::Session;
use kubestep_debug::edit::node_set::{domains, label_key};
use kubestep_debug::edit::{Edit, NodeSet};

/// Loses every domain of the label `key` in turn, after the queue was scheduled, with at most
/// `limit` cycles each. The first Ctrl-C keeps the domains that were tried.
pub(super) fn survive(session: &mut Session, key: &str, limit: usize) -> Result<SurviveReport> {
    let ran = session.run_to_end(limit, |_| false);
    let cut_before = session.is_cut(ran, limit).then_some(limit);
    let world = session.world();
    let key = label_key(world, key).context("--survive")?;
    let all = domains(world, key);
    let before = outcome::pending(session);
    let memory = session.history_memory();
    let steps = Steps::watch();
    let cycles = AtomicU64::new(0);
    let words = |done, of| {
        let cycles = cycles.load(Ordering::Relaxed);
        let stop = steps.and_interrupt("stops");
        format!("{done} of {of} domains lost, {cycles} cycles in this one{stop}")
    };
    let work = || {
        let mut tried = Vec::new();
        for (value, nodes) in all.iter().filter(|_| cut_before.is_none()) {
            if !steps.go_on(tried.len(), all.len()) {
                break;
            }
            let (steps, cycles, before) = (&steps, &cycles, &before);
            let trial = LossTrial { world, limit, steps, cycles, before, memory };
            let Some(domain) = trial.lose(key, *value, nodes.len())? else { break };
            tried.push(domain);
        }
        Ok::<_, anyhow::Error>(tried)
    };
    let tried = steps.show(words, work)?;
    let without = world.api().nodes().count() - all.iter().map(|(_, n)| n.len()).sum::<usize>();
    let notice = (without > 0).then(|| {
        let (nodes, have) = (count(without, "node"), if without == 1 { "has" } else { "have" });
        format!("{nodes} {have} no label {key}")
    });
    Ok(SurviveReport {
        key,
        domains: tried,
        of: all.len(),
        cut_before,
        pending_before: before,
        gates: *world.scheduler().features(),
        notices: notice.into_iter().collect(),
    })
}

struct LossTrial<'a> {
    world: &'a World,
    limit: usize,
    steps: &'a Steps,
    cycles: &'a AtomicU64,
    before: &'a [Pending],
    memory: Option<usize>,
}

impl LossTrial<'_> {
    /// `None` if the trial was stopped.
    fn lose(&self, key: Symbol, value: Symbol, nodes: usize) -> Result<Option<LostDomain>> {
        let mut world = self.world.clone();
        let edit = Edit::Lose(NodeSet::Labelled(key, value));
        let cycles_before = world.scheduler().cycles();
        edit.apply(&mut world).map_err(|error| anyhow!("--survive: {key}={value}: {error}"))?;
        let mut session = Session::new(world);
        self.memory.into_iter().for_each(|bytes| session.set_history_memory(bytes));
        session.only_forward();
        let ran = session.run_until_idle(self.limit, |record| {
            self.cycles.store(record.cycle - cycles_before, Ordering::Relaxed);
            self.steps.is_stopped()
        });
        if self.steps.is_stopped() {
            return Ok(None);
        }
        let mut domain = LostDomain::new(value, nodes, &session, self.world, self.before);
        domain.cycles -= cycles_before;
        domain.cut = session.is_cut(ran, self.limit).then_some(self.limit);
        Ok(Some(domain))
    }
}
