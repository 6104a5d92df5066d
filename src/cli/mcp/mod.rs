//! `kubestep mcp`: the questions of the command line for agents and editors, as a server of the Model
//! Context Protocol on standard input and output.
//!
//! A tool is a row of `tools`, and a call is a process of this program with a fixed subcommand: it
//! answers as the command does, can be ended at any time, and has no option that writes.

mod arguments;
mod process;
mod tools;

use anyhow::{Context, Result};
use clap::Args;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities,
    ServerConfig, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt};

use crate::cli::exit::Exit;
use crate::cli::registry::Subcommand;
use arguments::command_line;
use process::{CallOutput, ToolCall};
use tools::{TOOLS, Tool};

/// Answer questions of agents and editors over the Model Context Protocol, on standard input and
/// output; nothing is written to files or clusters
#[derive(Args, Debug)]
pub(super) struct Mcp {}

/// Instructions for the model, sent with the server's capabilities.
const INSTRUCTIONS: &str = "kubestep embeds kube-scheduler and answers by running it on a copy of the \
    cluster: files with Kubernetes objects (files), a built-in example (story), or the cluster of the \
    kubeconfig (neither). Begin with run, which lists the pending pods, then explain or fix one of them.";

impl Subcommand for Mcp {
    const NAME: &'static str = "mcp";

    fn run(&self) -> Result<Exit> {
        let runtime = kubestep_live::runtime::new().context("the protocol's server")?;
        let served = runtime.block_on(async {
            let server = McpServer.serve(rmcp::transport::stdio()).await?;
            server.waiting().await?;
            anyhow::Ok(())
        });
        // A thread may still wait for standard input.
        runtime.shutdown_background();
        served.context("the protocol's server").map(|()| Exit::Fine)
    }
}

/// The server; it keeps nothing between calls.
#[derive(Clone, Copy)]
struct McpServer;

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("kubestep", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(described).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let text =
                format!("there is no tool {:?}; there are {}", request.name, known.join(", "));
            return Err(ErrorData::invalid_params(text, None));
        };
        let arguments = request.arguments.unwrap_or_default();
        Ok(match command_line(tool, &arguments) {
            Ok(call) => result(answer(&call, &context).await),
            Err(text) => failure(text),
        }
        .into())
    }
}

/// The tools for the documents: name, the question, the arguments.
pub fn tool_rows() -> impl Iterator<Item = [String; 3]> {
    TOOLS.iter().map(|tool| {
        let of_tool = tool.parameters().map(|parameter| match parameter.required {
            true => format!("`{}` (required)", parameter.name),
            false => format!("`{}`", parameter.name),
        });
        let all: Vec<String> = of_tool.collect();
        [format!("`{}`", tool.name), tool.title.to_owned(), all.join(", ")]
    })
}

/// A tool as the protocol describes it.
fn described(tool: &Tool) -> rmcp::model::Tool {
    let mut described =
        rmcp::model::Tool::new(tool.name, tool.description, arguments::schema(tool));
    described.title = Some(tool.title.to_owned());
    described.output_schema = Some(tool.output_schema().into());
    described.annotations = Some(ToolAnnotations::new().read_only(true).idempotent(true));
    described
}

/// Runs a call. Its progress goes to the client if that asked for it, and it ends when the client
/// cancels it.
async fn answer(
    call: &ToolCall,
    context: &RequestContext<RoleServer>,
) -> Result<CallOutput, String> {
    let token = context.meta.get_progress_token();
    let (sender, mut progress) = tokio::sync::mpsc::unbounded_channel();
    let work = process::run(call, sender);
    tokio::pin!(work);
    let mut reported = 0.0;
    loop {
        tokio::select! {
            answer = &mut work => return answer,
            () = context.ct.cancelled() => return Err("cancelled".to_owned()),
            Some(words) = progress.recv() => {
                if let Some(token) = &token {
                    reported += 1.0;
                    let mut note = ProgressNotificationParam::new(token.clone(), reported);
                    note.message = Some(words);
                    // A client that does not read its notifications still gets the answer.
                    let _unread = context.peer.notify_progress(note).await;
                }
            }
        }
    }
}

fn result(answer: Result<CallOutput, String>) -> CallToolResult {
    match answer {
        Ok(CallOutput { text, value }) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(value);
            result
        }
        Err(text) => failure(text),
    }
}

fn failure(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_a_command_that_the_program_has() {
        let command = crate::cli::command();
        for tool in TOOLS {
            let (name, flags) = tool.command.split_first().unwrap();
            let subcommand = command.find_subcommand(name);
            let known = |option: &str| {
                let mut all = subcommand.unwrap().get_arguments();
                all.any(|argument| argument.get_long() == option.strip_prefix("--"))
            };
            assert!(flags.iter().all(|flag| known(flag)), "{}: {flags:?}", tool.name);
            for parameter in tool.parameters() {
                let option = parameter.option();
                assert!(option.is_none_or(known), "{}: {option:?}", tool.name);
            }
            assert_eq!(tool.output_schema()["type"], "object", "{}", tool.name);
        }
    }

    /// What writes a file, or to a cluster, is in no tool.
    #[test]
    fn no_tool_can_write() {
        const READS: [&str; 5] = ["run", "explain", "diff", "upgrade", "config"];
        const OPTIONS: [&str; 4] = ["--trace", "--output", "--follow-symlinks", "--yes-write"];
        for tool in TOOLS {
            assert!(READS.contains(&tool.command[0]), "{}", tool.name);
            let options = tool.parameters().filter_map(tools::Parameter::option);
            assert!(options.chain(tool.command.iter().copied()).all(|o| !OPTIONS.contains(&o)));
        }
    }
}
