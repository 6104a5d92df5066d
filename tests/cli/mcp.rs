//! `kubestep mcp`: a client of the protocol lists and calls every tool.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::Call;
use crate::schema;

/// A client with the server as its child.
struct Client {
    child: Child,
    requests: Option<ChildStdin>,
    messages: BufReader<ChildStdout>,
    last: u64,
    folder: TempDir,
}

impl Client {
    /// Starts the server in an empty folder and agrees on the protocol.
    fn start() -> Client {
        let folder = TempDir::new().unwrap();
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("kubestep"))
            .arg("mcp")
            .current_dir(folder.path())
            .env_clear()
            .env("HOME", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (requests, messages) = (child.stdin.take(), child.stdout.take().unwrap());
        let mut client =
            Client { child, requests, messages: BufReader::new(messages), last: 0, folder };
        let who = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let server = client.ask("initialize", &who);
        assert_eq!(server["serverInfo"]["name"], "kubestep");
        assert!(server["instructions"].as_str().unwrap().contains("kube-scheduler"));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        let requests = self.requests.as_mut().unwrap();
        writeln!(requests, "{message}").unwrap();
        requests.flush().unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.messages.read_line(&mut line).unwrap(), 0, "the server ended");
        serde_json::from_str(&line).unwrap()
    }

    fn request(&mut self, method: &str, parameters: &Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        id
    }

    /// The response to a request as a whole.
    fn response(&mut self, method: &str, parameters: &Value) -> Value {
        let id = self.request(method, parameters);
        loop {
            let message = self.read();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        let mut response = self.response(method, parameters);
        assert!(response["error"].is_null(), "{response}");
        response["result"].take()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The text of a call that failed.
    fn failure(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Ends the input; the server ends too.
    fn end(mut self) {
        self.requests = None;
        assert!(self.child.wait().unwrap().success());
    }
}

/// Arguments for each tool, and what its text contains.
fn calls() -> Vec<(&'static str, Value, &'static str)> {
    let manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: tried}\nspec:\n  containers:\n  - name: c\n    \
                    resources: {requests: {cpu: 500m}}\n";
    vec![
        ("run", json!({"story": "tour"}), "4 placed, 1 evicted, 5 pending"),
        ("explain", json!({"story": "tainted"}), "is pending"),
        ("why_not", json!({"story": "tour", "pod": "web-1", "node": "b-0"}), "b-0"),
        ("fix", json!({"story": "tour", "pod": "default/database"}), "disktype=ssd"),
        ("new_node", json!({"story": "node-pools", "pod": "checkout"}), "NodePool spare"),
        ("new_nodes", json!({"story": "node-pools"}), "1 new node takes the pending pod"),
        ("what_if", json!({"story": "tour", "edits": ["uncordon node b-1"]}), "b-1"),
        (
            "what_if",
            json!({"story": "rollout", "edits": ["rollout deployment web cpu=1500m"]}),
            "default/web",
        ),
        (
            "run",
            json!({"story": "rollout", "edits": ["rollout deployment web cpu=1500m"]}),
            "stuck: 0 of 4 pods updated",
        ),
        ("diff", json!({"story": "upgrade", "kube_version_b": "1.33"}), "1.33"),
        ("capacity", json!({"story": "tour", "manifest": manifest}), "tried"),
        ("survive", json!({"story": "zone-loss", "key": "zone"}), "zone"),
        ("upgrade", json!({"story": "upgrade", "kube_version": "1.33", "to": "1.36"}), "1.36"),
        ("check_config", json!({}), "default-scheduler"),
    ]
}

#[test]
fn every_tool_answers_by_its_schema() {
    let mut client = Client::start();
    let listed = client.ask("tools/list", &json!({}));
    let tools = listed["tools"].as_array().unwrap().clone();
    let calls = calls();
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(calls.iter().any(|(called, ..)| *called == name), "{name} is not called");
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{name}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
    }
    for (name, arguments, words) in &calls {
        let result = client.call(name, arguments);
        assert_eq!(result["isError"], false, "{name}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(words), "{name}: {text}");
        let value = &result["structuredContent"];
        schema::check(&value.to_string());
        let of_tool = tools.iter().find(|tool| tool["name"] == *name).unwrap();
        let id = of_tool["outputSchema"]["$id"].as_str().unwrap().replace(':', "/");
        let expected = id.trim_start_matches("urn/");
        assert_eq!(value["schema"].as_str(), Some(expected), "{name}");
    }
    client.end();
}

#[test]
fn what_is_wrong_is_said_to_the_model() {
    let mut client = Client::start();
    let text = client.failure("explain", &json!({"story": "tour", "pod": "databse"}));
    assert!(text.contains("did you mean \"database\"?"), "{text}");
    let text = client.failure("run", &json!({"files": ["missing.yaml"]}));
    assert!(text.contains("missing.yaml"), "{text}");
    let text = client.failure("run", &json!({"file": "a.yaml"}));
    assert!(text.contains("did you mean files?"), "{text}");
    let text = client.failure("diff", &json!({"story": "tour", "feature_gates_b": "Nothing=true"}));
    assert!(text.contains("Nothing"), "{text}");
    let unknown = client.response("tools/call", &json!({"name": "schedule", "arguments": {}}));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("there is no tool"));
    client.end();
}

#[test]
fn its_help_and_a_wrong_option() {
    Call::new().says("mcp/help", "mcp --help");
    Call::new().says("mcp/unknown", "mcp --file cluster.yaml");
}

#[test]
fn a_configuration_that_is_rejected_is_an_answer() {
    let mut client = Client::start();
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                  parallelism: -1\n";
    std::fs::write(client.folder.path().join("scheduler.yaml"), config).unwrap();
    let result = client.call("check_config", &json!({"config": "scheduler.yaml"}));
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(result["structuredContent"]["valid"], false, "{result}");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("parallelism"), "{result}");
    client.end();
}

/// A value that looks like an option that writes stays a value.
#[test]
fn nothing_that_is_called_writes() {
    let mut client = Client::start();
    for (tool, arguments) in [
        ("explain", json!({"story": "tour", "pod": "--trace=written"})),
        ("check_config", json!({"config": "--trace=written"})),
        ("run", json!({"story": "--trace=written"})),
    ] {
        let text = client.failure(tool, &arguments);
        assert!(text.contains("trace"), "{text}");
    }
    for (tool, arguments, _) in calls() {
        client.call(tool, &arguments);
    }
    assert_eq!(std::fs::read_dir(client.folder.path()).unwrap().count(), 0);
    client.end();
}

#[test]
fn long_work_tells_its_progress_and_can_be_cancelled() {
    let mut client = Client::start();
    let node = |at: usize| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{at}")}, "status":
               {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "1000"}}})
    };
    let pod = |at: usize| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{at}"), "namespace":
               "default"}, "spec": {"containers": [{"name": "c", "resources": {"requests":
               {"cpu": format!("{}m", 1 + at)}}}]}})
    };
    let items: Vec<Value> = (0..1_000).map(node).chain((0..20_000).map(pod)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    std::fs::write(client.folder.path().join("large.json"), list.to_string()).unwrap();
    let long = json!({"name": "survive", "arguments": {"files": ["large.json"], "key":
                      "kubernetes.io/hostname"}, "_meta": {"progressToken": "work"}});
    let id = client.request("tools/call", &long);
    let reported = loop {
        let message = client.read();
        assert_ne!(message["id"], id, "it ended before it reported anything");
        if message["method"] == "notifications/progress" {
            break message;
        }
    };
    assert_eq!(reported["params"]["progressToken"], "work");
    assert!(!reported["params"]["message"].as_str().unwrap().is_empty());
    let cancel = json!({"requestId": id, "reason": "enough"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}));
    assert_eq!(client.call("check_config", &json!({}))["isError"], false);
    client.end();
}
