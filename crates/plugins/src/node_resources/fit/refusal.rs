//! The rejections of one cycle. Thousands of nodes share few different ones, so each is built when
//! first needed and then shared.

use std::sync::OnceLock;

use super::check::{Demand, Lacking};
use kubestep_api::intern::Symbol;
use kubestep_framework::status::{Code, Status};

/// The reasons that the table covers; rejections of pods with more scalars are not shared.
const TABLE_REASONS: usize = 8;

/// The rejections of a pod that were needed so far.
pub struct Refusals {
    plugin: Symbol,
    /// By the bits of the reasons, then by whether the rejection is unresolvable.
    table: Box<[OnceLock<Status>]>,
}

impl Refusals {
    /// An empty table.
    pub fn new(plugin: Symbol, demand: &Demand) -> Refusals {
        let reasons = 4 + demand.scalars.len();
        let len = if reasons <= TABLE_REASONS { 2 << reasons } else { 0 };
        Refusals { plugin, table: (0..len).map(|_| OnceLock::new()).collect() }
    }

    /// The rejection of a node with these reasons.
    pub fn status(&self, lacking: &Lacking, demand: &Demand) -> Status {
        let at = lacking.reasons as usize * 2 + usize::from(lacking.unresolvable);
        match self.table.get(at) {
            Some(known) => known.get_or_init(|| self.build(lacking, demand)).clone(),
            None => self.build(lacking, demand),
        }
    }

    fn build(&self, lacking: &Lacking, demand: &Demand) -> Status {
        let fixed = ["Too many pods", "Insufficient cpu", "Insufficient memory"];
        let fixed = fixed.into_iter().chain(["Insufficient ephemeral-storage"]).map(Symbol::new);
        let scalars = demand
            .scalars
            .iter()
            .map(|scalar| Symbol::new(&format!("Insufficient {}", scalar.name)));
        let all = fixed.chain(scalars).enumerate();
        let reasons = all.filter(|(bit, _)| lacking.reasons & (1 << (*bit).min(63)) != 0);
        let code = match lacking.unresolvable {
            true => Code::UnschedulableAndUnresolvable,
            false => Code::Unschedulable,
        };
        Status::with_reasons(code, reasons.map(|(_, reason)| reason).collect()).by(self.plugin)
    }
}
