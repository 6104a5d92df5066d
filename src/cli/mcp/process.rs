//! A call as two processes of this program at the same time: one prints text, the other JSON.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc::UnboundedSender;

use crate::cli::exit::Exit;
use crate::cli::waiting::PROGRESS_VARIABLE;

/// The command line that a call of a tool becomes.
#[derive(Clone, Default, Debug)]
pub(super) struct ToolCall {
    /// The subcommand and its options.
    pub words: Vec<String>,
    /// The argument that is no option.
    pub positional: Option<String>,
    /// What is on standard input.
    pub input: Option<String>,
}

/// What a call printed.
pub(super) struct CallOutput {
    pub text: String,
    pub value: Value,
}

impl ToolCall {
    /// The whole command line with an output format.
    pub(super) fn line(&self, format: &str) -> Vec<String> {
        let behind = self.positional.iter().flat_map(|text| ["--", text]).map(str::to_owned);
        self.words.iter().cloned().chain([format!("--output={format}")]).chain(behind).collect()
    }
}

/// Runs a call; the words of its progress go to `progress`. If the future is dropped, its processes
/// end.
///
/// # Errors
/// What the program says is wrong.
pub(super) async fn run(
    call: &ToolCall,
    progress: UnboundedSender<String>,
) -> Result<CallOutput, String> {
    let (text, json) =
        tokio::join!(printed(call, "text", None), printed(call, "json", Some(progress)));
    let value: Result<Value, _> = serde_json::from_str(&json?);
    let value = value.map_err(|error| format!("the answer cannot be read: {error}"))?;
    let text = match text {
        // The text of a rejected configuration is on standard error.
        Err(rejection) if value["valid"] == false => rejection,
        text => text?,
    };
    Ok(CallOutput { text, value })
}

/// What one process printed; a text after the notices on standard error.
async fn printed(
    call: &ToolCall,
    format: &str,
    progress: Option<UnboundedSender<String>>,
) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(call.line(format)).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if progress.is_some() {
        command.env(PROGRESS_VARIABLE, "lines");
    }
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = input {
            // A program that ends early does not read it.
            let _unread =
                stdin.write_all(call.input.as_deref().unwrap_or_default().as_bytes()).await;
        }
    };
    let read = async {
        let mut text = String::new();
        match output {
            Some(mut output) => output.read_to_string(&mut text).await.map(|_| text),
            None => Ok(text),
        }
    };
    let (_, printed, error_text) = tokio::join!(write, read, error_text(errors, progress));
    let status = child.wait().await.map_err(|error| error.to_string())?;
    let answers = [Exit::Fine, Exit::Unschedulable, Exit::Differs, Exit::Incomplete]
        .map(|exit| i32::from(exit.code()));
    match status.code() {
        Some(code) if answers.contains(&code) => {
            let printed = printed.map_err(|error| error.to_string())?;
            Ok(match error_text.is_empty() || format == "json" {
                true => printed,
                false => format!("{error_text}\n\n{printed}"),
            })
        }
        // A rejected configuration is printed as JSON, with the exit code for invalid input.
        Some(code)
            if code == i32::from(Exit::Usage.code())
                && format == "json"
                && printed.as_ref().is_ok_and(|text| !text.is_empty()) =>
        {
            printed.map_err(|error| error.to_string())
        }
        _ if error_text.is_empty() => Err(format!("kubestep ended without an answer: {status}")),
        _ => Err(error_text),
    }
}

/// The lines of standard error that are not progress.
async fn error_text(
    errors: Option<tokio::process::ChildStderr>,
    progress: Option<UnboundedSender<String>>,
) -> String {
    let mut text = Vec::new();
    let Some(errors) = errors else { return String::new() };
    let mut lines = BufReader::new(errors).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match (line.strip_prefix("progress: "), &progress) {
            (Some(words), Some(progress)) => {
                // The receiver is dropped if the call was cancelled.
                let _dropped = progress.send(words.to_owned());
            }
            _ => text.push(line),
        }
    }
    text.join("\n")
}
