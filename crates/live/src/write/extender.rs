//! Binds through an extender: called in the background, as in upstream's binding goroutine, because
//! it may be slow. Upstream: `Bind` in `pkg/scheduler/extender.go`.

use std::sync::{Arc, OnceLock};

use crate::failure::Failure;
use crate::write::Gate;
use kubestep_cluster::ExtenderFn;
use kubestep_cluster::remote::Written;
use kubestep_framework::extender::error_text;
use kubestep_framework::host::ExtenderCall;
use kubestep_framework::objects::Objects;

/// The function that calls extenders, once it is set.
#[derive(Clone, Default)]
pub(super) struct Extenders(Arc<OnceLock<ExtenderFn>>);

impl Extenders {
    /// Sets the function that calls extenders. Later calls are ignored.
    pub fn set(&self, extenders: ExtenderFn) {
        let _first = self.0.set(extenders);
    }
}

/// Lets an extender bind the pod.
///
/// # Errors
/// The extender failed, or writing was stopped.
pub(super) async fn bind(
    gate: &Gate,
    extenders: &Extenders,
    call: ExtenderCall,
) -> Result<Written, Failure> {
    let Some(ask) = extenders.0.get().cloned() else {
        let text = format!("no client is configured for extender {}", call.extender);
        return Err(Failure::Unreachable(text));
    };
    let asked = async {
        let answer = tokio::task::spawn_blocking(move || ask(&call, &Objects::default())).await;
        let answer = answer.map_err(|error| Failure::Unreachable(error.to_string()))?;
        let answer = answer.map_err(Failure::Unreachable)?;
        error_text(&answer).map_or(Ok(Written::Done), |text| Err(Failure::Unreachable(text)))
    };
    tokio::select! {
        biased;
        reason = gate.until_closed() => Err(Failure::Stopped(reason)),
        answer = asked => answer,
    }
}
