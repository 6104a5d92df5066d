//! Calls the HTTP extenders of a configuration for real, for a simulated cluster that would
//! otherwise have nobody to ask.
//!
//! Only filter, prioritize and preempt are sent, unless the caller asks for [`Reach::Everything`].
//! A call to bind is otherwise answered here with success, upon which the simulated API server
//! binds: nothing outside is written to. The engine stays synchronous; a thread of its own waits for the network. Upstream:
//! `pkg/scheduler/extender.go`. Unlike there, redirects and proxies are not followed.

mod settings;
mod target;

use std::sync::{Arc, mpsc};
use std::thread;

use serde_json::{Value, json};
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use kubestep_cluster::ExtenderFn;
use kubestep_config::types::Extender;
use kubestep_framework::extender::binding_in;
use kubestep_framework::host::ExtenderCall;
use target::Target;

/// Why extenders cannot be called at all.
#[derive(Error, Debug)]
pub enum ConnectError {
    /// The settings of an extender make no sense together or name files that cannot be read.
    #[error("extender {url}: {problem}")]
    Settings {
        /// Its address.
        url: String,
        /// What is wrong, in one sentence.
        problem: String,
    },
    /// No thread could be started to wait for answers.
    #[error("no thread to call extenders from")]
    Thread(#[from] std::io::Error),
}

/// Which calls are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// None.
    Nothing,
    /// Those that only answer.
    Reads,
    /// Those that bind, too.
    Everything,
}

/// A question for an extender, and where the answer goes.
struct Question {
    extender: usize,
    verb: String,
    body: Vec<u8>,
    answer: mpsc::Sender<Result<Value, String>>,
}

/// Gets ready to call `extenders`, given in their effective order. Nothing is sent yet.
///
/// # Errors
/// The settings of an extender cannot be used. Whether it can be reached shows at the first
/// call only, as upstream.
pub fn connect(extenders: &[Extender], reach: Reach) -> Result<ExtenderFn, ConnectError> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let targets = targets(extenders, &runtime)?;
    let (questions, inbox) = unbounded_channel();
    let work = move || runtime.block_on(serve(targets, inbox));
    // It ends when the last copy of the returned function is gone.
    thread::Builder::new().name("extenders".into()).spawn(work)?;
    let asked: Vec<Extender> = extenders.to_vec();
    let is_sent = move |call: &_| match reach {
        Reach::Nothing => false,
        Reach::Reads => is_read(&asked, call),
        Reach::Everything => true,
    };
    Ok(Arc::new(move |call, _objects| match is_sent(call) {
        true => ask(&questions, call),
        false => Ok(json!({})),
    }))
}

/// The clients are made inside the runtime that is to serve them.
fn targets(extenders: &[Extender], runtime: &Runtime) -> Result<Vec<Target>, ConnectError> {
    let _inside = runtime.enter();
    let target = |extender: &Extender| {
        let url = extender.url_prefix.clone();
        Target::new(extender).map_err(|problem| ConnectError::Settings { url, problem })
    };
    extenders.iter().map(target).collect()
}

/// Whether a call may be sent: it is to one of the verbs that only answer, and binds nothing.
fn is_read(extenders: &[Extender], call: &ExtenderCall) -> bool {
    let Some(extender) = extenders.get(call.extender) else { return false };
    let reads = [&extender.filter_verb, &extender.prioritize_verb, &extender.preempt_verb];
    binding_in(call).is_none() && reads.iter().any(|verb| call.verb == verb.as_str())
}

/// Hands the question over and waits for the answer.
fn ask(questions: &UnboundedSender<Question>, call: &ExtenderCall) -> Result<Value, String> {
    const GONE: &str = "the thread that calls extenders has ended";
    let body = serde_json::to_vec(&call.body).map_err(|error| error.to_string())?;
    let (answer, answered) = mpsc::channel();
    let question =
        Question { extender: call.extender, verb: call.verb.as_str().to_owned(), body, answer };
    questions.send(question).map_err(|_| GONE)?;
    answered.recv().map_err(|_| GONE)?
}

/// Asks as many at once as are to be asked: a cycle waits for its answer, bindings beside it for
/// theirs. Between questions, connections that are kept open are looked after.
async fn serve(targets: Vec<Target>, mut inbox: UnboundedReceiver<Question>) {
    let targets = Arc::new(targets);
    while let Some(question) = inbox.recv().await {
        let targets = targets.clone();
        tokio::spawn(async move {
            let Some(target) = targets.get(question.extender) else { return };
            let answer = target.post(&question.verb, question.body).await;
            // Whoever asked is still waiting, unless the program ends.
            let _delivered = question.answer.send(answer);
        });
    }
}

#[cfg(test)]
mod tests;
