//! Binds through an extender: called in the background, as in upstream's binding goroutine, because
//! it may be slow. Upstream: `Bind` in `pkg/scheduler/extender.go`.

use std::sync::{Arc, OnceLock};

use crate::failure::RequestFailure;
use crate::write::WriteGate;
use kubestep_cluster::ExtenderFn;
use kubestep_cluster::remote::WriteOutcome;
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
    gate: &WriteGate,
    extenders: &Extenders,
    call: ExtenderCall,
) -> Result<WriteOutcome, RequestFailure> {
    let Some(ask) = extenders.0.get().cloned() else {
        let text = format!("no client is configured for extender {}", call.extender);
        return Err(RequestFailure::Unreachable(text));
    };
    let asked = async {
        let answer = tokio::task::spawn_blocking(move || ask(&call, &Objects::default())).await;
        let answer = answer.map_err(|error| RequestFailure::Unreachable(error.to_string()))?;
        let answer = answer.map_err(RequestFailure::Unreachable)?;
        error_text(&answer)
            .map_or(Ok(WriteOutcome::Done), |text| Err(RequestFailure::Unreachable(text)))
    };
    tokio::select! {
        biased;
        reason = gate.until_closed() => Err(RequestFailure::Stopped(reason)),
        answer = asked => answer,
    }
}
