//! Calls the HTTP extenders of a configuration over the network, on behalf of a simulated cluster.
//!
//! Only filter, prioritize and preempt are sent, unless the caller asks for [`CallScope::Everything`].
//! Other bind calls are answered locally with success, and the simulated API server binds: nothing
//! outside of the process is changed. The engine stays synchronous; a separate thread waits for the
//! network. Upstream: `pkg/scheduler/extender.go`. Unlike upstream, redirects and proxies are not
//! followed.

mod settings;
mod target;

use std::sync::{Arc, mpsc};

use serde_json::{Value, json};
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::runtime;
use kubestep_cluster::ExtenderFn;
use kubestep_config::types::Extender;
use kubestep_framework::extender::binding_in;
use kubestep_framework::host::ExtenderCall;
use target::ExtenderTarget;

/// Why extenders cannot be called at all.
#[derive(Error, Debug)]
pub enum ConnectError {
    /// The settings of an extender contradict each other or name files that cannot be read.
    #[error("extender {url}: {problem}")]
    Settings {
        /// `urlPrefix` of the extender.
        url: String,
        /// What is wrong, in one sentence.
        problem: String,
    },
    /// No thread could be started to wait for answers.
    #[error("cannot start a thread for extender calls")]
    Thread(#[from] std::io::Error),
}

/// Which calls are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallScope {
    /// No calls, as without `--call-extenders`.
    Nothing,
    /// Calls that change nothing.
    Reads,
    /// All calls, including bind.
    Everything,
}

/// A call of an extender, and where the answer goes.
struct ExtenderRequest {
    extender: usize,
    verb: String,
    body: Vec<u8>,
    answer: mpsc::Sender<Result<Value, String>>,
}

/// Prepares to call `extenders`, given in their effective order. Nothing is sent yet.
///
/// # Errors
/// The settings of an extender cannot be used. As upstream, an unreachable extender is noticed at
/// the first call only.
pub fn connect(extenders: &[Extender], reach: CallScope) -> Result<ExtenderFn, ConnectError> {
    let runtime = runtime::new()?;
    let targets = targets(extenders, &runtime)?;
    let (questions, inbox) = unbounded_channel();
    let work = move || runtime.block_on(serve(targets, inbox));
    // The thread ends when the last copy of the returned function is dropped.
    runtime::thread("extenders", work)?;
    let asked: Vec<Extender> = extenders.to_vec();
    let is_sent = move |call: &_| match reach {
        CallScope::Nothing => false,
        CallScope::Reads => is_read(&asked, call),
        CallScope::Everything => true,
    };
    Ok(Arc::new(move |call, _objects| match is_sent(call) {
        true => ask(&questions, call),
        false => Ok(json!({})),
    }))
}

/// The clients are created inside of the runtime that drives them.
fn targets(extenders: &[Extender], runtime: &Runtime) -> Result<Vec<ExtenderTarget>, ConnectError> {
    let _inside = runtime.enter();
    let target = |extender: &Extender| {
        let url = extender.url_prefix.clone();
        ExtenderTarget::new(extender).map_err(|problem| ConnectError::Settings { url, problem })
    };
    extenders.iter().map(target).collect()
}

/// Whether the call changes nothing: its verb only answers, and does not bind.
fn is_read(extenders: &[Extender], call: &ExtenderCall) -> bool {
    let Some(extender) = extenders.get(call.extender) else { return false };
    let reads = [&extender.filter_verb, &extender.prioritize_verb, &extender.preempt_verb];
    binding_in(call).is_none() && reads.iter().any(|verb| call.verb == verb.as_str())
}

/// Sends the call to the thread and waits for the answer.
fn ask(questions: &UnboundedSender<ExtenderRequest>, call: &ExtenderCall) -> Result<Value, String> {
    const GONE: &str = "the thread that calls extenders has ended";
    let body = serde_json::to_vec(&call.body).map_err(|error| error.to_string())?;
    let (answer, answered) = mpsc::channel();
    let question = ExtenderRequest {
        extender: call.extender,
        verb: call.verb.as_str().to_owned(),
        body,
        answer,
    };
    questions.send(question).map_err(|_| GONE)?;
    answered.recv().map_err(|_| GONE)?
}

/// Serves calls concurrently: a cycle waits for one answer while bindings in the background wait
/// for theirs. Between calls, idle connections are kept alive.
async fn serve(targets: Vec<ExtenderTarget>, mut inbox: UnboundedReceiver<ExtenderRequest>) {
    let targets = Arc::new(targets);
    while let Some(question) = inbox.recv().await {
        let targets = targets.clone();
        tokio::spawn(async move {
            let Some(target) = targets.get(question.extender) else { return };
            let answer = target.post(&question.verb, question.body).await;
            // The caller is still waiting, unless the program ends.
            let _delivered = question.answer.send(answer);
        });
    }
}

#[cfg(test)]
mod tests;
